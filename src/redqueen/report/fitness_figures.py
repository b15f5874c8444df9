"""Figures of external fitness: over time against the base model, each member, each kind, each stratum."""

from __future__ import annotations

from redqueen.domains.registry import in_order
from redqueen.journal.records import ALL, BASE, CONTROL
from redqueen.report.figure import Figure, Line, line
from redqueen.report.fitness import (
    MODES,
    Score,
    base_score,
    last_evaluated_step,
    mean_score,
    member_score,
    solvers,
    solvers_word,
)
from redqueen.report.view import RunView

UNIT = "share right (0 to 1)"
MODE_COLORS = {"sampled": 0, "greedy": 1}
MODE_SYMBOLS = {"sampled": "circle", "greedy": "diamond"}
MAX_MEMBERS = 24
"""Most members that are drawn one by one."""

BASE_COLOR = "quiet"


def fitness_figures(view: RunView) -> list[Figure | None]:
    """Return the figures of external fitness for every suite of the run."""
    suites = sorted({row["suite"] for row in view.evaluations})
    return [
        make(view, suite, "" if len(suites) == 1 else f"{suite}-", "" if len(suites) == 1 else f" ({suite})")
        for suite in suites
        for make in (_over_time, _by_member, _by_kind, _by_stratum)
    ]


def mean_line(view: RunView, suite: str, mode: str, color: int | str, dash: int, name: str) -> Line | None:
    """Return the solving members' mean over the steps with its interval as a band."""
    steps = sorted(
        {row["step"] for row in view.evaluations if row["suite"] == suite and row["individual"] not in (BASE, CONTROL)}
    )
    scores = [(step, mean_score(view, step, suite, ALL, ALL, mode)) for step in steps]
    known = [(step, score) for step, score in scores if score is not None]
    if not known:
        return None
    band = [[step, score.low, score.high] for step, score in known]
    drawn = line(name, [(step, score.mean) for step, score in known], color, dash, 2.5)
    return {**drawn, "bands": [band], "dots": True}


def _over_time(view: RunView, suite: str, prefix: str, suffix: str) -> Figure | None:
    series = []
    for at, mode in enumerate(MODES):
        base = base_score(view, suite, ALL, ALL, mode)
        if base is not None:
            flat = [[0, base.low, base.high], [view.last_step, base.low, base.high]]
            drawn = line(f"base, {mode}", [(0, base.mean), (view.last_step, base.mean)], BASE_COLOR, 1 + at, 1.5)
            series.append({**drawn, "bands": [flat]})
        mean = mean_line(
            view, suite, mode, MODE_COLORS[mode], 0 if mode == "sampled" else 1, f"{solvers_word(view)}, {mode}"
        )
        series += [] if mean is None else [mean]
    if not any(part["color"] != BASE_COLOR for part in series):
        return None
    text = (
        "Mean over the members that solve, with its 95 % interval as a band, against the base model (grey). Bands that "
        "touch may hide a change: one is claimed where the change paired item by item has an interval without 0, and "
        "by the bands alone only where the run has no pairs."
    )
    chart = {"type": "lines", "series": series}
    return Figure(f"{prefix}fitness-time", f"External fitness over time{suffix}", UNIT, text, chart)


def _by_member(view: RunView, suite: str, prefix: str, suffix: str) -> Figure | None:
    step = last_evaluated_step(view, suite)
    if step is None:
        return None
    here = {row["individual"] for row in view.evaluations if row["step"] == step and row["suite"] == suite}
    members = [member["id"] for member in solvers(view) if member["id"] in here]
    if not members:
        return None
    left_out = len(members) - MAX_MEMBERS
    if left_out > 0:
        ranked = sorted(members, key=lambda name: -_mean_over_modes(view, step, name, suite))
        members = ranked[: MAX_MEMBERS // 2] + ranked[-MAX_MEMBERS // 2 :]
    categories = ["base", *members]
    series = [
        dots(
            mode,
            mode,
            [
                base_score(view, suite, ALL, ALL, mode),
                *(member_score(view, step, member, suite, mode) for member in members),
            ],
        )
        for mode in MODES
    ]
    text = f"Every member that solves after step {step}, and the base model, with 95 % intervals over the items."
    if left_out > 0:
        text += f" The best {MAX_MEMBERS // 2} and the worst {MAX_MEMBERS // 2} are drawn."
    chart = {"type": "dots", "categories": categories, "series": series, "references": _references(view, suite)}
    return Figure(f"{prefix}fitness-members", f"Each member against the base{suffix}", UNIT, text, chart)


def _mean_over_modes(view: RunView, step: int, member: str, suite: str) -> float:
    scores = [member_score(view, step, member, suite, mode) for mode in MODES]
    known = [score.mean for score in scores if score is not None]
    return sum(known) / len(known) if known else 0.0


def _by_kind(view: RunView, suite: str, prefix: str, suffix: str) -> Figure | None:
    kinds = in_order(row["kind"] for row in view.evaluations if row["suite"] == suite and row["kind"] != ALL)
    parts = [(kind, ALL, kind) for kind in kinds]
    text = "Base model (hollow) and the solving members' mean (filled) by kind of task, with 95 % intervals."
    return _against_base(view, suite, f"{prefix}fitness-kinds", f"By kind{suffix}", text, parts)


def _by_stratum(view: RunView, suite: str, prefix: str, suffix: str) -> Figure | None:
    strata = sorted({row["stratum"] for row in view.evaluations if row["suite"] == suite and row["stratum"] != ALL})
    parts = [(stratum, stratum, ALL) for stratum in strata]
    text = "Base model (hollow) and the solving members' mean (filled) by part of the suite, with 95 % intervals."
    return _against_base(view, suite, f"{prefix}fitness-strata", f"By part of the suite{suffix}", text, parts)


def _against_base(
    view: RunView, suite: str, figure_id: str, title: str, text: str, parts: list[tuple[str, str, str]]
) -> Figure | None:
    """Return base and mean for parts of the suite, given as (name, stratum, kind)."""
    step = last_evaluated_step(view, suite)
    if step is None or not parts:
        return None
    series = []
    for mode in MODES:
        base = [base_score(view, suite, stratum, kind, mode) for _, stratum, kind in parts]
        mean = [mean_score(view, step, suite, stratum, kind, mode) for _, stratum, kind in parts]
        series += [
            {**dots(f"base, {mode}", mode, base), "hollow": True},
            dots(f"{solvers_word(view)}, {mode}", mode, mean),
        ]
    present = [part for part in series if any(part["values"])]
    chart = {"type": "dots", "categories": [name for name, _, _ in parts], "series": present}
    return Figure(figure_id, title, UNIT, text, chart, tall=len(parts) > 4) if present else None


def dots(name: str, mode: str, scores: list[Score | None]) -> Line:
    """Return one series of a ``dots`` chart in the look of its mode."""
    values = [None if score is None else [score.mean, score.low, score.high] for score in scores]
    return {"name": name, "color": MODE_COLORS[mode], "symbol": MODE_SYMBOLS[mode], "values": values}


def _references(view: RunView, suite: str) -> list[dict[str, object]]:
    scores = ((mode, base_score(view, suite, ALL, ALL, mode)) for mode in MODES)
    return [
        {"name": f"base, {mode}", "color": MODE_COLORS[mode], "low": score.low, "high": score.high}
        for mode, score in scores
        if score is not None
    ]
