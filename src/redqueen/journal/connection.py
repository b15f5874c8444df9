"""An open SQLite file: what it may do, how long it may think, and what is said in one sentence when it fails."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from redqueen.errors import UserError
from redqueen.journal.known import known_tables

REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then resume the run",
    sqlite3.SQLITE_READONLY: "it is read-only; make the run directory writable",
    sqlite3.SQLITE_AUTH: "it is read-only; open it to write",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and that you may read and write it",
    sqlite3.SQLITE_BUSY: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_LOCKED: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy or start a new run",
    sqlite3.SQLITE_NOTADB: "it is no journal; give the run directory of a redqueen run",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check the disk and its free space, then resume the run",
    sqlite3.SQLITE_PERM: "you have no permission; make the run directory writable",
    sqlite3.SQLITE_TOOBIG: "it holds a value larger than any that a run writes; restore it from a copy",
}
DAMAGED = "it cannot be read; restore it from a copy"

MAX_VALUE_BYTES = 16 << 20
"""Longest text that is read from a journal."""

OPS_BETWEEN_LOOKS = 20_000
"""Steps of SQLite's machine between two looks at the clock."""

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 10,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
FUNCTIONS = frozenset({"avg", "coalesce", "count", "instr", "length", "like", "max", "min", "replace", "substr", "sum"})
"""What our queries and the generated columns call."""

SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_schema"})


def restrain(connection: sqlite3.Connection) -> None:
    """Make a connection distrust the file: no function in its schema may do more than compute, cells are checked."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def restrain_reader(connection: sqlite3.Connection) -> None:
    """Make a connection read known tables and nothing else, with bounds on every value."""
    restrain(connection)
    connection.execute("PRAGMA query_only = ON")
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(_authorise)


def _authorise(action: int, first: str | None, second: str | None, _database: str | None, source: str | None) -> int:
    """Allow reading the columns of known tables from the query itself (``source`` names a view or a trigger)."""
    allowed = source is None and (
        action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION)
        or (action == sqlite3.SQLITE_READ and (first in known_tables() or first in SCHEMA_TABLES))
        or (action == sqlite3.SQLITE_FUNCTION and second in FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and first in ("application_id", "user_version") and second is None)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@dataclass
class Patience:
    """How long a connection may think: over one question, and over all (seconds)."""

    query_s: float = 120.0
    total_s: float = float("inf")
    spent_s: float = 0.0

    @contextmanager
    def limiting(self, connection: sqlite3.Connection, path: Path) -> Iterator[None]:
        """End what runs in this block when its time is up; raises UserError then.

        Two clocks: SQLite asks the first between the steps of its machine; the second, a thread, also ends what is a
        single step (to count the rows of a tree that was prepared to be endless).
        """
        left_s = min(self.query_s, self.total_s - self.spent_s)
        if left_s <= 0:
            raise _too_slow(path)
        began_s = time.monotonic()
        connection.set_progress_handler(lambda: time.monotonic() - began_s > left_s, OPS_BETWEEN_LOOKS)
        timer = Timer(left_s, _interrupter(connection))
        timer.daemon = True
        timer.start()
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
                raise _too_slow(path) from error
            raise
        finally:
            timer.cancel()
            connection.set_progress_handler(None, 0)
            self.spent_s += time.monotonic() - began_s


def _interrupter(connection: sqlite3.Connection) -> Callable[[], None]:
    def interrupt() -> None:
        with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
            connection.interrupt()

    return interrupt


def _too_slow(path: Path) -> UserError:
    return UserError(f"The journal {path} takes too long to answer: it is damaged, prepared to be slow, or very large.")


@contextmanager
def naming_the_journal(path: Path) -> Iterator[None]:
    """Turn what SQLite says about disk, permission and damage into one sentence that names the file and the remedy.

    A statement that breaks the schema's own rules (IntegrityError) or cannot be meant is a fault of the program.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # what SQLite says may quote names out of the file
        raise UserError(f"The journal {path}: {DAMAGED} (a text in it is no UTF-8).") from error
    except sqlite3.DatabaseError as error:
        remedy = REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if remedy is None and isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        raise UserError(f"The journal {path}: {remedy or DAMAGED} (SQLite: {error}).") from error
