"""The cage: what a zygote gives up for good when it starts, and what each child gives up before it runs a program.

Every protection has a name (``PROTECTIONS``), so that the canaries can observe it and the tests can leave it out.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time

from . import seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Set

    _Step = tuple[Callable[..., int], tuple[object, ...]]

PROTECTIONS = (
    "seccomp", "landlock", "rlimits", "cpu-timer", "non-dumpable", "no-new-privileges", "nobody", "namespaces",
)  # fmt: skip
"""``namespaces`` are used where available and not required: the filter refuses what they would hide."""

NOBODY = 65_534
SIGKILL, SIGPROF = 9, 27
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x04000000, 0x08000000, 0x10000000, 0x40000000
_CLOCK_PROCESS_CPUTIME = 2
_TIMER_CALLS = {"x86_64": (222, 223), "aarch64": (107, 110)}  # timer_create, timer_settime
_CAPABILITY_VERSION_3 = 0x20080522
_RLIMIT_CPU, _RLIMIT_FSIZE, _RLIMIT_CORE, _RLIMIT_NPROC, _RLIMIT_NOFILE = 0, 1, 4, 6, 7
_RLIMIT_MEMLOCK, _RLIMIT_AS, _RLIMIT_MSGQUEUE = 8, 9, 12


POLL_MS = 40
"""How often a running child is looked at."""
_NUM_IDLE_POLLS = 10
_ECHILD = 10
_CLOSE_RANGE, _LAST_DESCRIPTOR = 436, 0xFFFFFFFF


def load_libc() -> ctypes.PyDLL:
    """The C library of this process, called without giving up the interpreter's lock (there is one thread)."""
    return ctypes.PyDLL(None, use_errno=True)


def prefer_for_oom() -> None:
    """Ask the kernel to take this process, and its children first, when the whole machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        return


def enter_zygote_cage(libc: ctypes.PyDLL, leave_out: Set[str]) -> bool:
    """Give up, once and for this process and all its children, what no program needs.

    Nothing here raises: what the kernel denies is missing from what the canaries then observe. Returns whether
    namespaces of its own were to be had.
    """
    has_namespaces = "namespaces" not in leave_out and _leave_namespaces(libc)
    if os.getuid() == 0 and "nobody" not in leave_out:
        _become_nobody()
    if "nobody" not in leave_out:
        _drop_capabilities(libc)
    if "no-new-privileges" not in leave_out:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "landlock" not in leave_out:
        deny_all_files(libc)
    # After the change of user, which sets it too, by rules of the kernel's own.
    libc.prctl(_PR_SET_DUMPABLE, int("non-dumpable" in leave_out), 0, 0, 0)
    if "rlimits" not in leave_out:
        for kind in (_RLIMIT_CORE, _RLIMIT_MEMLOCK, _RLIMIT_MSGQUEUE):
            libc.setrlimit(kind, struct.pack("@LL", 0, 0))
    return has_namespaces


def close_descriptors(libc: ctypes.PyDLL, keep: int) -> None:
    """Close every descriptor of this process but ``keep``, however many there are."""
    below = libc.syscall(_CLOSE_RANGE, 0, keep - 1, 0)
    above = libc.syscall(_CLOSE_RANGE, keep + 1, _LAST_DESCRIPTOR, 0)
    if below != 0 or above != 0:  # before Linux 5.9
        os.closerange(0, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))


class Waiter:
    """Waits for a child's end (``os.wait4`` would need the ``resource`` module, one more library in every fork)."""

    def __init__(self, libc: ctypes.PyDLL) -> None:
        self._wait4 = libc.wait4
        self._status = ctypes.c_int()
        self._usage = (ctypes.c_long * 18)()
        self._arguments = ctypes.byref(self._status), 0, ctypes.byref(self._usage)

    def wait(self, pid: int) -> tuple[int, int, int]:
        """Wait until the child has ended. Returns its wait status, its CPU time (us) and its largest memory (KiB).

        A signal's handler runs in between.
        """
        while self._wait4(pid, *self._arguments) != pid:
            if ctypes.get_errno() == _ECHILD:  # not: other than EINTR, since the handler leaves errors of its own
                raise OSError("no such child")
        user_s, user_us, system_s, system_us, peak_kb = self._usage[:5]
        return self._status.value, (user_s + system_s) * 1_000_000 + user_us + system_us, peak_kb


class SleepDetector:
    """Tells a process that sleeps from one that computes or waits for a core."""

    def __init__(self, pid: int) -> None:
        self._clock = (~pid << 3) | _CLOCK_PROCESS_CPUTIME
        self._last_ns = -1
        self._num_idle = 0

    def poll(self) -> bool:
        """To be called every ``POLL_MS``: whether it has used no CPU time for many polls."""
        try:
            now_ns = time.clock_gettime_ns(self._clock)
        except OSError:  # it has ended
            return False
        self._num_idle = self._num_idle + 1 if now_ns == self._last_ns else 0
        self._last_ns = now_ns
        return self._num_idle >= _NUM_IDLE_POLLS


