"""Writes a run's journal: the rows of a step, the ratings after it, the health of a generation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from redqueen.adapters.genotype import norm, pairwise_distances
from redqueen.adapters.protocols import AdapterStore
from redqueen.domains.registry import domain_of, in_order, kind_of
from redqueen.engine import Engine
from redqueen.evolve import health
from redqueen.evolve.health import proposing_distances, solving_distances, warnings
from redqueen.evolve.selection import internal_fitness
from redqueen.journal import AttemptRecord, CandidateRecord, Journal, MatchRecord, StepWriter, TaskRecord
from redqueen.journal.untrusted import Row
from redqueen.learn.rewards import well_formed
from redqueen.loop import StepReport
from redqueen.propose.buffer import behaviour_key, program_key
from redqueen.propose.curriculum import curriculum_metrics
from redqueen.records import Individual, Rejection, Role, Task
from redqueen.state import State

NAN = float("nan")

NUM_STEPS_WITHOUT_WARNING = 10
"""Steps without health warnings. Ours: ratings and rates have hardly moved by then."""


def step_metrics(
    report: StepReport,
    individuals: Sequence[Individual],
    measures: Sequence[Mapping[str, float]],
    num_behaviours: int,
    num_classes: int,
) -> dict[str, float]:
    """Return the metrics of one step by name; NaN where a number is not defined.

    ``individuals`` are the members in the step's matches (before evolution); ``measures`` belong to its valid tasks;
    ``num_behaviours`` counts the distinct behaviours of all tasks so far, ``num_classes`` their coarser classes.
    """
    return {
        "match/num_matches": float(len(report.games)),
        "match/expected_win_mean": mean(g.match.expected_win_frac for g in report.games),
        **_proposal_metrics(report),
        **curriculum_metrics(measures, num_behaviours),
        "curriculum/classes": float(num_classes),
        **_crowding_metrics(report),
        **_solving_metrics(report),
        **_learning_metrics(report, individuals),
        **(report.distilled.metrics() if report.distilled else {}),
        "evolve/births": float(len(report.births)),
        **report.metrics,
    }


def domain_metrics(report: StepReport, behaviours: Mapping[str, str], classes: Iterable[str]) -> dict[str, float]:
    """Return each domain's coverage, classes, share of tasks and solve rate; empty if there is only one domain.

    ``behaviours`` maps the behaviour of every task so far to its domain; ``classes`` are all classes so far.
    """
    kinds = in_order(p.candidate.kind for p in report.proposals)
    asked = {kind: domain_of(kind).name for kind in kinds}
    domains = list(dict.fromkeys([*asked.values(), *behaviours.values()]))
    if len(domains) < 2:
        return {}
    covered = Counter(behaviours.values())
    seen = Counter(domain_of(name.split(" ")[0]).name for name in classes)
    tasks = [domain_of(v.kind).name for v in report.verdicts if isinstance(v, Task)]
    solved = [(domain_of(a.task.kind).name, a.solve_frac or 0.0) for a in report.graded if a.kept]
    metrics = {}
    for domain in domains:
        metrics[f"curriculum/coverage/{domain}"] = float(covered[domain])
        metrics[f"curriculum/classes/{domain}"] = float(seen[domain])
        metrics[f"curriculum/share/{domain}"] = mean(float(name == domain) for name in tasks)
        metrics[f"curriculum/solve_rate/{domain}"] = mean(share for name, share in solved if name == domain)
    return metrics


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN without values."""
    listed = list(values)
    return fmean(listed) if listed else NAN


