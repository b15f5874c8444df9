"""One step of PopuLoRA, phase by phase: the file to read first.

    match -> propose -> verify -> solve -> learn -> distill -> evolve

Each phase is a function below, in this order, and takes the results of the phases before it. The state is an argument
and a result and is never changed in place. Every random draw comes from a stream named by (seed, step, purpose). Only
the members' adapters (``engine.store``, ``engine.learner``) change in place, from ``learn`` on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from redqueen.adapters.hall_of_fame import Entry, opponents
from redqueen.engine import Engine
from redqueen.evolve.generation import Newborn, admit_fittest, replace_weakest
from redqueen.evolve.probe import probe_figures, probe_students, prober_of
from redqueen.evolve.selection import internal_fitness
from redqueen.learn.distillation import Distilled, examples_of, fine_tune
from redqueen.learn.rewards import Credit, add_latest_rewards, assign_credit, earned, solve_fracs
from redqueen.learn.schedule import tunings
from redqueen.match import pair, with_hall_of_fame
from redqueen.propose import curriculum, proposing
from redqueen.propose.curriculum import Pressure
from redqueen.propose.filters import check_allowed, reject_duplicates, reject_held_out, reject_too_long
from redqueen.propose.proposing import Proposal
from redqueen.records import Birth, Individual, Match, Rejection, Task, UpdateStats
from redqueen.solve import (
    Answered,
    Game,
    Sampled,
    add_latest_payoffs,
    grade,
    rated,
    rated_by_domain,
    sample_attempts,
    score_games,
)
from redqueen.state import State
from redqueen.streams import Streams
from redqueen.timing import Clock


@dataclass(frozen=True)
class Learned:
    """The results of ``learn``: games, counter-pressures by task, credit, and the optimiser's steps."""

    games: tuple[Game, ...]
    pressures: dict[str, Pressure]
    credit: Credit
    updates: tuple[UpdateStats, ...]


@dataclass(frozen=True)
class Evolved:
    """The results of ``evolve``: children, members copied into the hall of fame, and figures by metric."""

    newborns: tuple[Newborn, ...] = ()
    admitted: tuple[Entry, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepReport:
    """Everything that happened in one step, for journal and progress display."""

    step: int
    games: tuple[Game, ...]
    proposals: tuple[Proposal, ...]
    judged: tuple[Task | Rejection, ...]
    answered: tuple[Answered, ...]
    pressures: dict[str, Pressure]
    credit: Credit
    updates: tuple[UpdateStats, ...]
    distilled: Distilled | None
    births: tuple[Birth, ...]
    newborns: tuple[Individual, ...]
    admitted: tuple[Entry, ...]
    figures: dict[str, float]
    seconds: dict[str, float]


def play_step(state: State, engine: Engine, clock: Clock, is_last: bool = False) -> tuple[State, StepReport]:
    """Run one step; return the new state and the report of what happened.

    ``is_last``: the run ends with this step, whatever its number.
    """
    streams = Streams(engine.config.run.rng_seed, state.step + 1)
    is_last = is_last or state.step + 1 == engine.config.run.num_steps

    with clock.phase("match"):
        matches = match(state, engine, streams)
    with clock.phase("propose"):
        proposals = propose(state, engine, streams, matches)
    with clock.phase("verify"):
        judged = verify(state, engine, proposals)
    with clock.phase("solve"):
        sampled = solve(state, engine, streams, matches, judged)
    with clock.phase("verify"):
        answered = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)
    with clock.phase("learn"):
        state, learned = learn(state, engine, streams, matches, proposals, judged, answered)
    with clock.phase("distill"):
        state, distilled = distill(state, engine, streams, is_last, clock.part)
    with clock.phase("evolve"):
        state, evolved = evolve(state, engine, streams, is_last)

    return state, StepReport(
        step=state.step,
        games=learned.games,
        proposals=tuple(proposals),
        judged=tuple(judged),
        answered=tuple(answered),
        pressures=learned.pressures,
        credit=learned.credit,
        updates=learned.updates,
        distilled=distilled,
        births=tuple(child.birth for child in evolved.newborns),
        newborns=tuple(child.individual for child in evolved.newborns),
        admitted=evolved.admitted,
        figures=evolved.figures,
        seconds=clock.take(),
    )


def match(state: State, engine: Engine, streams: Streams) -> list[Match]:
    """Phase 1. Pair teachers with students by rating, some with past members; a single agent is its own opponent."""
    config = engine.config.match
    if engine.config.population.single:
        alone = state.individuals[0].id
        return [Match(alone, alone, 0.5)]
    matches = pair(state.teachers, state.students, streams.rng("match"), config, engine.rating)
    return with_hall_of_fame(
        matches,
        teachers=state.teachers,
        students=state.students,
        hall_teachers=opponents(state.hall, "teacher"),
        hall_students=opponents(state.hall, "student"),
        rng=streams.rng("hall"),
        config=config,
        rating=engine.rating,
    )


def propose(state: State, engine: Engine, streams: Streams, matches: Sequence[Match]) -> list[Proposal]:
    """Phase 2. Every teacher in a match writes a batch of tasks of all kinds, shown references from the buffer."""
    students = students_by_teacher(matches)
    return proposing.propose(
        [state.players[teacher] for teacher in students],
        opponents=students,
        buffer=state.buffer,
        config=engine.config.propose,
        sampler=engine.proposer,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=streams,
        max_prompt_tokens=engine.limits.propose_prompt_tokens,
    )


