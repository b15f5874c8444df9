"""The result of a run: one figure, one sentence, and a paragraph, computed from its journal alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from redqueen.display import counted
from redqueen.journal.schema import BASE, CONTROL, PRODUCT
from redqueen.report.figure import Figure
from redqueen.report.fitness import (
    MODES,
    Comparison,
    Score,
    Standing,
    comparisons,
    last_evaluated_step,
    latest_score,
    mean_score,
    outcomes,
    product_score,
    solvers_word,
)
from redqueen.report.fitness_figures import UNIT, dots
from redqueen.report.series import WINDOW_STEPS, rolling
from redqueen.report.view import RunView

SOLVE_LOW_FRAC, SOLVE_HIGH_FRAC = 0.1, 0.9
"""Outside of this range of solve rates there is almost no training signal."""

VALIDITY_LOW_FRAC = 0.5
"""Below this share of valid proposals the teachers are collapsing."""

NEW_LOW_FRAC = 0.2
"""When a smaller share of the last tasks is new, the teachers repeat themselves."""

ENTROPY_LOW_FRAC = 0.1
"""Below this share of its value at the start, the teachers' entropy has collapsed."""

_AGAINST = {BASE: "the base model", CONTROL: "the control"}


@dataclass(frozen=True)
class Story:
    """``headline`` is one short sentence, ``summary`` the headline with the scores that ``figure`` shows (None when
    nothing was measured), and ``sentences`` the paragraph below."""

    standing: Standing
    headline: str
    summary: str
    figure: Figure | None
    sentences: tuple[str, ...]


def story_of(view: RunView) -> Story:
    """Return what happened in the run. Every statement follows from rows of the journal; a change of external fitness
    is reported as better or worse only when the 95 % interval of the paired change excludes 0."""
    found, signs = outcomes(view), signs_of_collapse(view)
    members = [one for one in comparisons(view) if one not in found]
    sentences = [_fitness_sentence(view, comparison) for comparison in (*found, *members)]
    if not found:
        sentences.append(f"{_progress(view, found)}, so the run does not show whether the students improved.")
    sentences.append(_collapse_sentence(view, signs))
    headline, entries = _headline(view, found, signs), {} if view.is_nothing_valid else _entries(view)
    summary = f"{headline}{_scores_in_words(entries)}."
    return Story(_standing(view, found), headline, summary, _figure(entries), tuple(sentences))


def _standing(view: RunView, found: Sequence[Comparison]) -> Standing:
    verdicts = {comparison.verdict for comparison in found}
    if view.is_nothing_valid:
        return "nothing"
    if len(verdicts) < 2:
        return verdicts.pop() if verdicts else "unmeasured"
    return "mixed" if "worse" in verdicts else "better"


Entries = dict[str, list[Score | None]]
"""Scores of base, control, members and product, one for each mode of ``MODES`` (None: not measured in it)."""


def _entries(view: RunView) -> Entries:
    """Return the scores of the last evaluation."""
    step = last_evaluated_step(view)
    found: Entries = {
        BASE: [latest_score(view, BASE, mode) for mode in MODES],
        CONTROL: [latest_score(view, CONTROL, mode) for mode in MODES],
        solvers_word(view): [None if step is None else mean_score(view, step, mode) for mode in MODES],
        PRODUCT: [product_score(view, mode) for mode in MODES],
    }
    return {name: scores for name, scores in found.items() if any(scores)}


def _scores_in_words(entries: Entries) -> str:
    if not entries:
        return ""
    at = max(range(len(MODES)), key=lambda index: sum(scores[index] is not None for scores in entries.values()))
    found = {name: scores[at] for name, scores in entries.items()}
    parts = [f"{name} {100 * score.mean:.1f} %" for name, score in found.items() if score is not None]
    how = {"sampled": "sampled", "greedy": "answering greedily"}[MODES[at]]
    return f": right answers on the frozen suite, {how}: {', '.join(parts)}"


def _figure(entries: Entries) -> Figure | None:
    series = [
        dots(mode, mode, [scores[at] for scores in entries.values()])
        for at, mode in enumerate(MODES)
        if any(scores[at] for scores in entries.values())
    ]
    if not series:
        return None
    text = "Shares of right answers at the last evaluation, with 95 % intervals over the items."
    return Figure("card", "Result", UNIT, text, {"type": "dots", "categories": [*entries], "series": series})


