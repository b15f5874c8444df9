"""What a journal may hold: exactly the tables, columns and indexes of the schema, whoever made the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from redqueen.errors import UserError
from redqueen.journal.schema import TABLES

Entry = tuple[str, str, str, str | None]
"""A row of SQLite's schema: type, name, table and SQL, with every run of white space as one space."""

EARLIER: frozenset[Entry] = frozenset({("index", "task_kind", "task", "CREATE INDEX task_kind ON task (kind, step)")})
"""Indexes as journals of this schema version had them before."""

MAX_ENTRIES = 200
"""Rows of the schema that are looked at; ours has some forty."""


@dataclass(frozen=True)
class Column:
    """A column of a known table. ``key_at`` is its place in the primary key, counted from 1 (0: none)."""

    name: str
    type: str
    nullable: bool
    key_at: int


def statements() -> Iterator[str]:
    """Yield the statements that make the tables, in order."""
    yield from (statement for statement in TABLES.split(";\n") if statement.strip())


@cache
def known_tables() -> dict[str, tuple[Column, ...]]:
    """Return the columns of every table by its name, both in the order of the schema."""
    with _reference() as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: _columns(connection, name) for name in names}


def _columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    never_null = {"thought"}  # it is generated, and never NULL by its formula
    return tuple(
        Column(name, kind, not notnull and not key_at and name not in never_null, key_at)
        for _, name, kind, notnull, _, key_at, _ in connection.execute(f"PRAGMA table_xinfo({table})")
    )


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise UserError unless the open file has our tables and indexes and nothing else: no view, trigger or module.

    What a statement means is decided by the schema alone, so after this the queries of the project mean what they say.
    """
    rows = connection.execute(f"SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema LIMIT {MAX_ENTRIES}")
    entries, pages = [], []
    for kind, name, table, sql, page in rows:
        entries.append((kind, name, table, _one_space(sql)))
        pages.append(page)
    known = _known_entries()
    strange = [entry for entry in entries if entry not in known and entry not in EARLIER]
    if strange:
        kind, name = (repr(part)[:80] for part in strange[0][:2])
        raise _refusal(path, f"it holds the {kind} {name}, which is none of ours")
    missing = {entry[:2] for entry in known} - {entry[:2] for entry in entries}
    if missing:
        raise _refusal(path, f"it lacks the {' '.join(min(missing))}")
    if len(set(pages)) < len(pages) or not all(isinstance(page, int) and page > 1 for page in pages):
        raise _refusal(path, "two of its tables share their pages")


def _refusal(path: Path, what: str) -> UserError:
    return UserError(
        f"The journal {path} is not as redqueen makes it: {what}; restore it from a copy, or take what was added out."
    )


def _one_space(sql: object) -> str | None:
    return None if sql is None else " ".join(str(sql).split())


@cache
def _known_entries() -> frozenset[Entry]:
    with _reference() as connection:
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
        return frozenset((kind, name, table, _one_space(sql)) for kind, name, table, sql in rows)


def _reference() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in statements():
        connection.execute(statement)
    return connection
