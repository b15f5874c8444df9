"""The figures of one run, section by section: the race, the curriculum, behaviour, external fitness, cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from redqueen.domains.registry import in_order, kinds
from redqueen.journal.read import Series
from redqueen.propose.curriculum import STRUCTURE
from redqueen.report.figure import NUM_COLORS, Figure, Section, line, metric_figure
from redqueen.report.fitness_figures import fitness_figures
from redqueen.report.health_figures import health_figures
from redqueen.report.metrics import PHASES, describe
from redqueen.report.population_figures import lineage_figure, matchup_figure, rating_figures
from redqueen.report.view import RunView

NUM_REASONS_SHOWN = 7
"""Reasons of rejection with a colour of their own; the rest is drawn together."""


def sections_of(view: RunView) -> list[Section]:
    """Return the sections of one run, without figures or sections for which the run has no data."""
    race = [
        _by_kind(view, "solve-rate", "Solve rate", "solve/rate"),
        _by_kind(view, "validity", "Validity of proposals", "propose/valid_frac"),
        *rating_figures(view),
        matchup_figure(view),
    ]
    behaviour = [_entropy(view), _lengths(view), _thought(view), _rewards(view), _rejections(view)]
    sections = [
        _section("race", "The race", RACE_TEXT if not view.is_single else SINGLE_TEXT, race),
        _section("health", "Health of the co-evolution", HEALTH_TEXT, health_figures(view)),
        _section("curriculum", "The curriculum", CURRICULUM_TEXT, _curriculum(view)),
        _section("fitness", "External fitness", FITNESS_TEXT, fitness_figures(view)),
        _section("behaviour", "How they write", BEHAVIOUR_TEXT, behaviour),
        _section("evolution", "Who descends from whom", LINEAGE_TEXT, [lineage_figure(view)]),
        _section("cost", "Where the time goes", COST_TEXT, [_phase_times(view), _gradients(view)]),
    ]
    return [section for section in sections if section.figures]


RACE_TEXT = (
    "Teachers and students are two sub-populations that compete. Their ratings come from the same matches, so they are "
    "zero-sum against each other: what one side wins the other side loses, and both cannot rise. A flat rating can "
    "hide progress on both sides; progress is read from external fitness, not from here."
)
SINGLE_TEXT = (
    "One adapter plays both roles. It has no opponent and is never rated; solve rate and validity show how well "
    "each role does."
)
HEALTH_TEXT = (
    "Five failure modes of co-evolution, measured once a generation. None of them shows in a reward: both sides can "
    "earn high rewards while nothing is learned."
)
CURRICULUM_TEXT = (
    "What the teachers set. The measures are taken from the programs of valid tasks; in induction the program is given "
    "to the teacher, so that only the inputs are the teacher's own. More complex is not the same as more useful."
)
FITNESS_TEXT = (
    "Scores on a frozen held-out suite that is never trained or selected on. Dots are means, bars 95 % intervals over "
    "items. A change is claimed where the change paired item by item has an interval without 0. They tell the spread "
    "over items, not over training seeds: for that, compare several runs."
)
BEHAVIOUR_TEXT = "How the members write: entropy, length, and what the verifier rejected."
LINEAGE_TEXT = (
    "Every member from birth to replacement, from left to right, in its slot of the population. A circle is a child of "
    "mutation, a diamond one of crossover, a triangle a plain copy; thin lines come from its parents."
)
COST_TEXT = "Wall-clock time of each phase, and how large the updates were."

ENTROPY_TEXT = (
    "How undecided the members are about the next token, mean over what they wrote. Near 0 they write one thing over "
    "and over."
)
LENGTH_TEXT = "Mean number of tokens of a proposal and of an attempt."
THOUGHT_TEXT = (
    "Share of attempts in which the student wrote down its thinking before the answer, and share from which no answer "
    "could be read."
)
REWARD_TEXT = (
    "Teachers: -1 for an invalid proposal, else one minus the solve rate. Where no attempt was right they have the "
    "config's unsolved_reward, where all were its certain_reward (0 by default); its novelty_bonus, crowding_penalty "
    "and size_guard_frac come on top. "
    "Students: 1 for a right answer, -0.5 for a wrong one, -1 for none. In an even race neither needs to rise."
)
GRADIENT_TEXT = "Length of the gradient before clipping, mean over the members of a side that were trained in the step."


def _section(section_id: str, title: str, text: str, figures: Iterable[Figure | None]) -> Section:
    return Section(section_id, title, text, tuple(figure for figure in figures if figure is not None))


def _by_kind(view: RunView, figure_id: str, title: str, name: str) -> Figure | None:
    found = {metric.removeprefix(f"{name}/"): metric for metric in view.metrics if metric.startswith(f"{name}/")}
    of_kinds = _kind_lines({kind: view.series(metric) for kind, metric in found.items()})
    figure = metric_figure(figure_id, title, [("all kinds", view.series(name), "ink", 0), *of_kinds], name)
    if figure is not None and name == "solve/rate":
        figure.chart["guides"] = [{"value": 0.1, "name": "too hard below"}, {"value": 0.9, "name": "too easy above"}]
    return figure


def _curriculum(view: RunView) -> list[Figure | None]:
    figures = [
        metric_figure(_figure_id(name), describe(name).title, _curriculum_lines(view, column), name)
        for name, column in STRUCTURE.items()
    ]
    unique = [("valid tasks", view.series("propose/unique_frac"), "ink", 0)]
    figures.append(metric_figure("unique", "Unlike the others", unique, "propose/unique_frac"))
    return [*figures, _coverage(view)]


def _figure_id(metric: str) -> str:
    return metric.partition("/")[2].replace("_", "-")


def _curriculum_lines(view: RunView, attribute: str) -> list[tuple[str, Series, int | str, int]]:
    series: dict[str, Series] = defaultdict(list)
    for point in view.curriculum:
        series[point.kind].append((point.step, getattr(point, attribute)))
    every = ("all kinds", series.pop("all", []), "ink", 0)
    return [every, *_kind_lines(series)]


def _kind_lines(series: Mapping[str, Series]) -> list[tuple[str, Series, int | str, int]]:
    """A line for each kind that has a series, coloured by its place among all kinds that are known here."""
    order = in_order([*kinds(), *series])
    return [(kind, series[kind], at % NUM_COLORS, 1 + at % 3) for at, kind in enumerate(order) if kind in series]


def _coverage(view: RunView) -> Figure | None:
    """Return the coverage, which counts up and so is never smoothed."""
    metric = describe("curriculum/coverage")
    drawn = [line(name, series, color, dash) for name, series, color, dash in _curriculum_lines(view, "coverage")]
    if not view.curriculum:
        return None
    text = metric.explanation + " A line that flattens means that the teachers repeat themselves."
    return Figure("coverage", metric.title, metric.unit, text, {"type": "lines", "series": drawn})


def _entropy(view: RunView) -> Figure | None:
    both = [
        ("teachers", view.series("propose/entropy"), 1, 0),
        ("students", view.series("solve/entropy"), 0, 1),
    ]
    figure = metric_figure("entropy", "Entropy", both, "propose/entropy", ENTROPY_TEXT)
    if figure is not None:
        figure.chart["low"] = 0
    return figure


def _lengths(view: RunView) -> Figure | None:
    both = [
        ("proposals", view.series("propose/tokens_mean"), 1, 0),
        ("attempts", view.series("solve/tokens_mean"), 0, 1),
    ]
    return metric_figure("lengths", "Length of what they write", both, "solve/tokens_mean", LENGTH_TEXT)


def _thought(view: RunView) -> Figure | None:
    both = [
        ("thought first", view.series("solve/thought_frac"), 0, 0),
        ("unparsable", view.series("solve/unparsable_frac"), 3, 1),
    ]
    return metric_figure("thought", "Thinking first, and unreadable answers", both, "solve/thought_frac", THOUGHT_TEXT)


def _rewards(view: RunView) -> Figure | None:
    both = [
        ("teachers", view.series("reward/teacher_mean"), 1, 0),
        ("students", view.series("reward/student_mean"), 0, 1),
    ]
    return metric_figure("rewards", "Rewards", both, "reward/teacher_mean", REWARD_TEXT)


def _rejections(view: RunView) -> Figure | None:
    totals: Counter[str] = Counter()
    for row in view.rejections:
        totals[row["reason"]] += row["num"]
    if not totals:
        return None
    named = [reason for reason, _ in totals.most_common(NUM_REASONS_SHOWN)]
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for row in view.rejections:
        counts[row["reason"] if row["reason"] in named else "other reasons"][row["step"]] += row["num"]
    steps = [step for step in view.steps if step > 0]
    bars = [
        line(reason, [(step, counts[reason][step]) for step in steps], at)
        for at, reason in enumerate([*named, "other reasons"])
        if reason in counts
    ]
    text = "Why the verifier turned proposals down, counted in every step; the most frequent reasons by name."
    return Figure("rejections", "Rejected proposals", "proposals", text, {"type": "bars", "series": bars})


def _phase_times(view: RunView) -> Figure | None:
    phases = [phase for phase in PHASES if phase in view.timings]
    phases += [phase for phase in view.timings if phase not in PHASES]
    if not phases:
        return None
    series = [line(phase, view.timings[phase], at) for at, phase in enumerate(phases)]
    total = {phase: sum(value or 0.0 for _, value in view.timings[phase]) for phase in phases}
    slowest = max(phases, key=lambda phase: total[phase])
    share = 100 * total[slowest] / max(sum(total.values()), 1e-9)
    text = (
        f"Seconds of wall clock in each phase; {sum(total.values()):,.0f} s in all, the largest "
        f"share of them ({share:.0f} %) in {slowest!r}."
    )
    return Figure("phase-times", "Phase times", "seconds", text, {"type": "bars", "series": series})


def _gradients(view: RunView) -> Figure | None:
    both = [
        ("teachers", view.series("learn/teacher/grad_norm"), 1, 0),
        ("students", view.series("learn/student/grad_norm"), 0, 1),
    ]
    return metric_figure("gradients", "Size of the gradients", both, "learn/student/grad_norm", GRADIENT_TEXT)