def signs_of_collapse(view: RunView) -> list[str]:
    """Return a phrase for each sign of collapse in the means over ten steps; none for the first ten steps."""
    if view.last_step <= WINDOW_STEPS:
        return []
    signs = []
    solve, any_solved_now = _windows(view, "solve/rate")
    if not solve:
        signs.append("no attempt was ever graded")
    elif not any_solved_now:
        signs.append(f"no attempt was graded in the last {WINDOW_STEPS} steps")
    if solve and max(solve) > SOLVE_HIGH_FRAC:
        signs.append(f"the tasks were trivial (solve rate {max(solve):.2f} over {WINDOW_STEPS} steps)")
    if solve and min(solve) < SOLVE_LOW_FRAC:
        signs.append(f"the tasks were impossible (solve rate {min(solve):.2f} over {WINDOW_STEPS} steps)")
    valid, _ = _windows(view, "propose/valid_frac")
    if valid and min(valid) < VALIDITY_LOW_FRAC:
        signs.append(f"most proposals were invalid (only {100 * min(valid):.0f} % valid over {WINDOW_STEPS} steps)")
    points = [point for point in view.curriculum if point["kind"] == "all"][-WINDOW_STEPS - 1 :]
    num_tasks = sum(point["num_tasks"] for point in points[1:])
    num_new = sum(after["coverage"] - before["coverage"] for before, after in pairwise(points))
    if num_new < NEW_LOW_FRAC * num_tasks:
        share = f"{100 * num_new / num_tasks:.0f} %"
        signs.append(f"the teachers repeat themselves (only {share} of the last tasks were new)")
    entropy, _ = _windows(view, "propose/entropy")
    if entropy and entropy[0] > 0 and entropy[-1] < ENTROPY_LOW_FRAC * entropy[0]:
        signs.append(f"the teachers repeat one text (entropy {entropy[0]:.2f} to {entropy[-1]:.2f})")
    return signs


def _windows(view: RunView, name: str) -> tuple[list[float], bool]:
    """Return the rolling means of a metric where they are defined, and whether the last one is."""
    means = rolling(view.series(name), view.steps)
    return [mean for mean in means if mean is not None], bool(means) and means[-1] is not None


def _headline(view: RunView, found: Sequence[Comparison], signs: Sequence[str]) -> str:
    if view.is_nothing_valid:
        return f"Nothing was learned: none of {counted(view.num_candidates, 'proposal')} was valid"
    ending = "; signs of collapse" if signs else "; no sign of collapse" if view.last_step > WINDOW_STEPS else ""
    return _progress(view, found) + ending


def _progress(view: RunView, found: Sequence[Comparison]) -> str:
    verdicts = {comparison.verdict for comparison in found}
    if not found:
        return "Only the base model was evaluated so far" if view.evaluations else "External fitness was not measured"
    product, against = found[0].who == "product", {comparison.against for comparison in found}
    other = _AGAINST[against.pop()] if len(against) == 1 else "the best control"
    subject = "The product is " if product else ""
    if len(verdicts) == 1:
        text = {
            "better": f"{subject}better than {other}",
            "worse": f"{subject}worse than {other}",
            "unclear": f"no clear change{' of the product' if product else ''} against {other}",
        }[verdicts.pop()]
    elif "worse" not in verdicts:
        names = " and ".join(dict.fromkeys(c.mode for c in found if c.verdict == "better"))
        text = f"{subject}better than {other} when {names}, otherwise no clear change"
    else:
        text = f"mixed: {subject.lower()}worse than {other} on one measure, better or unchanged on another"
    return text[0].upper() + text[1:]


def _fitness_sentence(view: RunView, comparison: Comparison) -> str:
    who = "The adapter" if view.is_single else "The students' mean"
    if comparison.who == "product":
        who = "The product"
    how = "sampled" if comparison.mode == "sampled" else "answering greedily"
    claim = {"better": "better", "worse": "worse", "unclear": "no significant change"}[comparison.verdict]
    why = ", by the 95 % intervals in brackets"
    if comparison.change is not None:
        why = f". Paired by item, the change is {comparison.change.points}"
    return (
        f"{who}, {how}, solves {comparison.members} of the frozen suite after step "
        f"{comparison.step}, {_AGAINST[comparison.against]} {comparison.base}: {claim}{why}."
    )


def _collapse_sentence(view: RunView, signs: Sequence[str]) -> str:
    if signs:
        return "Signs of collapse: " + "; ".join(signs) + "."
    if view.last_step <= WINDOW_STEPS:
        return f"The first {WINDOW_STEPS} steps are too few to decide whether learning collapses."
    return (
        f"No sign of collapse: over {WINDOW_STEPS} steps at a time the solve rate stayed between {SOLVE_LOW_FRAC} "
        f"and {SOLVE_HIGH_FRAC} and validity above {100 * VALIDITY_LOW_FRAC:.0f} %, and the teachers kept writing new "
        "tasks."
    )
