"""The figures of one run, section by section: progress, health, the curriculum, fitness, behaviour, cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from redqueen.domains.registry import in_order, kinds
from redqueen.journal.read import Series
from redqueen.journal.untrusted import Row
from redqueen.propose.curriculum import STRUCTURE
from redqueen.report.figure import NUM_COLORS, Figure, Line, LineSpec, Section, line, metric_figure
from redqueen.report.fitness_figures import fitness_figures
from redqueen.report.metrics import SHARE, describe
from redqueen.report.view import RunView

MAX_MATRIX_SIDE = 24
"""The match-up matrix shows at most this many members of each role, the latest born."""


def sections_of(view: RunView) -> list[Section]:
    """Return the sections of one run, except its lineage; figures and sections without data are left out."""
    race = [
        _by_kind(view, "solve-rate", "Solve rate", "solve/rate"),
        _by_kind(view, "validity", "Validity of proposals", "propose/valid_frac"),
        *(_ratings(view, role) for role in ("teacher", "student")),
    ]
    behaviour = [_pair(view, *plot) for plot in BEHAVIOUR]
    times = [(phase, series, at % NUM_COLORS, at % 4) for at, (phase, series) in enumerate(view.timings.items())]
    cost = [metric_figure("phase-times", "Phase times", times, "timing/seconds"), _pair(view, *GRADIENTS)]
    sections = [
        _section("race", "Solve rate and ratings", RACE_TEXT if not view.is_single else SINGLE_TEXT, race),
        _section(
            "health",
            "Health of the co-evolution",
            HEALTH_TEXT,
            [_matchups(view), *(_health(view, *plot) for plot in HEALTH)],
        ),
        _section("curriculum", "The curriculum", CURRICULUM_TEXT, _curriculum(view)),
        _section("fitness", "External fitness", FITNESS_TEXT, fitness_figures(view)),
        _section("behaviour", "Style of writing", BEHAVIOUR_TEXT, [*behaviour, _rejections(view)]),
        _section("cost", "Where the time goes", COST_TEXT, cost),
    ]
    return [section for section in sections if section.figures]


RACE_TEXT = (
    "Teachers and students are two sub-populations that compete. Their ratings come from the same matches, so they are "
    "zero-sum: what one side wins the other side loses, and both cannot rise. A flat rating can hide progress on both "
    "sides; to judge progress, use external fitness."
)
SINGLE_TEXT = (
    "One adapter has both roles. It has no opponent and no rating; solve rate and validity show how well "
    "each role does."
)
HEALTH_TEXT = (
    "Five failure modes of co-evolution, measured once a generation. Rewards do not show them: both sides can earn "
    "high rewards while nothing is learned."
)
CURRICULUM_TEXT = (
    "The tasks that the teachers propose, measured on the programs of valid tasks. In induction the program is given "
    "to the teacher, which writes only the inputs. A more complex task is not always a more useful one."
)
FITNESS_TEXT = (
    "Scores on a frozen held-out suite that is never trained or selected on. Dots are means, bars 95 % intervals over "
    "items. A change is significant when the interval of the difference paired by item excludes 0. Intervals show the "
    "spread over items, not over training seeds: for that, compare several runs."
)
BEHAVIOUR_TEXT = "How the members write: entropy, length, and the reasons of rejected proposals."
COST_TEXT = "Wall-clock time of each phase, and the size of the updates."

PlotLine = tuple[str, str, int, int]
"""Label, metric or column, colour, dash."""

TEACHERS, STUDENTS = (1, 0), (0, 1)
"""Colour and dash of each side."""

BEHAVIOUR: tuple[tuple[str, str, str, str, tuple[PlotLine, ...]], ...] = (
    (
        "entropy",
        "Entropy",
        "propose/entropy",
        "Mean entropy of the members' next-token distribution. Near 0 they always write the same text.",
        (("teachers", "propose/entropy", *TEACHERS), ("students", "solve/entropy", *STUDENTS)),
    ),
    (
        "lengths",
        "Length of what they write",
        "solve/tokens_mean",
        "Mean number of tokens of a proposal and of an attempt.",
        (("proposals", "propose/tokens_mean", *TEACHERS), ("attempts", "solve/tokens_mean", *STUDENTS)),
    ),
    (
        "thought",
        "Thinking first, and unreadable answers",
        "solve/thought_frac",
        "Share of attempts in which the student wrote down its thinking before the answer, and share from which no "
        "answer could be read.",
        (("thought first", "solve/thought_frac", 0, 0), ("unparsable", "solve/unparsable_frac", 3, 1)),
    ),
    (
        "rewards",
        "Rewards",
        "reward/teacher_mean",
        "Teachers: -1 for an invalid proposal, else one minus the solve rate; the config's unsolved_reward when no "
        "attempt was right, its certain_reward when all were (both 0 by default); its novelty_bonus, crowding_penalty "
        "and size_guard_frac are added. Students: 1 for a right answer, -0.5 for a wrong one, -1 for none. When both "
        "sides improve equally, neither reward rises.",
        (("teachers", "reward/teacher_mean", *TEACHERS), ("students", "reward/student_mean", *STUDENTS)),
    ),
)
"""Id, title, the metric that gives the unit, explanation, and lines."""

GRADIENTS = (
    "gradients",
    "Size of the gradients",
    "learn/student/grad_norm",
    "Norm of the gradient before clipping, mean over the members of a side that were trained in the step.",
    (("teachers", "learn/teacher/grad_norm", *TEACHERS), ("students", "learn/student/grad_norm", *STUDENTS)),
)

HEALTH: tuple[tuple[str, str, str, tuple[PlotLine, ...]], ...] = (
    (
        "disengagement",
        "Tasks that give no training signal",
        "Share of tasks that all attempts solved, and that none solved: students learn nothing from either.",
        (("solved by all", "won_frac", 0, 0), ("solved by none", "lost_frac", 3, 1)),
    ),
    (
        "diversity",
        "Diversity",
        "Adapters: mean distance of their weight changes; 0 for copies, about 1 for independent ones. Behaviour: how "
        "much two members differ in the tasks that they solve, or in the classes of tasks that they write.",
        (
            ("teachers' adapters", "teacher_weight_diversity", 1, 0),
            ("students' adapters", "student_weight_diversity", 0, 0),
            ("teachers' behaviour", "teacher_behaviour_diversity", 1, 1),
            ("students' behaviour", "student_behaviour_diversity", 0, 1),
        ),
    ),
    (
        "cycling",
        "Cycling",
        "Share of the match results that no ranking by strength explains, and of comparisons in which two students "
        "disagree about which of two teachers is harder.",
        (("not explained by a ranking", "residual_frac", 4, 0), ("ranked in reverse", "reversal_frac", 5, 1)),
    ),
    (
        "forgetting",
        "Forgetting",
        "Mean loss of the population's earlier score against frozen past members; gains do not offset losses.",
        (("lost score", "forgetting_frac", 3, 0),),
    ),
)
"""Id, title, explanation, and lines: columns of the journal's table ``health``, one point per generation."""


