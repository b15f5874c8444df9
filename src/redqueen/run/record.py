"""What a run writes into its journal: the rows of a step, the ratings after it, the health of a generation."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.domains.registry import domain_of, kind_of
from redqueen.engine import Engine
from redqueen.evolve.health import warnings
from redqueen.evolve.selection import internal_fitness
from redqueen.journal import AttemptRecord, CandidateRecord, Journal, MatchRecord, StepWriter, TaskRecord
from redqueen.loop import StepReport
from redqueen.nouns import Individual, Rejection, Task
from redqueen.propose.buffer import behaviour_key
from redqueen.run.check_up import check_up
from redqueen.run.metrics import domain_metrics, rating_metrics, step_metrics
from redqueen.state import State


def record_step(writer: StepWriter, before: State, report: StepReport, behaviours: dict[str, str]) -> dict[str, float]:
    """Write one step's records and return its metrics. ``behaviours`` (of all tasks, and their domains) grows."""
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
            report.proposals, report.judged, credit.proposal_rewards, credit.proposal_advantages, strict=True
        )
    )
    tasks = [verdict for verdict in report.judged if isinstance(verdict, Task)]
    measures = [kind_of(task).measure(task) for task in tasks]
    records = [
        TaskRecord(task, measured, behaviour_key(task), report.pressures[task.id])
        for task, measured in zip(tasks, measures, strict=True)
    ]
    writer.add_tasks(records)
    writer.add_attempts(
        AttemptRecord(outcome, reward, advantage)
        for answered, rewards, advantages in zip(
            report.answered, credit.attempt_rewards, credit.attempt_advantages, strict=True
        )
        for outcome, reward, advantage in zip(answered.outcomes, rewards, advantages, strict=True)
    )
    behaviours |= {record.behaviour: domain_of(record.task.kind).name for record in records}
    classes = before.memory.ever | {pressure.behaviour_class for pressure in report.pressures.values()}
    metrics = step_metrics(report, before.individuals, measures, len(behaviours), len(classes))
    metrics |= domain_metrics(report, behaviours, classes)
    writer.add_metrics(metrics)
    return metrics


def record_ratings(writer: StepWriter, state: State, engine: Engine) -> None:
    """The single agent plays against itself and has no rating."""
    rated = [i for i in state.individuals if i.role != "both"]
    fitness = internal_fitness(rated, state.evidence, state.step, engine.config.evolve, engine.rating)
    writer.add_ratings((i, fitness[i.id]) for i in rated)
    writer.add_metrics(rating_metrics(rated))


def record_health(
    writer: StepWriter, journal: Journal, engine: Engine, played: Sequence[Individual], state: State
) -> list[str]:
    """Write the health of a generation at its end and return its warnings; the step's rows must be written before."""
    every = engine.config.evolve.every_steps
    if state.step % every:
        return []
    found = check_up(journal, engine.store, played, state.individuals, state.step, every)
    warned = warnings(found)
    writer.add_health(found.numbers(), warned)
    return warned
