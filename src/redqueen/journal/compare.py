"""Compares two journals row by row, except for times; ``redqueen diff`` uses it to check an exact resume."""

from __future__ import annotations

import json
from itertools import chain, zip_longest
from pathlib import Path

from redqueen.journal.schema import IDENTITY_COLUMNS, TIME_TABLES
from redqueen.journal.untrusted import known_tables
from redqueen.journal.write import Journal

MAX_SHOWN_CHARS = 80
"""Maximum characters of a value in the description of a difference."""


def diff(path_1: Path, path_2: Path) -> str | None:
    """Return None when both journals have the same rows, else a sentence about the first row that differs.

    Tables with wall-clock times (``timing``, ``session``) and the run's name are ignored. Tables are compared in the
    order of the schema, rows in the order of their primary key, values exactly (floats bit by bit). Raises UserError
    when a file is not a journal.
    """
    with Journal.open(path_1, read_only=True) as one, Journal.open(path_2, read_only=True) as two:
        for table, columns in known_tables().items():
            names = [column.name for column in columns if column.name not in IDENTITY_COLUMNS.get(table, ())]
            key = [column.name for column in sorted(columns, key=lambda column: column.key_at) if column.key_at]
            select = f"SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(key)}"
            if table not in TIME_TABLES:
                rows = (chain.from_iterable(journal.portions(select)) for journal in (one, two))
                for row_1, row_2 in zip_longest(*rows):
                    if row_1 != row_2:
                        found_1, found_2 = (
                            None if row is None else dict(zip(names, row, strict=True)) for row in (row_1, row_2)
                        )
                        return _describe(table, key, found_1, found_2)
    return None


def _describe(table: str, key: list[str], row_1: dict[str, object] | None, row_2: dict[str, object] | None) -> str:
    def named(row: dict[str, object]) -> str:
        return f"table {table}, row " + ", ".join(f"{name}={row[name]!r}" for name in key)

    if row_1 is None or row_2 is None:
        return f"{named(row_1 or row_2 or {})} is in the {'second' if row_1 is None else 'first'} journal only"
    if any(row_1[name] != row_2[name] for name in key):
        return f"{named(row_1)} in the first journal, {named(row_2)} in the second"
    column = next(name for name in row_1 if row_1[name] != row_2[name])
    field, (value_1, value_2) = _first_difference(column, row_1[column], row_2[column])
    return f"{named(row_1)}: {field} is {_short(value_1)} in the first journal and {_short(value_2)} in the second"


def _first_difference(name: str, value_1: object, value_2: object) -> tuple[str, tuple[object, object]]:
    """Return the first field in which two values differ, and its two values; ``name`` itself if they have no fields.

    JSON objects as text, such as a run's config, are compared field by field.
    """
    one, two = _parsed(value_1), _parsed(value_2)
    if isinstance(one, dict) and isinstance(two, dict):
        for key in one | two:
            if one.get(key) != two.get(key):
                return _first_difference(f"{name}.{key}", one.get(key), two.get(key))
    return name, (value_1, value_2)


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "..."
