"""The expected duration of a run, measured on a few texts; adapters and state are restored."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import NamedTuple

from redqueen.config import Config, RunConfig
from redqueen.display import counted, duration
from redqueen.domains.registry import num_proposals, texts_of_a_step
from redqueen.engine import Engine, LoadAdapters, open_engine
from redqueen.evaluate.external import Examiner, items_of
from redqueen.learn.distillation import NUM_EPOCHS
from redqueen.loop import learn, match, propose, solve, verify
from redqueen.records import Completion, Rollout
from redqueen.run.continuation import NOTHING_SPENT, Spent, is_limit_spent, is_over
from redqueen.run.product import num_answers_to_choose
from redqueen.run.progress import Activity, RunProgress, Schedule
from redqueen.solve import GradedAttempts, grade, sample_attempts
from redqueen.state import State, initial_state
from redqueen.streams import Streams

NUM_ROWS = 64
"""Least number of proposals in the measured part of a step, and most held-out tasks that are answered."""


def measured_duration(config: Config, load: LoadAdapters | None) -> str:
    """Load the base and return how long the run would take, as a sentence; progress on standard error."""
    with Activity("measuring the speed") as activity, open_engine(config, load, activity) as engine:
        return expected_duration(initial_state(config), engine).text


class Expected(NamedTuple):
    """How long a run will take as a sentence; seconds of one student's evaluation, and of the work after the last
    step."""

    text: str
    evaluation_s: float
    end_s: float


class Pace(NamedTuple):
    """Seconds, tokens, valid tasks and solved tasks of a step, each per proposal; seconds per held-out answer and per
    distilled answer."""

    step_s: float
    step_tokens: float
    num_valid: float
    num_solved: float
    answer_s: float
    distill_s: float


def report_duration(progress: RunProgress, state: State, engine: Engine, spent: Spent = NOTHING_SPENT) -> None:
    """Print how long the run will take, and give ``progress`` the expected seconds of evaluations and of the end."""
    text, progress.evaluation_s, progress.end_s = expected_duration(state, engine, spent)
    progress.say(text)


def expected_duration(state: State, engine: Engine, spent: Spent = NOTHING_SPENT) -> Expected:
    """Return how long the run will take from ``state`` on; it has cost ``spent`` so far.

    The measurement loses the optimiser moments of some members: a resumed run must load them again afterwards.
    """
    num_new = 0 if state.step else Examiner.of(engine).num_new
    return expected_at(_measured_pace(state, engine), engine.config, state, spent, num_new)


def expected_at(pace: Pace, config: Config, state: State, spent: Spent, num_new: int) -> Expected:
    """Return how long the run will take at ``pace``, including ``num_new`` evaluations of base and control."""
    proposals, _ = texts_of_a_step(config)
    step_s, step_tokens = proposals * pace.step_s, proposals * pace.step_tokens
    every, distill_s = config.distill.every_steps, proposals * pace.num_solved * NUM_EPOCHS * pace.distill_s
    last = expected_steps(config.run, step_s, step_tokens, every, distill_s, state.step, spent)
    num_steps = last - state.step
    distilled_at = [step for step in range(state.step + 1, last) if every and step % every == 0]
    schedule = Schedule(last, config.evaluate.every_steps, config.num_scored_students)
    evaluation_s = len(items_of(config)) * (1 + config.evaluate.num_samples) * pace.answer_s
    archived = len(state.archive.entries) + int(proposals * pace.num_valid * num_steps)
    choose_s = num_answers_to_choose(config, min(archived, state.archive.capacity)) * pace.answer_s
    is_new = config.run.product in ("distilled", "merged") or config.population.num_students > 1
    product_s = evaluation_s * (config.run.product != "none" and (is_new or not config.evaluate.students))
    last_distill_s = last * bool(config.slots.distilled) * distill_s
    check_s = (not state.step) * config.propose.num_check_proposals * len(num_proposals(config.propose)) * pace.step_s
    all_distill_s, end_s = sum(distilled_at) * distill_s + last_distill_s, choose_s + product_s
    evaluate_s = (num_new + schedule.evaluations_after(state.step)) * evaluation_s + end_s
    parts = {
        f"{counted(num_steps, 'step')} of {duration(step_s)}": step_s * num_steps,
        f"distillation {duration(all_distill_s)}": all_distill_s,
        f"evaluation {duration(evaluate_s)}": evaluate_s,
        f"cold-start check {duration(check_s)}": check_s,
    }
    words = ", ".join(text for text, s in parts.items() if s)
    text = f"expected duration: {duration(sum(parts.values()))} at the speed just measured ({words})"
    return Expected(text, evaluation_s, last_distill_s + end_s)


def expected_steps(
    run: RunConfig,
    step_s: float,
    step_tokens: float,
    every: int,
    distill_s: float,
    done: int = 0,
    spent: Spent = NOTHING_SPENT,
) -> int:
    """Return after how many steps a run ends, by their number or by a limit of tokens or seconds.

    The first ``done`` steps have cost ``spent``. A step takes ``step_s`` seconds and ``step_tokens`` tokens. Every
    ``every`` steps (0: never) there is a distillation, which takes ``distill_s`` seconds for each step before it.
    """
    tokens_before = spent.tokens
    for step in range(done + 1, run.num_steps):
        distills = every > 0 and step % every == 0 and not is_limit_spent(run, spent)
        tokens = tokens_before + math.ceil((step - done) * step_tokens)
        spent = Spent(tokens, spent.seconds + step_s + step * distill_s * distills)
        if is_over(run, step, spent, has_new_members=distills):
            return step
    return run.num_steps


def _measured_pace(state: State, engine: Engine) -> Pace:
    config, student, streams = engine.config, state.students[0], Streams(engine.config.run.rng_seed, 0)
    step_s, written, graded = _part_of_a_step(state, engine, streams)
    tokens = sum(len(c.tokens) for c in written) + sum(len(c.tokens) for one in graded for c in one.completions)
    valid, solved = {one.task.id for one in graded}, {one.task.id for one in graded if one.solve_frac}

    tasks = [item.task for item in items_of(config)] or list(state.buffer.tasks)
    asked = [(task, student) for task in tasks[:: -(-len(tasks) // NUM_ROWS)]]
    began = time.perf_counter()
    sampled = sample_attempts(asked, 1, engine.solver, engine.prompt_format, engine.tokenizer, streams)
    grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)
    answered = time.perf_counter()
    if config.slots.distilled:
        before = engine.store.genotype(student.slot)
        engine.learner.update([Rollout(student.slot, one.prompt, one.completions, (1.0,)) for one in sampled])
        engine.store.load(student.slot, before)
    distill_s = (time.perf_counter() - answered) / len(asked)
    num, answer_s = len(written), (answered - began) / len(asked)
    return Pace(step_s / num, tokens / num, len(valid) / num, len(solved) / num, answer_s, distill_s)


def _part_of_a_step(
    state: State, engine: Engine, streams: Streams
) -> tuple[float, list[Completion], list[GradedAttempts]]:
    """Run a step with only as many teachers as write ``NUM_ROWS`` proposals, and with their students' attempts.

    Returns its seconds, the proposals and the attempts. Adapters are restored.
    """
    each = texts_of_a_step(engine.config)[0] // engine.config.population.num_teachers
    state, drawn = replace(state, step=state.step + 1), match(state, engine, streams)
    teachers = list(dict.fromkeys(one.teacher for one in drawn))[: -(-NUM_ROWS // each)]
    matches = [one for one in drawn if one.teacher in teachers]
    slots = {state.players[name].slot for one in matches for name in (one.teacher, one.student)}
    before, began = {slot: engine.store.genotype(slot) for slot in slots}, time.perf_counter()
    proposals = propose(state, engine, streams, matches)
    verdicts = verify(state, engine, streams, proposals)
    sampled = solve(state, engine, streams, matches, verdicts)
    graded = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)
    learn(state, engine, streams, matches, proposals, verdicts, graded)
    seconds = time.perf_counter() - began
    for slot, genotype in before.items():
        engine.store.load(slot, genotype)
    return seconds, [one.completion for one in proposals], graded
