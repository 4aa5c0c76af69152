"""Free heap memory goes back to the system after each micro-batch.

Micro-batches come in many shapes, and glibc keeps the holes they leave: a CPU run would grow from
micro-batch to micro-batch, by half as much again as the largest of them needs.
"""

import ctypes
import sys
from functools import cache
from typing import Any


@cache
def _malloc_trim() -> Any:
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):  # another C library, which needs no help
        return None


def give_back_memory() -> None:
    """Return free heap pages to the system, where the C library is glibc."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def peak_memory_gib() -> float:
    """Return this process's peak resident memory so far, GiB; NaN where it can't be asked."""
    try:
        import resource
    except ImportError:
        return float("nan")
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / (1024**3 if sys.platform == "darwin" else 1024**2)