def _proposal_metrics(report: StepReport) -> dict[str, float]:
    tasks = [v for v in report.verdicts if isinstance(v, Task)]
    programs = Counter(program_key(t) for t in tasks)
    metrics = {
        "propose/valid_frac": mean(float(isinstance(v, Task)) for v in report.verdicts),
        "propose/unique_frac": mean(float(programs[program_key(t)] == 1) for t in tasks),
        "propose/entropy": mean(p.completion.entropy for p in report.proposals),
        "propose/tokens_mean": mean(float(len(p.completion.tokens)) for p in report.proposals),
        "reward/teacher_mean": mean(r for r in report.credit.proposal_rewards if r is not None),
    }
    for kind in in_order(p.candidate.kind for p in report.proposals):
        verdicts = [v for p, v in zip(report.proposals, report.verdicts, strict=True) if p.candidate.kind == kind]
        metrics[f"propose/valid_frac/{kind}"] = mean(float(isinstance(v, Task)) for v in verdicts)
    reasons = Counter(v.reason for v in report.verdicts if isinstance(v, Rejection))
    return metrics | {f"propose/rejected/{reason}": float(n) for reason, n in sorted(reasons.items())}


def _crowding_metrics(report: StepReport) -> dict[str, float]:
    """The inputs of the diversity terms, recorded even if the terms are off."""
    found = report.crowding.values()
    return {
        "propose/novel_frac": mean(float(p.novelty > 0) for p in found),
        "propose/crowd_frac": mean(p.crowd_frac for p in found),
        "propose/size_hardness": mean(p.size_hardness for p in found),
    }


def _solving_metrics(report: StepReport) -> dict[str, float]:
    answered = [a for a in report.graded if a.kept]  # without those whose attempts were all lost
    outcomes = [a.outcomes[i] for a in answered for i in a.kept]
    completions = [c for a in report.graded for c in a.completions]
    rewards = [[reward for reward in row if reward is not None] for row in report.credit.attempt_rewards]
    metrics = {
        "solve/rate": mean(a.solve_frac or 0.0 for a in answered),
        "solve/thought_frac": mean(float(bool(o.attempt.thought)) for o in outcomes),
        "solve/unparsable_frac": mean(float(not well_formed(o.grade)) for o in outcomes),
        "solve/entropy": mean(c.entropy for c in completions),
        "solve/tokens_mean": mean(float(len(c.tokens)) for c in completions),
        "reward/student_mean": mean(mean(row) for row in rewards if row),
    }
    if anchors := [a for a in report.graded if a.is_anchor]:
        metrics["solve/anchor_rate"] = mean(a.solve_frac or 0.0 for a in anchors if a.kept)
        metrics["solve/anchor_tokens"] = float(sum(o.attempt.num_tokens for a in anchors for o in a.outcomes))
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
    """The mismatch between sampler and learner by member, where another engine sampled."""
    names = {i.slot: i.id for i in individuals}
    metrics = {}
    for update in report.updates:
        if update.mismatch:
            for figure, value in asdict(update.mismatch).items():
                metrics[f"learn/mismatch/{figure}/{names[update.slot]}"] = value
    return metrics


Matrix = NDArray[np.float64]


def measure_health(
    journal: Journal,
    store: AdapterStore,
    matched: Sequence[Individual],
    living: Sequence[Individual],
    step: int,
    every_steps: int,
    students_are_clones: bool = False,
) -> health.Health:
    """Measure the generation that ends with ``step``, which the journal must already contain.

    A generation is the last ``every_steps`` steps. Behaviour is measured for the members ``matched`` in it, distances
    of adapters for the ``living`` ones (the population now, children included). ``students_are_clones``: all students
    are one adapter, so their diversity is not measured.
    """
    since = max(0, step - every_steps)
    tasks = journal.query(
        "SELECT 1.0 * num_correct / num_attempts AS solved FROM task WHERE step > ? AND step <= ? AND num_attempts > 0",
        (since, step),
    )
    games = _games(journal, since, step)
    return health.Health(
        disengagement=health.disengagement([row["solved"] for row in tasks]),
        cycling=_cycling(games),
        forgetting_frac=health.forgetting(
            _against_the_past(journal, 0, since), _against_the_past(journal, since, step)
        ),
        teachers=health.Diversity(
            _weights(store, living, "teacher"),
            health.mean_pairwise(proposing_distances(_class_counts(journal, _ids(matched, "teacher"), since, step))),
        ),
        students=health.Diversity()
        if students_are_clones
        else health.Diversity(_weights(store, living, "student"), _solving_diversity(games, _ids(matched, "student"))),
        stability=_stability(journal, step, every_steps),
    )


