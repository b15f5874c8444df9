"""The report card: where a run stands on its suite, as one picture and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from redqueen.journal.records import ALL, CONTROL, PRODUCT
from redqueen.report.figure import Figure
from redqueen.report.fitness import (
    MODES,
    Score,
    Verdict,
    base_score,
    last_evaluated_step,
    latest_score,
    mean_score,
    outcomes,
    product_score,
    solvers_word,
)
from redqueen.report.fitness_figures import UNIT, dots
from redqueen.report.story import tell
from redqueen.report.view import RunView

Standing = Verdict | Literal["mixed", "unmeasured", "nothing"]
"""What all comparisons of a run's outcome say together; ``nothing``: no proposal was valid, so nothing was learned."""

MARKS: dict[Standing, str] = {
    "better": "▲", "worse": "▼", "unclear": "≈", "mixed": "◆", "unmeasured": "○", "nothing": "✗",
}  # fmt: skip
"""A shape for each, so that none is told by its colour alone."""


@dataclass(frozen=True)
class Entry:
    """One who was measured, with a score for each mode of ``MODES`` (None: not measured in it)."""

    name: str
    scores: tuple[Score | None, ...]


@dataclass(frozen=True)
class Card:
    """``sentence`` says what the picture shows; without any measure there is no picture and there are no entries."""

    standing: Standing
    sentence: str
    entries: tuple[Entry, ...]
    figure: Figure | None

    @property
    def mark(self) -> str:
        """The shape of the standing."""
        return MARKS[self.standing]

    def rows(self) -> list[list[str]]:
        """Return the picture as a table: who, then a score a mode."""
        return [[entry.name, *("–" if s is None else str(s) for s in entry.scores)] for entry in self.entries]


def report_card(view: RunView) -> Card:
    """Return the card of the suite's last evaluation (of the first suite by name, when there are several)."""
    entries, headline = _entries(view), tell(view).headline
    if not entries:
        return Card(_standing(view), f"{headline}.", (), None)
    at = max(range(len(MODES)), key=lambda index: sum(entry.scores[index] is not None for entry in entries))
    told = [f"{entry.name} {100 * score.mean:.1f} %" for entry in entries if (score := entry.scores[at]) is not None]
    how = {"sampled": "sampled", "greedy": "answering greedily"}[MODES[at]]
    sentence = f"{headline}: right answers on the frozen suite, {how}: {', '.join(told)}."
    return Card(_standing(view), sentence, entries, _figure(entries))


def _entries(view: RunView) -> tuple[Entry, ...]:
    suite = next(iter(sorted({row["suite"] for row in view.evaluations})), "")
    step = last_evaluated_step(view, suite)
    found = [
        Entry("base", tuple(base_score(view, suite, ALL, ALL, mode) for mode in MODES)),
        Entry(CONTROL, tuple(latest_score(view, CONTROL, suite, mode) for mode in MODES)),
        Entry(
            solvers_word(view),
            tuple(None if step is None else mean_score(view, step, suite, ALL, ALL, mode) for mode in MODES),
        ),
        Entry(PRODUCT, tuple(product_score(view, suite, mode) for mode in MODES)),
    ]
    return tuple(entry for entry in found if any(entry.scores))


def _standing(view: RunView) -> Standing:
    if view.is_nothing_valid:
        return "nothing"
    verdicts = {comparison.verdict for comparison in outcomes(view)}
    if not verdicts:
        return "unmeasured"
    if len(verdicts) == 1:
        return verdicts.pop()
    return "mixed" if "worse" in verdicts else "better"


def _figure(entries: tuple[Entry, ...]) -> Figure:
    series = [
        dots(mode, mode, [entry.scores[at] for entry in entries])
        for at, mode in enumerate(MODES)
        if any(entry.scores[at] for entry in entries)
    ]
    text = "Shares of right answers at the last evaluation, with 95 % intervals over the items."
    chart = {"type": "dots", "categories": [entry.name for entry in entries], "series": series}
    return Figure("card", "Where the run stands", UNIT, text, chart)
