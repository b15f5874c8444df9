"""Several runs beside each other: the same figure with one line a run, and a table with the spread over runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from redqueen.display import NOTHING
from redqueen.journal.read import Series
from redqueen.journal.records import ALL, RunRecord
from redqueen.propose.curriculum import STRUCTURE
from redqueen.report.figure import NUM_COLORS, Chart, Figure, Line, Section, line, lines_of, smoothing_note
from redqueen.report.fitness import MODES, base_score, comparisons, last_evaluated_step, mean_score
from redqueen.report.fitness_figures import MODE_COLORS, MODE_SYMBOLS, UNIT, mean_line
from redqueen.report.metrics import SHARE, describe
from redqueen.report.stretches import ends
from redqueen.report.view import RunView

TEXT = (
    "Runs of one arm share a colour and differ in their dashes; runs that were set differently are different arms. "
    "What differs between two runs of the same arm is the noise that a difference between arms has to beat."
)
MAX_SETTINGS = 200
"""Longest table of what two configs differ in."""

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
CURRICULUM_ATTRIBUTES = {**STRUCTURE, "curriculum/coverage": "coverage"}


@dataclass(frozen=True)
class ArmRow:
    """One measure of one arm over its runs: the mean of the runs, and the least and the greatest of them."""

    arm: str
    num_runs: int
    measure: str
    mean: float
    lowest: float
    highest: float


def comparison_section(views: Sequence[RunView]) -> Section:
    """Return the section that lays the runs over each other."""
    looks = _looks(views)
    figures: list[Figure | None] = [_fitness_over_time(views, looks, mode) for mode in MODES]
    figures.append(_fitness_at_the_end(views))
    figures += [_overlay(views, looks, name) for name in COMPARED]
    return Section("compare", "Side by side", TEXT, tuple(figure for figure in figures if figure is not None))


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


def arm_rows(views: Sequence[RunView]) -> list[ArmRow]:
    """Return, arm by arm, external fitness and the last tenth's means with their spread over runs."""
    measures: list[tuple[str, Callable[[RunView], float | None]]] = []
    for mode in MODES:
        measures.append((f"external fitness, {mode}", partial(_last_fitness, mode=mode)))
        measures.append((f"change against the base, {mode}", partial(_fitness_change, mode=mode)))
    for name in COMPARED:
        measures.append((f"{describe(name).title}, last tenth", partial(_last_tenth, name=name)))
    by_arm: dict[str, list[RunView]] = defaultdict(list)
    for view, arm in zip(views, arm_names([view.run for view in views]), strict=True):
        by_arm[arm].append(view)
    rows = []
    for measure, value_of in measures:
        for arm, runs in by_arm.items():
            values = [value for view in runs if (value := value_of(view)) is not None]
            if values:
                rows.append(ArmRow(arm, len(values), measure, sum(values) / len(values), min(values), max(values)))
    return rows


def arm_names(runs: Sequence[RunRecord]) -> list[str]:
    """Return the name of each run's arm: ``4T+4S``, and what sets it apart from runs of that name set otherwise.

    A setting is named where its value is not that of most such arms: ``4T+4S, evolve.enabled = false``. Of ``run``
    only the number of steps counts, and settings that one of the runs does not know (an older one) do not.
    """
    names = [run.arm for run in runs]
    for arm in dict.fromkeys(names):
        own = [at for at, run in enumerate(runs) if run.arm == arm]
        settings = [_settings(runs[at].config) for at in own]
        known = [name for name in settings[0] if all(name in one for one in settings)]
        ways = [tuple(one[name] for name in known) for one in settings]
        distinct = list(dict.fromkeys(ways))
        for at, way in zip(own, ways, strict=True):
            for place, name in enumerate(known):
                num_alike = sum(other[place] == way[place] for other in distinct)
                if 2 * num_alike <= len(distinct):
                    names[at] += f", {name} = {way[place].strip(chr(34))}"
    return names


def _settings(config: Mapping[str, object]) -> dict[str, str]:
    """Return the values of a config as JSON by their dotted names, in its order."""
    found: dict[str, str] = {}
    for section, fields in config.items():
        if isinstance(fields, Mapping):
            found |= {f"{section}.{name}": json.dumps(value, sort_keys=True) for name, value in fields.items()}
    return {name: value for name, value in found.items() if not name.startswith("run.") or name == "run.num_steps"}


