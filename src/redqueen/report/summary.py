"""A run as one plain object, for scripts: scores of base, control, product and members, and statistics of its tasks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from redqueen.journal import Journal
from redqueen.journal.read import Series
from redqueen.journal.schema import ALL, BASE, CHOSEN, CONTROL, GAIN, NO_MEMBERS, PRODUCT
from redqueen.report.fitness import Score, verdict_of
from redqueen.report.series import ends
from redqueen.report.view import RunView
from redqueen.run.store import JOURNAL

MODES = ("greedy", "sampled")
NO_GAIN = (
    "no measurable gain: the students learned little, or too few items were scored to show it. Next, continue the run "
    "for more steps, or start one with a higher evaluate.max_items; where few proposals are valid or few attempts "
    "right, choose a larger model.base, another model.prompt_format or other kinds (propose.num_proposals)"
)
WORDS = {"better": "better", "worse": "worse", "unclear": "no significant difference"}


def summary(view: RunView) -> dict[str, Any]:
    """Return the fields that ``docs/runs.md`` lists. A value that is not known is null; shares are 0 to 1."""
    steps, product = view.last_step, product_name(view.metrics, view.last_step)
    members = [row for row in view.evaluations if row["individual"] not in NO_MEMBERS]
    last = max((row["step"] for row in members), default=None)
    names = dict.fromkeys(row["individual"] for row in members if row["step"] == last)
    return {
        "name": view.run.name,
        "arm": view.run.arm,
        "seed": view.run.rng_seed,
        "steps": steps,
        "seconds": view.step_seconds,
        "tokens": view.tokens,
        "base": _scores(view, BASE),
        "control": _scores(view, CONTROL),
        "product": {"name": product, **_scores(view, PRODUCT)} if product else None,
        "gain": _scores(view, GAIN) if product else None,
        "members": {name: _scores(view, name) for name in names},
        "valid_frac": ends(view.series("propose/valid_frac"), steps),
        "solve_rate": ends(view.series("solve/rate"), steps),
        "new_frac": ends(_new_fracs(view), steps),
    }


def result_lines(view: RunView) -> list[str]:
    """Return the result of a run in at most four lines: held-out scores by mode, the product's gain, and what to try
    where there is none.

    Scores and differences have 95 % intervals over items, in percentage points. Without a held-out evaluation there
    is no line.
    """
    found = summary(view)
    lines, gains, verdicts = [], [], set()
    for mode in MODES:
        scores = {who: (found[who] or {}).get(mode) for who in (BASE, CONTROL, PRODUCT)}
        words = [f"{who} {Score(**score)}" for who, score in scores.items() if score]
        if words:
            lines.append(f"held-out tasks solved, {mode}: {', '.join(words)}")
        if gain := (found["gain"] or {}).get(mode):
            change = Score(**gain)
            verdicts.add(verdict_of(change))
            gains.append(f"{mode} {change.points}, {WORDS[verdict_of(change)]}")
    if gains:
        lines.append(f"product compared with the best control: {'; '.join(gains)}")
    return lines + [NO_GAIN] * (bool(gains) and "better" not in verdicts)


def product_name(metrics: dict[str, Series], step: int) -> str | None:
    """Return the name of the product that was chosen after ``step``, None where none was chosen. A run that was
    continued beyond its end has none until it ends again."""
    chosen = (name for name, series in metrics.items() if name.startswith(CHOSEN) and step in dict(series))
    return next(chosen, "").removeprefix(CHOSEN) or None


def has_distilled(run_dir: Path, step: int) -> bool:
    """Return whether the distilled adapter of the checkpoint of ``step`` has been trained."""
    with Journal.open(Path(run_dir) / JOURNAL, read_only=True) as journal:
        names = "('distill/answers', 'restart/answers')"
        found = journal.tuples(f"SELECT count(*) FROM metric WHERE name IN {names} AND value > 0 AND step <= ?", [step])
    return bool(found[0][0])


def _scores(view: RunView, name: str) -> dict[str, dict[str, float | None] | None]:
    """Return an individual's latest aggregate score by mode: mean and 95 % interval; null where it has none."""
    found: dict[str, dict[str, float | None] | None] = dict.fromkeys(MODES)
    for row in view.evaluations:
        if row["individual"] == name and row["stratum"] == row["kind"] == ALL:
            found[row["mode"]] = {"mean": row["mean_frac"], "low": row["low_frac"], "high": row["high_frac"]}
    return found


def _new_fracs(view: RunView) -> Series:
    """Return the share of each step's tasks whose behaviour no earlier task had."""
    points = [{"coverage": 0}, *(point for point in view.curriculum if point["kind"] == ALL)]
    return [
        (point["step"], (point["coverage"] - before["coverage"]) / point["num_tasks"])
        for before, point in pairwise(points)
        if point["num_tasks"]
    ]
