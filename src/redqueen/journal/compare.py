"""Compares two journals row by row, except times: ``redqueen diff`` checks an exact resume by it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from redqueen.journal.known import Column, known_tables
from redqueen.journal.schema import IDENTITY_COLUMNS, TIME_TABLES
from redqueen.journal.write import Journal

MAX_SHOWN_CHARS = 80
"""Longest piece of a value that the description of a difference shows."""


def diff(path_1: Path, path_2: Path) -> str | None:
    """Return None when both journals hold the same rows, else a sentence about the first row that differs.

    Tables with wall-clock times (``timing``, ``session``) and the run's name are left out. Tables are compared in
    the order of the schema, rows in the order of their primary key, values exactly (floats bit by bit). Raises
    UserError when a file is no journal.
    """
    with Journal.open(path_1, read_only=True) as one, Journal.open(path_2, read_only=True) as two:
        for table, columns in known_tables().items():
            if table not in TIME_TABLES:
                found = _first_difference(one, two, table, columns)
                if found is not None:
                    return found
    return None


def _first_difference(one: Journal, two: Journal, table: str, columns: Sequence[Column]) -> str | None:
    names = [column.name for column in columns if column.name not in IDENTITY_COLUMNS.get(table, ())]
    in_order = sorted((column for column in columns if column.key_at), key=lambda column: column.key_at)
    key = [column.name for column in in_order]
    select = f"SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(key)}"
    rows = (chain.from_iterable(journal.portions(select)) for journal in (one, two))
    for row_1, row_2 in zip_longest(*rows):
        if row_1 != row_2:
            return _describe(table, names, key, row_1, row_2)
    return None


def _describe(
    table: str, columns: list[str], key: list[str], row_1: tuple[object, ...] | None, row_2: tuple[object, ...] | None
) -> str:
    def named(row: tuple[object, ...]) -> str:
        return f"table {table}, row " + ", ".join(f"{name}={row[columns.index(name)]!r}" for name in key)

    if row_2 is None:
        assert row_1 is not None
        return f"{named(row_1)} stands in the first journal only"
    if row_1 is None:
        return f"{named(row_2)} stands in the second journal only"
    if any(row_1[columns.index(name)] != row_2[columns.index(name)] for name in key):
        return f"{named(row_1)} in the first journal, {named(row_2)} in the second"
    at = next(index for index, pair in enumerate(zip(row_1, row_2, strict=True)) if pair[0] != pair[1])
    values = f"{_short(row_1[at])} in the first journal and {_short(row_2[at])} in the second"
    return f"{named(row_1)}: {columns[at]} is {values}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "..."
