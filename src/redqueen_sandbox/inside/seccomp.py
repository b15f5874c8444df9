"""The system-call filter of a child: an allow-list whose default kills the process.

Call numbers are for x86-64 and arm64. Classic BPF reads ``struct seccomp_data`` (nr at 0, arch at 4, 64-bit arguments
from 16). The filter kills the whole process instead of returning an error, so that a program cannot catch and hide the
verdict ``forbidden``.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2

_LD_W_ABS = 0x20
_JEQ_K, _JGE_K, _JSET_K = 0x15, 0x35, 0x45
_RET_K = 0x06

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SYSCALLS = {
    "x86_64": {
        "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "pread64": 17, "mremap": 25,
        "madvise": 28, "exit": 60, "exit_group": 231,
    },
    "aarch64": {
        "read": 63, "write": 64, "mmap": 222, "mprotect": 226, "munmap": 215, "brk": 214, "pread64": 67,
        "mremap": 216, "madvise": 233, "exit": 93, "exit_group": 94,
    },
}  # fmt: skip
_X32_BIT = 0x40000000  # the x32 calls of x86-64 share its arch value: refuse them by number

_PROT_EXEC = 4
_MAP_ANONYMOUS = 0x20
_MADVISE_PLAIN = (4, 8, 14)  # don't need, free, huge page


def machine() -> str:
    """Return this machine's name in the tables (``x86_64``, ``aarch64``), or "" if they have no numbers for it."""
    name = os.uname().machine.lower()
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)
    return name if name in AUDIT_ARCH and struct.calcsize("P") == 8 else ""


def build_filter(arch: str, fd: int, interactive: bool = False) -> bytes:
    """Return the BPF program that lets a child compute, and read and write only ``fd``.

    An ``interactive`` child has a socket there and waits for data with ``read``. All others have a file and use
    ``pread64``, which never waits. No other call that waits is allowed, not even futex: a single thread never needs it,
    and a deadlock with itself would cost wall-clock time but no CPU time.
    """
    numbers = _SYSCALLS[arch]
    code: list[bytes] = [_op(_LD_W_ABS, 4), _op(_JEQ_K, AUDIT_ARCH[arch], 1, 0), _op(_RET_K, KILL_PROCESS)]
    code += [_op(_LD_W_ABS, 0), _op(_JGE_K, _X32_BIT, 0, 1), _op(_RET_K, KILL_PROCESS)]
    # A child handles no signal. rt_sigreturn would let native code block the signal that ends its CPU time.
    for name in ("brk", "munmap", "mremap", "exit", "exit_group"):
        code += [_op(_JEQ_K, numbers[name], 0, 1), _op(_RET_K, ALLOW)]
    code += _when(numbers["write"], _equal(0, (fd,)))
    code += _when(numbers["read" if interactive else "pread64"], _equal(0, (fd,)))
    # No new executable page, and no page that is backed by a file.
    code += _when(numbers["mmap"], _no_bit(2, _PROT_EXEC) + _has_bit(3, _MAP_ANONYMOUS))
    code += _when(numbers["mprotect"], _no_bit(2, _PROT_EXEC))
    code += _when(numbers["madvise"], _equal(2, _MADVISE_PLAIN))
    code.append(_op(_RET_K, KILL_PROCESS))
    return b"".join(code)


def installation(program: bytes, libc: ctypes.PyDLL) -> tuple[Callable[..., int], tuple[object, ...]]:
    """Return the call (0: success) and arguments that install the filter for good. Needs no-new-privileges."""
    instructions = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    # The kernel does not read the last argument: it keeps the instructions alive as long as the call.
    return libc.prctl, (_PR_SET_SECCOMP, _MODE_FILTER, fprog, 0, instructions)


def allowed(arch: str) -> Mapping[str, int]:
    """Return the numbers of the calls in the filter's table for ``arch``, by name (for tests)."""
    return dict(_SYSCALLS[arch])


def _op(code: int, k: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, jump_true, jump_false, k)


def _when(number: int, checks: list[bytes]) -> list[bytes]:
    """For this call run ``checks``, then allow it. For other calls skip to the next check, with the number loaded."""
    body = [*checks, _op(_RET_K, ALLOW)]
    return [_op(_JEQ_K, number, 0, len(body)), *body]


def _low_word(argument: int) -> bytes:
    return _op(_LD_W_ABS, 16 + 8 * argument)


def _equal(argument: int, values: tuple[int, ...]) -> list[bytes]:
    """Kill unless the argument (its low word) is one of ``values``."""
    tests = [_op(_JEQ_K, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_low_word(argument), *tests, _op(_RET_K, KILL_PROCESS)]


def _no_bit(argument: int, bit: int) -> list[bytes]:
    return [_low_word(argument), _op(_JSET_K, bit, 0, 1), _op(_RET_K, KILL_PROCESS)]


def _has_bit(argument: int, bit: int) -> list[bytes]:
    return [_low_word(argument), _op(_JSET_K, bit, 1, 0), _op(_RET_K, KILL_PROCESS)]
