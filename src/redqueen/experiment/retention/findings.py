"""From scores to verdicts: retention, area under the recovery curve, differences to the controls, with intervals.

Intervals are percentile bootstraps that draw seeds and held-out programs with replacement, both at once, and compare
members on the same draw. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from redqueen.errors import UserError
from redqueen.experiment.retention.lineup import COPY, LINEAR, Entry
from redqueen.experiment.retention.trial import Trial
from redqueen.statistics import Array, CrossedResamples, Estimate, Interval

Verdict = Literal["keeps", "loses", "undecided", "control"]

NUM_RESAMPLES = 2000
MARGIN_FRAC = 0.25
"""A child keeps what its parent learned when it stays behind a copy by surely less than this share of the gain."""
BOOTSTRAP_SEED = 20_260_102


@dataclass(frozen=True)
class Finding:
    """What is known of one entry; scores and areas are shares of held-out tasks solved, in [0, 1].

    ``birth`` is the score untrained, ``end`` the one after the last update. ``retention`` is (birth - base) /
    (parent - base), the share of the first parent's gain that the child is born with. ``area`` is the area under the
    recovery curve by the trapezoid rule, divided by the number of updates: a mean score. ``over_copy`` and
    ``over_linear`` are its differences to the controls'. ``back_after`` is the first measured update at which the mean
    score has reached the parent's at birth, None: not reached.
    """

    entry: Entry
    relative_change: float
    birth: Estimate
    end: Estimate
    retention: Estimate
    area: Estimate
    over_copy: Estimate
    over_linear: Estimate
    back_after: int | None
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class Findings:
    """All findings, with the base, the first parents and their gain to compare with."""

    base: Estimate
    parent: Estimate
    second_parent: Estimate
    gain: Estimate
    margin: float
    entries: tuple[Finding, ...]


def analyse(trials: Sequence[Trial], entries: Sequence[Entry], programs: Sequence[str]) -> Findings:
    """Turn trials into findings. ``programs`` names the program of each held-out task.

    Programs with a lost task in any measurement are left out throughout. Raises UserError when nothing is left.
    """
    # For each seed the base, both parents, then every entry at every measured update: (seeds, rows, programs).
    rows = [[t.base, *t.parents, *(scores for measured in t.curves for scores in measured)] for t in trials]
    whole = _by_program(rows, programs)
    kept = np.isfinite(whole).all(axis=(0, 1))
    if not kept.any():
        raise UserError(
            "the verifier lost a grade of every held-out program, so nothing can be compared: "
            "free some memory, remove the seed-N folders of --out and run again"
        )
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    draws = CrossedResamples.draw(len(trials), int(kept.sum()), rng, NUM_RESAMPLES)
    means = draws.means(whole[:, :, kept])  # (draws, rows)
    base, parent, second = means[:, 0], means[:, 1], means[:, 2]
    updates = np.array(trials[0].updates, dtype=np.float64)
    scores = means[:, 3:].reshape(len(means), len(updates), len(entries))
    areas = _areas(updates, scores)
    gain = draws.estimate(parent - base)
    margin = MARGIN_FRAC * gain.value
    control = {entry.operator: i for i, entry in reversed(list(enumerate(entries)))}
    found = []
    for i, entry in enumerate(entries):
        over_copy, over_linear = (draws.estimate(areas[:, i] - areas[:, control[name]]) for name in (COPY, LINEAR))
        reached = np.flatnonzero(scores[0, :, i] >= parent[0] - 1e-12)
        verdict = judge(entry, over_copy.interval, gain.interval, margin)
        found.append(
            Finding(
                entry=entry,
                relative_change=float(np.mean([t.relative_changes[i] for t in trials])),
                birth=draws.estimate(scores[:, 0, i]),
                end=draws.estimate(scores[:, -1, i]),
                retention=draws.estimate(_ratio(scores[:, 0, i] - base, parent - base)),
                area=draws.estimate(areas[:, i]),
                over_copy=over_copy,
                over_linear=over_linear,
                back_after=int(updates[reached[0]]) if len(reached) else None,
                verdict=verdict,
                sentence=sentence(entry, verdict, over_copy, over_linear, gain.interval, margin),
            )
        )
    of_base, of_parent, of_second = (draws.estimate(one) for one in (base, parent, second))
    return Findings(of_base, of_parent, of_second, gain, margin, tuple(found))


def judge(entry: Entry, over_copy: Interval, gain: Interval, margin: float) -> Verdict:
    """Return the verdict from the interval of the area's difference to ``copy_parent``.

    "keeps": wholly above -``margin``; "loses": wholly below 0, and not that; "undecided": neither, or the parents'
    ``gain`` is not surely above 0, so that there was nothing to lose.
    """
    if entry.operator == COPY:
        return "control"
    if not gain.low > 0:
        return "undecided"
    if over_copy.low >= -margin:
        return "keeps"
    return "loses" if over_copy.high < 0 else "undecided"


def sentence(
    entry: Entry, verdict: Verdict, over_copy: Estimate, over_linear: Estimate, gain: Interval, margin: float
) -> str:
    """Say the verdict in words, with the numbers it was computed from."""
    if verdict == "control":
        return f"{entry.label} is the control: its children are the first parents, trained on."
    if not gain.low > 0:
        return f"{entry.label} is undecided: the parents are not measurably better than the base, nothing can be lost."
    what = {
        "keeps": "keeps what its parents learned",
        "loses": "loses some of what its parents learned",
        "undecided": "is undecided",
    }[verdict]
    text = f"{entry.label} {what}: its area differs from a copy's by {_signed(over_copy)} (margin {-100 * margin:.1f})"
    if entry.operator == LINEAR:
        return f"{text}."
    against = {"the copy": over_copy.interval, "the mean": over_linear.interval}
    beats = [name for name, interval in against.items() if interval.low > 0]
    behind = [name for name, interval in against.items() if interval.high < 0]
    text = f"{text}, from the plain mean's by {_signed(over_linear)}"
    if len(beats) == 2:
        return f"{text}; it beats both controls."
    told = [f"beats {name}" for name in beats] + [f"falls behind {name}" for name in behind]
    return f"{text}; it {' and '.join(told)}." if told else f"{text}; it is told apart from neither control."


def _signed(estimate: Estimate) -> str:
    low, high = (100 * bound for bound in estimate.interval)
    return f"{100 * estimate.value:+.1f} points [{low:+.1f}, {high:+.1f}]"


def _by_program(rows: Sequence[Sequence[Sequence[float | None]]], programs: Sequence[str]) -> Array:
    """Average the tasks of each program: (seeds, rows, tasks) to (seeds, rows, programs); a lost task makes nan."""
    values = np.array(rows, dtype=np.float64)
    names = list(dict.fromkeys(programs))
    which = np.array([[program == name for program in programs] for name in names])
    return np.stack([values[..., own].mean(axis=-1) for own in which], axis=-1)


def _areas(updates: Array, scores: Array) -> Array:
    """Trapezoids over the measured updates (axis 1), divided by the whole width."""
    widths = np.diff(updates)
    middles = (scores[:, 1:] + scores[:, :-1]) / 2
    return np.einsum("m,nme->ne", widths / widths.sum(), middles)


def _ratio(top: Array, bottom: Array) -> Array:
    """Divide where the gain is above zero; elsewhere there is no share to speak of (nan)."""
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.nan)