def _section(section_id: str, title: str, text: str, figures: Iterable[Figure | None]) -> Section:
    return Section(section_id, title, text, tuple(figure for figure in figures if figure is not None))


def _by_kind(view: RunView, figure_id: str, title: str, name: str) -> Figure | None:
    found = {metric.removeprefix(f"{name}/"): metric for metric in view.metrics if metric.startswith(f"{name}/")}
    of_kinds = _kind_lines({kind: view.series(metric) for kind, metric in found.items()})
    figure = metric_figure(figure_id, title, [("all kinds", view.series(name), "ink", 0), *of_kinds], name)
    if figure is not None and name == "solve/rate":
        figure.chart["guides"] = [{"value": 0.1, "name": "too hard below"}, {"value": 0.9, "name": "too easy above"}]
    return figure


def _ratings(view: RunView, role: str) -> Figure | None:
    """Return the ratings of a role: a line per slot; with more than ``NUM_COLORS`` slots, best, median and worst."""
    of_member: dict[str, list[Row]] = defaultdict(list)
    for row in view.ratings:
        of_member[row["individual"]].append(row)
    names, slots = view.slot_names, defaultdict[str, list[list[Row]]](list)
    for member in view.individuals:
        if member["role"] == role and of_member[member["id"]]:
            slots[names[member["slot"]]].append(of_member[member["id"]])
    if not slots:
        return None
    text = f"Mean of the {role}s' skill ratings, which are Gaussian, after each step. "
    if len(slots) <= NUM_COLORS:
        series = _lines_by_slot(slots)
        text += "Each line is a slot of the population; it breaks where a child takes the slot over. The band is one "
        text += "standard deviation to either side: the uncertainty of the rating."
    else:
        series = _summary_lines(slots)
        text += "Best, middle and worst member; the band reaches from the worst to the best."
    chart = {"type": "lines", "series": series}
    return Figure(f"ratings-{role}", f"Ratings of the {role}s", "rating points", text, chart)


def _lines_by_slot(slots: Mapping[str, list[list[Row]]]) -> list[Line]:
    series = []
    for at, (slot, holders) in enumerate(slots.items()):
        points: Series = []
        bands = []
        for ratings in holders:
            if points:
                points.append((ratings[0]["step"], None))
            points += [(row["step"], row["mu"]) for row in ratings]
            bands.append([[row["step"], row["mu"] - row["sigma"], row["mu"] + row["sigma"]] for row in ratings])
        series.append({**line(slot, points, at, at % 4), "bands": bands})
    return series


