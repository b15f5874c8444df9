"""Landlock, deny-all: after this call the process and its descendants open no file and connect nowhere.

The rights handled are those of the kernel's ABI version; no rule allows any. Numbers are the same on all machines.
"""

from __future__ import annotations

import ctypes
import struct

_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NET_RIGHTS = 0b11  # bind and connect, over TCP
_SCOPES = 0b11  # abstract sockets and signals stay within the domain


def abi(libc: ctypes.PyDLL) -> int:
    """The kernel's Landlock ABI version, 0 where there is none."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    return max(0, int(version))


def deny_all(libc: ctypes.PyDLL) -> int:
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
