"""The C library's memory: what a step frees is kept for the next one.

By default glibc gives large blocks back to the kernel when they are freed and asks for new pages at the next step,
which the kernel fills with zeros first. Many tensors of a step are such blocks. The largest are left as they are: kept,
each leaves a hole that the next one hardly ever fits, and a run on SmolLM2 that kept them all ran out of memory. The
smaller ones leave holes too, so what is kept goes back where the machine has no more than that to spare.
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


_library: ctypes.CDLL | None = None
"""The C library that keeps what this process frees, once it was told to."""


def keep_freed_memory() -> bool:
    """Let this process keep the blocks below ``SMALLER_THAN`` that it frees; return whether the C library took it.

    All threads share one heap, for those of other threads are too small for tensors. Nothing is done where the
    environment has settings of its own (``MALLOC_...`` or ``GLIBC_TUNABLES``) or the library is not glibc.
    """
    global _library
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  others have a mallopt that numbers its parameters differently
        mallopt = library.mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of the process itself
        return False
    settings = {MMAP_THRESHOLD: SMALLER_THAN, TRIM_THRESHOLD: KEPT, ARENA_MAX: 1}
    kept = all([mallopt(parameter, value) == 1 for parameter, value in settings.items()])
    _library = library if kept else None
    return kept


def give_back_if_scarce(free_bytes: int) -> bool:
    """Give the kernel what is kept if this process holds more than ``free_bytes``, what the machine has free.

    To be called where few tensors are alive: what is kept is then most of what the process holds, and the next tensors
    may take as much anew where they do not fit into it. Returns whether it was given back.
    """
    if _library is None or _held_bytes() <= free_bytes:
        return False
    _library.malloc_trim(0)
    return True


def _held_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
