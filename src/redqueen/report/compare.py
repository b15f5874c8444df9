"""Comparison of several runs: each figure with one line per run, and a table with the spread over runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from redqueen.display import NOTHING, number
from redqueen.journal.read import Series
from redqueen.journal.schema import RunRecord
from redqueen.propose.curriculum import STRUCTURE
from redqueen.report.figure import NUM_COLORS, Chart, Figure, Line, Section, line, lines_of, smoothing_note
from redqueen.report.fitness import MODES, comparisons
from redqueen.report.fitness_figures import UNIT, mean_line
from redqueen.report.metrics import SHARE, describe
from redqueen.report.series import ends
from redqueen.report.view import RunView

TEXT = (
    "An arm is a group of runs with the same settings; its runs share a colour, and each run has its own marker. "
    "The differences between runs of one arm are noise: a difference between arms counts only if it is larger."
)
MARKS = [(symbol, is_hollow) for is_hollow in (False, True) for symbol in ("circle", "square", "triangle", "diamond")]
"""Shape of a run's markers, and whether they are hollow."""

MAX_SETTINGS = 200
"""Longest table of the settings in which configs differ."""

COMPARED = (
    "solve/rate",
    "propose/valid_frac",
    "curriculum/ast_depth",
    "curriculum/cyclomatic",
    "curriculum/lines",
    "curriculum/variables",
    "curriculum/coverage",
    "propose/entropy",
    "solve/entropy",
    "solve/tokens_mean",
    "solve/thought_frac",
)
ARMS_HEAD = ("measure", "arm", "runs", "mean of runs", "lowest run", "highest run")


