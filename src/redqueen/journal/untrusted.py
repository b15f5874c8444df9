"""Reads an untrusted journal: an attacker may have prepared the file, or the files next to it.

- Files: SQLite replays a rollback journal, deletes the file that it names (the *super-journal*), and applies a
  write-ahead log. ``_open_to_read`` opens a journal so that reading changes nothing.
- Schema: it must be exactly that of ``schema``, without views, triggers or virtual tables, so that a query does what
  its text says.
- Values: the file can contain any value in any column, even of a STRICT table. Every value that is read is checked by
  the name of its column, which has one meaning in all tables and queries.
- Time and memory: queries have a time limit, values and results a size limit.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, NamedTuple

from redqueen.errors import UserError, command
from redqueen.files import open_plain
from redqueen.journal.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from redqueen.locking import is_locked

SqlValue = str | int | float | None
Row = dict[str, Any]
"""A row by column name; every value is text, a number or None."""

REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then resume the run",
    sqlite3.SQLITE_READONLY: "it is read-only; make the run directory writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and that you may read and write it",
    sqlite3.SQLITE_BUSY: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_LOCKED: "another process is writing to it; wait until that run has ended",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy or start a new run",
    sqlite3.SQLITE_NOTADB: "it is not a journal; give the run directory of a redqueen run",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check the disk and its free space, then resume the run",
    sqlite3.SQLITE_PERM: "permission denied; make the run directory writable",
    sqlite3.SQLITE_TOOBIG: "it holds a value larger than any that a run writes; restore it from a copy",
    sqlite3.SQLITE_INTERRUPT: "a query took too long; it is damaged, prepared to be slow, or very large",
}

# time and errors


@dataclass
class TimeLimit:
    """Seconds that one query may take, and that all queries of a connection may take together."""

    query_s: float = 120.0
    total_s: float = math.inf
    spent_s: float = 0.0


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about disk, permission and damage into a UserError with the file and the remedy.

    IntegrityError and ProgrammingError are bugs of the program and are not converted.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message may quote names out of the file
        raise UserError(f"The journal {path} holds text that is not UTF-8; restore it from a copy.") from error
    except sqlite3.DatabaseError as error:
        remedy = REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if remedy is None and isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        remedy = remedy or "it cannot be read; restore it from a copy"
        raise UserError(f"The journal {path}: {remedy} (SQLite: {error}).") from error


@contextmanager
def limited(path: Path, connection: sqlite3.Connection, limit: TimeLimit | None) -> Iterator[None]:
    """Like ``sqlite_errors``, and interrupt the queries in the block at the time limit (None: no limit)."""
    if limit is None:
        with sqlite_errors(path):
            yield
        return
    began_s = time.monotonic()
    timer = Timer(max(0.0, min(limit.query_s, limit.total_s - limit.spent_s)), connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        with sqlite_errors(path):
            yield
    finally:
        timer.cancel()
        timer.join()
        limit.spent_s += time.monotonic() - began_s


@contextmanager
def naming_contradictions(what: object) -> Iterator[None]:
    """Turn errors that occur while rows are combined into a UserError that names the run.

    Rows that are valid alone can contradict each other in many ways (a birth without a child, a step without its
    metric), and one prepared journal must not prevent the display of other runs.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            f"The journal of {what} contradicts itself ({type(error).__name__}: {str(error)[:200]}); "
            "it was damaged or changed: restore it from a copy."
        ) from error


# files

MAX_COPIED_BYTES = 1 << 30
"""Maximum size of a journal with a log, which is copied to be read."""

MAX_VALUE_BYTES = 16 << 20
"""Maximum length of a text that is read from a journal."""

SUPER_JOURNAL_MARK = bytes.fromhex("d9d505f920a163d7")
"""The last eight bytes of a rollback journal that names a super-journal (SQLite's file format, section 3)."""

Copy = TemporaryDirectory[str] | None
"""The private folder of a journal's copy; None if the journal itself is read."""

SIDE_FILES = ("-journal", "-wal", "-shm")
"""Endings of the files that SQLite keeps next to a database."""

writing_here: Counter[Path] = Counter()
"""Journals that this process is writing to. Opening and closing such a file again would release SQLite's locks."""


def open_checked(path: Path, read_only: bool, limit: TimeLimit) -> tuple[sqlite3.Connection, Copy]:
    """Open a journal and check its schema. Returns the connection and the private folder of a copy (None: no copy).

    Raises UserError when there is no journal, when it is not safe to open, and when its schema differs from ``schema``.
    """
    if not path.is_file():
        raise UserError(f"There is no journal at {path}; give the run directory of a run that was started.")
    with sqlite_errors(path):
        connection, folder = _open_to_read(path) if read_only else (_open_to_write(path), None)
    try:
        with limited(path, connection, limit):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            if read_only:
                connection.execute("PRAGMA query_only = ON")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            _check_schema(connection, path)
    except BaseException:
        connection.close()
        if folder is not None:
            folder.cleanup()
        raise
    return connection, folder


