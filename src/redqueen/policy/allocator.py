"""The C library's memory: what a step frees is kept for the next one.

By default glibc gives large blocks back to the kernel when they are freed and asks for new pages at the next step,
which the kernel fills with zeros first. Many tensors of a step are such blocks. The largest are left as they are: kept,
each leaves a hole that the next one hardly ever fits, and a run on SmolLM2 that kept them all ran out of memory.
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Parameters of glibc's ``mallopt``, as its malloc.h numbers them."""

SMALLER_THAN = 64 * 2**20
"""Blocks below this, in bytes, come from the heap; larger ones have pages of their own (ours)."""

KEPT = 2**31 - 1
"""How much of the heap may be free at its end before it shrinks, in bytes: the largest value that ``mallopt`` takes."""


def keep_freed_memory() -> bool:
    """Let this process keep the blocks below ``SMALLER_THAN`` that it frees; return whether the C library took it.

    All threads share one heap, for those of other threads are too small for tensors. Nothing is done where the
    environment has settings of its own (``MALLOC_...`` or ``GLIBC_TUNABLES``) or the library is not glibc.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  others have a mallopt that numbers its parameters differently
        mallopt = library.mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of the process itself
        return False
    settings = {MMAP_THRESHOLD: SMALLER_THAN, TRIM_THRESHOLD: KEPT, ARENA_MAX: 1}
    return all([mallopt(parameter, value) == 1 for parameter, value in settings.items()])