def _ids(members: Sequence[Individual], role: Role) -> list[str]:
    return [member.id for member in members if member.role == role]


def _games(journal: Journal, since: int, step: int) -> list[Row]:
    """Each pair with a match after ``since``: its solve rate (weighted by tasks) and its number of attempts."""
    return journal.query(
        "SELECT m.teacher, m.student, sum(m.solve_frac * m.num_tasks) / sum(m.num_tasks) AS solved, "
        "(SELECT count(*) FROM attempt a JOIN task t ON a.task = t.seq WHERE t.step > ?1 AND t.step <= ?2 "
        "AND t.teacher = m.teacher AND a.student = m.student AND NOT a.lost) AS num_attempts "
        "FROM match m WHERE m.step > ?1 AND m.step <= ?2 AND m.solve_frac IS NOT NULL AND m.teacher != m.student "
        "GROUP BY m.teacher, m.student ORDER BY m.teacher, m.student",
        (since, step),
    )


def _table(games: Sequence[Row], teachers: Sequence[str], students: Sequence[str], column: str) -> Matrix:
    """One number of each game as (teachers, students), NaN for pairs without a match."""
    table = np.full((len(teachers), len(students)), np.nan)
    for game in games:
        if game["teacher"] in teachers and game["student"] in students:
            table[teachers.index(game["teacher"]), students.index(game["student"])] = game[column]
    return table


def _cycling(games: Sequence[Row]) -> health.Cycling | None:
    teachers, students = sorted({g["teacher"] for g in games}), sorted({g["student"] for g in games})
    solved, attempts = (_table(games, teachers, students, column) for column in ("solved", "num_attempts"))
    return health.cycling(solved, attempts)


def _solving_diversity(games: Sequence[Row], students: Sequence[str]) -> float | None:
    teachers = sorted({g["teacher"] for g in games})
    return health.mean_pairwise(solving_distances(_table(games, teachers, students, "solved").T))


def _class_counts(journal: Journal, teachers: Sequence[str], since: int, step: int) -> Matrix:
    """How many tasks of each behaviour class each teacher wrote: (teachers, classes)."""
    rows = journal.query(
        "SELECT teacher, behaviour_class AS name, count(*) AS num FROM task WHERE step > ? AND step <= ? "
        "GROUP BY teacher, behaviour_class",
        (since, step),
    )
    names = sorted({row["name"] for row in rows})
    counts = np.zeros((len(teachers), len(names)))
    for row in rows:
        if row["teacher"] in teachers:
            counts[teachers.index(row["teacher"]), names.index(row["name"])] = row["num"]
    return counts


def _against_the_past(journal: Journal, since: int, step: int) -> dict[str, float]:
    """The population's mean score against each past member in the games after ``since``, by the past member's id."""
    rows = journal.query(
        "SELECT h.id, avg(CASE WHEN m.teacher = h.id THEN m.solve_frac ELSE 1 - m.solve_frac END) AS score "
        "FROM hall h JOIN match m ON h.id IN (m.teacher, m.student) "
        "WHERE m.step > ? AND m.step <= ? AND m.solve_frac IS NOT NULL GROUP BY h.id ORDER BY h.id",
        (since, step),
    )
    return {row["id"]: row["score"] for row in rows}


def _weights(store: AdapterStore, living: Sequence[Individual], role: Role) -> float | None:
    """The weight diversity of one role; None for fewer than two members."""
    adapters = [store.genotype(member.slot) for member in living if member.role == role]
    if len(adapters) < 2:
        return None
    return health.weight_diversity(np.array(pairwise_distances(adapters)), [norm(adapter) for adapter in adapters])


