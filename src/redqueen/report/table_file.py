"""A table of the journal as a file for other programs: CSV, or Parquet with the extra ``parquet``."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from redqueen.display import visible
from redqueen.errors import UserError, how_to_install
from redqueen.files import naming_remedy, writing_whole
from redqueen.journal import Journal
from redqueen.journal.untrusted import known_tables
from redqueen.report.compare import labels_of
from redqueen.run.store import JOURNAL, refuse_own_file

FORMATS = ("csv", "parquet")

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that a spreadsheet interprets as a formula."""

Column = tuple[str, str]
"""Name and SQLite type: TEXT, INTEGER or REAL."""


def write_table(run_dirs: Sequence[Path], table: str, format_: str, out: Path) -> int:
    """Write one table of one run, or of several runs one after the other, to ``out``; return the number of rows.

    With several runs a first column ``run`` names each row's run directory (``labels_of``). In CSV a text that a
    spreadsheet would interpret as a formula gets an apostrophe in front, invisible and control characters are written
    out, and NULL is an empty cell; Parquet has all values unchanged. Raises UserError for an unknown table or format,
    a folder without journal, a file that cannot be written, and a file that a run needs.
    """
    refuse_own_file(out)
    if format_ not in FORMATS:
        raise UserError(f"--format {format_} is unknown for a table: choose {' or '.join(FORMATS)}")
    if format_ == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise UserError(f"--format parquet needs the package pyarrow: {how_to_install('parquet')}, or choose csv")
    known = known_tables()
    if table not in known:  # the name goes into the SQL text below
        raise UserError(f"--table {table} is unknown: choose one of {', '.join(known)}")
    columns: list[Column] = [(column.name, column.type) for column in known[table]]
    with ExitStack() as stack:
        journals = [stack.enter_context(Journal.open(folder / JOURNAL, read_only=True)) for folder in run_dirs]
        labels = labels_of(run_dirs) if len(run_dirs) > 1 else []
        batches = (
            [((labels[i], *row) if labels else row) for row in rows]
            for i, journal in enumerate(journals)
            for rows in journal.portions(f"SELECT {', '.join(name for name, _ in columns)} FROM {table}")
        )
        head = [("run", "TEXT"), *columns] if labels else columns
        write = _write_csv if format_ == "csv" else _write_parquet
        with naming_remedy(f"--out {out} cannot be written"), writing_whole(out) as file:
            return write(file, head, batches)


def _write_csv(file: BinaryIO, columns: Sequence[Column], batches: Iterator[list[tuple[Any, ...]]]) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow([name for name, _ in columns])
    num_rows = 0
    for rows in batches:
        writer.writerows([_cell(value) for value in row] for row in rows)
        num_rows += len(rows)
    text.detach()
    return num_rows


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(FORMULA_STARTS) else visible(value)


def _write_parquet(file: BinaryIO, columns: Sequence[Column], batches: Iterator[list[tuple[Any, ...]]]) -> int:
    import pyarrow
    import pyarrow.parquet

    kinds = {"TEXT": pyarrow.string(), "INTEGER": pyarrow.int64(), "REAL": pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns])
    num_rows = 0
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in batches:
            arrays = [pyarrow.array(values, kind.type) for values, kind in zip(zip(*rows), schema)]  # noqa: B905
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            num_rows += len(rows)
    return num_rows
