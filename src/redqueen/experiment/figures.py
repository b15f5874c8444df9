"""An experiment's figures as SVG files: curves over steps and external fitness, arm beside arm (extra ``figures``).

The report's figures are drawn by a script in its page; these stand in documents, where no script runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from redqueen.errors import UserError, how_to_install
from redqueen.experiment.recorded import Measured
from redqueen.journal.read import Series
from redqueen.statistics import mean_interval

PANELS = {
    "solve/rate": "solve rate",
    "curriculum/ast_depth": "depth of the syntax tree",
    "curriculum/cyclomatic": "cyclomatic complexity",
    "curriculum/lines": "lines of a program",
    "curriculum/variables": "variables of a program",
    "semantic/operations": "operations seen so far",
    "semantic/io_classes": "input-output classes seen so far",
    "semantic/novelty": "distance to the nearest earlier task",
    "propose/valid_frac": "valid proposals (share)",
    "propose/entropy": "entropy while proposing (nats a token)",
    "solve/thought_frac": "attempts that think first (share)",
    "solve/tokens_mean": "tokens of an attempt",
}
"""The curves that are drawn, with what their axis says."""

WINDOW = 10
"""Steps of the running mean that the curves are smoothed with."""

DRAWN_EVERY = 2
"""Every second point of a smoothed curve is drawn: files half as large, and no difference to be seen."""

ARMS_A_FIGURE = 4
"""Arms in one figure of curves, beside the reference, which stands in each."""

COLORS = ("#222222", "#0067a8", "#c75000", "#007d5c", "#b0558c")
DASHES = ("-", "-", "--", "-.", ":")
"""The reference's first. They differ in their dashes too, for readers who do not see all colours."""

