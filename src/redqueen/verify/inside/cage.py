"""The cage: what a zygote gives up for good when it starts, and what each child gives up before it runs a program.

Every protection has a name (``PROTECTIONS``), so that the canaries can observe it and the tests can leave it out.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Set
from dataclasses import dataclass

from . import landlock, seccomp

PROTECTIONS = (
    "seccomp",
    "landlock",
    "rlimits",
    "cpu-timer",
    "non-dumpable",
    "no-new-privileges",
    "nobody",
    "namespaces",
)
"""``namespaces`` is taken where it can be had and missed by nobody: the filter refuses what they would hide."""

NOBODY = 65_534
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x04000000, 0x08000000, 0x10000000, 0x40000000
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class ChildLimits:
    """What one child may use. ``memory_bytes`` is address space beyond what the zygote already has."""

    cpu_ms: int
    memory_bytes: int


def load_libc() -> ctypes.CDLL:
    """The C library of this process, with ``errno`` kept."""
    return ctypes.CDLL(None, use_errno=True)


def prefer_for_oom() -> None:
    """Ask the kernel to take this process, and its children first, when the whole machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        return


def enter_zygote_cage(libc: ctypes.CDLL, leave_out: Set[str]) -> bool:
    """Give up, once and for this process and all its children, what no program needs.

    Nothing here raises: what the kernel denies is missing from what the canaries then observe. Returns whether
    namespaces of its own were to be had.
    """
    has_namespaces = "namespaces" not in leave_out and _leave_namespaces(libc)
    if os.getuid() == 0 and "nobody" not in leave_out:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if "nobody" not in leave_out:
        _drop_capabilities(libc)
    if "no-new-privileges" not in leave_out:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "landlock" not in leave_out:
        landlock.deny_all(libc)
    if "non-dumpable" not in leave_out:  # after the change of user, which would make it dumpable again
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return has_namespaces


def enter_child_cage(
    libc: ctypes.CDLL, limits: ChildLimits, base_bytes: int, bpf: bytes, leave_out: Set[str], zygote_pid: int
) -> bool:
    """Close the cage around this process. Returns False when a protection that was asked for did not take."""
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != zygote_pid:  # the zygote died between the fork and the line above
        os._exit(0)
    if "rlimits" not in leave_out:
        _set_rlimits(limits, base_bytes)
    if "cpu-timer" not in leave_out:
        seconds = limits.cpu_ms / 1000
        signal.setitimer(signal.ITIMER_PROF, seconds, 0.05)
    return "seccomp" in leave_out or not bpf or seccomp.install(bpf, libc)


def _set_rlimits(limits: ChildLimits, base_bytes: int) -> None:
    space = base_bytes + limits.memory_bytes
    cpu_s = limits.cpu_ms // 1000 + 1
    for kind, soft, hard in (
        (resource.RLIMIT_AS, space, space),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_NPROC, 0, 0),
        (resource.RLIMIT_NOFILE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))


def _leave_namespaces(libc: ctypes.CDLL) -> bool:
    """Enter a network, IPC and host-name space of our own; unprivileged processes go through a user namespace."""
    spaces = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    if os.getuid() != 0:
        spaces |= _CLONE_NEWUSER
    return bool(libc.unshare(ctypes.c_int(spaces)) == 0)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    libc.capset(header, nothing)
