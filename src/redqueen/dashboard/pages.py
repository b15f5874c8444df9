"""What the pages show, gathered from the journals; a run's view is kept until the run has moved on."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from threading import Lock
from typing import Any

from redqueen.dashboard.find import RunDir
from redqueen.dashboard.thin import mean_series, stretch_steps, thin
from redqueen.journal import Journal
from redqueen.journal.connection import Patience
from redqueen.journal.read import Series
from redqueen.journal.write import Row
from redqueen.report.card import Card, report_card
from redqueen.report.figure import NUM_COLORS, Figure, Line, Section, line, lines_of, smoothing_note
from redqueen.report.population_figures import MAX_MATRIX_SIDE
from redqueen.report.sections import sections_of
from redqueen.report.story import Story, tell
from redqueen.report.tables import Tile, member_head, member_rows, tiles
from redqueen.report.timeline import Health, health_of
from redqueen.report.view import RunView, read_run
from redqueen.run.store import JOURNAL

MAX_MEMBERS = 50
"""A run's page names so many of its members; a page of their own has all."""

MAX_KEPT = 6
"""Views of this many runs are kept in memory."""

PAGE_QUERY_S, PAGE_RUN_S = 10.0, 30.0
"""How long a page about one run waits: for one answer, and for all."""


@dataclass(frozen=True)
class Known:
    """What is known of a run: its view, and the solve rate of every match (no match with itself)."""

    view: RunView
    matches: list[Row]


@dataclass(frozen=True)
class RunPage:
    """All that a run's page shows.

    ``stretch`` is how many steps a point of its figures stands for; ``living_only``: the match-up matrix would be too
    large for all members that ever played.
    """

    view: RunView
    card: Card
    story: Story
    tiles: list[Tile]
    health: Health
    sections: list[Section]
    stretch: int
    living_only: bool
    member_head: list[str]
    member_rows: list[list[str]]
    num_living: int
    config_text: str


def open_journal(run: RunDir, patience: Patience | None = None) -> Journal:
    """Open a run's journal to read; nothing in its folder changes, and no page waits for it for long."""
    return Journal.open(run.path / JOURNAL, read_only=True, patience=patience or Patience(PAGE_QUERY_S, PAGE_RUN_S))


MATCHES = (
    "SELECT step, teacher, student, num_tasks, solve_frac FROM match "
    "WHERE teacher != student AND solve_frac IS NOT NULL ORDER BY step"
)


class Library:
    """The runs' views, each read once for every state of its journal. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[tuple[Any, ...], Known]] = OrderedDict()

    def read(self, run: RunDir) -> Known:
        """Return what is known of the run. Raises UserError when it cannot be read or has no step yet."""
        with open_journal(run) as journal:
            state = self._state(run, journal)
            with self._lock:
                kept = self._kept.get(run.id)
            if kept is not None and kept[0] == state:
                return kept[1]
            view = read_run(run.path, run.label, Patience(PAGE_QUERY_S, PAGE_RUN_S))
            known = Known(view, journal.query(MATCHES))
        with self._lock:
            self._kept[run.id] = (state, known)
            self._kept.move_to_end(run.id)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return known

    @staticmethod
    def _state(run: RunDir, journal: Journal) -> tuple[Any, ...]:
        """Return what changes when the journal does: a resumed run cuts steps off and begins a new session, and what it
        owed of its end comes behind its last step."""
        row = journal.query(
            "SELECT (SELECT max(step) FROM step) AS last_step, (SELECT max(seq) FROM session) AS session, "
            "(SELECT count(*) FROM timing WHERE step = (SELECT max(step) FROM step)) AS timings, "
            "(SELECT count(*) FROM metric WHERE step = (SELECT max(step) FROM step)) AS metrics, "
            "(SELECT count(*) FROM evaluation WHERE step = (SELECT max(step) FROM step)) AS evaluations"
        )[0]
        file = (run.path / JOURNAL).stat()
        return (*row.values(), file.st_ino, str(run.path))


def run_page(known: Known) -> RunPage:
    """Return what a run's page shows; the lineage has a page of its own."""
    view = known.view
    size = stretch_steps(view.last_step)
    drawn = with_living_meetings(thin(view, size))
    sections = [in_points(section, size) for section in sections_of(drawn) if section.id != "evolution"]
    by_member = member_section(known, size)
    sections[1:1] = [] if by_member is None else [in_points(by_member, size)]
    return RunPage(
        view=view,
        card=report_card(view),
        story=tell(view),
        tiles=tiles(view),
        health=health_of(view),
        sections=sections,
        stretch=size,
        living_only=len(drawn.meetings) < len(view.meetings),
        member_head=member_head(view),
        member_rows=member_rows(view, MAX_MEMBERS),
        num_living=sum(member["left_step"] is None for member in view.individuals),
        config_text=json.dumps(view.run.config, indent=2, sort_keys=True, ensure_ascii=False),
    )