def _open_to_read(path: Path) -> tuple[sqlite3.Connection, Copy]:
    sizes = file_sizes(path)
    live = writing_here[path.resolve()] > 0 or is_locked(path.parent)
    if live and ((sizes["-wal"] and sizes["-shm"]) or sizes["-journal"]):
        return _connect(path, "mode=ro"), None  # replays no rollback journal; the log belongs to the writer
    repair = f"`{command('resume', path.parent)}` repairs it, if you trust the folder"
    if sizes["-journal"]:
        raise UserError(f"The journal {path} was not finished cleanly (it has a rollback journal): {repair}.")
    if not sizes["-wal"]:
        return _connect(path, "mode=ro&immutable=1"), None  # SQLite then opens no other file
    # The writer was killed. SQLite would apply and delete the log, so both files are copied.
    if sizes[""] + sizes["-wal"] > MAX_COPIED_BYTES:
        raise UserError(f"The journal {path} was not finished cleanly and is too large to be copied: {repair}.")
    folder = TemporaryDirectory(prefix="redqueen-journal-")
    try:
        for ending in ("", "-wal"):
            copy = Path(f"{folder.name}/{path.name}{ending}")
            with open_plain(Path(f"{path}{ending}"), MAX_COPIED_BYTES) as source, copy.open("wb") as file:
                shutil.copyfileobj(source, file)
        return _connect(Path(folder.name) / path.name, "mode=ro"), folder
    except (OSError, UserError) as error:
        folder.cleanup()
        raise UserError(f"The journal {path} cannot be copied to be read ({error}).") from error


def _open_to_write(path: Path) -> sqlite3.Connection:
    size = file_sizes(path, to_write=True)["-journal"]
    if size:
        with open_plain(Path(f"{path}-journal"), MAX_COPIED_BYTES) as file:
            file.seek(max(0, size - len(SUPER_JOURNAL_MARK)))
            if file.read() == SUPER_JOURNAL_MARK:
                raise UserError(
                    f"{path}-journal names another file, which SQLite would delete; no run writes that. Do not resume "
                    "this folder, or remove that file first."
                )
    return _connect(path, "mode=rw")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None, timeout=10.0)


def file_sizes(path: Path, to_write: bool = False) -> dict[str, int]:
    """Return the sizes of the journal ("") and of its side files by ending (0: absent), without opening any.

    Raises UserError for a link or a special file, and with ``to_write`` for a file with a second hard link.
    """
    sizes: dict[str, int] = {}
    for ending in ("", *SIDE_FILES):
        try:
            found = os.lstat(f"{path}{ending}")
        except FileNotFoundError:
            sizes[ending] = 0
            continue
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"{path}{ending} is a link or not a regular file; put the file itself there, or remove it.")
        if to_write and found.st_nlink > 1:
            raise UserError(f"{path}{ending} has a second hard link; copy the folder, and resume the copy.")
        sizes[ending] = found.st_size
    return sizes


# schema


class Column(NamedTuple):
    """A column of a table. ``key_at`` is its position in the primary key, counted from 1 (0: not part of it)."""

    name: str
    type: str
    nullable: bool
    key_at: int


Entry = tuple[str, str, str, str]
"""A row of SQLite's schema: type, name, table and SQL with normalised white space."""

EARLIER: frozenset[Entry] = frozenset({("index", "task_kind", "task", "CREATE INDEX task_kind ON task (kind, step)")})
"""Former indexes of this schema version, which older journals have."""

ENTRIES = "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema LIMIT 200"
"""Reads the schema; a journal has about forty entries."""


@cache
def known_tables() -> dict[str, tuple[Column, ...]]:
    """Return the columns of every table by its name, both in the order of the schema."""
    connection = _own_schema()
    names = [row[1] for row in connection.execute(ENTRIES) if row[0] == "table"]
    infos = {name: connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in names}
    never_null = {"thought"}  # a generated column whose formula is never NULL
    return {
        name: tuple(Column(row[1], row[2], not (row[3] or row[5] or row[1] in never_null), row[5]) for row in info)
        for name, info in infos.items()
    }


def _own_schema() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(TABLES)
    return connection


def _entries(rows: list[tuple[Any, ...]]) -> set[Entry]:
    return {(kind, name, table, " ".join(str(sql).split())) for kind, name, table, sql, _ in rows}


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise UserError(f"{path} is an SQLite file but not a journal of redqueen; give the run directory of a run.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} has journal schema {version}, and this redqueen reads schema {SCHEMA_VERSION}; "
            "use the version of redqueen that wrote it (see the table `run`)."
        )
    rows, known = connection.execute(ENTRIES).fetchall(), _entries(_own_schema().execute(ENTRIES).fetchall())
    found, pages = _entries(rows), [row[4] for row in rows]
    problem = ""
    if added := sorted(map(repr, found - known - EARLIER)):
        problem = f"it holds {added[0][:80]}, which no run makes"
    elif missing := {entry[:2] for entry in known} - {entry[:2] for entry in found}:
        problem = f"it lacks the {' '.join(min(missing))}"
    elif len(set(pages)) < len(pages) or not all(isinstance(page, int) and page > 1 for page in pages):
        problem = "two of its tables share their pages"
    if problem:
        raise UserError(
            f"The schema of the journal {path} was changed: {problem}; restore it from a copy, or undo the change."
        )


