"""The cage: the rights that a zygote gives up when it starts, and those that each child gives up before its program.

Every protection has a name (``PROTECTIONS``), so that the canaries can test it and the tests can omit it.
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
"""``namespaces`` are used where available but not required: the filter already refuses the calls they restrict."""

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
"""Interval between checks of a running child."""
_NUM_IDLE_POLLS = 10  # without CPU time: then a child counts as asleep
_ECHILD = 10
_CLOSE_RANGE, _LAST_DESCRIPTOR = 436, 0xFFFFFFFF


def load_libc() -> ctypes.PyDLL:
    """Return this process's C library. Calls keep the interpreter's lock (there is only one thread)."""
    return ctypes.PyDLL(None, use_errno=True)


def prefer_for_oom() -> None:
    """Ask the kernel to kill this process or its children first when the machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        return


def enter_zygote_cage(libc: ctypes.PyDLL, leave_out: Set[str]) -> bool:
    """Give up, for this process and all its children, all rights that no program needs.

    This raises no error: the canaries then report each protection that the kernel did not grant. Returns whether the
    process has namespaces of its own.
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
    # After the change of user: the kernel resets the dumpable flag there.
    libc.prctl(_PR_SET_DUMPABLE, int("non-dumpable" in leave_out), 0, 0, 0)
    if "rlimits" not in leave_out:
        for kind in (_RLIMIT_CORE, _RLIMIT_MEMLOCK, _RLIMIT_MSGQUEUE):
            libc.setrlimit(kind, struct.pack("@LL", 0, 0))
    return has_namespaces


def close_descriptors(libc: ctypes.PyDLL, keep: int) -> None:
    """Close every descriptor of this process except ``keep``."""
    below = libc.syscall(_CLOSE_RANGE, 0, keep - 1, 0)
    above = libc.syscall(_CLOSE_RANGE, keep + 1, _LAST_DESCRIPTOR, 0)
    if below != 0 or above != 0:  # before Linux 5.9
        os.closerange(0, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))


class Waiter:
    """Waits for a child's end. (``os.wait4`` needs the ``resource`` module, one more library in every fork.)"""

    def __init__(self, libc: ctypes.PyDLL) -> None:
        self._wait4 = libc.wait4
        self._status = ctypes.c_int()
        self._usage = (ctypes.c_long * 18)()
        self._arguments = ctypes.byref(self._status), 0, ctypes.byref(self._usage)

    def wait(self, pid: int) -> tuple[int, int, int]:
        """Wait until the child has ended. Returns its wait status, its CPU time (us) and its peak memory (KiB).

        Signal handlers run during the wait.
        """
        while self._wait4(pid, *self._arguments) != pid:
            if ctypes.get_errno() == _ECHILD:  # no test for EINTR: a signal handler may have changed errno
                raise OSError("no such child")
        user_s, user_us, system_s, system_us, peak_kb = self._usage[:5]
        return self._status.value, (user_s + system_s) * 1_000_000 + user_us + system_us, peak_kb


class SleepDetector:
    """Detects a process that sleeps, as opposed to one that computes or waits for a core."""

    def __init__(self, pid: int) -> None:
        self._clock = (~pid << 3) | _CLOCK_PROCESS_CPUTIME
        self._last_ns = -1
        self._num_idle = 0

    def poll(self) -> bool:
        """Return whether the process used no CPU time in the last ten polls. Call this every ``POLL_MS``."""
        try:
            now_ns = time.clock_gettime_ns(self._clock)
        except OSError:  # it has ended
            return False
        self._num_idle = self._num_idle + 1 if now_ns == self._last_ns else 0
        self._last_ns = now_ns
        return self._num_idle >= _NUM_IDLE_POLLS


class ChildCage:
    """The calls that close the cage of one child, prepared before the fork: a child copies every page it touches."""

    def __init__(
        self, libc: ctypes.PyDLL, cpu_ms: int, address_bytes: int, max_file_bytes: int, bpf: bytes,
        leave_out: Set[str], zygote_pid: int,
    ) -> None:  # fmt: skip
        """``address_bytes``: the limit of the child's address space. ``bpf``: the filter program, empty for none."""
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
        """Close the cage of this process. Returns False if a protection could not be set."""
        call, arguments = self.die_with_zygote
        call(*arguments)
        if os.getppid() != self.zygote_pid:  # the zygote died between the fork and the call above
            os._exit(0)
        for call, arguments in self.steps:  # noqa: SIM110 (after the filter a generator might need a forbidden call)
            if call(*arguments) != 0:
                return False
        return True


def _cpu_timer(libc: ctypes.PyDLL, cpu_ms: int) -> list[_Step]:
    """Return the calls that make the kernel kill the process, by SIGPROF, after ``cpu_ms`` of CPU time.

    The timer uses the process's CPU clock. ``setitimer`` counts ticks, which include time that the host took from a
    virtual machine. The first timer of a process has number 0.
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
    """Enter new network, IPC and host-name namespaces; unprivileged processes also need a user namespace."""
    spaces = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    if os.getuid() != 0:
        spaces |= _CLONE_NEWUSER
    return bool(libc.unshare(ctypes.c_int(spaces)) == 0)


def _become_nobody() -> None:
    """Become the user nobody. This fails for the root of a user namespace and for root without capabilities."""
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
    """Return whether this process has no capability."""
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
    """Return the kernel's Landlock ABI version, 0 without Landlock."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    return max(0, int(version))


def deny_all_files(libc: ctypes.PyDLL) -> int:
    """Deny every file, TCP port and scope that this kernel can deny. Returns the ABI version in force, 0 if none.

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