class ChildCage:
    """The calls that close the cage around one child, prepared before the fork: a child copies each page it touches."""

    def __init__(
        self, libc: ctypes.PyDLL, cpu_ms: int, address_bytes: int, max_file_bytes: int, bpf: bytes,
        leave_out: Set[str], zygote_pid: int,
    ) -> None:  # fmt: skip
        """``address_bytes`` is all the address space the child may have, ``bpf`` the filter ("" for none)."""
        self.zygote_pid = zygote_pid
        self.die_with_zygote: _Step = (libc.prctl, (_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
        self.steps: list[_Step] = []
        if "rlimits" not in leave_out:
            cpu_s = cpu_ms // 1000 + 1
            for kind, soft, hard in (
                (_RLIMIT_FSIZE, max_file_bytes, max_file_bytes),
                (_RLIMIT_AS, address_bytes, address_bytes),
                (_RLIMIT_CPU, cpu_s, cpu_s + 1),
                (_RLIMIT_NPROC, 0, 0),
                (_RLIMIT_NOFILE, 0, 0),
            ):
                self.steps.append((libc.setrlimit, (kind, struct.pack("@LL", soft, hard))))
        if "cpu-timer" not in leave_out:
            self.steps += _cpu_timer(libc, cpu_ms)
        if "seccomp" not in leave_out and bpf:
            self.steps.append(seccomp.installation(bpf, libc))

    def close(self) -> bool:
        """Close the cage around this process. Returns False when a protection did not take."""
        call, arguments = self.die_with_zygote
        call(*arguments)
        if os.getppid() != self.zygote_pid:  # it died between the fork and the line above
            os._exit(0)
        for call, arguments in self.steps:  # noqa: SIM110 (the last one forbids whatever a generator might need)
            if call(*arguments) != 0:
                return False
        return True


def _cpu_timer(libc: ctypes.PyDLL, cpu_ms: int) -> list[_Step]:
    """Have the kernel kill the process, by SIGPROF, when it has used ``cpu_ms`` of CPU.

    A timer on the process's CPU clock and not ``setitimer``: that one counts ticks, and so also the time that a
    virtual machine was not given. A process's first timer has number 0.
    """
    create, settime = _TIMER_CALLS[seccomp.machine() or "x86_64"]
    event = struct.pack("=QiiQQQQQQ", 0, SIGPROF, 0, 0, 0, 0, 0, 0, 0)
    times = struct.pack("=qqqq", 0, 50_000_000, cpu_ms // 1000, cpu_ms % 1000 * 1_000_000)
    number = ctypes.create_string_buffer(8)
    return [
        (libc.syscall, (create, _CLOCK_PROCESS_CPUTIME, event, number)),
        (libc.syscall, (settime, 0, 0, times, None)),
    ]


def _leave_namespaces(libc: ctypes.PyDLL) -> bool:
    """Enter a network, IPC and host-name space of our own; unprivileged processes go through a user namespace."""
    spaces = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    if os.getuid() != 0:
        spaces |= _CLONE_NEWUSER
    return bool(libc.unshare(ctypes.c_int(spaces)) == 0)


def _become_nobody() -> None:
    """Give up root, where it is real: one of a namespace of its own, or without capabilities, has nobody to become."""
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return


def _drop_capabilities(libc: ctypes.PyDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    libc.capset(header, nothing)


def has_no_capabilities(libc: ctypes.PyDLL) -> bool:
    """Tell whether this process has no capability at all."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    return libc.capget(header, sets) == 0 and not any(sets)


# ---- Landlock: this process and its descendants open no file and connect nowhere ----

_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NET_RIGHTS = 0b11  # bind and connect, over TCP
_SCOPES = 0b11  # abstract sockets and signals stay within the domain


def abi(libc: ctypes.PyDLL) -> int:
    """The kernel's Landlock ABI version, 0 where there is none."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    return max(0, int(version))


def deny_all_files(libc: ctypes.PyDLL) -> int:
    """Deny every file, TCP port and scope that this kernel lets us deny. Returns the ABI in force, 0 if none.

    Needs no-new-privileges.
    """
    version = abi(libc)
    if version == 0:
        return 0
    rights = struct.pack("=QQQ", _FS_RIGHTS[min(version, 5)], _NET_RIGHTS, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    buffer = ctypes.create_string_buffer(rights, len(rights))
    fd = libc.syscall(_CREATE_RULESET, buffer, ctypes.c_size_t(size), ctypes.c_uint(0))
    if fd < 0:
        return 0
    done = libc.syscall(_RESTRICT_SELF, ctypes.c_int(fd), ctypes.c_uint(0)) == 0
    libc.close(fd)
    return version if done else 0