# values

LARGEST_INTEGER, LARGEST_REAL = 2**53, 1e100
"""Bounds of numbers. Larger integers are not exact in JSON, in figures and in Parquet."""

MAX_NAME_CHARS = 20_000
"""Maximum length of a name; the column ``student`` of a task may list a whole population."""

CHECKS = re.findall(r"CHECK \((\w+) IN \((.*?)\)\)", TABLES)
CHOICES = {name: frozenset(ast.literal_eval(f"({values},)")) for name, values in CHECKS}
NAMES = frozenset(
    {
        "id", "name", "arm", "operator", "child", "replaced", "parent", "member", "individual", "teacher", "student",
        "suite", "stratum", "kind", "phase", "verdict", "protection", "rng_seed",
    }
)  # fmt: skip
PATTERNS = {"rng_seed": r"-?[0-9]{1,100}", "kind": r"[A-Za-z][A-Za-z0-9_]{0,63}"}
"""Columns of text whose values all match one regular expression."""

MEANS = frozenset({"ast_depth", "cyclomatic", "num_lines", "num_variables"})
"""Integer columns of which some queries return the mean under the same name."""

TEXTS, NUMBERS = frozenset({str}), frozenset({int, float})
TYPES: dict[str, frozenset[type]] = {"TEXT": TEXTS, "INTEGER": frozenset({int}), "REAL": NUMBERS}


@cache
def _column_types() -> dict[str, frozenset[type]]:
    found: dict[str, frozenset[type]] = {name: frozenset({float}) for name in MEANS}
    for column in (column for columns in known_tables().values() for column in columns):
        types = TYPES[column.type] | ({type(None)} if column.nullable else set())
        found[column.name] = found.get(column.name, frozenset()) | types
    return found


def check_rows(path: Path, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
    """Raise UserError when a value does not have its column's type, range or form. Returns the characters of text."""
    columns = list(zip(names, zip(*rows, strict=True), strict=True))
    for name, values in columns:
        if fault := _fault(name, values):
            raise UserError(
                f"The journal {path} holds {fault} in its column {name}, which no run writes; restore it from a copy."
            )
    return sum(len(value) for _, values in columns for value in values if type(value) is str)


def _fault(name: str, values: tuple[Any, ...]) -> str:
    """Return what is wrong with the values of a column; "" if nothing."""
    types = _column_types().get(name)
    if strange := {*map(type, values)} - (types or TEXTS | NUMBERS | {type(None)}):
        return f"a value of the type {min(kind.__name__ for kind in strange)}"
    if name in CHOICES and (others := set(values) - CHOICES[name]):
        return f"the value {min(map(repr, others))[:80]}"
    if numbers := [value for value in values if type(value) in NUMBERS]:
        whole = types is not None and (float not in types or name in MEANS)
        least, largest = (0, LARGEST_INTEGER) if whole else (-LARGEST_REAL, LARGEST_REAL)
        if not least <= min(numbers) <= max(numbers) <= largest:
            return "a number that is out of range"
    texts = {value for value in values if type(value) is str}
    if name in NAMES and any(len(text) > MAX_NAME_CHARS for text in texts):
        return f"a name of more than {MAX_NAME_CHARS:,} characters"
    if name in PATTERNS and not all(re.fullmatch(PATTERNS[name], text) for text in texts):
        return "a text of another form"
    return ""


JSON_COLUMNS: dict[str, tuple[type, frozenset[type] | None, str]] = {
    "config": (dict, None, "an object"),
    "versions": (dict, TEXTS, "an object of texts"),
    "constants": (dict, NUMBERS, "an object of numbers"),
    "layer_changes": (dict, NUMBERS, "an object of numbers"),
    "warnings": (list, TEXTS, "an array of texts"),
    "inputs": (list, TEXTS, "an array of texts"),
    "outputs": (list, TEXTS, "an array of texts"),
}
"""Columns of JSON: the type of the value, the types of its items (None: any), and both in words."""


def json_of(row: Mapping[str, Any], column: str) -> Any:
    """Return the value of a row's JSON column. Raises UserError when it is not valid JSON or has another type."""
    kind, item_types, words = JSON_COLUMNS[column]
    try:
        value = _DECODER.decode(row[column])
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"The journal's column {column} does not hold JSON as a run writes it ({str(error)[:200]}); restore the "
            "journal from a copy."
        ) from None
    items = value.values() if isinstance(value, dict) else value
    if not isinstance(value, kind) or not (item_types is None or {*map(type, items)} <= item_types):
        raise UserError(f"The journal's column {column} does not hold {words}; restore the journal from a copy.")
    return value


def _finite(text: str) -> float:
    if not abs(value := float(text)) <= LARGEST_REAL:
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
