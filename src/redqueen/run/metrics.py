"""The numbers of a step: what ``report/metrics.py`` explains, computed from the step's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from redqueen.domains.registry import in_order
from redqueen.loop import StepReport
from redqueen.nouns import Individual, Rejection, Task
from redqueen.propose.buffer import program_key
from redqueen.propose.curriculum import curriculum_metrics
from redqueen.verify import well_formed

NAN = float("nan")


def step_metrics(
    report: StepReport,
    individuals: Sequence[Individual],
    measures: Sequence[Mapping[str, float]],
    num_behaviours: int,
    num_classes: int,
) -> dict[str, float]:
    """Return the metrics of one step by name; NaN where a number is not defined.

    ``individuals`` are those who played the step (before evolution); ``measures`` belong to its valid tasks;
    ``num_behaviours`` counts the distinct behaviours of all tasks so far, ``num_classes`` their coarser classes.
    """
    return {
        "match/num_matches": float(len(report.games)),
        "match/expected_win_mean": mean(g.match.expected_win_frac for g in report.games),
        **_proposal_metrics(report),
        **curriculum_metrics(measures, num_behaviours),
        "curriculum/classes": float(num_classes),
        **_pressure_metrics(report),
        **_solving_metrics(report),
        **_learning_metrics(report, individuals),
        "evolve/births": float(len(report.births)),
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean, NaN of nothing."""
    listed = list(values)
    return fmean(listed) if listed else NAN


def _proposal_metrics(report: StepReport) -> dict[str, float]:
    tasks = [v for v in report.judged if isinstance(v, Task)]
    programs = Counter(program_key(t) for t in tasks)
    metrics = {
        "propose/valid_frac": mean(float(isinstance(v, Task)) for v in report.judged),
        "propose/unique_frac": mean(float(programs[program_key(t)] == 1) for t in tasks),
        "propose/entropy": mean(p.completion.entropy for p in report.proposals),
        "propose/tokens_mean": mean(float(len(p.completion.tokens)) for p in report.proposals),
        "reward/teacher_mean": mean(r for r in report.credit.proposal_rewards if r is not None),
    }
    for kind in in_order(p.candidate.kind for p in report.proposals):
        verdicts = [v for p, v in zip(report.proposals, report.judged, strict=True) if p.candidate.kind == kind]
        metrics[f"propose/valid_frac/{kind}"] = mean(float(isinstance(v, Task)) for v in verdicts)
    reasons = Counter(v.reason for v in report.judged if isinstance(v, Rejection))
    return metrics | {f"propose/rejected/{reason}": float(n) for reason, n in sorted(reasons.items())}


def _pressure_metrics(report: StepReport) -> dict[str, float]:
    """What the counter-pressures read, whether they are on or off."""
    found = report.pressures.values()
    return {
        "propose/novel_frac": mean(float(p.novelty > 0) for p in found),
        "propose/crowd_frac": mean(p.crowd_frac for p in found),
        "propose/size_hardness": mean(p.size_hardness for p in found),
    }


def _solving_metrics(report: StepReport) -> dict[str, float]:
    outcomes = [o for a in report.answered for o in a.outcomes if not o.grade.lost]
    completions = [c for a in report.answered for c in a.completions]
    metrics = {
        "solve/rate": mean(float(o.grade.correct) for o in outcomes),
        "solve/thought_frac": mean(float(bool(o.attempt.thought)) for o in outcomes),
        "solve/unparsable_frac": mean(float(not well_formed(o.grade)) for o in outcomes),
        "solve/entropy": mean(c.entropy for c in completions),
        "solve/tokens_mean": mean(float(len(c.tokens)) for c in completions),
        "reward/student_mean": mean(r for row in report.credit.attempt_rewards for r in row if r is not None),
    }
    for kind in in_order(a.task.kind for a in report.answered):
        graded = [
            o.grade.correct for a in report.answered if a.task.kind == kind for o in a.outcomes if not o.grade.lost
        ]
        if graded:
            metrics[f"solve/rate/{kind}"] = mean(map(float, graded))
    return metrics


def _learning_metrics(report: StepReport, individuals: Sequence[Individual]) -> dict[str, float]:
    roles = {i.slot: ("teacher" if i.role == "teacher" else "student") for i in individuals}
    metrics = {}
    for role in ("teacher", "student"):
        stats = [u for u in report.updates if roles[u.slot] == role]
        if stats:
            metrics[f"learn/{role}/loss"] = mean(u.loss for u in stats)
            metrics[f"learn/{role}/grad_norm"] = mean(u.grad_norm for u in stats)
            metrics[f"learn/{role}/clip_frac"] = mean(u.clip_frac for u in stats)
            metrics[f"learn/{role}/kl"] = mean(u.kl for u in stats)
            metrics[f"learn/{role}/stepped_frac"] = mean(float(u.stepped) for u in stats)
    return metrics
