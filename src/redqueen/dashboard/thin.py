"""Fewer points for long runs: what a figure of a few hundred pixels can show, and no more than a browser likes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from redqueen.journal.read import Series
from redqueen.journal.write import Row
from redqueen.report.curriculum import CurriculumStep
from redqueen.report.view import RunView

MAX_POINTS = 400
"""Longest series of a figure; a longer run is shown in stretches of several steps."""


def stretch_steps(num_steps: int, max_points: int = MAX_POINTS) -> int:
    """Return how many steps one point stands for: 1 for a run of up to ``max_points`` steps."""
    return max(1, -(-num_steps // max_points))


def thin(view: RunView, size: int) -> RunView:
    """Return the view with one point for each stretch of ``size`` steps.

    Metrics, the curriculum and check-ups become means over the stretch, times and rejections (drawn as bars) their
    sums; ratings keep those at the ends of stretches. Step 0 stands by itself. With ``size`` 1 the view is returned as
    it is.
    """
    if size == 1:
        return view
    ends = {size * stretch(step, size) for step in view.steps} | {view.last_step}
    counted: dict[tuple[int, str], int] = defaultdict(int)
    for row in view.rejections:
        counted[min(size * stretch(row["step"], size), view.last_step), row["reason"]] += row["num"]
    return replace(
        view,
        steps=[step for step in view.steps if step in ends],
        metrics={name: mean_series(series, size) for name, series in view.metrics.items()},
        timings={phase: sum_series(series, size, view.last_step) for phase, series in view.timings.items()},
        ratings=[row for row in view.ratings if row["step"] in ends],
        rejections=[{"step": step, "reason": reason, "num": num} for (step, reason), num in counted.items()],
        curriculum=_thin_curriculum(view.curriculum, size),
        health=_thin_health(view.health, size),
    )


def stretch(step: int, size: int) -> int:
    """Return the number of a step's stretch: 0 for step 0, 1 for the steps 1 to ``size``, and so on."""
    return -(-step // size)


def mean_series(series: Series, size: int) -> Series:
    """Return the mean of the defined values of each stretch, at its last step."""
    return [(step, _mean(values)) for step, values in _stretches(series, size)]


def sum_series(series: Series, size: int, last_step: int) -> Series:
    """Return the sum of each stretch, at the stretch's end, so that rare phases are at the same steps."""
    return [
        (min(size * stretch(step, size), last_step), sum(value or 0.0 for value in values))
        for step, values in _stretches(series, size)
    ]


def _stretches(series: Series, size: int) -> list[tuple[int, list[float | None]]]:
    last: dict[int, int] = {}
    values: dict[int, list[float | None]] = defaultdict(list)
    for step, value in series:
        last[stretch(step, size)] = step
        values[stretch(step, size)].append(value)
    return [(last[number], values[number]) for number in sorted(values)]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _thin_health(check_ups: list[Row], size: int) -> list[Row]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in check_ups:
        groups[stretch(row["step"], size)].append(row)
    return [
        {name: _mean(row[name] for row in group) for name in group[0] if name not in ("step", "warnings")}
        | {"step": group[-1]["step"], "warnings": [text for row in group for text in row["warnings"]]}
        for group in groups.values()
    ]


def _thin_curriculum(points: list[CurriculumStep], size: int) -> list[CurriculumStep]:
    groups: dict[tuple[str, int], list[CurriculumStep]] = defaultdict(list)
    for point in points:
        groups[point.kind, stretch(point.step, size)].append(point)
    return [
        CurriculumStep(
            step=group[-1].step,
            kind=kind,
            num_tasks=sum(point.num_tasks for point in group),
            ast_depth=_mean(point.ast_depth for point in group),
            cyclomatic=_mean(point.cyclomatic for point in group),
            num_lines=_mean(point.num_lines for point in group),
            num_variables=_mean(point.num_variables for point in group),
            coverage=group[-1].coverage,
        )
        for (kind, _), group in groups.items()
    ]