def with_living_meetings(view: RunView) -> RunView:
    """Return the view with the matches of present members only, where all would not fit into the match-up matrix."""
    sides = [{row[role] for row in view.meetings} for role in ("teacher", "student")]
    if max(map(len, sides)) <= MAX_MATRIX_SIDE:
        return view
    living = {member["id"] for member in view.individuals if member["left_step"] is None}
    meetings = [row for row in view.meetings if row["teacher"] in living and row["student"] in living]
    return replace(view, meetings=meetings)


def in_points(section: Section, size: int) -> Section:
    """Return the section with notes on smoothing that speak of points, where a point is more than one step."""
    if size == 1:
        return section
    figures = [
        replace(f, text=f.text.replace("steps around", "points around").replace("thin: each step", "thin: each point"))
        for f in section.figures
    ]
    return replace(section, figures=tuple(figures))


MEMBER_TEXT = (
    "The share of judged attempts that were right, seen from each side: a low line is a teacher whose tasks are hard, "
    "a high one a student that solves what it is asked. Opponents change from step to step, so compare over long "
    "stretches only."
)


def member_section(known: Known, size: int) -> Section | None:
    """Return the solve rates of the slots of teachers and of students; None for the single agent."""
    figures = [figure for role in ("teacher", "student") if (figure := _member_figure(known, role, size)) is not None]
    return Section("members-rates", "Solve rate by member", MEMBER_TEXT, tuple(figures)) if figures else None


def _member_figure(known: Known, role: str, size: int) -> Figure | None:
    names: dict[int, str] = {}
    for member in known.view.individuals:
        names.setdefault(member["slot"], member["id"])
    place = {member["id"]: names[member["slot"]] for member in known.view.individuals}
    solved: dict[str, dict[int, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in known.matches:
        if row[role] not in place:
            continue  # a frozen copy from the hall of fame
        solved[place[row[role]]][row["step"]].append((row["solve_frac"], row["num_tasks"]))
    series = {
        name: mean_series([(step, _weighted(of_step)) for step, of_step in sorted(solved[name].items())], size)
        for name in names.values()
        if name in solved
    }
    if not series:
        return None
    few = len(series) <= NUM_COLORS
    drawn = (
        [part for at, name in enumerate(series) for part in lines_of(name, series[name], at, at % 4, with_raw=False)]
        if few
        else _summary(series)
    )
    note = smoothing_note(max(map(len, series.values())), with_raw=False) if few else ""
    each = f"Each line is a slot of the {role}s; a child continues the line of the one it replaced."
    many = f"Best, middle and worst slot of the {role}s."
    what = "of the tasks it set" if role == "teacher" else "of the tasks it was asked"
    text = f"Solve rate {what}. {each if few else many}{note}"
    chart = {"type": "lines", "series": drawn, "low": 0, "high": 1}
    return Figure(f"rate-{role}", f"Solve rate by {role}", "share (0 to 1)", text, chart)


def _weighted(values: Sequence[tuple[float, int]]) -> float | None:
    total = sum(weight for _, weight in values)
    return sum(value * weight for value, weight in values) / total if total else None


def _summary(series: dict[str, Series]) -> list[Line]:
    by_step: dict[int, list[float]] = defaultdict(list)
    for points in series.values():
        for step, value in points:
            if value is not None:
                by_step[step].append(value)
    steps = sorted(by_step)
    looks = (("middle", median, 0, 0), ("highest", max, 2, 1), ("lowest", min, 1, 2))
    return [line(name, [(s, take(by_step[s])) for s in steps], color, dash) for name, take, color, dash in looks]
