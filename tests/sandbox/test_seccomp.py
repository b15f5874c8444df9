"""The filter's program, run by hand on both machines' numbers: what it allows and what it kills."""

import struct

import pytest

from redqueen_sandbox.inside import seccomp

ARCHES = sorted(seccomp.AUDIT_ARCH)
KILLED, ALLOWED = seccomp.KILL_PROCESS, seccomp.ALLOW


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Interpret the BPF program on one system call, as the kernel would. Returns the action."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *[value & (2**64 - 1) for value in padded])
    code = list(struct.iter_unpack("<HBBI", program))
    at, accumulator = 0, 0
    while True:
        operation, jump_true, jump_false, k = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif operation == 0x06:
            return k
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[operation]
            at += jump_true if holds else jump_false


@pytest.mark.parametrize("arch", ARCHES)
def test_only_the_calls_of_the_list_are_allowed(arch: str) -> None:
    program, audit = seccomp.build_filter(arch, 3), seccomp.AUDIT_ARCH[arch]
    calls = seccomp.allowed(arch)
    always = {calls[name] for name in ("brk", "munmap", "mremap", "exit", "exit_group")}
    checked = {calls[name] for name in ("write", "pread64", "mmap", "mprotect", "madvise")}
    for number in range(600):
        if number not in checked:
            assert decide(program, audit, number) == (ALLOWED if number in always else KILLED), number


@pytest.mark.parametrize("arch", ARCHES)
def test_reading_and_writing_are_allowed_on_one_descriptor_and_wait_only_in_a_conversation(arch: str) -> None:
    calls, audit = seccomp.allowed(arch), seccomp.AUDIT_ARCH[arch]
    quiet, talking = seccomp.build_filter(arch, 3), seccomp.build_filter(arch, 3, interactive=True)
    assert decide(quiet, audit, calls["write"], 3) == decide(quiet, audit, calls["pread64"], 3) == ALLOWED
    for fd in (0, 1, 2, 4, 64, 2**32 - 1):
        assert decide(quiet, audit, calls["write"], fd) == decide(quiet, audit, calls["pread64"], fd) == KILLED
        assert decide(talking, audit, calls["read"], fd) == KILLED
    assert decide(quiet, audit, calls["read"], 3) == KILLED
    assert decide(talking, audit, calls["read"], 3) == ALLOWED
    assert decide(talking, audit, calls["pread64"], 3) == KILLED


@pytest.mark.parametrize("arch", ARCHES)
def test_no_page_becomes_executable_and_none_is_backed_by_a_file(arch: str) -> None:
    program, audit, calls = seccomp.build_filter(arch, 3), seccomp.AUDIT_ARCH[arch], seccomp.allowed(arch)
    anonymous, private, read_write, execute = 0x20, 0x02, 3, 4
    assert decide(program, audit, calls["mmap"], 0, 4096, read_write, anonymous | private, -1) == ALLOWED
    assert decide(program, audit, calls["mmap"], 0, 4096, read_write | execute, anonymous | private, -1) == KILLED
    assert decide(program, audit, calls["mmap"], 0, 4096, read_write, private, 3) == KILLED
    assert decide(program, audit, calls["mprotect"], 0, 4096, read_write) == ALLOWED
    assert decide(program, audit, calls["mprotect"], 0, 4096, execute) == KILLED


@pytest.mark.parametrize("arch", ARCHES)
def test_madvise_keeps_to_its_plain_forms(arch: str) -> None:
    program, audit, calls = seccomp.build_filter(arch, 3), seccomp.AUDIT_ARCH[arch], seccomp.allowed(arch)
    assert decide(program, audit, calls["madvise"], 0, 4096, 4) == ALLOWED
    assert decide(program, audit, calls["madvise"], 0, 4096, 12) == KILLED  # share pages with other processes


@pytest.mark.parametrize("arch", ARCHES)
def test_calls_of_another_machine_are_killed(arch: str) -> None:
    program, calls = seccomp.build_filter(arch, 3), seccomp.allowed(arch)
    others = [audit for name, audit in seccomp.AUDIT_ARCH.items() if name != arch] + [0x40000003, 0]
    for audit in others:
        assert decide(program, audit, calls["exit_group"]) == KILLED
    x32 = 0x40000000 | calls["exit_group"]
    assert decide(program, seccomp.AUDIT_ARCH[arch], x32) == KILLED


WAITING = {
    "x86_64": {
        "select": 23, "poll": 7, "pselect6": 270, "ppoll": 271, "epoll_wait": 232, "epoll_pwait": 281,
        "epoll_pwait2": 441, "pause": 34, "nanosleep": 35, "clock_nanosleep": 230, "futex": 202, "futex_waitv": 449,
        "futex_wait": 455, "rt_sigsuspend": 130, "rt_sigtimedwait": 128, "wait4": 61, "waitid": 247, "read": 0,
        "flock": 73, "msgrcv": 70, "semop": 65, "semtimedop": 220, "io_getevents": 208, "sched_yield": 24,
        "restart_syscall": 219, "accept": 43, "recvfrom": 45, "splice": 275, "fsync": 74, "vfork": 58,
    },
    "aarch64": {
        "pselect6": 72, "ppoll": 73, "epoll_pwait": 22, "epoll_pwait2": 441, "nanosleep": 101, "clock_nanosleep": 115,
        "futex": 98, "futex_waitv": 449, "futex_wait": 455, "rt_sigsuspend": 133, "rt_sigtimedwait": 137, "wait4": 260,
        "waitid": 95, "read": 63, "flock": 32, "msgrcv": 188, "semop": 193, "semtimedop": 192, "sched_yield": 124,
        "restart_syscall": 128, "accept": 202, "recvfrom": 207, "splice": 76, "fsync": 82,
    },
}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHES)
def test_a_call_that_only_waits_is_killed(arch: str) -> None:
    program, audit = seccomp.build_filter(arch, 3), seccomp.AUDIT_ARCH[arch]
    for name, number in WAITING[arch].items():
        for first in (0, 3):
            for operation in (0, 9, 128, 137, 393):
                assert decide(program, audit, number, first, operation) == KILLED, name
