"""A run directory: its files by name, its config, and the lock that lets one process write at a time."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from redqueen.config import Config, parse_config
from redqueen.errors import UserError
from redqueen.files import making_folder, write_whole

CONFIG = "config.json"
JOURNAL = "journal.sqlite"
CHECKPOINTS = "checkpoints"
LOCK = "lock"
REPORT = "report.html"
"""Written last: a run that has it and has played its last step is finished."""

_held: set[Path] = set()
"""Locks this process holds. The system's lock is the process's own: it would grant a second one to the same process."""


def load_run_config(folder: Path) -> Config:
    """Read the resolved config of a run directory. Raises UserError when it is none."""
    path = folder / CONFIG
    try:
        return parse_config(json.loads(path.read_text()), str(path))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder} is no run directory (it has no {CONFIG}): give the folder that `redqueen train` made"
        ) from None
    except PermissionError:
        raise UserError(f"{path} may not be read: ask for permission to read {folder}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path} is damaged ({error}): restore it from a copy") from None


def make_run_folder(folder: Path, config: Config) -> None:
    """Make the run directory with its config in it: one does not appear without the other."""
    try:
        with making_folder(folder) as aside:
            write_whole(aside / CONFIG, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")
    except OSError as error:
        raise UserError(
            f"--run-dir {folder} cannot be made ({error.strerror}): choose a folder you may write to"
        ) from None


def remove_journal(folder: Path) -> None:
    """Remove a journal that no checkpoint belongs to, its log first: a new journal must not inherit that."""
    path = folder / JOURNAL
    try:
        for name in (f"{JOURNAL}-wal", f"{JOURNAL}-shm", JOURNAL):
            path.with_name(name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be removed ({error.strerror}): make the run directory writable") from None


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
