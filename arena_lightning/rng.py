"""Addressable randomness: every draw has an address, so a resumed run repeats none and skips none.

Nothing in the project touches a global generator. An address is (root seed, stream name, indices);
equal addresses give equal generators on every machine and in every process.
"""

import hashlib

import numpy as np


def seed_for(root_seed: int, stream: str, *indices: int) -> int:
    """Return the 63-bit seed at an address.

    Args:
        root_seed: the run's seed.
        stream: what the draw is for, e.g. `"arena/order"`.
        indices: step, group, trajectory, or whatever else addresses the draw.
    """
    address = repr((int(root_seed), stream, tuple(int(index) for index in indices)))
    digest = hashlib.blake2b(address.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator_for(root_seed: int, stream: str, *indices: int) -> np.random.Generator:
    """Return a NumPy generator at an address (see `seed_for`)."""
    return np.random.default_rng(seed_for(root_seed, stream, *indices))
