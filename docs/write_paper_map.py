"""Write the table of config fields in docs/paper_map.md from the docstrings of the fields; a test holds them together.

A field's docstring says what it is, then its ground, and why: ``Steps between generations. Paper: 10.``

.venv/bin/python docs/write_paper_map.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from redqueen.config import Config

PAGE = Path(__file__).parent / "paper_map.md"
BEGIN, END = "## Fields of the config\n", "## Values that are no fields\n"
"""The headings between which the tables stand."""

NOTE = "\nWritten by `docs/write_paper_map.py` from the docstrings of `src/redqueen/config/`.\n"

GROUNDED = re.compile(r"(?s)(?P<what>.+?\.)\s(?P<ground>Paper|Re-implementation|AZR|Ours)(?::\s(?P<why>.+))?\.")
"""A docstring: sentences, then the ground, alone or with its reason."""


def page(text: str) -> str:
    """Return the page with its tables written anew."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + NOTE + "".join(_tables()) + "\n" + END + rest.split(END)[1]


def _tables() -> Iterator[str]:
    for section, model in Config.model_fields.items():
        yield f"\n### {section}\n\n| field | default | what it is | ground |\n|---|---|---|---|\n"
        for name, field in model.annotation.model_fields.items():  # type: ignore[union-attr]
            what, ground = grounded(field.description or "", f"{section}.{name}")
            default = json.dumps(field.get_default(call_default_factory=True))
            yield f"| `{section}.{name}` | `{default}` | {_cell(what)} | {_cell(ground)} |\n"


def grounded(docstring: str, field: str) -> tuple[str, str]:
    """Return what the field is, and its ground with the reason. Raises ValueError for a docstring without a ground."""
    found = GROUNDED.fullmatch(docstring)
    if not found:
        raise ValueError(f"the docstring of {field} ends with no ground, as 'Ours.' or 'Paper: 10.': {docstring!r}")
    ground = found["ground"] if found["ground"] == "AZR" else found["ground"].lower()
    return found["what"], f"{ground}: {found['why']}" if found["why"] else ground


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)