def _summary_lines(slots: Mapping[str, list[list[Row]]]) -> list[Line]:
    by_step: dict[int, list[float]] = defaultdict(list)
    for row in (row for holders in slots.values() for ratings in holders for row in ratings):
        by_step[row["step"]].append(row["mu"])
    steps = sorted(by_step)
    band = [[step, min(by_step[step]), max(by_step[step])] for step in steps]
    middle = {**line("middle", [(step, median(by_step[step])) for step in steps], 0), "bands": [band]}
    best = line("best", [(step, max(by_step[step])) for step in steps], 2, 1)
    return [middle, best, line("worst", [(step, min(by_step[step])) for step in steps], 1, 2)]


def _matchups(view: RunView) -> Figure | None:
    """Return the match-up matrix: how much of each teacher's tasks each student solved."""
    rows = [row for row in view.meetings if row["teacher"] != row["student"]]
    order = {member["id"]: at for at, member in enumerate(view.individuals)}
    teachers = sorted({row["teacher"] for row in rows}, key=lambda name: order.get(name, -1))
    students = sorted({row["student"] for row in rows}, key=lambda name: order.get(name, -1))
    if not rows:
        return None
    text = (
        "Share of each teacher's valid tasks that each student solved, over all their matches; empty: no match. "
        "Dark rows are hard teachers, bright columns strong students."
    )
    if len(teachers) > MAX_MATRIX_SIDE or len(students) > MAX_MATRIX_SIDE:
        text += f" Only the {MAX_MATRIX_SIDE} latest born of each role are shown."
        teachers, students = teachers[-MAX_MATRIX_SIDE:], students[-MAX_MATRIX_SIDE:]
    cells = [
        [students.index(row["student"]), teachers.index(row["teacher"]), row["solve_frac"], row["num_tasks"]]
        for row in rows
        if row["student"] in students and row["teacher"] in teachers and row["solve_frac"] is not None
    ]
    chart = {"type": "heat", "rows": teachers, "columns": students, "cells": cells}
    return Figure("matchups", "Who beats whom", "solve rate (0 to 1)", text, chart, tall=len(teachers) > 8)


def _curriculum(view: RunView) -> list[Figure | None]:
    figures = [
        metric_figure(
            name.partition("/")[2].replace("_", "-"), describe(name).title, _curriculum_lines(view, column), name
        )
        for name, column in STRUCTURE.items()
    ]
    return [*figures, _coverage(view)]


def _curriculum_lines(view: RunView, attribute: str) -> list[LineSpec]:
    series: dict[str, Series] = defaultdict(list)
    for point in view.curriculum:
        series[point["kind"]].append((point["step"], point[attribute]))
    every = ("all kinds", series.pop("all", []), "ink", 0)
    return [every, *_kind_lines(series)]


def _kind_lines(series: Mapping[str, Series]) -> list[LineSpec]:
    """Return a line for each kind that has a series, coloured by its index among all known kinds."""
    order = in_order([*kinds(), *series])
    return [(kind, series[kind], at % NUM_COLORS, 1 + at % 3) for at, kind in enumerate(order) if kind in series]


def _coverage(view: RunView) -> Figure | None:
    """Return the coverage, a running count, which is never smoothed."""
    metric = describe("curriculum/coverage")
    series = [line(*spec) for spec in _curriculum_lines(view, "coverage")]
    if not view.curriculum:
        return None
    text = metric.explanation + " A line that flattens means that the teachers repeat themselves."
    return Figure("coverage", metric.title, metric.unit, text, {"type": "lines", "series": series})


def _pair(view: RunView, figure_id: str, title: str, name: str, text: str, plot: Sequence[PlotLine]) -> Figure | None:
    lines = [(label, view.series(metric), color, dash) for label, metric, color, dash in plot]
    return metric_figure(figure_id, title, lines, name, text)


def _health(view: RunView, figure_id: str, title: str, text: str, plot: Sequence[PlotLine]) -> Figure | None:
    lines = [
        line(label, [(row["step"], row[column]) for row in view.health], color, dash)
        for label, column, color, dash in plot
        if any(row[column] is not None for row in view.health)
    ]
    chart = {"type": "lines", "series": lines, "low": 0}
    return Figure(f"health-{figure_id}", title, SHARE, text, chart) if lines else None


def _rejections(view: RunView) -> Figure | None:
    """Return the number of rejected proposals per step, for the most frequent reasons."""
    prefix = "propose/rejected/"
    found = {name.removeprefix(prefix): dict(view.series(name)) for name in view.metrics if name.startswith(prefix)}
    most = sorted(found, key=lambda reason: -sum(value or 0 for value in found[reason].values()))[:NUM_COLORS]
    steps = [step for step in view.steps if step > 0]
    lines = [(reason, [(s, found[reason].get(s, 0.0)) for s in steps], at, at % 4) for at, reason in enumerate(most)]
    text = "Number of proposals that the verifier rejected in each step, by the most frequent reasons."
    return metric_figure("rejections", "Rejected proposals", lines, f"{prefix}all", text)
