"""A run directory's store: where journal and checkpoints lie, and the lock that lets one process write at a time."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from redqueen.errors import UserError
from redqueen.locking import LOCK_NAME, held_here

JOURNAL = "journal.sqlite"
CHECKPOINTS = "checkpoints"
LOCK = LOCK_NAME


class RunLock:
    """The right to write to a run directory: ``with RunLock(run_dir): ...``.

    A POSIX record lock on the file ``lock``: the system drops it when the process ends, however it ends, and (unlike
    ``flock``) no worker process forked meanwhile keeps it alive. The file itself stays; it says who wrote last.
    Raises UserError when another process holds it, when the folder cannot be written to, and when ``lock`` is anything
    but a plain file of this folder's own: its content is replaced, so a link would empty somebody else's file.
    """

    def __init__(self, run_dir: Path):
        self.path = Path(run_dir).resolve() / LOCK
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        if self.path in held_here:
            raise UserError(f"{self.path.parent} is being written by this very process; finish that run first.")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise _unwritable(self.path.parent, error) from error
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            os.close(self._descriptor)
            raise UserError(f"{self.path} is no plain file of this folder's own; remove it, then resume the run.")
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise UserError(
                f"{self.path.parent} is being written by another process (pid {holder or 'unknown'}); "
                "wait until that run has ended, or stop it first."
            ) from error
        try:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode("ascii"))
        except OSError as error:
            os.close(self._descriptor)
            raise _unwritable(self.path.parent, error) from error
        held_here.add(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        held_here.discard(self.path)
        os.close(self._descriptor)


def _unwritable(run_dir: Path, error: OSError) -> UserError:
    return UserError(
        f"Cannot write to the run directory {run_dir}: {error.strerror}. "
        "Make it writable on a disk with free space, then resume the run."
    )
