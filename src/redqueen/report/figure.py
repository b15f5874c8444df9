"""A figure as data: a chart that ``assets/page.js`` draws, and its texts.

``chart`` is plain JSON with a ``type``:

- ``lines``: ``series`` of ``{name, points: [[step, value or null]], color, dash, width}``, each with optional ``bands``
  ``[[[step, low, high], ...], ...]``, ``faint``, ``dots``, ``mark`` (a run's number, with ``symbol``, ``hollow``) and
  ``group`` (whose entry in the legend also hides it); optional ``guides`` ``[{value, name}]`` and ends of the axis
  ``low`` and ``high``;
- ``dots``: ``categories`` and ``series`` of ``{name, color, symbol, values: [[mean, low, high] or null]}``, optionally
  ``hollow``;
- ``heat``: ``rows``, ``columns``, ``cells`` ``[[column, row, value, weight]]`` with values from 0 to 1;
- ``lineage``: ``rows``, ``lives`` ``[{id, row, start, end, operator, parents}]``, ``links`` ``[{step, start, end}]``.

A ``color`` is the index of a colour in the page's palette, or ``ink`` or ``quiet``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redqueen.journal.read import Series
from redqueen.report.metrics import SHARE, describe

Chart = dict[str, Any]
Line = dict[str, Any]
LineSpec = tuple[str, Series, int | str, int]
"""Label, series, colour, dash."""

NUM_COLORS = 8
SMOOTH_FROM_STEPS = 30
"""Series at least this long are drawn thin, with their running mean drawn thick."""

REACH_STEPS = 5
"""A running mean covers this many steps before and after each step."""


@dataclass(frozen=True)
class Figure:
    """One figure: ``unit`` is the axis label, ``text`` explains it in a sentence or two."""

    id: str
    title: str
    unit: str
    text: str
    chart: Chart
    tall: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """Figures that belong together, under one title and a sentence or two."""

    id: str
    title: str
    text: str
    figures: tuple[Figure, ...]


def running_mean(series: Series, reach_steps: int = REACH_STEPS) -> Series:
    """Return, at every place with a value, the mean of the values up to ``reach_steps`` places before and after it."""
    known = [(step, value) for step, value in series if value is not None]
    values = [value for _, value in known]
    around = [values[max(0, at - reach_steps) : at + reach_steps + 1] for at in range(len(values))]
    return [(step, sum(near) / len(near)) for (step, _), near in zip(known, around, strict=True)]


def line(name: str, series: Series, color: int | str, dash: int = 0, width: float = 2) -> Line:
    """Return one line of a ``lines`` chart; ``dash`` 0 is solid, 1 dashed, 2 dotted, 3 dash-dotted."""
    return {"name": name, "points": [list(p) for p in series], "color": color, "dash": dash, "width": width}


def lines_of(name: str, series: Series, color: int | str, dash: int = 0, with_raw: bool = True) -> list[Line]:
    """Return a short series unchanged, a longer one as its running mean and, ``with_raw``, a thin line of the steps."""
    if len(series) < SMOOTH_FROM_STEPS:
        return [line(name, series, color, dash)]
    raw = {**line(f"{name}, each step", series, color, 0, 0.7), "faint": True, "group": name}
    return [line(name, running_mean(series), color, dash, 2.5), *([raw] if with_raw else [])]


def smoothing_note(longest: int, with_raw: bool = True) -> str:
    """Return the sentence that explains smoothed lines, if there are any."""
    if longest < SMOOTH_FROM_STEPS:
        return ""
    thin = "; thin: each step" if with_raw else ""
    return f" {'Thick: mean' if with_raw else 'Mean'} over the {2 * REACH_STEPS + 1} steps around{thin}."


def metric_figure(figure_id: str, title: str, lines: Sequence[LineSpec], name: str, text: str = "") -> Figure | None:
    """Return a lines figure of metrics with the unit and (without ``text``) the explanation of the metric ``name``.

    ``lines`` are tuples of a label, a series, a colour and a dash; the first is drawn with its single steps. None when
    no series has a value.
    """
    present = [item for item in lines if any(value is not None for _, value in item[1])]
    if not present:
        return None
    metric = describe(name)
    drawn = [
        part
        for at, (label, series, color, dash) in enumerate(present)
        for part in lines_of(label, series, color, dash, with_raw=at == 0)
    ]
    chart: Chart = {"type": "lines", "series": drawn} | ({"low": 0, "high": 1} if metric.unit == SHARE else {})
    note = smoothing_note(max(len(series) for _, series, _, _ in present))
    return Figure(figure_id, title, metric.unit, (text or metric.explanation) + note, chart)
