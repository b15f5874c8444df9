"""One step of PopuLoRA, phase by phase: the file to read first.

    matchmaking -> proposal -> verification -> solving -> update -> evolution

The state of the world goes in and comes out; each phase takes what the phases before it returned. Every random draw
comes from a stream named by (seed, step, purpose). The only things that change in place are the adapters' tensors
(``engine.bank``, ``engine.learner``), in the phases ``learn`` and ``evolve``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redqueen.engine import Engine
from redqueen.evolve.behaviour import known_or_far, proposing_distances, solving_distances
from redqueen.evolve.fitness import internal_fitness
from redqueen.evolve.generation import Newborn, breed, plan
from redqueen.evolve.selection import fittest_first
from redqueen.learn.credit import Credit, assign_credit, solve_fracs
from redqueen.match import payoff
from redqueen.match.pairing import pair, with_hall_of_fame
from redqueen.match.rating import Winner, decide, update
from redqueen.nouns import Birth, Candidate, Individual, Match, Rejection, Task, UpdateStats
from redqueen.population.hall_of_fame import Entry, HallOfFame, admit, opponents
from redqueen.propose import task_memory
from redqueen.propose.buffer import TaskBuffer
from redqueen.propose.duplicates import reject_duplicates
from redqueen.propose.policy_filter import check_allowed
from redqueen.propose.proposing import Proposal, propose
from redqueen.propose.task_memory import Pressure
from redqueen.propose.too_long import reject_too_long
from redqueen.solve.solving import Answered, grade, solve
from redqueen.state import State
from redqueen.streams import Streams
from redqueen.timing import Clock


@dataclass(frozen=True)
class Game:
    """How a match ended. ``solve_frac`` is None when the teacher made no valid task; ``winner`` "none": no game."""

    match: Match
    num_tasks: int
    solve_frac: float | None
    winner: Winner | Literal["none"]


@dataclass(frozen=True)
class StepReport:
    """Everything that happened in one step, for the journal and the screen."""

    step: int
    games: tuple[Game, ...]
    proposals: tuple[Proposal, ...]
    judged: tuple[Task | Rejection, ...]
    answered: tuple[Answered, ...]
    pressures: dict[str, Pressure]
    credit: Credit
    updates: tuple[UpdateStats, ...]
    births: tuple[Birth, ...]
    newborns: tuple[Individual, ...]
    admitted: tuple[Entry, ...]
    seconds: dict[str, float]


def play_step(state: State, engine: Engine, clock: Clock) -> tuple[State, StepReport]:
    """Play one step and return the new state with the report of what happened."""
    config, step = engine.config, state.step + 1
    streams = Streams(config.run.rng_seed, step)

    with clock.phase("match"):
        matches = meet(state, engine, streams)
        people = {i.id: i for i in (*state.individuals, *state.past)}
        met = {m.teacher: tuple(n.student for n in matches if n.teacher == m.teacher) for m in matches}

    with clock.phase("propose"):
        proposals = write_proposals([people[name] for name in met], met, state.buffer, engine, streams)

    with clock.phase("verify"):
        judged = judge([p.candidate for p in proposals], state.buffer, engine)
        tasks = [verdict for verdict in judged if isinstance(verdict, Task)]

    with clock.phase("solve"):
        seams = (engine.solver, engine.prompt_format, engine.tokenizer)
        sampled = solve(tasks, met, people, config.solve, *seams, streams)

    with clock.phase("verify"):
        answered = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)

    with clock.phase("learn"):
        solved = solve_fracs(answered)
        pressures = task_memory.pressures(state.memory, tasks, solved)
        credit = assign_credit(proposals, judged, answered, config.learn, pressures)
        living = {i.slot for i in state.individuals}  # past members are frozen
        updates = engine.learner.update([r for r in credit.rollouts if r.slot in living])

    games = keep_score(matches, judged, answered)
    state = replace(
        settle_ratings(state, games, engine),
        step=step,
        buffer=state.buffer.add(tasks),
        memory=task_memory.remember(state.memory, tasks, solved),
        broken=mark_broken(state, updates),
    )

    with clock.phase("evolve"):
        state, newborns, admitted = evolve(state, engine, streams)

    report = StepReport(
        step,
        tuple(games),
        tuple(proposals),
        tuple(judged),
        tuple(answered),
        pressures,
        credit,
        tuple(updates),
        tuple(child.birth for child in newborns),
        tuple(child.individual for child in newborns),
        tuple(admitted),
        clock.take(),
    )
    return state, report


def meet(state: State, engine: Engine, streams: Streams) -> list[Match]:
    """Phase 1. Pair teachers with students by the ratings, some with past members; the single agent meets itself."""
    config = engine.config
    if config.population.single:
        alone = state.individuals[0].id
        return [Match(alone, alone, 0.5)]
    rng = streams.rng("match")
    sides = (state.teachers, state.students)
    matches = pair(*sides, rng, config.match)
    past = (opponents(state.hall, "teacher"), opponents(state.hall, "student"))
    return with_hall_of_fame(matches, *sides, *past, streams.rng("hall"), config.match)


def write_proposals(
    teachers: Sequence[Individual],
    met: dict[str, tuple[str, ...]],
    buffer: TaskBuffer,
    engine: Engine,
    streams: Streams,
) -> list[Proposal]:
    """Phase 2. Each teacher writes its batch of tasks of each kind, shown references from the buffer."""
    seams = (engine.proposer, engine.prompt_format, engine.tokenizer)
    limit = engine.limits.propose_prompt_tokens
    return propose(teachers, met, buffer, engine.config.propose, *seams, streams, limit)


def judge(candidates: list[Candidate], buffer: TaskBuffer, engine: Engine) -> list[Task | Rejection]:
    """Phase 3. Run what is allowed in the sandbox; only what is valid, new and short enough to ask goes on."""
    judged = check_allowed(candidates, engine.policy, engine.verifier, engine.config.verify)
    if engine.config.propose.reject_duplicates:
        judged = reject_duplicates(candidates, judged, buffer.asked)
    limit = engine.limits.solve_prompt_tokens
    return reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limit)


def keep_score(
    matches: Sequence[Match], judged: Sequence[Task | Rejection], answered: Sequence[Answered]
) -> list[Game]:
    """Phase 5. Say who won each match: the solve rate against what the ratings let expect."""
    games = []
    for match in matches:
        num_tasks = sum(isinstance(v, Task) and v.teacher == match.teacher for v in judged)
        rejected = [v for v in judged if isinstance(v, Rejection) and v.candidate.teacher == match.teacher]
        nothing_judged = not num_tasks and all(v.reason == "infra" for v in rejected)
        pair_answers = [a for a in answered if (a.task.teacher, a.student.id) == (match.teacher, match.student)]
        grades = [a.outcomes[i].grade.correct for a in pair_answers for i in a.kept]
        solve_frac = sum(grades) / len(grades) if grades else None
        winner: Winner | Literal["none"]
        if match.teacher == match.student or (num_tasks and not grades) or nothing_judged:
            winner = "none"  # the single agent plays no game against itself; what the infrastructure lost is no game
        else:
            winner = decide(solve_frac, match.expected_win_frac)
        games.append(Game(match, num_tasks, solve_frac, winner))
    return games


def settle_ratings(state: State, games: Sequence[Game], engine: Engine) -> State:
    """Phase 5. Move the ratings of every match once (past members' stay), and remember the scores."""
    ratings = {i.id: i.rating for i in (*state.individuals, *state.past)}
    frozen = {i.id: i.rating for i in state.past}
    for game in games:
        teacher, student = game.match.teacher, game.match.student
        if game.winner != "none":
            moved = update(ratings[teacher], ratings[student], game.winner, engine.config.match)
            ratings[teacher], ratings[student] = moved
            ratings |= frozen
    scores = [(g.match.teacher, g.match.student, g.solve_frac) for g in games if g.solve_frac is not None]
    people = tuple(replace(i, rating=ratings[i.id]) for i in state.individuals)
    window = engine.config.evolve.payoff_window
    latest = payoff.add_latest(state.scores, [i.id for i in people], scores, window)
    return replace(state, individuals=people, payoff=payoff.record(state.payoff, scores), scores=latest)


def mark_broken(state: State, updates: Sequence[UpdateStats]) -> frozenset[str]:
    """Phase 5. Mark members whose update was not finite (they were not stepped) until they are replaced."""
    by_slot = {i.slot: i.id for i in state.individuals}
    return state.broken | {by_slot[u.slot] for u in updates if not u.ok}


def evolve(state: State, engine: Engine, streams: Streams) -> tuple[State, list[Newborn], list[Entry]]:
    """Phase 5, every k steps. The fittest enter the hall of fame; the weakest give their places to children."""
    config = engine.config.evolve
    last = state.step == engine.config.run.num_steps  # a child born now would be judged without having learned
    if state.step % config.every_steps or last:
        return state, [], []
    fitness = internal_fitness(state.individuals, state.scores, state.step, config)
    hall, admitted = enter_hall(state, fitness, engine)
    newborns: list[Newborn] = []
    for role in ("teacher", "student", "both"):
        members = [i for i in state.individuals if i.role == role]
        if config.enabled and members:
            newborns += renew(members, state, fitness, engine, streams)
    taken = {child.individual.slot: child.individual for child in newborns}
    people = tuple(taken.get(i.slot, i) for i in state.individuals)
    living, past = {i.id for i in people}, {entry.individual.id for entry in hall.entries}
    state = replace(
        state,
        individuals=people,
        hall=hall,
        payoff=payoff.keep_only(state.payoff, living | past),
        memory=task_memory.keep_only(state.memory, living | past),
        scores={name: values for name, values in state.scores.items() if name in living},
        broken=state.broken & living,
    )
    return state, newborns, admitted


def enter_hall(state: State, fitness: dict[str, float], engine: Engine) -> tuple[HallOfFame, list[Entry]]:
    """Copy the fittest sound member of each role into the hall of fame, if there is one."""
    hall, admitted = state.hall, []
    for role in ("teacher", "student"):
        sound = [i for i in state.individuals if i.role == role and i.id not in state.broken]
        for at in fittest_first([fitness[i.id] for i in sound])[:1]:
            hall, entry = admit(hall, sound[at], state.step)
            if entry is not None:
                engine.bank.copy(sound[at].slot, entry.individual.slot)
                admitted.append(entry)
    return hall, admitted


def renew(
    members: Sequence[Individual], state: State, fitness: dict[str, float], engine: Engine, streams: Streams
) -> list[Newborn]:
    """Replace the weakest of one role, and whoever is broken, by children of the fittest survivors."""
    rules, rng = engine.config.evolve, streams.rng("evolve", members[0].role)
    distances = behaviour_distances(members, state) if rules.replacement == "crowding" else None
    planned = plan(members, fitness, rules, rng, state.broken, distances)
    genotypes = {i.id: engine.bank.genotype(i.slot) for i in members if planned}
    known = {i.id: i for i in members}
    newborns = []
    for birth in planned:
        child = breed(birth, known, genotypes, fitness, state.step, rules, engine.config.match)
        engine.bank.load(child.individual.slot, child.genotype)
        engine.learner.reset(child.individual.slot)
        if child.moments_from is not None:
            engine.learner.inherit(child.individual.slot, known[child.moments_from].slot)
        newborns.append(child)
    return newborns


def behaviour_distances(members: Sequence[Individual], state: State) -> NDArray[np.float64]:
    """Return how differently members of one role behave (n, n): by what they write, or by whom they solve how well."""
    names = [i.id for i in members]
    if members[0].role == "teacher":
        return known_or_far(proposing_distances(task_memory.class_counts(state.memory, names)))
    teachers = [i.id for i in (*state.teachers, *opponents(state.hall, "teacher"))]
    scores, _ = payoff.mean_scores(state.payoff, teachers, names)
    return known_or_far(solving_distances(scores.T))
