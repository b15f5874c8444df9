"""The metrics of a run, from ``assets/metrics.tsv``: title, unit, and an explanation of one sentence."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

SHARE = "share (0 to 1)"


@dataclass(frozen=True)
class Metric:
    """How to show a metric. ``unit`` is the axis label; shares are fractions from 0 to 1."""

    title: str
    unit: str
    explanation: str


def _table() -> dict[str, Metric]:
    path = Path(__file__).parent / "assets" / "metrics.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row.pop("name"): Metric(**row) for row in rows}


METRICS = _table()

TIPS = {metric.title.lower(): metric.explanation for metric in METRICS.values()} | {
    "external fitness": "Score on a frozen suite of tasks that no member is trained or selected on.",
    "rating": "Skill from wins and losses against the other role: mean ± standard deviation.",
    "fitness": "The value that selection uses: by default the rating minus a multiple of its standard deviation.",
    "valid": "Share of proposals that the verifier accepted as tasks.",
    "arm": "Runs with the same settings and different seeds.",
    "nats per token": "A nat is the natural unit of information: 1.44 bits.",
    "ppo clipping": "Tokens whose probability moved beyond the clip range add no gradient to the policy loss.",
    "change": "Mean size of the weight difference from the first parent, relative to that parent.",
    "time": "Wall clock of all phases, evaluations and checkpoints included.",
}
"""Explanations by name in lower case; a page shows them as tooltips."""


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
