"""How long a run will take, from sampling, judging and learning a few texts; adapters and state stay as they are."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from redqueen.config import Config, RunConfig
from redqueen.display import duration
from redqueen.engine import Engine, LoadAdapters, open_engine
from redqueen.evaluate.external import items_of
from redqueen.evolve.probe import NUM_ATTEMPTS
from redqueen.learn.distillation import NUM_EPOCHS
from redqueen.loop import propose, verify
from redqueen.records import Completion, Match, Rollout
from redqueen.run.continuation import NOTHING_SPENT, Spent, is_limit_spent, is_over
from redqueen.run.dry_run import texts_of_a_step
from redqueen.run.progress import Activity, Schedule
from redqueen.solve import grade, sample_attempts
from redqueen.state import State, initial_state
from redqueen.streams import Streams

NUM_ROWS, MOST_TOKENS = 64, 256
"""Texts of each sort that are sampled, but no more than a step has, and their length, at most (ours)."""

VALID_FRAC, SOLVED_FRAC = 0.8, 0.5
"""Shares of valid proposals, and of tasks with a correct answer, that are taken for granted (ours)."""


def measured_duration(config: Config, load: LoadAdapters | None) -> str:
    """Load the base and return how long the run would take, as ``duration_text`` does; progress on standard error."""
    with Activity("measuring the speed") as activity, open_engine(config, load, activity) as engine:
        return duration_text(initial_state(config, engine.rating), engine)


class Pace(NamedTuple):
    """Seconds for a proposal, an answer and the learning of a text, and tokens of a proposal and of an answer."""

    propose_s: float
    answer_s: float
    learn_s: float
    propose_tokens: float
    answer_tokens: float


def duration_text(state: State, engine: Engine, spent: Spent = NOTHING_SPENT) -> str:
    """Return how long the run will take from ``state`` on, which has cost ``spent``, with its parts, as a sentence.

    A student's moments are lost: a run that goes on loads them again.
    """
    pace, longer = _measured_pace(state, engine)
    parts = _parts(engine.config, state, spent, pace)
    least_s = sum(parts.values())
    most_s = sum(_parts(engine.config, state, spent, Pace(*(longer * one for one in pace))).values())
    most = f" to {duration(most_s)}" if most_s > 1.2 * least_s else ""
    return f"expected duration: {duration(least_s)}{most} ({', '.join(text for text, s in parts.items() if s)})"


def _parts(config: Config, state: State, spent: Spent, pace: Pace) -> dict[str, float]:
    """Return the seconds of each part of a run that is left, by its words."""
    proposals, most_attempts = texts_of_a_step(config)
    attempts = VALID_FRAC * most_attempts
    num_learned = proposals * config.learn.train_teachers + attempts * config.learn.train_students
    step_s = proposals * pace.propose_s + attempts * pace.answer_s + num_learned * pace.learn_s
    step_tokens = proposals * pace.propose_tokens + attempts * pace.answer_tokens
    every, distill_s = config.distill.every_steps, proposals * VALID_FRAC * SOLVED_FRAC * NUM_EPOCHS * pace.learn_s
    last = expected_steps(config.run, step_s, step_tokens, every, distill_s, state.step, spent)
    num_steps, distilled_at = last - state.step, [last * bool(config.slots.distilled)]
    distilled_at += [step for step in range(state.step + 1, last) if every and step % every == 0]
    num_evaluations = Schedule(last, config.evaluate.every_steps).evaluations_after(state.step)
    num_scored = 2 + config.num_scored_students * num_evaluations + (config.run.product != "none")  # 2: base, control
    num_answers = num_scored * len(items_of(config)) * (1 + config.evaluate.num_samples)
    if config.run.product != "none":
        num_candidates = (1 if config.students_are_clones else len(state.students)) + 1
        archived = int(proposals * VALID_FRAC * last)  # of which a quarter chooses the product
        num_answers += min(config.run.product_tasks, archived // 4) * num_candidates * NUM_ATTEMPTS
    return {
        f"{num_steps} step{'s' * (num_steps > 1)} of {duration(step_s)}": step_s * num_steps,
        f"distillation {duration(sum(distilled_at) * distill_s)}": sum(distilled_at) * distill_s,
        f"evaluation {duration(num_answers * pace.answer_s)}": num_answers * pace.answer_s,
    }


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

    ``done`` of them have cost ``spent``. A step takes ``step_s`` seconds and ``step_tokens`` tokens. After every
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


def _measured_pace(state: State, engine: Engine) -> tuple[Pace, float]:
    """Return the pace, and by what factor it is slower where texts are not cut off at ``MOST_TOKENS``."""
    config, limits, student = engine.config, engine.limits, state.students[0]
    streams = Streams(config.run.rng_seed, 0)
    form, tokenizer = engine.prompt_format, engine.tokenizer
    num_proposals, most_attempts = texts_of_a_step(config)
    num_rows, each = min(NUM_ROWS, num_proposals, most_attempts), num_proposals // config.population.num_teachers
    matches = [Match(teacher.id, student.id, 0.5) for teacher in state.teachers[: -(-num_rows // each)]]
    proposer = engine.sampler(config.propose_temperature, min(MOST_TOKENS, limits.propose_new_tokens))
    began = time.perf_counter()
    proposals = propose(state, replace(engine, proposer=proposer), streams, matches)
    verify(state, engine, proposals)
    propose_s = (time.perf_counter() - began) / len(proposals)

    tasks = [item.task for item in items_of(config)] or list(state.buffer.tasks)
    pairs = [(task, student) for task in tasks[:: max(1, len(tasks) // num_rows)][:num_rows]]
    solver = engine.sampler(config.solve.temperature, min(MOST_TOKENS, limits.solve_new_tokens))
    began = time.perf_counter()
    sampled = sample_attempts(pairs, -(-num_rows // len(pairs)), solver, form, tokenizer, streams)
    grade(sampled, engine.verifier, form, tokenizer)
    answers = [completion for one in sampled for completion in one.completions]
    answer_s = (time.perf_counter() - began) / len(answers)

    before, began = engine.store.genotype(student.slot), time.perf_counter()
    rollouts = [Rollout(student.slot, s.prompt, s.completions, (1.0,) * len(s.completions)) for s in sampled]
    engine.learner.update(rollouts)
    learn_s = (time.perf_counter() - began) / len(answers)
    engine.store.load(student.slot, before)
    written = [one.completion for one in proposals]
    longer = max(_longer(written, limits.propose_new_tokens), _longer(answers, limits.solve_new_tokens))
    tokens = (sum(len(one.tokens) for one in texts) / len(texts) for texts in (written, answers))
    return Pace(propose_s, answer_s, learn_s, *tokens), longer


def _longer(texts: Sequence[Completion], limit: int) -> float:
    """Return by what factor the texts are longer at most, when those that were cut off end at ``limit`` tokens."""
    cut = sum(not one.finished for one in texts) / len(texts)
    return 1.0 + cut * max(0.0, limit / MOST_TOKENS - 1.0)
