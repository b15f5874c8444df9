"""A run directory's store: where journal and checkpoints lie, and the lock that lets one process write at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from redqueen.errors import UserError

JOURNAL = "journal.sqlite"
CHECKPOINTS = "checkpoints"
LOCK = "lock"

_held: set[Path] = set()
"""Locks this process holds. The system's lock is the process's own: it would grant a second one to the same process."""


class RunLock:
    """The right to write to a run directory: ``with RunLock(run_dir): ...``.

    A POSIX record lock on the file ``lock``: the system drops it when the process ends, however it ends, and (unlike
    ``flock``) no worker process forked meanwhile keeps it alive. The file itself stays; it says who wrote last.
    Raises UserError when another process holds it or when the folder cannot be written to.
    """

    def __init__(self, run_dir: Path):
        self.path = Path(run_dir).resolve() / LOCK
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        if self.path in _held:
            raise UserError(f"{self.path.parent} is being written by this very process; finish that run first.")
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _unwritable(self.path.parent, error) from error
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
        _held.add(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        _held.discard(self.path)
        os.close(self._descriptor)


def _unwritable(run_dir: Path, error: OSError) -> UserError:
    return UserError(
        f"Cannot write to the run directory {run_dir}: {error.strerror}. "
        "Make it writable on a disk with free space, then resume the run."
    )
