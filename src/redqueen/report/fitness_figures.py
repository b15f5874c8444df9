"""Figures of external fitness: over time against the base model, and by kind of task."""

from __future__ import annotations

from redqueen.domains.registry import in_order
from redqueen.journal.schema import ALL, BASE
from redqueen.report.figure import Figure, Line, line
from redqueen.report.fitness import (
    MODES,
    Score,
    evaluated_steps,
    last_evaluated_step,
    latest_score,
    mean_score,
    solvers_word,
)
from redqueen.report.view import RunView

UNIT = "share right (0 to 1)"
MODE_COLORS = {"sampled": 0, "greedy": 1}
MODE_SYMBOLS = {"sampled": "circle", "greedy": "diamond"}
BASE_COLOR = "quiet"


def fitness_figures(view: RunView) -> list[Figure | None]:
    """Return the figures of external fitness."""
    return [_over_time(view), _by_kind(view)]


def mean_line(view: RunView, mode: str, color: int | str, dash: int, name: str) -> Line | None:
    """Return the solving members' mean over the steps with its interval as a band."""
    scores = [(step, mean_score(view, step, mode)) for step in evaluated_steps(view)]
    known = [(step, score) for step, score in scores if score is not None]
    if not known:
        return None
    band = [[step, score.low, score.high] for step, score in known]
    drawn = line(name, [(step, score.mean) for step, score in known], color, dash, 2.5)
    return {**drawn, "bands": [band], "dots": True}


def _over_time(view: RunView) -> Figure | None:
    series = []
    for at, mode in enumerate(MODES):
        base = latest_score(view, BASE, mode)
        if base is not None:
            flat = [[0, base.low, base.high], [view.last_step, base.low, base.high]]
            drawn = line(f"base, {mode}", [(0, base.mean), (view.last_step, base.mean)], BASE_COLOR, 1 + at, 1.5)
            series.append({**drawn, "bands": [flat]})
        dash = 0 if mode == "sampled" else 1
        mean = mean_line(view, mode, MODE_COLORS[mode], dash, f"{solvers_word(view)}, {mode}")
        series += [] if mean is None else [mean]
    if not any(part["color"] != BASE_COLOR for part in series):
        return None
    text = (
        "Mean over the members that solve, with its 95 % interval as a band, compared with the base model (grey). A "
        "change can be significant although the bands overlap: the test is whether the 95 % interval of the difference "
        "paired by item excludes 0. The bands decide only when the run has no paired difference."
    )
    chart = {"type": "lines", "series": series}
    return Figure("fitness-time", "External fitness over time", UNIT, text, chart)


def _by_kind(view: RunView) -> Figure | None:
    kinds = in_order(row["kind"] for row in view.evaluations if row["kind"] != ALL)
    step = last_evaluated_step(view)
    if step is None or not kinds:
        return None
    series = []
    for mode in MODES:
        base = [latest_score(view, BASE, mode, kind) for kind in kinds]
        mean = [mean_score(view, step, mode, kind) for kind in kinds]
        series += [
            {**dots(f"base, {mode}", mode, base), "hollow": True},
            dots(f"{solvers_word(view)}, {mode}", mode, mean),
        ]
    present = [part for part in series if any(part["values"])]
    text = "Base model (hollow) and the solving members' mean (filled) by kind of task, with 95 % intervals."
    chart = {"type": "dots", "categories": kinds, "series": present}
    figure = Figure("fitness-kinds", "By kind", UNIT, text, chart, tall=len(kinds) > 4)
    return figure if present else None


def dots(name: str, mode: str, scores: list[Score | None]) -> Line:
    """Return one series of a ``dots`` chart in the style of its mode."""
    values = [None if score is None else [score.mean, score.low, score.high] for score in scores]
    return {"name": name, "color": MODE_COLORS[mode], "symbol": MODE_SYMBOLS[mode], "values": values}
