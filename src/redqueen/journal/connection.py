"""Opening the SQLite file, and saying in one sentence what is wrong when that or a write fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redqueen.errors import UserError

REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then resume the run",
    sqlite3.SQLITE_READONLY: "it is read-only; make the run directory writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and that you may read and write it",
    sqlite3.SQLITE_BUSY: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_LOCKED: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy or start a new run",
    sqlite3.SQLITE_NOTADB: "it is no journal; give the run directory of a redqueen run",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check the disk and its free space, then resume the run",
    sqlite3.SQLITE_PERM: "you have no permission; make the run directory writable",
}


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a journal that this connection will not change.

    It is opened as for writing, so that SQLite may tidy its log away at the end, with every change forbidden. Where the
    folder cannot be written to, SQLite opens a journal with a log only as immutable, which is right exactly when the
    log is empty: nobody is writing.
    """
    address = path.resolve().as_uri()
    connection = sqlite3.connect(f"{address}?mode=rw", uri=True, isolation_level=None, timeout=10.0)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        log = Path(f"{path}-wal")
        if log.exists() and log.stat().st_size:
            raise
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return connection


@contextmanager
def naming_the_journal(path: Path) -> Iterator[None]:
    """Turn what SQLite says about disk, permission and damage into one sentence that names the file and the remedy."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        remedy = REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if remedy is None:
            raise
        raise UserError(f"The journal {path}: {remedy} (SQLite: {error}).") from error
