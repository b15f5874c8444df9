"""Canaries: caged children that try forbidden actions, once for each zygote, to test which protections hold."""

from __future__ import annotations

import ctypes
import os

from . import cage, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .zygote import Zygote

_PR_GET_DUMPABLE, _PR_GET_NO_NEW_PRIVS = 3, 39
_CPU_MS, _SPIN_CPU_MS, _MEMORY_BYTES, _WALL_MS = 20, 4, 64 << 20, 5_000
_SIGSYS = 31
_TRIES = 3
"""One canary that dies as expected is proof. One that does not may have met a time limit on a busy machine."""

_PROT_READ_EXEC, _MAP_PRIVATE_ANONYMOUS = 5, 0x22


def observe(zygote: Zygote) -> dict[str, bool]:
    """Return for each protection whether it holds."""
    libc = zygote.libc
    return {
        "seccomp": _ends_by(zygote, _call_getpid, _SIGSYS) and _ends_by(zygote, _map_executable, _SIGSYS),
        "landlock": _cannot_open_root(),
        "rlimits": _succeeds(zygote, frozenset({"seccomp"}), _is_limited),
        "cpu-timer": _ends_by(zygote, _spin, cage.SIGPROF, tries=1),
        "non-dumpable": libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0,
        "no-new-privileges": libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
        "nobody": os.getuid() != 0 and cage.has_no_capabilities(libc),
        "namespaces": zygote.has_namespaces,
    }


def _probe(zygote: Zygote, leave_out: frozenset[str], action: Callable[[ctypes.PyDLL], bool]) -> tuple[int, bytes]:
    """Run ``action`` in a child, caged without ``leave_out``. Returns (wait status or -1 if stopped, output)."""
    read_end, write_end = os.pipe()
    cpu_ms = _SPIN_CPU_MS if action is _spin else _CPU_MS  # it uses all of it
    try:
        pid = zygote.fork_child(zygote.cage_for(cpu_ms, _MEMORY_BYTES, also_leave_out=leave_out), write_end)
        if pid == 0:
            os.write(wire.REPLY_FD, b"yes" if action(zygote.libc) else b"no")
            os._exit(0)
        header = zygote.collect(pid, _WALL_MS)
        os.write(write_end, b".")  # so that the read below never waits
        output = os.read(read_end, 64)[:-1]
    finally:
        os.close(read_end)
        os.close(write_end)
    return (header.wait_status if header.stopped == wire.NOT_STOPPED else -1), output


def _ends_by(zygote: Zygote, action: Callable[[ctypes.PyDLL], bool], signal_number: int, tries: int = _TRIES) -> bool:
    for _ in range(tries):
        status, _payload = _probe(zygote, frozenset(), action)
        if status >= 0 and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal_number:
            return True
    return False


def _succeeds(zygote: Zygote, leave_out: frozenset[str], action: Callable[[ctypes.PyDLL], bool]) -> bool:
    return any(_probe(zygote, leave_out, action) == (0, b"yes") for _ in range(_TRIES))


def _call_getpid(libc: ctypes.PyDLL) -> bool:
    return bool(libc.getpid())


def _map_executable(libc: ctypes.PyDLL) -> bool:
    libc.mmap(None, 4096, _PROT_READ_EXEC, _MAP_PRIVATE_ANONYMOUS, -1, 0)
    return True


def _spin(libc: ctypes.PyDLL) -> bool:
    while True:
        pass


def _is_limited(libc: ctypes.PyDLL) -> bool:
    """Return whether a second process, a new descriptor and more memory than allowed are all refused."""
    pid = libc.fork()
    if pid == 0:
        os._exit(0)
    if pid > 0:
        return False
    try:
        os.dup(wire.REPLY_FD)
        return False
    except OSError:
        pass
    try:
        bytearray(2 * _MEMORY_BYTES)
        return False
    except MemoryError:
        return True


def _cannot_open_root() -> bool:
    try:
        os.close(os.open("/", os.O_RDONLY))
        return False
    except PermissionError:
        return True
