"""Frozen suites of domains whose tasks are a text and its truth: lines of JSON, and the digests that freeze them."""

from __future__ import annotations

from pathlib import Path

from redqueen.domains.domain import Item
from redqueen.domains.rows import frozen_files, rows_of_file
from redqueen.nouns import Task


def load_frozen(folder: Path, kind: str) -> list[Item]:
    """Load the suites that ``folder/CHECKSUMS`` lists: each line has ``id`` ("suite/name"), ``level``, ``code`` and
    ``output``. Raises UserError when a file is missing, has changed, or cannot be read.
    """
    items: list[Item] = []
    for row in (row for path in frozen_files(folder) for row in rows_of_file(path)):
        item_id = row.text("id")
        task = Task(item_id, "", "", kind, row.text("code"), ("",), (row.text("output"),))
        items.append(Item(item_id, item_id, f"{item_id.split('/')[0]}/{row.text('level')}", kind, task))
    return items