def series_of(view: RunView, name: str) -> Series:
    """Return a metric over the steps; the curriculum's are computed from the task rows."""
    attribute = CURRICULUM_ATTRIBUTES.get(name)
    if attribute is None:
        return view.series(name)
    return [(point.step, getattr(point, attribute)) for point in view.curriculum if point.kind == "all"]


def _looks(views: Sequence[RunView]) -> list[tuple[int, int]]:
    """Return a colour and a dash for each run: one colour an arm, one dash a run of the arm."""
    names = arm_names([view.run for view in views])
    arms = list(dict.fromkeys(names))
    seen: dict[str, int] = defaultdict(int)
    looks = []
    for name in names:
        looks.append((arms.index(name) % NUM_COLORS, seen[name] % 4))
        seen[name] += 1
    return looks


def _overlay(views: Sequence[RunView], looks: Sequence[tuple[int, int]], name: str) -> Figure | None:
    metric, drawn, longest = describe(name), [], 0
    for view, (color, dash) in zip(views, looks, strict=True):
        series = series_of(view, name)
        if any(value is not None for _, value in series):
            smooth = name != "curriculum/coverage"
            longest = max(longest, len(series)) if smooth else longest
            drawn += (
                lines_of(view.label, series, color, dash, False) if smooth else [line(view.label, series, color, dash)]
            )
    if not drawn:
        return None
    chart: Chart = {"type": "lines", "series": drawn} | ({"low": 0, "high": 1} if metric.unit == SHARE else {})
    text = metric.explanation + smoothing_note(longest, with_raw=False)
    return Figure(f"compare-{name.replace('/', '-')}", metric.title, metric.unit, text, chart)


def _fitness_over_time(views: Sequence[RunView], looks: Sequence[tuple[int, int]], mode: str) -> Figure | None:
    series = [
        drawn
        for view, (color, dash) in zip(views, looks, strict=True)
        for suite in _suites(view)[:1]
        if (drawn := mean_line(view, suite, mode, color, dash, view.label)) is not None
    ]
    if not series:
        return None
    text = f"Mean over the members that solve ({mode}) with its 95 % interval over the items as a band."
    chart = {"type": "lines", "series": series}
    return Figure(f"compare-fitness-{mode}", f"External fitness, {mode}", UNIT, text, chart)


def _fitness_at_the_end(views: Sequence[RunView]) -> Figure | None:
    series: list[Line] = []
    for mode in MODES:
        base = [base_score(view, suite, ALL, ALL, mode) for view in views for suite in _suites(view)[:1]]
        last = [
            mean_score(view, last_evaluated_step(view, suite) or 0, suite, ALL, ALL, mode)
            for view in views
            for suite in _suites(view)[:1]
        ]
        for name, scores, hollow in ((f"base, {mode}", base, True), (f"members, {mode}", last, False)):
            values = [None if score is None else [score.mean, score.low, score.high] for score in scores]
            look = {"color": MODE_COLORS[mode], "symbol": MODE_SYMBOLS[mode], "hollow": hollow}
            series.append({"name": name, "values": values, **look})
    categories = [view.label for view in views if _suites(view)]
    if not any(value for part in series for value in part["values"]):
        return None
    text = "At each run's last evaluation: base model (hollow) and mean of the solving members (filled)."
    chart = {"type": "dots", "categories": categories, "series": series}
    return Figure("compare-fitness-end", "External fitness at the end", UNIT, text, chart)


def _suites(view: RunView) -> list[str]:
    return sorted({row["suite"] for row in view.evaluations})


def _last_tenth(view: RunView, name: str) -> float | None:
    return ends(series_of(view, name), view.last_step)["last"]


def _last_fitness(view: RunView, mode: str) -> float | None:
    return next((c.members.mean for c in comparisons(view) if c.mode == mode), None)


def _fitness_change(view: RunView, mode: str) -> float | None:
    return next((c.members.mean - c.base.mean for c in comparisons(view) if c.mode == mode), None)
