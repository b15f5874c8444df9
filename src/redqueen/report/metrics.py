"""The names of the numbers of a run, from ``assets/metrics.tsv``: title, unit, one sentence of explanation."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

SHARE = "share (0 to 1)"


@dataclass(frozen=True)
class Metric:
    """How to show a number. ``unit`` is the axis label; shares are fractions from 0 to 1."""

    title: str
    unit: str
    explanation: str


def _table() -> dict[str, Metric]:
    path = Path(__file__).parent / "assets" / "metrics.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row.pop("name"): Metric(**row) for row in rows}


METRICS = _table()

PHASES = ("match", "propose", "verify", "solve", "learn", "distill", "evolve", "product", "evaluate", "checkpoint")
"""The phases of a step in their order, as they are named in the journal's table ``timing``."""


def describe(name: str) -> Metric:
    """Return how to show the metric ``name``; placeholders in the table match one part of a name.

    A name that the table does not have is shown as it is, without unit or explanation.
    """
    if name in METRICS:
        return METRICS[name]
    parts = name.split("/")
    for pattern, metric in METRICS.items():
        wanted = pattern.split("/")
        if len(wanted) == len(parts) and all(w.startswith("{") or w == p for w, p in zip(wanted, parts, strict=True)):
            named = {w.strip("{}"): p for w, p in zip(wanted, parts, strict=True) if w[0] == "{"}
            return Metric(metric.title.format(**named), metric.unit, metric.explanation)
    return Metric(name, "", "")