def labels_of(run_dirs: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, with as many parent folders as needed to distinguish runs of the same
    name.

    One folder that is given twice has the same label twice.
    """
    paths = [path.resolve() for path in run_dirs]
    return [_label(path, set(paths) - {path}) for path in paths]


def _label(path: Path, others: set[Path]) -> str:
    depth = 1
    while any(path.parts[-depth:] == other.parts[-depth:] for other in others):
        depth += 1
    return str(Path(*path.parts[-depth:]))


def comparison_sections(views: Sequence[RunView]) -> list[Section]:
    """Return figures with one line per run; the first section shows the results."""
    names = arm_names([view.run for view in views])
    arms = list(dict.fromkeys(names))
    colors = [arms.index(name) % NUM_COLORS for name in names]
    made: list[Figure | None] = [_fitness_over_time(views, colors, mode) for mode in MODES]
    made += [_overlay(views, colors, name) for name in COMPARED]
    figures = tuple(figure for figure in made if figure is not None)
    first, rest = figures[:4], figures[4:]  # a page opens with at most five figures
    return [
        Section("compare", "Compared", TEXT, first),
        Section("compare-more", "Tasks and writing compared", "More metrics of the same runs.", rest),
    ]


def setting_rows(views: Sequence[RunView]) -> list[list[str]]:
    """Return a row for each setting in which the runs differ: its name, then its value in each run as JSON.

    A setting that a run does not have is ``–``. At most ``MAX_SETTINGS`` rows.
    """
    flat = [dict(_flat(view.run.config)) for view in views]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    rows = [[name, *(settings.get(name, NOTHING) for settings in flat)] for name in names]
    return [row for row in rows if len(set(row[1:])) > 1][:MAX_SETTINGS]


def _flat(config: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings of nested sections by their dotted names, in their order; values as JSON."""
    if isinstance(config, Mapping) and config:
        for name, value in config.items():
            yield from _flat(value, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, json.dumps(config, ensure_ascii=False, default=str)


def arm_rows(views: Sequence[RunView]) -> list[list[str]]:
    """Return, for each arm, external fitness and the means of the last tenth of the steps. Columns: measure, arm,
    number of runs, mean, and the lowest and the highest run (only with two runs or more)."""
    measures: list[tuple[str, Callable[[RunView], float | None]]] = []
    for mode in MODES:
        measures.append((f"external fitness, {mode}", partial(_fitness, mode=mode, less_base=False)))
        measures.append((f"change against the base, {mode}", partial(_fitness, mode=mode, less_base=True)))
    for name in COMPARED:
        of_run = partial(lambda name, view: ends(series_of(view, name), view.last_step)["last"], name)
        measures.append((f"{describe(name).title}, last tenth", of_run))
    by_arm: dict[str, list[RunView]] = defaultdict(list)
    for view, arm in zip(views, arm_names([view.run for view in views]), strict=True):
        by_arm[arm].append(view)
    rows = []
    for measure, value_of in measures:
        for arm, runs in by_arm.items():
            values = [value for view in runs if (value := value_of(view)) is not None]
            if values:
                spread = [number(min(values)), number(max(values))] if len(values) > 1 else [NOTHING, NOTHING]
                rows.append([measure, arm, str(len(values)), number(fmean(values)), *spread])
    return rows


def arm_names(runs: Sequence[RunRecord]) -> list[str]:
    """Return the name of each run's arm: ``4T+4S``, and the settings in which it differs from other runs of that arm.

    A setting is named where its value is not that of most such arms: ``4T+4S, evolve.enabled = false``. Settings of
    the section ``run``, such as its length, and settings that one of the runs (an older one) lacks do not count.
    """
    names = [run.arm for run in runs]
    for arm in dict.fromkeys(names):
        own = [at for at, run in enumerate(runs) if run.arm == arm]
        settings = [dict(_flat(runs[at].config)) for at in own]
        known = [name for name in settings[0] if "." in name and all(name in one for one in settings)]
        known = [name for name in known if not name.startswith("run.")]
        values = [tuple(one[name] for name in known) for one in settings]
        distinct = list(dict.fromkeys(values))
        for at, of_run in zip(own, values, strict=True):
            for i, name in enumerate(known):
                num_alike = sum(other[i] == of_run[i] for other in distinct)
                if 2 * num_alike <= len(distinct):
                    names[at] += f", {name} = {of_run[i].strip(chr(34))}"
    return names


def series_of(view: RunView, name: str) -> Series:
    """Return a metric over the steps; the curriculum's are computed from the task rows."""
    attribute = {**STRUCTURE, "curriculum/coverage": "coverage"}.get(name)
    if attribute is None:
        return view.series(name)
    return [(point["step"], point[attribute]) for point in view.curriculum if point["kind"] == "all"]


def _marked(plotted: Line, at: int) -> Line:
    """Return a run's line with its markers, which keep lines with the same values distinguishable."""
    symbol, is_hollow = MARKS[at % len(MARKS)]
    return {**plotted, "dots": False, "mark": at, "symbol": symbol, "hollow": is_hollow}


def _overlay(views: Sequence[RunView], colors: Sequence[int], name: str) -> Figure | None:
    metric, lines, longest = describe(name), [], 0
    for at, (view, color) in enumerate(zip(views, colors, strict=True)):
        series = [point for point in series_of(view, name) if point[1] is not None]
        if series:
            is_smooth = name != "curriculum/coverage"
            longest = max(longest, len(series) * is_smooth)
            [one] = lines_of(view.label, series, color, 0, False) if is_smooth else [line(view.label, series, color)]
            lines.append(_marked(one, at))
    if not lines:
        return None
    chart: Chart = {"type": "lines", "series": lines} | ({"low": 0, "high": 1} if metric.unit == SHARE else {})
    text = metric.explanation + smoothing_note(longest, with_raw=False)
    return Figure(f"compare-{name.replace('/', '-')}", metric.title, metric.unit, text, chart)


def _fitness_over_time(views: Sequence[RunView], colors: Sequence[int], mode: str) -> Figure | None:
    means = [mean_line(view, mode, color, 0, view.label) for view, color in zip(views, colors, strict=True)]
    series = [_marked(mean, at) for at, mean in enumerate(means) if mean is not None]
    text = f"Mean over the members that solve ({mode}) with its 95 % interval over the items as a band."
    chart = {"type": "lines", "series": series}
    return Figure(f"compare-fitness-{mode}", f"External fitness, {mode}", UNIT, text, chart) if series else None


def _fitness(view: RunView, mode: str, less_base: bool) -> float | None:
    found = (c.members.mean - (c.base.mean if less_base else 0.0) for c in comparisons(view) if c.mode == mode)
    return next(found, None)
