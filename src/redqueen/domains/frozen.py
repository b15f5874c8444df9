"""Frozen suites of domains whose tasks are a text and its truth: lines of JSON, and the digests that freeze them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redqueen.domains.domain import Item
from redqueen.domains.rows import checksum, frozen_files, rows_of_file
from redqueen.nouns import Task

LEVELS, TASKS_PER_LEVEL = (1, 2, 3, 4), 900
"""Of the suites that ``fill_levels`` draws: at 3,600 items a score's interval is at most 1.6 points to each side. The
first 300 of each level are what the suites had at first, and what older figures are of."""


def fill_levels(
    drawn: Iterable[tuple[int, str, str]], form_of: Callable[[str], str], num_tasks: int
) -> Iterator[tuple[int, str, str]]:
    """Yield ``num_tasks`` of the (level, code, output) for each level, as drawn, no normal form twice in one."""
    found: dict[int, dict[str, tuple[int, str, str]]] = {number: {} for number in LEVELS}
    for task in drawn:
        tasks = found[task[0]]
        if len(tasks) < num_tasks:
            tasks.setdefault(form_of(task[1]), task)
        if all(len(tasks) == num_tasks for tasks in found.values()):
            break
    for number in LEVELS:
        yield from found[number].values()


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


def write_frozen(folder: Path, name: str, tasks: Iterable[tuple[int, str, str]]) -> None:
    """Write a suite, and the line that freezes it, from (level, code, output)."""
    counts: dict[int, int] = {}
    lines = []
    for level, code, output in tasks:
        counts[level] = counts.get(level, 0) + 1
        record = {"id": f"{name}/{level}-{counts[level]:03d}", "level": level, "code": code, "output": output}
        lines.append(json.dumps(record))
    content = "\n".join(lines) + "\n"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text(content, encoding="utf-8")
    (folder / "CHECKSUMS").write_text(f"{checksum(path)}  {path.name}\n", encoding="utf-8")
