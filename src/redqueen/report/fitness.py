"""External fitness in the report: scores of base, control, members and product with 95 % intervals, and comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from redqueen.journal.schema import ALL, BASE, CHANGE, CONTROL, GAIN, PRODUCT, STUDENTS
from redqueen.journal.untrusted import Row
from redqueen.report.view import RunView

Verdict = Literal["better", "worse", "unclear"]
Standing = Verdict | Literal["mixed", "unmeasured", "nothing"]
"""The verdict over all comparisons of a run; ``nothing``: no proposal was valid, so nothing was learned."""

MARKS: dict[Standing, str] = {
    "better": "▲", "worse": "▼", "unclear": "≈", "mixed": "◆", "unmeasured": "○", "nothing": "✗",
}  # fmt: skip
"""A symbol for each, so that none is identified by its colour alone."""

MODES = ("sampled", "greedy")


@dataclass(frozen=True)
class Score:
    """A mean with its 95 % interval, all fractions (0..1)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"

    @property
    def points(self) -> str:
        """A difference in percentage points, with its sign."""
        return f"{100 * self.mean:+.1f} points ({100 * self.low:+.1f} to {100 * self.high:+.1f})"


def verdict_of(change: Score) -> Verdict:
    """Return the verdict on a change: ``better`` or ``worse`` only when its interval excludes 0."""
    return "better" if change.low > 0 else "worse" if change.high < 0 else "unclear"


@dataclass(frozen=True)
class Comparison:
    """The scores of ``who`` (the students' mean or the product: ``members``) and of ``against`` (the base or the
    control: ``base``) in one mode, after ``step``."""

    mode: str
    step: int
    base: Score
    members: Score
    change: Score | None
    """The paired difference over the items, when the run measured it (fractions, -1..1)."""
    who: Literal["students", "product"] = "students"
    against: str = BASE
    """``base`` or ``control``."""

    @property
    def verdict(self) -> Verdict:
        """``better`` or ``worse`` when the interval of the paired change excludes 0. Without a paired change: when the
        two intervals do not overlap, a weaker test (both answer the same items)."""
        unpaired = Score(0.0, self.members.low - self.base.high, self.members.high - self.base.low)
        return verdict_of(unpaired if self.change is None else self.change)


def solvers_word(view: RunView) -> str:
    """Return the name of the members that solve."""
    return "adapter" if view.is_single else "students"


def comparisons(view: RunView) -> list[Comparison]:
    """Return the aggregate comparison of the last evaluation for every mode that has a base and members."""
    found = []
    step = last_evaluated_step(view)
    for mode in MODES:
        base, members = latest_score(view, BASE, mode), mean_score(view, step, mode)
        if base is not None and members is not None and step is not None:
            found.append(Comparison(mode, step, base, members, score_at(view, step, CHANGE, mode)))
    return found


def outcomes(view: RunView) -> list[Comparison]:
    """Return the result of the run by mode: its product compared with the better of base and control; for a run
    without a product, the members compared with the base."""
    found: list[Comparison] = []
    step = last_evaluated_step(view)
    for mode in MODES:
        product = product_score(view, mode)
        base, control = (latest_score(view, name, mode) for name in (BASE, CONTROL))
        if step is None or product is None or base is None:
            continue
        best, against = base, BASE
        if control is not None and control.mean > base.mean:
            best, against = control, CONTROL
        gain = score_at(view, view.last_step, GAIN, mode)
        found.append(Comparison(mode, step, best, product, gain, "product", against))
    return found or comparisons(view)


def last_evaluated_step(view: RunView) -> int | None:
    """Return the last step after which members (not only the base) were scored."""
    return max(evaluated_steps(view), default=None)


def evaluated_steps(view: RunView) -> list[int]:
    """Return the steps after which members were scored, in order."""
    return sorted({row["step"] for row in view.evaluations if row["individual"] not in (BASE, CONTROL)})


def product_score(view: RunView, mode: str) -> Score | None:
    """Return the aggregate score of the product that was chosen after the run's last step, None where none was (also in
    a run that was continued beyond an earlier end)."""
    return score_at(view, view.last_step, PRODUCT, mode)


def latest_score(view: RunView, individual: str, mode: str, kind: str = ALL) -> Score | None:
    """Return the score of a member, the base or the control at the last evaluation that has one."""
    rows = [row for row in _part(view, mode, kind) if row["individual"] == individual]
    return _score(rows[-1]) if rows else None


def mean_score(view: RunView, step: int | None, mode: str, kind: str = ALL) -> Score | None:
    """Return the mean over the solving members after ``step``.

    The journal's row for the mean is used when there is one: its interval takes into account that the members answered
    the same items. Without it, the members' means, lows and highs are averaged; that interval is exact for perfectly
    correlated errors and too wide otherwise.
    """
    rows = [row for row in _part(view, mode, kind) if row["step"] == step]
    whole = [_score(row) for row in rows if row["individual"] == STUDENTS]
    if whole:
        return whole[0]
    members = {member["id"] for member in view.individuals if member["role"] != "teacher"}
    scores = [score for row in rows if row["individual"] in members and (score := _score(row)) is not None]
    if not scores:
        return None
    return Score(*map(fmean, zip(*((s.mean, s.low, s.high) for s in scores), strict=True)))


def score_at(view: RunView, step: int, name: str, mode: str) -> Score | None:
    """Return the aggregate score of a member, or of ``change``, ``gain`` or ``product``, after ``step``."""
    rows = [row for row in _part(view, mode, ALL) if row["step"] == step and row["individual"] == name]
    return _score(rows[0]) if rows else None


def _part(view: RunView, mode: str, kind: str) -> list[Row]:
    return view.scores.get((mode, kind), [])


def _score(row: Row) -> Score | None:
    values = (row["mean_frac"], row["low_frac"], row["high_frac"])
    return None if None in values else Score(*values)