def _stability(journal: Journal, step: int, every_steps: int) -> health.Stability | None:
    """Solve rate and classes covered so far, generation by generation up to this one."""
    rates = journal.query(
        "SELECT (step - 1) / ?1 AS number, avg(1.0 * num_correct / num_attempts) AS solved FROM task "
        "WHERE num_attempts > 0 AND step <= ?2 GROUP BY number ORDER BY number",
        (every_steps, step),
    )
    firsts = [
        row["number"]
        for row in journal.query(
            "SELECT (min(step) - 1) / ?1 AS number FROM task WHERE step <= ?2 GROUP BY behaviour_class",
            (every_steps, step),
        )
    ]
    covered = [float(sum(first <= row["number"] for first in firsts)) for row in rates]
    return health.stability([row["solved"] for row in rates], covered)


def record_step(writer: StepWriter, before: State, report: StepReport, behaviours: dict[str, str]) -> dict[str, float]:
    """Write one step's records and return its metrics.

    ``behaviours`` maps the behaviour of every task so far to its domain; this step's are added to it. Coverage is its
    number of keys: tasks with equal inputs and outputs share one (``behaviour_key`` in ``propose/buffer.py``). A task's
    reward is in its row of ``candidate``. ``run/lifecycle.py`` writes evaluations and timings.
    """
    credit = report.credit
    writer.add_individuals(report.newborns)
    writer.add_births(report.births)
    writer.add_hall_entries((e.individual.id, e.member, e.individual.slot) for e in report.admitted)
    writer.add_matches(MatchRecord(g.match, g.num_tasks, g.solve_frac, g.winner) for g in report.games)
    writer.add_candidates(
        CandidateRecord(
            proposal.candidate,
            verdict.reason if isinstance(verdict, Rejection) else "ok",
            verdict.detail if isinstance(verdict, Rejection) else "",
            reward,
            advantage,
            len(proposal.completion.tokens),
        )
        for proposal, verdict, reward, advantage in zip(
            report.proposals, report.verdicts, credit.proposal_rewards, credit.proposal_advantages, strict=True
        )
    )
    tasks = [verdict for verdict in report.verdicts if isinstance(verdict, Task)]
    measures = [kind_of(task).measure(task) for task in tasks]
    records = [
        TaskRecord(task, measured, behaviour_key(task), report.crowding[task.id])
        for task, measured in zip(tasks, measures, strict=True)
    ]
    writer.add_tasks(records)
    writer.add_attempts(
        AttemptRecord(outcome, reward, advantage)
        for answered, rewards, advantages in zip(
            report.graded, credit.attempt_rewards, credit.attempt_advantages, strict=True
        )
        if not answered.is_anchor
        for outcome, reward, advantage in zip(answered.outcomes, rewards, advantages, strict=True)
    )
    behaviours |= {record.behaviour: domain_of(record.task.kind).name for record in records}
    classes = before.memory.ever | {crowding.behaviour_class for crowding in report.crowding.values()}
    metrics = step_metrics(report, before.individuals, measures, len(behaviours), len(classes))
    metrics |= domain_metrics(report, behaviours, classes)
    writer.add_metrics(metrics)
    return metrics


def record_ratings(writer: StepWriter, state: State, engine: Engine) -> None:
    """Write ratings and fitness; the single agent has no opponent and therefore no rating."""
    rated = [i for i in state.individuals if i.role != "both"]
    fitness = internal_fitness(rated, state.evidence, state.step, engine.config.evolve)
    writer.add_ratings((i, fitness[i.id]) for i in rated)


def record_health(
    writer: StepWriter, journal: Journal, engine: Engine, matched: Sequence[Individual], state: State
) -> list[str]:
    """Write a generation's health at its last step and return warnings; the step's rows must be written before."""
    every = engine.config.evolve.every_steps
    if state.step % every:
        return []
    clones = engine.config.students_are_clones
    found = measure_health(journal, engine.store, matched, state.individuals, state.step, every, clones)
    warned = warnings(found) if state.step > NUM_STEPS_WITHOUT_WARNING else []
    writer.add_health(found.numbers(), warned)
    return warned
