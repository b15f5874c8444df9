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

from redqueen.engine import Engine
from redqueen.evolve.fitness import by_rating
from redqueen.evolve.generation import EvolutionRules, breed, plan
from redqueen.learn.credit import Credit, assign_credit
from redqueen.match import payoff
from redqueen.match.pairing import pair
from redqueen.match.rating import Winner, decide, update
from redqueen.nouns import Birth, Candidate, Individual, Match, Rejection, Task, UpdateStats
from redqueen.propose.buffer import TaskBuffer
from redqueen.propose.duplicates import reject_duplicates
from redqueen.propose.proposing import Proposal, propose
from redqueen.propose.too_long import reject_too_long
from redqueen.solve.solving import Answered, grade, solve
from redqueen.state import State, rating_constants
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
    credit: Credit
    updates: tuple[UpdateStats, ...]
    births: tuple[Birth, ...]
    newborns: tuple[Individual, ...]
    seconds: dict[str, float]


def play_step(state: State, engine: Engine, clock: Clock) -> tuple[State, StepReport]:
    """Play one step and return the new state with the report of what happened."""
    config, step = engine.config, state.step + 1
    streams = Streams(config.run.rng_seed, step)

    with clock.phase("match"):
        matches = meet(state, engine, streams)
        opponents = {t.id: tuple(m.student for m in matches if m.teacher == t.id) for t in state.teachers}

    with clock.phase("propose"):
        proposals = write_proposals(state.teachers, opponents, state.buffer, engine, streams)

    with clock.phase("verify"):
        judged = judge([p.candidate for p in proposals], state.buffer, engine)
        tasks = [verdict for verdict in judged if isinstance(verdict, Task)]

    with clock.phase("solve"):
        students = {s.id: s for s in state.students}
        seams = (engine.solver, engine.prompt_format, engine.tokenizer)
        sampled = solve(tasks, opponents, students, config.solve, *seams, streams)

    with clock.phase("verify"):
        answered = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)

    with clock.phase("learn"):
        credit = assign_credit(proposals, judged, answered, config.learn)
        updates = engine.learner.update(credit.rollouts)

    games = keep_score(matches, judged, answered)
    state = replace(
        settle_ratings(state, games, engine),
        step=step,
        buffer=state.buffer.add(tasks),
        broken=mark_broken(state, updates),
    )

    with clock.phase("evolve"):
        state, births, newborns = evolve(state, engine, streams)

    report = StepReport(
        step,
        tuple(games),
        tuple(proposals),
        tuple(judged),
        tuple(answered),
        credit,
        tuple(updates),
        tuple(births),
        tuple(newborns),
        clock.take(),
    )
    return state, report


def meet(state: State, engine: Engine, streams: Streams) -> list[Match]:
    """Phase 1. Pair teachers with students by the ratings; the single agent meets itself."""
    config = engine.config
    if config.population.single:
        alone = state.individuals[0].id
        return [Match(alone, alone, 0.5)]
    rng, constants = streams.rng("match"), rating_constants(config)
    return pair(config.match.rule, state.teachers, state.students, rng, config.match.pfsp_exponent, constants)


def write_proposals(
    teachers: Sequence[Individual],
    opponents: dict[str, tuple[str, ...]],
    buffer: TaskBuffer,
    engine: Engine,
    streams: Streams,
) -> list[Proposal]:
    """Phase 2. Each teacher writes its batch of tasks of three kinds, shown references from the buffer."""
    seams = (engine.proposer, engine.prompt_format, engine.tokenizer)
    limit = engine.limits.propose_prompt_tokens
    return propose(teachers, opponents, buffer, engine.config.propose, *seams, streams, limit)


def judge(candidates: list[Candidate], buffer: TaskBuffer, engine: Engine) -> list[Task | Rejection]:
    """Phase 3. Run every candidate in the sandbox; only what is valid, new and short enough to ask goes on."""
    judged = engine.verifier.check(candidates)
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
    """Phase 5. Move both ratings of every match once, and remember the score in the payoff matrix."""
    constants = rating_constants(engine.config)
    ratings = {i.id: i.rating for i in state.individuals}
    for game in games:
        teacher, student = game.match.teacher, game.match.student
        if game.winner != "none":
            ratings[teacher], ratings[student] = update(ratings[teacher], ratings[student], game.winner, constants)
    scores = [(g.match.teacher, g.match.student, g.solve_frac) for g in games if g.solve_frac is not None]
    people = tuple(replace(i, rating=ratings[i.id]) for i in state.individuals)
    return replace(state, individuals=people, payoff=payoff.record(state.payoff, scores))


def mark_broken(state: State, updates: Sequence[UpdateStats]) -> frozenset[str]:
    """Phase 5. Mark members whose update was not finite (they were not stepped) until they are replaced."""
    by_slot = {i.slot: i.id for i in state.individuals}
    return state.broken | {by_slot[u.slot] for u in updates if not u.ok}


def evolve(state: State, engine: Engine, streams: Streams) -> tuple[State, list[Birth], list[Individual]]:
    """Phase 5, every k steps. Replace the weakest of each role by children bred from the fittest survivors."""
    config = engine.config.evolve
    last = state.step == engine.config.run.num_steps  # a child born now would be judged without having learned
    if not config.enabled or state.step % config.every_steps or last:
        return state, [], []
    rules = evolution_rules(engine)
    fitness = by_rating(state.individuals)
    births: list[Birth] = []
    newborns: list[Individual] = []
    for role in ("teacher", "student"):
        members = [i for i in state.individuals if i.role == role]
        alone_and_well = len(members) < 2 and not any(i.id in state.broken for i in members)
        rng = streams.rng("evolve", role)
        planned = [] if alone_and_well else plan(members, fitness, rules, rng, state.broken)
        genotypes = {i.id: engine.bank.genotype(i.slot) for i in members if planned}
        for birth in planned:
            known = {i.id: i for i in members}
            child = breed(birth, known, genotypes, fitness, state.step, rules, rating_constants(engine.config))
            engine.bank.load(child.individual.slot, child.genotype)
            engine.learner.reset(child.individual.slot)
            if child.moments_from is not None:
                engine.learner.inherit(child.individual.slot, known[child.moments_from].slot)
            births.append(child.birth)
            newborns.append(child.individual)
    taken = {child.slot: child for child in newborns}
    people = tuple(taken.get(i.slot, i) for i in state.individuals)
    living = {i.id for i in people}
    state = replace(
        state, individuals=people, payoff=payoff.keep_only(state.payoff, living), broken=state.broken & living
    )
    return state, births, newborns


def evolution_rules(engine: Engine) -> EvolutionRules:
    """Return the numbers of evolution from the config."""
    config = engine.config.evolve
    return EvolutionRules(
        replaced_frac=config.replaced_frac,
        operators=config.operators,
        crossover_frac=config.crossover_frac,
        selection=config.selection,
        tournament_size=config.tournament_size,
        space=config.space,
        preserve_norm=config.preserve_norm,
        child_rating=config.child_rating,
        child_moments=config.child_moments,
    )