def verify(state: State, engine: Engine, proposals: Sequence[Proposal]) -> list[Task | Rejection]:
    """Phase 3. Run what the content filter allows in the sandbox; keep what is valid, new, short and in no suite."""
    candidates = [proposal.candidate for proposal in proposals]
    judged = check_allowed(candidates, engine.content_filter, engine.verifier, engine.config.verify)
    judged = reject_held_out(candidates, judged)
    judged = reject_duplicates(candidates, judged, state.buffer.asked)
    limit = engine.limits.solve_prompt_tokens
    return reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limit)


def solve(
    state: State, engine: Engine, streams: Streams, matches: Sequence[Match], judged: Sequence[Task | Rejection]
) -> list[Sampled]:
    """Phase 4. The matched students attempt every valid task several times; the verifier grades each attempt next."""
    students = students_by_teacher(matches)
    return sample_attempts(
        [(task, state.players[student]) for task in valid(judged) for student in students[task.teacher]],
        engine.config.solve.num_attempts,
        sampler=engine.solver,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=streams,
    )


def learn(
    state: State,
    engine: Engine,
    streams: Streams,
    matches: Sequence[Match],
    proposals: Sequence[Proposal],
    judged: Sequence[Task | Rejection],
    answered: Sequence[Answered],
) -> tuple[State, Learned]:
    """Phase 5. Reward, one policy-gradient step of each member that trains, ratings, memory; the step is counted.

    Past members neither learn nor change their ratings. A member whose update was not finite was not stepped; it is
    marked broken until a later update of it is finite, or it is replaced.
    """
    tasks, solved = valid(judged), solve_fracs(answered)
    pressures = curriculum.pressures(state.memory, tasks, solved)
    config = engine.config.learn
    credit = assign_credit(proposals, judged, answered, config, pressures, state.baselines)
    living = {i.slot: i.id for i in state.individuals}
    tuned = tunings(state.individuals, state.step + 1, config, engine.config.run.num_steps)
    updates = engine.learner.update([r for r in credit.rollouts if r.slot in living], tuned)

    games = score_games(matches, judged, answered)
    window = engine.config.evolve.every_steps
    if engine.config.match.ratings == "per_domain":
        members = rated_by_domain(state.individuals, state.past, matches, judged, answered, engine.rating)
    else:
        members = rated(state.individuals, state.past, games, engine.rating)
    stepped, failed = {living[u.slot] for u in updates if u.stepped}, {living[u.slot] for u in updates if not u.ok}
    state = replace(
        state,
        step=state.step + 1,
        individuals=members,
        buffer=state.buffer.add(tasks),
        scores=add_latest_payoffs(state.scores, living.values(), games, window),
        rewards=add_latest_rewards(state.rewards, living.values(), earned(credit, proposals, answered), window),
        memory=curriculum.remember(state.memory, tasks, solved),
        archive=state.archive.add(tasks, solved, state.step + 1),
        answers=state.answers.add(answered, streams),
        baselines=credit.baselines,
        broken=(state.broken - stepped) | failed,
    )
    return state, Learned(tuple(games), pressures, credit, tuple(updates))


def distill(
    state: State, engine: Engine, streams: Streams, is_last: bool, tell: Callable[[str], None]
) -> tuple[State, Distilled | None]:
    """Phase 6, every k steps: fine-tune a fresh adapter on all verified answers and reset every student to it.

    Without answers the students stay as they are. Not in the last step: the run's product is distilled after it.
    """
    config = engine.config.distill
    if is_last or not config.every_steps or state.step % config.every_steps:
        return state, None
    [slot] = engine.config.slots.distilled
    examples = examples_of(state.answers.by_task.values(), engine.prompt_format, engine.tokenizer)
    distilled = fine_tune(examples, engine.store, engine.learner, slot, config, streams, tell)
    if not distilled.num_answers:
        return state, distilled
    for student in state.students:
        engine.store.copy(slot, student.slot)
    broken = state.broken - {student.id for student in state.students}
    return replace(state, broken=broken, distilled_step=state.step), distilled


def evolve(state: State, engine: Engine, streams: Streams, is_last: bool) -> tuple[State, Evolved]:
    """Phase 7, every k steps: the fittest enter the hall of fame; children take the slots of the weakest.

    Not in the last step: a child born then would be evaluated before it has learned. Students that are all one
    distilled adapter are neither probed nor replaced.
    """
    config, clones = engine.config.evolve, engine.config.students_are_clones
    if is_last or state.step % config.every_steps:
        return state, Evolved()
    prober = prober_of(engine, engine.config, streams)
    probed = () if clones else state.students
    probe = probe_students(state.archive, probed, prober, config, streams.rng("probe"))
    state = replace(state, archive=state.archive.looked_at(probe.solve_fracs()), probes=probe.means())
    fitness = internal_fitness(state.individuals, state.evidence, state.step, config, engine.rating)
    hall, admitted = admit_fittest(
        state.hall, state.individuals, fitness=fitness, broken=state.broken, step=state.step, store=engine.store
    )
    newborns: list[Newborn] = []
    for role in ("teacher", "student", "both"):
        members = [i for i in state.individuals if i.role == role]
        if members and config.enabled and not (clones and role == "student"):
            newborns += replace_weakest(
                members,
                fitness=fitness,
                broken=state.broken,
                step=state.step,
                rules=config,
                rating=engine.rating,
                store=engine.store,
                rng=streams.rng("evolve", role),
            )
    state = replace(state, hall=hall).with_newborns([child.individual for child in newborns])
    return state, Evolved(tuple(newborns), tuple(admitted), probe_figures(probe))


def students_by_teacher(matches: Sequence[Match]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the students that each teacher's tasks are for, in the order of the matches."""
    return {m.teacher: tuple(n.student for n in matches if n.teacher == m.teacher) for m in matches}


def valid(judged: Sequence[Task | Rejection]) -> list[Task]:
    """Return the candidates that became tasks."""
    return [verdict for verdict in judged if isinstance(verdict, Task)]
