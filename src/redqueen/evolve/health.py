"""Health of the co-evolution: signs of disengagement, cycles, forgetting, loss of diversity and stagnation.

A pure function measures each of five failure modes of competitive co-evolution; ``warnings`` puts them into words. No
training reward shows them: both sides can have high rewards while nothing is learned. Source: the failure modes are
known (Watson and Pollack 2001; Ficici 2004); the measures and thresholds are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Disengagement:
    """Shares of tasks in [0, 1] that give no gradient: all (``won_frac``) or no (``lost_frac``) attempts were right."""

    won_frac: float
    lost_frac: float


@dataclass(frozen=True)
class Cycling:
    """How far the payoffs are from a single order of strength.

    ``residual_frac``: the share of the payoffs' variation, in [0, 1], that an additive model (strength of teacher plus
    strength of student) does not explain, less sampling noise. ``reversal_frac``: of all comparisons of two teachers by
    two students, the share in which the students disagree about which teacher is harder.
    """

    residual_frac: float
    reversal_frac: float


@dataclass(frozen=True)
class Stability:
    """Solve rate and progress over a window of generations.

    ``solve_mean_frac`` and ``solve_spread``: mean and standard deviation of the solve rate. ``progress_frac``: relative
    change of the progress measure from the window's first half to its second.
    """

    solve_mean_frac: float
    solve_spread: float
    progress_frac: float


@dataclass(frozen=True)
class Diversity:
    """Diversity of one role: ``weights`` from ``weight_diversity``, ``behaviour`` from ``mean_pairwise``."""

    weights: float | None = None
    behaviour: float | None = None


@dataclass(frozen=True)
class Health:
    """The diagnostics of one generation; a field is None where there is no data for it."""

    disengagement: Disengagement | None = None
    cycling: Cycling | None = None
    forgetting_frac: float | None = None
    teachers: Diversity = Diversity()
    students: Diversity = Diversity()
    stability: Stability | None = None

    def numbers(self) -> dict[str, float | None]:
        """Return the diagnostics by the columns of the journal's table ``health``."""
        parts = ((Disengagement, self.disengagement), (Cycling, self.cycling), (Stability, self.stability))
        return {one.name: getattr(part, one.name, None) for kind, part in parts for one in fields(kind)} | {
            "forgetting_frac": self.forgetting_frac,
            "teacher_weight_diversity": self.teachers.weights,
            "student_weight_diversity": self.students.weights,
            "teacher_behaviour_diversity": self.teachers.behaviour,
            "student_behaviour_diversity": self.students.behaviour,
        }


# Thresholds of the warnings. Ours: chosen so that a healthy small run has no warning.
DISENGAGED_FRAC = 0.8
"""Share of tasks that all or none of the attempts solved."""
RESIDUAL_FRAC = 0.5
"""``Cycling.residual_frac``."""
FORGETTING_FRAC = 0.2
"""Lost score against past members."""
WEIGHT_DIVERSITY = 0.1
"""Mean distance, relative to that of independent adapters."""
BEHAVIOUR_DIVERSITY = 0.05
"""Mean disagreement of two members."""
SOLVE_SPREAD = 0.03
"""Standard deviation of the solve rate over the window, below which it counts as flat."""
PROGRESS_FRAC = 0.03
"""Relative change of the progress measure, below which it counts as none."""


def disengagement(solve_rates: Sequence[float]) -> Disengagement | None:
    """Shares of tasks that all or no attempts solved. ``solve_rates`` in [0, 1], one per task; None without tasks."""
    if not solve_rates:
        return None
    rates = np.asarray(solve_rates, dtype=np.float64)
    return Disengagement(float((rates >= 1).mean()), float((rates <= 0).mean()))


def cycling(scores: Matrix, num_attempts: Matrix | None = None) -> Cycling | None:
    """How far a payoff matrix is from a total order.

    ``scores`` (teachers, students) in [0, 1], NaN for pairs without a match.

    The order is the least-squares fit score = strength of teacher + strength of student over the known cells.
    With ``num_attempts`` (teachers, students), the residual expected from binomial noise p (1 - p) / n is subtracted.
    None when no two teachers had matches with the same two students, which a cycle needs.
    """
    known = ~np.isnan(scores)
    reversals = _reversals(scores, known)
    if reversals is None:
        return None
    at_teacher, at_student = np.nonzero(known)
    observed = scores[known]
    design = np.zeros((observed.size, sum(scores.shape)))
    design[np.arange(observed.size), at_teacher] = 1
    design[np.arange(observed.size), scores.shape[0] + at_student] = 1
    fit, _, degrees, _ = np.linalg.lstsq(design, observed, rcond=None)
    residual = float(((observed - design @ fit) ** 2).sum())
    total = float(((observed - observed.mean()) ** 2).sum())
    noise = 0.0
    if num_attempts is not None:
        variance = observed * (1 - observed) / np.maximum(1, num_attempts[known])
        noise = float(variance.mean())
    own = max(0.0, residual - noise * (observed.size - int(degrees)))
    # Relative to all variation, noise included: where there is only noise this is near 0, not 0 / 0.
    return Cycling(own / total if total > 1e-12 else 0.0, reversals)


def forgetting(then: Mapping[str, float], now: Mapping[str, float]) -> float | None:
    """Mean score lost against past opponents: the mean over them of max(0, score then - score now), in [0, 1].

    ``then`` and ``now``: the population's (or one member's) score against each opponent, by the opponent's id in the
    hall of fame; higher is better. None when no opponent is in both.
    """
    both = then.keys() & now.keys()
    if not both:
        return None
    return sum(max(0.0, then[name] - now[name]) for name in both) / len(both)


