"""One step of PopuLoRA, phase by phase: the file to read first.

    match -> propose -> verify -> solve (and grade) -> learn -> distill -> evolve

The functions below are the phases, in this order, then their helpers; each takes the results of earlier phases. The
state is passed in and returned, never changed in place. Only the members' adapters (``engine.store``,
``engine.learner``) change in place, from ``learn`` on. Every random draw comes from a stream that is named by
(seed, step, purpose).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from redqueen.adapters.hall_of_fame import Entry, opponents
from redqueen.config import Config
from redqueen.engine import Engine
from redqueen.evolve.generation import Child, admit_fittest, replace_weakest
from redqueen.evolve.probe import probe_figures, probe_students
from redqueen.evolve.selection import internal_fitness, rank_frac
from redqueen.learn.distillation import Distilled, examples_of, fine_tune
from redqueen.learn.rewards import Credit, add_latest_rewards, assign_credit, rewards_by_member, solve_fracs
from redqueen.match import pair, preference, with_hall_of_fame
from redqueen.propose import curriculum, proposing
from redqueen.propose.filters import check_allowed, reject_duplicates, reject_held_out, reject_too_long
from redqueen.propose.proposing import Proposal
from redqueen.records import Birth, Crowding, Individual, Match, Rejection, Task, Tuning, UpdateStats
from redqueen.solve import (
    Game,
    GradedAttempts,
    SampledAttempts,
    draw_anchors,
    grade,
    rated,
    sample_attempts,
    score_games,
)
from redqueen.state import State
from redqueen.streams import Streams
from redqueen.timing import Clock


@dataclass(frozen=True)
class LearnResult:
    """The results of ``learn``: one game per match, crowding by task id, rewards and advantages, update statistics."""

    games: tuple[Game, ...]
    crowding: dict[str, Crowding]
    credit: Credit
    updates: tuple[UpdateStats, ...]


@dataclass(frozen=True)
class EvolveResult:
    """The results of ``evolve``: children, members copied into the hall of fame, and metrics by name."""

    children: tuple[Child, ...] = ()
    admitted: tuple[Entry, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepReport:
    """Everything that happened in one step; ``record_step`` in ``run/record.py`` writes it to the journal."""

    step: int
    games: tuple[Game, ...]
    proposals: tuple[Proposal, ...]
    verdicts: tuple[Task | Rejection, ...]
    graded: tuple[GradedAttempts, ...]
    crowding: dict[str, Crowding]
    credit: Credit
    updates: tuple[UpdateStats, ...]
    distilled: Distilled | None
    births: tuple[Birth, ...]
    newborns: tuple[Individual, ...]
    admitted: tuple[Entry, ...]
    metrics: dict[str, float]
    seconds: dict[str, float]


def run_step(state: State, engine: Engine, clock: Clock, is_last: bool = False) -> tuple[State, StepReport]:
    """Run the step that follows ``state``; return the new state and a report of what happened.

    ``is_last``: the run ends with this step. The last step skips ``distill`` and ``evolve``: no step would use them.
    """
    state = replace(state, step=state.step + 1)  # from here on, state.step is this step; the first is 1
    streams = Streams(engine.config.run.rng_seed, state.step)
    is_last = is_last or state.step == engine.config.run.num_steps

    with clock.phase("match"):
        matches = match(state, engine, streams)
        pairing_metrics = match_metrics(state, engine)
    with clock.phase("propose"):
        proposals = propose(state, engine, streams, matches)
    with clock.phase("verify"):
        verdicts = verify(state, engine, streams, proposals)
    with clock.phase("solve"):
        sampled = solve(state, engine, streams, matches, verdicts)
    with clock.phase("verify"):
        graded = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)
    with clock.phase("learn"):
        state, learned = learn(state, engine, streams, matches, proposals, verdicts, graded)
    with clock.phase("distill"):
        state, distilled = (state, None) if is_last else distill(state, engine, streams, clock.part)
    with clock.phase("evolve"):
        state, evolved = (state, EvolveResult()) if is_last else evolve(state, engine, streams)

    return state, StepReport(
        step=state.step,
        games=learned.games,
        proposals=tuple(proposals),
        verdicts=tuple(verdicts),
        graded=tuple(graded),
        crowding=learned.crowding,
        credit=learned.credit,
        updates=learned.updates,
        distilled=distilled,
        births=tuple(child.birth for child in evolved.children),
        newborns=tuple(child.individual for child in evolved.children),
        admitted=evolved.admitted,
        metrics=pairing_metrics | evolved.metrics,
        seconds=clock.take(),
    )


def match(state: State, engine: Engine, streams: Streams) -> list[Match]:
    """Phase 1. Pair teachers with students by rating, some with past members. A single agent is paired with itself."""
    config = engine.config.match
    if engine.config.population.single:
        alone = state.individuals[0].id
        return [Match(alone, alone, 0.5)]
    matches = pair(state.teachers, state.students, streams.rng("match"), config)
    return with_hall_of_fame(
        matches,
        teachers=state.teachers,
        students=state.students,
        hall_teachers=opponents(state.hall, "teacher"),
        hall_students=opponents(state.hall, "student"),
        rng=streams.rng("hall"),
        config=config,
    )


def match_metrics(state: State, engine: Engine) -> dict[str, float]:
    """Return how far the ratings change a first draw; no metric if the rule ignores ratings."""
    if engine.config.population.single or engine.config.match.rule != "pfsp":
        return {}
    teachers, students = ([member.rating for member in members] for members in (state.teachers, state.students))
    return {"match/rating_share": preference(teachers, students)}


def propose(state: State, engine: Engine, streams: Streams, matches: Sequence[Match]) -> list[Proposal]:
    """Phase 2. Every matched teacher proposes tasks of each kind; its prompts show example tasks from the buffer.

    The texts are in ``domains/DOMAIN/prompts_compact.py`` (embedded base) and ``domains/DOMAIN/prompts_fewshot.py``;
    ``domains/prompt_format.py`` builds the prompts from them.
    """
    students_of = students_by_teacher(matches)
    return proposing.propose(
        [state.players[teacher] for teacher in students_of],
        opponents=students_of,
        buffer=state.buffer,
        config=engine.config.propose,
        sampler=engine.proposer,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=streams,
        max_prompt_tokens=engine.limits.propose_prompt_tokens,
    )


def verify(state: State, engine: Engine, streams: Streams, proposals: Sequence[Proposal]) -> list[Task | Rejection]:
    """Phase 3. Check each proposal; it becomes a task, or a rejection with its reason.

    A proposal is rejected if the content filter forbids it, if it is invalid or not deterministic, if a held-out suite
    contains it, if its prompt would be too long, or if it was proposed before; of a step's equal proposals a drawn one
    stays. ``domains/registry.py`` calls the ``check`` of each kind. Programs run in the sandbox: see ``check_program``
    in ``domains/code/checking.py``, and for determinism ``confirm`` in ``redqueen_sandbox/programs.py``.
    """
    candidates = [proposal.candidate for proposal in proposals]
    # What the filter allows runs in the sandbox
    verdicts = check_allowed(candidates, engine.content_filter, engine.verifier, engine.config.verify)
    verdicts = reject_held_out(candidates, verdicts)
    limit = engine.limits.solve_prompt_tokens
    verdicts = reject_too_long(candidates, verdicts, engine.prompt_format, engine.tokenizer, limit)
    order = streams.rng("repeats").permutation(len(candidates))
    return reject_duplicates(candidates, verdicts, state.buffer.asked, order)


def solve(
    state: State, engine: Engine, streams: Streams, matches: Sequence[Match], verdicts: Sequence[Task | Rejection]
) -> list[SampledAttempts]:
    """Phase 4. Each student attempts every task of its teachers several times.

    Then ``grade`` in ``solve.py`` grades them with the ``grade`` of each kind (programs: ``domains/code/grading.py``).
    A share of a student's tasks (``propose.anchor_frac``) are anchors: tasks from the user's files, without a teacher.
    """
    matched, tasks = students_by_teacher(matches), tasks_in(verdicts)
    pairs = [(task, state.players[student]) for task in tasks for student in matched[task.teacher]]
    pairs += draw_anchors(pairs, state.anchors, engine.config.propose.anchor_frac, streams)
    return sample_attempts(
        pairs,
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
    verdicts: Sequence[Task | Rejection],
    graded: Sequence[GradedAttempts],
) -> tuple[State, LearnResult]:
    """Phase 5. Compute rewards (``teacher_reward`` in ``learn/rewards.py``) and advantages, take a policy-gradient step
    for each learning member, then update ratings, buffers and memory.

    Past members do not learn and keep their ratings. A member whose loss or gradient is not finite is not stepped; it
    counts as broken until a later update succeeds or it is replaced.
    """
    config = engine.config.learn
    tasks, solved = tasks_in(verdicts), solve_fracs(graded)
    crowding = curriculum.crowding(state.memory, tasks, solved)
    credit = assign_credit(proposals, verdicts, graded, config, crowding, state.baselines)

    # The policy-gradient update of the members' adapters
    id_of_slot = {i.slot: i.id for i in state.individuals}
    tuned = tunings(state.individuals, state.step, engine.config)
    updates = engine.learner.update([r for r in credit.rollouts if r.slot in id_of_slot], tuned)
    stepped = {id_of_slot[u.slot] for u in updates if u.stepped}
    not_finite = {id_of_slot[u.slot] for u in updates if not u.ok}

    # Ratings, and what later steps read: tasks to show, rewards for selection, tasks to probe, answers to distill
    games = score_games(matches, verdicts, graded)
    new_rewards, window = rewards_by_member(credit, proposals, graded), engine.config.evolve.every_steps
    state = replace(
        state,
        individuals=rated(state.individuals, state.past, games),
        buffer=state.buffer.add(tasks),
        rewards=add_latest_rewards(state.rewards, id_of_slot.values(), new_rewards, window),
        memory=curriculum.remember(state.memory, tasks, solved),
        archive=state.archive.add(tasks, solved, state.step),
        answers=state.answers.add(graded, streams),
        baselines=credit.baselines,
        broken=(state.broken - stepped) | not_finite,
    )
    return state, LearnResult(tuple(games), crowding, credit, tuple(updates))


def distill(
    state: State, engine: Engine, streams: Streams, on_progress: Callable[[str], None]
) -> tuple[State, Distilled | None]:
    """Phase 6, every ``distill.every_steps``: fine-tune a fresh adapter on all verified correct answers, then reset
    every student to it.

    Without such answers the students do not change, and None is returned. ``on_progress`` is called with lines of text.
    """
    config = engine.config.distill
    if not config.every_steps or state.step % config.every_steps:
        return state, None
    [slot] = engine.config.slots.distilled
    examples = examples_of(state.answers.by_task.values(), engine.prompt_format, engine.tokenizer)
    distilled = fine_tune(examples, engine.store, engine.learner, slot, config, streams, on_progress)
    if not distilled.num_answers:
        return state, None
    for student in state.students:
        engine.store.copy(slot, student.slot)
    broken = state.broken - {student.id for student in state.students}
    return replace(state, broken=broken, distilled_step=state.step), distilled


def evolve(state: State, engine: Engine, streams: Streams) -> tuple[State, EvolveResult]:
    """Phase 7, every ``evolve.every_steps``: copy the fittest to the hall of fame, replace the weakest by children.

    Students that are copies of one distilled adapter are neither probed nor replaced.
    """
    config, clones = engine.config.evolve, engine.config.students_are_clones
    if state.step % config.every_steps:
        return state, EvolveResult()
    prober = engine.prober(streams)
    probe = probe_students(state.archive, () if clones else state.students, prober, config, streams.rng("probe"))
    state = replace(state, archive=state.archive.with_solve_fracs(probe.solve_fracs()), probes=probe.means())
    fitness = internal_fitness(state.individuals, state.evidence, state.step, config)
    hall, admitted = admit_fittest(
        state.hall, state.individuals, fitness=fitness, broken=state.broken, step=state.step, store=engine.store
    )
    children: list[Child] = []
    metrics = probe_figures(probe)
    for role in ("teacher", "student", "both"):  # both: the single agent
        members = [i for i in state.individuals if i.role == role]
        if members and config.enabled and not (clones and role == "student"):
            newborns = replace_weakest(
                members,
                fitness=fitness,
                broken=state.broken,
                step=state.step,
                rules=config,
                store=engine.store,
                rng=streams.rng("evolve", role),
            )
            children += newborns
            if newborns:
                replaced = [child.birth.replaced for child in newborns]
                metrics[f"evolve/left_rank/{role}"] = rank_frac(replaced, members, state.rewards)
    state = replace(state, hall=hall).with_newborns([child.individual for child in children])
    return state, EvolveResult(tuple(children), tuple(admitted), metrics)


def tunings(individuals: Sequence[Individual], step: int, config: Config) -> dict[int, Tuning]:
    """Return each member's learning rate (that of ``step`` times its gene) and temperature factor, by slot.

    The factor multiplies the learner's temperature, which is ``solve.temperature``.
    """
    rate = config.learn.learning_rate * config.learn.rate_frac(step, config.run.num_steps)
    teacher_factor = config.propose_temperature / config.solve.temperature
    return {
        i.slot: Tuning(
            rate * i.genes.learning_rate,
            i.genes.temperature * (teacher_factor if i.role == "teacher" else 1.0),
            num_updates=config.learn.updates_per_step,
        )
        for i in individuals
    }


def students_by_teacher(matches: Sequence[Match]) -> dict[str, tuple[str, ...]]:
    """Return the ids of each teacher's opponents, in the order of the matches."""
    return {m.teacher: tuple(n.student for n in matches if n.teacher == m.teacher) for m in matches}


def tasks_in(verdicts: Sequence[Task | Rejection]) -> list[Task]:
    """Return the valid tasks among the verdicts."""
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]
