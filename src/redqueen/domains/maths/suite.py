"""The frozen held-out suite of mathematics.

A line has ``id`` ("exercises/LEVEL-NUMBER"), ``level``, ``code``, ``text`` ("" for a formal exercise) and ``answer``.
"""

from __future__ import annotations

from pathlib import Path

from redqueen.domains.domain import Item
from redqueen.domains.maths.prompts_compact import FORMAL, WORD
from redqueen.domains.rows import Row, frozen_files, rows_of_file
from redqueen.errors import UserError
from redqueen.records import Task

SUITES = Path(__file__).parent / "suites"


def load_suite(folder: Path = SUITES) -> list[Item]:
    """Load the frozen files. Raises UserError when one is missing, has changed, or cannot be read."""
    return [_item(row) for path in frozen_files(folder) for row in rows_of_file(path)]


def _item(row: Row) -> Item:
    level = row.fields.get("level")
    if not isinstance(level, int):
        raise UserError(f"{row.where}: the field level must be a whole number")
    name, text = row.text("id"), row.text("text")
    kind = WORD if text else FORMAL
    task = Task(name, "", "", kind, row.text("code"), ("",), (row.text("answer"),), text)
    return Item(id=name, cluster=name, stratum=f"{name.split('/')[0]}/{level}", kind=kind, task=task)
