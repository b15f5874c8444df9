"""``redqueen report`` and ``redqueen diff``: the journals of runs as a page, a table, or a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from redqueen.errors import UserError
from redqueen.journal import diff as compare
from redqueen.report.pages import write_report
from redqueen.report.summary import summary
from redqueen.report.table_file import write_table
from redqueen.report.view import read_run
from redqueen.run.store import JOURNAL, REPORT


def report(run_dirs: list[Path], out: Path | None, format_: str, table: str, as_json: bool = False) -> None:
    """Write the report of one or several runs, or export one ``table`` of them, and print the file's path.

    With ``as_json`` one object (for several runs: a list of objects) is printed and nothing is written.
    """
    if as_json:
        if table or out:
            raise UserError("--json prints a summary and writes nothing: leave out --table and --out, or --json")
        objects = [summary(read_run(run_dir)) for run_dir in run_dirs]
        print(json.dumps(objects[0] if len(objects) == 1 else objects, indent=2))
        return
    if table:
        ending = format_ or "csv"
        path = out or run_dirs[0] / f"{Path(table).name}.{ending}"
        print(f"{path}: {write_table(run_dirs, table, ending, path):,} rows")
        return
    if format_:
        raise UserError(f"--format {format_} is the format of a table: name one with --table, or leave it out")
    print(write_report(run_dirs, out or run_dirs[0] / REPORT))


def diff(first: Path, second: Path, as_json: bool) -> None:
    """Compare the journals of two runs, except times; exit code 1 when they differ."""
    found = compare(first / JOURNAL, second / JOURNAL)
    print(json.dumps({"equal": found is None, "difference": found}) if as_json else found or "equal")
    if found:
        raise typer.Exit(1)