STYLE: Any = {
    "svg.hashsalt": "redqueen",
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def require_figures() -> None:
    """Raise UserError when matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError(f"--figures needs the package matplotlib: {how_to_install('figures')}")


def write_figures(measured: Sequence[Measured], reference: str, out: Path) -> list[Path]:
    """Draw ``curves-1.svg``, ``curves-2.svg`` and so on, and ``fitness.svg``, into ``out``; return their paths.

    An arm that is matched by tokens or time has a figure ``matched-1.svg`` and so on, over all its steps. The same
    runs give the same bytes. Raises UserError when a file cannot be written.
    """
    import matplotlib

    by_arm: dict[str, list[Measured]] = {}
    for run in measured:
        by_arm.setdefault(run.planned.arm, []).append(run)
    others = [arm for arm in by_arm if arm != reference]
    first = [reference] if reference in by_arm else []
    groups = [[*first, *others[at : at + ARMS_A_FIGURE]] for at in range(0, max(1, len(others)), ARMS_A_FIGURE)]
    with matplotlib.rc_context(STYLE):
        figures = {f"curves-{i}.svg": _curves({arm: by_arm[arm] for arm in g}) for i, g in enumerate(groups, start=1)}
        matched = [arm for arm in others if by_arm[arm][0].planned.match != "per_adapter"]
        for i, arm in enumerate(matched, start=1):
            figures[f"matched-{i}.svg"] = _whole_runs({name: by_arm[name] for name in first}, by_arm[arm])
        figures["fitness.svg"] = _fitness({arm: by_arm[arm] for arm in [*first, *others]})
        try:
            for name, figure in figures.items():
                figure.savefig(out / name, format="svg", metadata={"Date": None})
        except OSError as error:
            raise UserError(f"cannot write the figures to {out} ({error.strerror}): choose another folder") from None
    return [out / name for name in figures]


def running_mean(series: Series, window: int = WINDOW) -> list[tuple[int, float]]:
    """Return the mean over the last ``window`` steps (fewer at the start), without steps where it is not defined."""
    means = []
    for at, (step, _) in enumerate(series):
        values = [value for _, value in series[max(0, at + 1 - window) : at + 1] if value is not None]
        if values:
            means.append((step, fmean(values)))
    return means


def band(curves: Sequence[Series]) -> list[tuple[int, float, float, float]]:
    """Return step, mean, least and greatest over runs, for the steps that all of these curves have."""
    values = [dict(running_mean(curve)) for curve in curves]
    steps = sorted(set.intersection(*(set(one) for one in values))) if values else []
    rows = [(step, [one[step] for one in values]) for step in steps]
    return [(step, fmean(row), min(row), max(row)) for step, row in rows]


def _curves(by_arm: Mapping[str, Sequence[Measured]]) -> Any:
    """Small multiples: one panel a measure, one line an arm (mean over seeds), its range over seeds behind it."""
    figure, panels = _figure(len(PANELS) // 4, 4, 10.0, 6.8)
    last = min(int(run.measures.numbers["steps"]) for runs in by_arm.values() for run in runs)
    for measure, axes in zip(PANELS, panels, strict=True):
        _draw_arms(axes, by_arm, measure, last)
    return _finish(figure, panels)


def _whole_runs(reference: Mapping[str, Sequence[Measured]], runs: Sequence[Measured]) -> Any:
    """The same panels with a line a run, however long each is; the reference's mean and range over its own steps."""
    figure, panels = _figure(len(PANELS) // 4, 4, 10.0, 6.8)
    for measure, axes in zip(PANELS, panels, strict=True):
        _draw_arms(axes, reference, measure)
        for at, run in enumerate(runs):
            rows = running_mean(run.measures.curves.get(measure, []))[::-DRAWN_EVERY][::-1]
            if rows:
                color, dash = COLORS[1 + at % (len(COLORS) - 1)], DASHES[1 + at % (len(DASHES) - 1)]
                label = f"{run.planned.arm}, seed {run.planned.seed}"
                axes.plot(*zip(*rows, strict=True), dash, color=color, label=label, linewidth=1.1)
    return _finish(figure, panels)


def _draw_arms(axes: Any, by_arm: Mapping[str, Sequence[Measured]], measure: str, last: int | None = None) -> None:
    """Draw each arm's mean and its range over seeds, up to the step ``last``."""
    for (arm, runs), color, dash in zip(by_arm.items(), COLORS, DASHES, strict=False):
        curves = [run.measures.curves[measure] for run in runs if measure in run.measures.curves]
        rows = [row for row in band(curves) if last is None or row[0] <= last][::-DRAWN_EVERY][::-1]
        if rows:
            steps, means, low, high = zip(*rows, strict=True)
            label = f"{arm} ({len(curves)} seeds)" if len(curves) > 1 else f"{arm} (1 seed)"
            axes.plot(steps, means, dash, color=color, label=label, linewidth=1.3)
            axes.fill_between(steps, low, high, color=color, alpha=0.12, linewidth=0)


def _finish(figure: Any, panels: Sequence[Any]) -> Any:
    """Write titles, the legend of the first panel and what the axis is."""
    for title, axes in zip(PANELS.values(), panels, strict=True):
        axes.set_title(title, fontsize=8, loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.supxlabel(f"step (running means over {WINDOW}; band: least and greatest seed)", fontsize=8, y=0.06)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


def _fitness(by_arm: Mapping[str, Sequence[Measured]]) -> Any:
    """External fitness after the last step: a dot a run, the mean over seeds with its 95 % interval, and the base."""
    figure, panels = _figure(1, 2, 10.0, 0.9 + 0.32 * len(by_arm))
    for mode, axes in zip(("greedy", "sampled"), panels, strict=True):
        bases = []
        for row, runs in enumerate(by_arm.values()):
            numbers = [run.measures.numbers for run in runs if f"fitness/{mode}/mean" in run.measures.numbers]
            means = [100 * one[f"fitness/{mode}/mean"] for one in numbers]
            bases += [100 * (one[f"fitness/{mode}/mean"] - one[f"fitness/{mode}/change"]) for one in numbers]
            if means:
                interval = mean_interval(means)
                axes.plot(means, [row] * len(means), "o", color=COLORS[1], alpha=0.5, markersize=4)
                if interval.known:
                    axes.plot([interval.low, interval.high], [row, row], "-", color=COLORS[0], linewidth=1.2)
                axes.plot([fmean(means)], [row], "|", color=COLORS[0], markersize=11)
        if bases:
            axes.axvline(fmean(bases), color=COLORS[2], linestyle="--", linewidth=1)
        axes.set_yticks(range(len(by_arm)), list(by_arm) if mode == "greedy" else [])
        axes.set_ylim(len(by_arm) - 0.5, -0.5)
        axes.set_title(f"{mode}: right answers on the frozen suite (%); dashed: the base model", fontsize=8, loc="left")
    figure.tight_layout()
    return figure


def _figure(rows: int, columns: int, width_in: float, height_in: float) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in))
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)
