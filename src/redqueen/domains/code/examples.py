"""The programs of few-shot prompts and of a new buffer, read from ``examples.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from redqueen.records import Task

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _example(fields: dict[str, Any]) -> Task:
    inputs, outputs = zip(*(line.split(" -> ") for line in fields["pairs"].splitlines()), strict=True)
    return Task("seed", "seed", "", "code_f", fields["code"], inputs, outputs, fields["message"])


def _seed(number: int, line: str) -> Task:
    value, names, given, output = (part.strip() for part in line.split(" | "))
    code = f"def f({names}):\n    return {value}\n"
    return Task(f"seed-{number}", "seed", "", "code_o", code, (given,), (output,))


EXAMPLES: tuple[Task, ...] = tuple(map(_example, _DATA["examples"]))
"""Each as a ``code_f`` task; a test checks the outputs."""
SEEDS = (
    *(_seed(number, line) for number, line in enumerate(_DATA["seeds"].splitlines(), start=1)),
    *(
        Task(f"seed-example-{number}", "seed", "", "code_o", one.code, one.inputs[:1], one.outputs[:1])
        for number, one in enumerate(EXAMPLES)
        if _DATA["examples"][number].get("starts_buffer")
    ),
)
"""The initial buffer where proposals continue examples: tasks of one step each, and those of ``EXAMPLES`` with the
shortest loops and branches, which a small model can follow (ours)."""
