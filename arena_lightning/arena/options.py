"""Refuses settings that do not exist or are out of range, in words a person can act on.

Topologies and the arena are built from YAML and from Python; both get the same message.
"""

from typing import Any, get_args

from arena_lightning.errors import ConfigError


def require_choice(owner: object, name: str, choices: Any) -> None:
    """Raise `ConfigError` unless `owner`'s attribute `name` is one of a `Literal`'s choices."""
    value = getattr(owner, name)
    known = get_args(choices)
    if value not in known:
        raise ConfigError(
            f"{name} must be one of {', '.join(map(str, known))}, got {value!r} "
            f"({type(owner).__name__}). Choose one of them."
        )


def require(holds: bool, owner: object, name: str, must: str) -> None:
    """Raise `ConfigError` saying what the attribute `name` of `owner` must do, unless `holds`."""
    if not holds:
        raise ConfigError(
            f"{name} must {must}, got {getattr(owner, name)!r} ({type(owner).__name__}). "
            "Change that setting."
        )
