"""Checks the lock of a run directory without taking it, to find out whether a process is writing to the run."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from pathlib import Path

LOCK_NAME = "lock"
"""The file in a run directory on which its writer holds a record lock."""

FLOCK = "hhqqi4x"
"""Linux's ``struct flock`` on 64 bits: type, whence, start, length, pid."""

held_here: set[Path] = set()
"""Locks that this process holds. A record lock belongs to the process: the system would grant it again, and closing any
descriptor of the file releases it, so this process does not open such a file a second time."""


def is_locked(run_dir: Path) -> bool:
    """Return whether a process holds the run's lock; False if the lock file is a link, a pipe or a device."""
    path = Path(run_dir).resolve() / LOCK_NAME
    if path in held_here:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        held = struct.unpack(FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(held[0] != fcntl.F_UNLCK)
