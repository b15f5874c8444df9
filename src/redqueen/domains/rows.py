"""Rows of a benchmark: from a local file (JSON lines or JSON, plain or gzipped, or Parquet) or from the hub by name.

The format of a file is detected from its content, not from its name.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from redqueen.domains.domain import Item
from redqueen.errors import UserError, first_line, how_to_install
from redqueen.files import naming_remedy, open_data
from redqueen.records import Task

MAX_ABS_NUMBER = 1e100
"""Largest absolute value of a number in a field of an item (ours)."""
MAX_CHARS = 3 << 30
"""Most characters of an unpacked file (ours): twice those of the largest file of a suite, LiveCodeBench's with its
packed cases."""


@dataclass(frozen=True)
class Row:
    """One record with its position, for error messages: "FILE, line 3"."""

    where: str
    fields: dict[str, Any]

    def text(self, *names: str) -> str:
        """Return the first of these fields that is a text or a number, as text. Raises UserError when none is."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_ABS_NUMBER:
                return str(int(value)) if value == int(value) else str(value)
        raise UserError(
            f"{self.where}: the field {' or '.join(names)} is missing or not a text; is it this suite's file?"
        )

    def has(self, name: str) -> bool:
        """Return whether the record has this field with a value that is not null."""
        return self.fields.get(name) is not None


def rows_of_file(path: Path, flag: str = "--data") -> list[Row]:
    """Read a local file. Raises UserError naming the file and line when it cannot be read."""
    if not path.is_file():
        raise UserError(f"{flag} {path}: there is no such file; give a file of JSON lines (.jsonl, .jsonl.gz)")
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        datasets = _datasets(f"{flag} {path} is a Parquet file")
        return _rows(str(path), datasets.load_dataset("parquet", data_files=str(path), split="train"))
    what, errors = f"{flag} {path} cannot be read", (OSError, EOFError, ValueError, RecursionError, zlib.error)
    with naming_remedy(what, "give a file of JSON lines", errors), open_data(path) as stream:
        lines = _lines(stream)
        first = next(lines, "")
        named_json = ".json" in map(str.lower, path.suffixes)
        if first.lstrip().startswith("[") or (named_json and not first.rstrip().endswith("}")):
            listed = json.loads("".join((first, *lines)))
            return _rows(str(path), listed if isinstance(listed, list) else [listed])
        return list(_rows_of_lines(str(path), chain((first,), lines)))


def frozen_files(folder: Path) -> list[Path]:
    """Return the files that a folder's ``CHECKSUMS`` (as sha256sum writes it) lists, in its order.

    Raises UserError when one is missing or has changed since it was frozen.
    """
    paths = []
    for name, expected in read_checksums(folder).items():
        path = folder / name
        if not path.is_file():
            raise UserError(f"{path} is missing; restore it from the project, or remove its line from CHECKSUMS.")
        if checksum(path) != expected:
            raise UserError(
                f"{path} has changed since it was frozen; restore it, or, if the change is intended, update its line "
                "in CHECKSUMS with sha256sum (results are then not comparable with older ones)."
            )
        paths.append(path)
    return paths


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_checksums(folder: Path) -> dict[str, str]:
    """Read ``CHECKSUMS``: file name to SHA-256. Raises UserError when it is missing, empty or malformed."""
    path = folder / "CHECKSUMS"
    if not path.is_file():
        raise UserError(f"{path} is missing; write it with sha256sum *.jsonl > CHECKSUMS in that folder.")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines or any(len(parts) != 2 for parts in lines):
        raise UserError(f"{path} must have lines of a SHA-256 and a file name, as sha256sum writes them.")
    return {name: digest for digest, name in lines}


def _lines(stream: IO[str]) -> Iterator[str]:
    left = MAX_CHARS
    while line := stream.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError(f"it holds more than {MAX_CHARS:,} characters")
        yield line


def _rows_of_lines(name: str, lines: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{where}: not JSON; write one object per line") from None
        yield _row(where, fields)


def rows_of_hub(repository: str, config: str | None, split: str, files: str = "") -> list[Row]:
    """Load a dataset from the hub, or from its cache. ``files``: a pattern of JSON-line files in the repository.

    Raises UserError when the extra is not installed or the dataset cannot be loaded.
    """
    datasets = _datasets("suites are loaded from the hub by the package datasets")
    try:
        if files:
            loaded = datasets.load_dataset("json", data_files=f"hf://datasets/{repository}/{files}", split="train")
        else:
            loaded = datasets.load_dataset(repository, config, split=split)
    except (OSError, ValueError, RuntimeError) as error:  # the hub's client turns httpx's errors into these
        why = f"{repository} cannot be loaded ({first_line(error)})"
        raise UserError(f"{why}; go online, or give its file by --data") from None
    return _rows(repository, loaded)


def _datasets(why: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise UserError(f"{why}: {how_to_install('suites')}, or give a file of JSON lines by --data") from None
    return datasets


def _rows(name: str, records: Iterable[Any]) -> list[Row]:
    return [_row(f"{name}, record {number}", record) for number, record in enumerate(records, start=1)]


def _row(where: str, fields: object) -> Row:
    if not isinstance(fields, dict):
        raise UserError(f"{where}: expected an object with the fields of an item")
    return Row(where, fields)


def load_frozen(folder: Path, kind: str, worded_kind: str = "") -> list[Item]:
    """Load the suites that ``folder/CHECKSUMS`` lists: each line has ``id`` ("suite/name"), ``level``, ``code`` and
    ``output`` or ``answer``. With ``worded_kind``, lines with a non-empty ``text`` are of that kind. Raises UserError
    when a file is missing, has changed, or cannot be read.
    """
    items: list[Item] = []
    for row in (row for path in frozen_files(folder) for row in rows_of_file(path)):
        item_id, text = row.text("id"), row.text("text") if worded_kind else ""
        item_kind = worded_kind if text else kind
        task = Task(item_id, "", "", item_kind, row.text("code"), ("",), (row.text("output", "answer"),), text)
        items.append(Item(item_id, item_id, f"{item_id.split('/')[0]}/{row.text('level')}", item_kind, task))
    return items
