"""The floors of the house: a room imports only from below, heavy libraries stay in their room."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import arena_lightning

PACKAGE = Path(arena_lightning.__file__).parent
FLOORS = {
    "types": 0,
    "errors": 0,
    "rng": 0,
    "protocols": 0.5,  # floor 0, but built of the carriers
    "arena": 1,
    "judges": 2,
    "tasks": 2,
    "rollout": 2,
    "policy": 2,
    "analysis": 2,
    "training": 3,
    "reporting": 3,
    "lightning_cli": 4,
    "plan": 4,
    "cli": 5,
    "__main__": 6,
}
HEAVY = {
    "vllm": {"rollout"},
    "peft": {"policy"},
    "litellm": {"judges"},
    "transformers": {"policy", "rollout"},
    "lightning": {"training", "reporting", "lightning_cli"},
}


def imports_of(path):
    """Yield the dotted names that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def room_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def test_every_room_has_a_floor():
    assert {room_of(path) for path in FILES} <= set(FLOORS)


def test_a_room_imports_only_from_floors_below_it():
    wrong = []
    for path in FILES:
        room = room_of(path)
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] != "arena_lightning" or len(parts) == 1 or parts[1] == room:
                continue
            if FLOORS[parts[1]] >= FLOORS[room]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_each_heavy_library_is_imported_in_its_own_rooms_only():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in FILES
        for name in imports_of(path)
        if name.split(".")[0] in HEAVY and room_of(path) not in HEAVY[name.split(".")[0]]
    ]
    assert not wrong


@pytest.mark.parametrize("module", ["arena_lightning.arena", "arena_lightning.types"])
def test_floors_0_and_1_load_no_torch(module):
    code = f"import sys, {module}; print('torch' in sys.modules, 'lightning' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
