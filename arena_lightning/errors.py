"""The error model: one root, one class per boundary.

A message says what must hold, what came, where (file, key), and what to do. The command line
prints it without a traceback and exits with a code other than 0; a bug keeps its traceback.
"""


class ArenaLightningError(Exception):
    """Root of every error that a user or a service can cause."""


class ConfigError(ArenaLightningError):
    """A setting, file or argument given by the user is wrong."""


class DataError(ArenaLightningError):
    """A prompts file, record or bank can't be used as it stands."""


class RolloutError(ArenaLightningError):
    """An inference engine could not produce a completion."""


class WeightSyncError(RolloutError):
    """An engine does not hold the weights it claims to hold."""


class JudgeError(ArenaLightningError):
    """A judge gave no usable verdict. It becomes a failed match, never a score."""


class RecordError(ArenaLightningError):
    """A ledger, checkpoint or metrics file can't be written or read."""
