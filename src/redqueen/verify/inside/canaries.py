"""Canaries: what a caged child really cannot do here, observed by trying, once for each zygote that starts."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from typing import TYPE_CHECKING

from . import cage, wire

if TYPE_CHECKING:
    from .zygote import Zygote

_PR_GET_DUMPABLE, _PR_GET_NO_NEW_PRIVS = 3, 39
_LIMITS = cage.ChildLimits(cpu_ms=20, memory_bytes=64 << 20)
_WALL_MS = 5_000


def observe(zygote: Zygote) -> dict[str, bool]:
    """Return, for each protection by name, whether it was seen to hold."""
    libc = zygote.libc
    return {
        "seccomp": _ends_by(zygote, frozenset(), _call_getpid, signal.SIGSYS)
        and _ends_by(zygote, frozenset(), _map_executable, signal.SIGSYS),
        "landlock": _cannot_open_root(),
        "rlimits": _says(zygote, frozenset({"seccomp"}), _is_limited),
        "cpu-timer": _ends_by(zygote, frozenset(), _spin, signal.SIGPROF),
        "non-dumpable": libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0,
        "no-new-privileges": libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
        "nobody": os.getuid() != 0 and _has_no_capabilities(libc),
        "namespaces": zygote.has_namespaces,
    }


def _probe(zygote: Zygote, leave_out: frozenset[str], action: object) -> tuple[int, bytes]:
    """Run ``action`` in a child caged but for ``leave_out``. Returns (wait status, what it wrote)."""
    pid, fd = zygote.fork_child(_LIMITS, zygote.leave_out | leave_out)
    if pid == 0:
        os.write(fd, b"yes" if action(zygote.libc) else b"no")  # type: ignore[operator]
        os._exit(0)
    header, payload = zygote.collect(pid, fd, _WALL_MS, 64)
    return (header.wait_status if header.stopped == wire.RAN_OUT else -1), payload


def _ends_by(zygote: Zygote, leave_out: frozenset[str], action: object, signal_number: int) -> bool:
    status, _ = _probe(zygote, leave_out, action)
    return status >= 0 and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal_number


def _says(zygote: Zygote, leave_out: frozenset[str], action: object) -> bool:
    return _probe(zygote, leave_out, action) == (0, b"yes")


def _call_getpid(libc: ctypes.CDLL) -> bool:
    return bool(libc.getpid())


def _map_executable(libc: ctypes.CDLL) -> bool:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    return True


def _spin(libc: ctypes.CDLL) -> bool:
    while True:
        pass


def _is_limited(libc: ctypes.CDLL) -> bool:
    """No second process, no new descriptor, no more memory than allowed."""
    try:
        if os.fork() == 0:
            os._exit(0)
        return False
    except OSError:
        pass
    try:
        os.dup(3)
        return False
    except OSError:
        pass
    try:
        bytearray(_LIMITS.memory_bytes)
        return False
    except MemoryError:
        return True


def _cannot_open_root() -> bool:
    try:
        os.close(os.open("/", os.O_RDONLY))
        return False
    except PermissionError:
        return True


def _has_no_capabilities(libc: ctypes.CDLL) -> bool:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    return libc.capget(header, sets) == 0 and not any(sets)