def weight_diversity(distances: Matrix, norms: Sequence[float]) -> float | None:
    """Mean pairwise distance of dW over sqrt(2) times the root mean square norm: 0 for copies, about 1 if independent.

    ``distances`` (n, n) and ``norms`` (n) are those of ``adapters/genotype.py``. None for fewer than two members and
    when every dW is 0.
    """
    size = float(np.sqrt(np.mean(np.square(norms)))) if len(norms) else 0.0
    mean = mean_pairwise(distances)
    return None if mean is None or size == 0 else mean / (np.sqrt(2) * size)


def stability(solve_rates: Sequence[float], progress: Sequence[float], num_generations: int = 6) -> Stability | None:
    """Solve rate and progress over the last ``num_generations`` >= 2 generations.

    ``solve_rates`` in [0, 1] and ``progress`` (> 0, any measure that should grow: covered behaviour classes, structural
    complexity, external fitness), one per generation in order of time. None while the run is shorter than the window.
    """
    if num_generations < 2 or min(len(solve_rates), len(progress)) < num_generations:
        return None
    rates = np.asarray(solve_rates[-num_generations:], dtype=np.float64)
    recent = np.asarray(progress[-num_generations:], dtype=np.float64)
    before, after = recent[: num_generations // 2].mean(), recent[num_generations // 2 :].mean()
    change = (after - before) / abs(before) if before else float(after != before)
    return Stability(float(rates.mean()), float(rates.std()), float(change))


def warnings(health: Health) -> list[str]:
    """Return the warnings as sentences, the most severe first."""
    found = []
    if health.disengagement is not None:
        won, lost = health.disengagement.won_frac, health.disengagement.lost_frac
        if won >= DISENGAGED_FRAC:
            found.append(f"Tasks too easy: {won:.0%} of the tasks are solved by every attempt.")
        elif lost >= DISENGAGED_FRAC:
            found.append(f"Tasks too hard: {lost:.0%} of the tasks are solved by no attempt.")
        elif won + lost >= DISENGAGED_FRAC:
            found.append(f"Tasks without a training signal: {won + lost:.0%} are solved always or never.")
    if health.forgetting_frac is not None and health.forgetting_frac >= FORGETTING_FRAC:
        lost_score = f"{health.forgetting_frac:.0%}"
        found.append(f"Forgetting: against past members the score fell by {lost_score}; what was learned is lost.")
    for role, spread in (("teachers", health.teachers), ("students", health.students)):
        if spread.weights is not None and spread.weights < WEIGHT_DIVERSITY:
            share = f"{spread.weights:.0%}"
            found.append(f"Loss of diversity: the {role}' adapters are {share} as far apart as independent ones.")
        if spread.behaviour is not None and spread.behaviour < BEHAVIOUR_DIVERSITY:
            share = f"{spread.behaviour:.0%}"
            found.append(f"Loss of diversity: two {role} differ in {share} of what they do.")
    if health.cycling is not None and health.cycling.residual_frac >= RESIDUAL_FRAC:
        share = f"{health.cycling.residual_frac:.0%}"
        found.append(f"Cycling: no ranking by strength explains {share} of the results; ratings mislead selection.")
    if health.stability is not None and _is_stagnant(health.stability, health.disengagement):
        rate = f"{health.stability.solve_mean_frac:.0%}"
        found.append(f"Stagnation: the solve rate stays at {rate} and the progress measure does not change.")
    return found


def _is_stagnant(window: Stability, engaged: Disengagement | None) -> bool:
    """Whether solve rate and progress are flat without disengagement, which has its own warning."""
    disengaged = engaged is not None and engaged.won_frac + engaged.lost_frac >= DISENGAGED_FRAC
    return window.solve_spread < SOLVE_SPREAD and window.progress_frac < PROGRESS_FRAC and not disengaged


def _reversals(scores: Matrix, known: NDArray[np.bool_]) -> float | None:
    """Share of (two teachers, two students) in which the students rank the teachers in opposite order; ties agree."""
    num_compared = num_reversed = 0
    for i in range(scores.shape[0]):
        for k in range(i):
            shared = known[i] & known[k]
            harder = np.sign(scores[i, shared] - scores[k, shared])
            num_students = harder.size
            num_compared += num_students * (num_students - 1) // 2
            num_reversed += int((harder > 0).sum()) * int((harder < 0).sum())
    return num_reversed / num_compared if num_compared else None


def mean_pairwise(distances: Matrix) -> float | None:
    """The mean over the known pairs above the diagonal; None where there is none."""
    values = distances[np.triu_indices(distances.shape[0], k=1)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else None


def solving_distances(solve_rates: Matrix) -> Matrix:
    """Students' behaviour distances (n, n): mean |difference| of solve rates over items both attempted, NaN if none.

    ``solve_rates`` (n students, items), NaN where a student made no attempt; an item is a task, or a teacher's tasks.
    """
    n = solve_rates.shape[0]
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            gap = np.abs(solve_rates[i] - solve_rates[j])
            known = gap[~np.isnan(gap)]
            result[i, j] = result[j, i] = known.mean() if known.size else np.nan
    return result


def proposing_distances(class_counts: Matrix) -> Matrix:
    """Teachers' behaviour distances (n, n): total variation between their tasks' distributions over behaviour classes.

    ``class_counts`` (n teachers, classes): tasks of each class that a teacher wrote. NaN for a teacher without tasks.
    """
    totals = class_counts.sum(axis=1, keepdims=True)
    shares = np.divide(class_counts, totals, out=np.full(class_counts.shape, np.nan), where=totals > 0)
    result = np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2) / 2
    np.fill_diagonal(result, 0.0)
    return result
