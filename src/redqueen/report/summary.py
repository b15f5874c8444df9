"""A run as one plain object, for scripts: scores of base, control, product and members, and how tasks went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from redqueen.journal import Journal, read
from redqueen.journal.connection import Patience
from redqueen.journal.read import Series
from redqueen.journal.records import ALL, BASE, CHOSEN, CONTROL, GAIN, NO_MEMBERS, PRODUCT
from redqueen.journal.values import naming_contradictions
from redqueen.journal.write import Row
from redqueen.report.stretches import ends
from redqueen.run.store import JOURNAL

MODES = ("greedy", "sampled")


def summary(run_dir: Path, patience: Patience | None = None) -> dict[str, Any]:
    """Return one object of a run: what ``docs/runs.md`` lists. What is not known is null; shares are 0 to 1.

    Raises UserError when there is no journal, or when its rows are none that a run writes.
    """
    with (
        naming_contradictions(run_dir),
        Journal.open(Path(run_dir) / JOURNAL, read_only=True, patience=patience) as journal,
    ):
        run, metrics, rows = read.run_record(journal), read.metric_series(journal), read.evaluations(journal)
        steps = read.last_step(journal) or 0
        scores = [row for row in rows if (row["stratum"], row["kind"]) == (ALL, ALL)]
        members = [row for row in scores if row["individual"] not in NO_MEMBERS]
        last = max((row["step"] for row in members), default=None)
        names = dict.fromkeys(row["individual"] for row in members if row["step"] == last)
        product = product_name(metrics, steps)
        return {
            "name": run.name,
            "arm": run.arm,
            "seed": run.rng_seed,
            "steps": steps,
            "seconds": read.step_seconds(journal),
            "tokens": read.tokens_sampled(journal),
            "base": _scores(scores, BASE),
            "control": _scores(scores, CONTROL),
            "product": {"name": product, **_scores(scores, PRODUCT)} if product else None,
            "gain": _scores(scores, GAIN) if product else None,
            "members": {name: _scores(scores, name) for name in names},
            "valid_frac": ends(metrics.get("propose/valid_frac", []), steps),
            "solve_rate": ends(metrics.get("solve/rate", []), steps),
            "new_frac": ends(_new_fracs(journal), steps),
        }


def product_name(metrics: dict[str, Series], step: int) -> str | None:
    """Return the product that was chosen after ``step``; None where none was: a run that goes on has none again."""
    chosen = (name for name, series in metrics.items() if name.startswith(CHOSEN) and step in dict(series))
    return next(chosen, "").removeprefix(CHOSEN) or None


def has_distilled(run_dir: Path, step: int) -> bool:
    """Tell whether the distilled adapter of the checkpoint of ``step`` has learned: before there is only its place."""
    with Journal.open(Path(run_dir) / JOURNAL, read_only=True) as journal:
        marks = "('distill/answers', 'restart/answers')"
        found = journal.tuples(f"SELECT count(*) FROM metric WHERE name IN {marks} AND value > 0 AND step <= ?", [step])
    return bool(found[0][0])


def _scores(scores: Sequence[Row], name: str) -> dict[str, dict[str, float | None] | None]:
    """Return an individual's latest aggregate score by mode: mean and 95 % interval; null where it has none."""
    found: dict[str, dict[str, float | None] | None] = dict.fromkeys(MODES)
    for row in scores:
        if row["individual"] == name:
            found[row["mode"]] = {"mean": row["mean_frac"], "low": row["low_frac"], "high": row["high_frac"]}
    return found


def _new_fracs(journal: Journal) -> Series:
    """Return the share of each step's tasks whose behaviour no earlier task had."""
    seen: set[str] = set()
    by_step: dict[int, list[float]] = {}
    for step, behaviour in journal.tuples("SELECT step, behaviour FROM task ORDER BY seq"):
        by_step.setdefault(step, []).append(float(behaviour not in seen))
        seen.add(behaviour)
    return [(step, fmean(new)) for step, new in by_step.items()]
