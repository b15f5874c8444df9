"""How a journal's file is opened: to read without changing anything, whoever made it; to write only when it is ours.

A run folder may be untrusted. SQLite, opening a file, trusts the files beside it: a rollback journal is
played back, and deletes the path that stands in it (the *super-journal*); a log is applied, and tidied away. So a
reader never lets it find any of that:

- While a process holds the run's lock, the journal is opened in place, read-only (``mode=ro``): then SQLite refuses to
  play a rollback journal back, and the log and its index belong to the process that writes.
- Without a writer and without a log the file is opened as ``immutable``: SQLite then looks at nothing beside it.
- Without a writer, but with a log (the writer was killed), file and log are copied into a private folder and read
  there. A log holds pages and no names of files.
- A rollback journal without a writer is refused: ``redqueen resume`` repairs that.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from redqueen.errors import UserError, command
from redqueen.files import open_plain
from redqueen.locking import is_locked

MAX_COPIED_BYTES = 1 << 30
"""Largest journal with a log that is copied to be read."""

MAX_TRIES = 3
SUPER_JOURNAL_MARK = bytes.fromhex("d9d505f920a163d7")
"""The last eight bytes of a rollback journal that names a super-journal (SQLite's file format, section 3)."""

BESIDE = ("-journal", "-wal", "-shm")
"""What SQLite keeps beside a database, by the ending of its name."""

writing_here: Counter[Path] = Counter()
"""Journals that this process has open to write."""

Opened = tuple[sqlite3.Connection, "TemporaryDirectory[str] | None"]


def open_to_read(path: Path) -> Opened:
    """Return a connection that changes nothing, and the private folder that must outlive it (None: none).

    Raises UserError when something beside the journal is a link or no plain file, or when it cannot be read safely.
    """
    found = look_at(path)
    has_log, has_rollback = bool(found["-wal"]), bool(found["-journal"])
    live = writing_here[path.resolve()] > 0 or is_locked(path.parent)
    if live and ((has_log and found["-shm"] is not None) or has_rollback):
        return _connect(path, "mode=ro"), None
    if has_rollback:
        raise UserError(
            f"The journal {path} was not finished cleanly (there is a rollback journal beside it): "
            f"`{command('resume', path.parent)}` repairs it, if you trust the folder."
        )
    if not has_log:
        return _connect(path, "mode=ro&immutable=1"), None
    folder = _copy_aside(path)
    return _connect(Path(folder.name) / path.name, "mode=ro"), folder


def open_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection for writing.

    Raises UserError when the file or one beside it is a link, no plain file or has a second name elsewhere, and when a
    rollback journal names a file that SQLite would delete.
    """
    found = look_at(path, to_write=True)
    if found["-journal"]:
        with open_plain(Path(f"{path}-journal"), MAX_COPIED_BYTES) as file:
            file.seek(max(0, found["-journal"] - len(SUPER_JOURNAL_MARK)))
            if file.read() == SUPER_JOURNAL_MARK:
                raise UserError(
                    f"{path}-journal names another file, which SQLite would delete; no run writes that. Do not resume "
                    "this folder, or remove that file first."
                )
    return _connect(path, "mode=rw")


def refuse_leftovers(path: Path) -> None:
    """Raise UserError when something of an earlier journal lies where a new one is to be made."""
    for ending in ("", *BESIDE):
        if os.path.lexists(f"{path}{ending}"):
            raise UserError(f"{path}{ending} exists already; choose another run directory, or resume this one.")


def look_at(path: Path, to_write: bool = False) -> dict[str, int | None]:
    """Return the sizes of the journal ("") and of what lies beside it; None: absent. Opens nothing.

    (To open and close a file that SQLite has open in this process would drop SQLite's locks.) Raises UserError for
    what is no plain file, and with ``to_write`` for a file with a second name.
    """
    sizes: dict[str, int | None] = {}
    for ending in ("", *BESIDE):
        try:
            found = os.lstat(f"{path}{ending}")
        except FileNotFoundError:
            sizes[ending] = None
            continue
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"{path}{ending} is a link or no plain file; put the file itself there, or remove it.")
        if to_write and found.st_nlink > 1:
            raise UserError(f"{path}{ending} has a second name elsewhere; copy the folder, and resume the copy.")
        sizes[ending] = found.st_size
    return sizes


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None, timeout=10.0)


def _copy_aside(path: Path) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="redqueen-journal-")
    try:
        for _ in range(MAX_TRIES):
            before = _states(path)
            if sum(size for _, size, _ in before) > MAX_COPIED_BYTES:
                raise UserError(
                    f"The journal {path} was cut off while it was written and is too large to be read so: "
                    f"`{command('resume', path.parent)}` repairs it, if you trust the folder."
                )
            for ending in ("", "-wal"):
                with (
                    open_plain(Path(f"{path}{ending}"), MAX_COPIED_BYTES) as source,
                    open(f"{folder.name}/{path.name}{ending}", "wb") as copy,
                ):
                    shutil.copyfileobj(source, copy, 1 << 20)
            if _states(path) == before:
                return folder
        raise UserError(f"The journal {path} is being written without the run's lock; try again when that has ended.")
    except OSError as error:
        folder.cleanup()
        raise UserError(f"The journal {path} cannot be copied to be read ({error.strerror or error}).") from error
    except BaseException:
        folder.cleanup()
        raise


def _states(path: Path) -> tuple[tuple[int, int, int], ...]:
    found = [os.lstat(f"{path}{ending}") for ending in ("", "-wal")]
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in found)
