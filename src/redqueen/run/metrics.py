"""The numbers of a step: what ``report/assets/metrics.tsv`` explains, computed from the step's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

from redqueen.domains.registry import domain_of, in_order
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
        **(report.distilled.metrics() if report.distilled else {}),
        "evolve/births": float(len(report.births)),
        **report.figures,
    }


def domain_metrics(report: StepReport, behaviours: Mapping[str, str], classes: Iterable[str]) -> dict[str, float]:
    """Return what each domain has of tasks, coverage and classes; nothing where there is one domain alone.

    ``behaviours`` maps the behaviour of every task so far to its domain; ``classes`` are all classes so far.
    """
    kinds = in_order(p.candidate.kind for p in report.proposals)
    asked = {kind: domain_of(kind).name for kind in kinds}
    domains = list(dict.fromkeys([*asked.values(), *behaviours.values()]))
    if len(domains) < 2:
        return {}
    covered = Counter(behaviours.values())
    seen = Counter(domain_of(name.split(" ")[0]).name for name in classes)
    tasks = [domain_of(v.kind).name for v in report.judged if isinstance(v, Task)]
    solved = [(domain_of(a.task.kind).name, a.solve_frac or 0.0) for a in report.answered if a.kept]
    metrics = {}
    for domain in domains:
        metrics[f"curriculum/coverage/{domain}"] = float(covered[domain])
        metrics[f"curriculum/classes/{domain}"] = float(seen[domain])
        metrics[f"curriculum/share/{domain}"] = mean(float(name == domain) for name in tasks)
        metrics[f"curriculum/solve_rate/{domain}"] = mean(share for name, share in solved if name == domain)
    return metrics


def rating_metrics(individuals: Sequence[Individual]) -> dict[str, float]:
    """Return the mean rating of each role in each domain, where domains are rated apart."""
    found: dict[str, list[float]] = {}
    for member in individuals:
        for domain, rating in member.domain_ratings:
            found.setdefault(f"match/mu/{member.role}/{domain}", []).append(rating.mu)
    return {name: mean(values) for name, values in found.items()}


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
    answered = [a for a in report.answered if a.kept]  # of others all attempts were lost
    outcomes = [a.outcomes[i] for a in answered for i in a.kept]
    completions = [c for a in report.answered for c in a.completions]
    rewards = [[reward for reward in row if reward is not None] for row in report.credit.attempt_rewards]
    metrics = {
        "solve/rate": mean(a.solve_frac or 0.0 for a in answered),
        "solve/thought_frac": mean(float(bool(o.attempt.thought)) for o in outcomes),
        "solve/unparsable_frac": mean(float(not well_formed(o.grade)) for o in outcomes),
        "solve/entropy": mean(c.entropy for c in completions),
        "solve/tokens_mean": mean(float(len(c.tokens)) for c in completions),
        "reward/student_mean": mean(mean(row) for row in rewards if row),
    }
    for kind in in_order(a.task.kind for a in answered):
        metrics[f"solve/rate/{kind}"] = mean(a.solve_frac or 0.0 for a in answered if a.task.kind == kind)
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
    return metrics | _mismatch_metrics(report, individuals)


def _mismatch_metrics(report: StepReport, individuals: Sequence[Individual]) -> dict[str, float]:
    """How far each member's samples are from its learner, where another engine wrote them."""
    names = {i.slot: i.id for i in individuals}
    metrics = {}
    for update in report.updates:
        if update.mismatch:
            for figure, value in asdict(update.mismatch).items():
                metrics[f"learn/mismatch/{figure}/{names[update.slot]}"] = value
    return metrics
