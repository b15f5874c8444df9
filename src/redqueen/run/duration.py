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
from redqueen.run.progress import Activity, RunProgress, Schedule
from redqueen.solve import SampledAttempts, grade, sample_attempts
from redqueen.state import State, initial_state
from redqueen.streams import Streams

NUM_ROWS, MOST_TOKENS = 64, 256
"""Texts of each sort that are sampled, but no more than a step has, and their length, at most (ours)."""
TIMES_AGAIN, QUICK_S = 4, 2.0
"""Where the answers took less than ``QUICK_S``, so many times as many are sampled: small batches mislead (ours)."""

VALID_FRAC, SOLVED_FRAC = 0.8, 0.5
"""Shares of valid proposals, and of tasks with a correct answer, that are taken for granted (ours)."""


def measured_duration(config: Config, load: LoadAdapters | None) -> str:
    """Load the base and return how long the run would take, as a sentence; progress on standard error."""
    with Activity("measuring the speed") as activity, open_engine(config, load, activity) as engine:
        return expected_duration(initial_state(config, engine.rating), engine).text


class Expected(NamedTuple):
    """How long a run will take as a sentence, and the seconds of its end, after the last step."""

    text: str
    end_s: float


class Pace(NamedTuple):
    """Seconds for a proposal, an answer and the learning of a text, and tokens of a proposal and of an answer."""

    propose_s: float
    answer_s: float
    learn_s: float
    propose_tokens: float
    answer_tokens: float


def say_duration(progress: RunProgress, state: State, engine: Engine, spent: Spent = NOTHING_SPENT) -> None:
    """Say how long the run will take, and let its progress count the end."""
    text, progress.end_s = expected_duration(state, engine, spent)
    progress.say(text)


def expected_duration(state: State, engine: Engine, spent: Spent = NOTHING_SPENT) -> Expected:
    """Return how long the run will take from ``state`` on, which has cost ``spent``.

    A student's moments are lost: a run that goes on loads them again.
    """
    pace, longer = _measured_pace(state, engine)
    parts, end_s = _parts(engine.config, state, spent, pace)
    least_s = sum(parts.values())
    most_s = sum(_parts(engine.config, state, spent, Pace(*(longer * one for one in pace)))[0].values())
    most = f" to {duration(most_s)}" if most_s > 1.2 * least_s else ""
    words = ", ".join(text for text, s in parts.items() if s)
    return Expected(f"expected duration: {duration(least_s)}{most} ({words})", end_s)


def _parts(config: Config, state: State, spent: Spent, pace: Pace) -> tuple[dict[str, float], float]:
    """Return the seconds of each part of a run that is left, by its words, and those of its end."""
    proposals, most_attempts = texts_of_a_step(config)
    attempts = VALID_FRAC * most_attempts
    num_learned = proposals * config.learn.train_teachers + attempts * config.learn.train_students
    step_s = proposals * pace.propose_s + attempts * pace.answer_s + num_learned * pace.learn_s
    step_tokens = proposals * pace.propose_tokens + attempts * pace.answer_tokens
    every, distill_s = config.distill.every_steps, proposals * VALID_FRAC * SOLVED_FRAC * NUM_EPOCHS * pace.learn_s
    last = expected_steps(config.run, step_s, step_tokens, every, distill_s, state.step, spent)
    num_steps = last - state.step
    distilled_at = [step for step in range(state.step + 1, last) if every and step % every == 0]
    num_evaluations = Schedule(last, config.evaluate.every_steps).evaluations_after(state.step)
    answers_each = len(items_of(config)) * (1 + config.evaluate.num_samples)
    num_answers = (2 + config.num_scored_students * num_evaluations) * answers_each  # 2: base, control
    num_last = 0
    if config.run.product != "none":
        num_candidates = (1 if config.students_are_clones else len(state.students)) + 1
        archived = int(proposals * VALID_FRAC * last)  # of which a quarter chooses the product
        num_last = answers_each + min(config.run.product_tasks, archived // 4) * num_candidates * NUM_ATTEMPTS
    last_distill_s = last * bool(config.slots.distilled) * distill_s
    all_distill_s, evaluate_s = sum(distilled_at) * distill_s + last_distill_s, (num_answers + num_last) * pace.answer_s
    return {
        f"{num_steps} step{'s' * (num_steps > 1)} of {duration(step_s)}": step_s * num_steps,
        f"distillation {duration(all_distill_s)}": all_distill_s,
        f"evaluation {duration(evaluate_s)}": evaluate_s,
    }, last_distill_s + num_last * pace.answer_s


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
    num_proposals, most_attempts = texts_of_a_step(config)
    num_rows, each = min(NUM_ROWS, num_proposals, most_attempts), num_proposals // config.population.num_teachers
    matches = [Match(teacher.id, student.id, 0.5) for teacher in state.teachers[: -(-num_rows // each)]]
    proposer = engine.sampler(config.propose_temperature, min(MOST_TOKENS, limits.propose_new_tokens))
    began = time.perf_counter()
    proposals = propose(state, replace(engine, proposer=proposer), streams, matches)
    verify(state, engine, proposals)
    propose_s = (time.perf_counter() - began) / len(proposals)

    sampled, answer_s = _answered(num_rows, state, engine, streams)
    if answer_s * num_rows < QUICK_S:
        sampled, answer_s = _answered(min(TIMES_AGAIN * num_rows, most_attempts), state, engine, streams)
    answers = [completion for one in sampled for completion in one.completions]

    before, began = engine.store.genotype(student.slot), time.perf_counter()
    learned = [Rollout(student.slot, s.prompt, s.completions, (1.0,) * len(s.completions)) for s in sampled[:num_rows]]
    engine.learner.update(learned)
    learn_s = (time.perf_counter() - began) / sum(len(one.completions) for one in learned)
    engine.store.load(student.slot, before)
    written = [one.completion for one in proposals]
    longer = max(_longer(written, limits.propose_new_tokens), _longer(answers, limits.solve_new_tokens))
    tokens = (sum(len(one.tokens) for one in texts) / len(texts) for texts in (written, answers))
    return Pace(propose_s, answer_s, learn_s, *tokens), longer


def _answered(num: int, state: State, engine: Engine, streams: Streams) -> tuple[list[SampledAttempts], float]:
    """Sample and grade about ``num`` attempts at held-out tasks, or those of the buffer; return them, seconds each."""
    config, form, tokenizer = engine.config, engine.prompt_format, engine.tokenizer
    tasks = [item.task for item in items_of(config)] or list(state.buffer.tasks)
    num_tasks = -(-num // config.solve.num_attempts)
    pairs = [(task, state.students[0]) for task in tasks[:: max(1, len(tasks) // num_tasks)][:num_tasks]]
    solver = engine.sampler(config.solve.temperature, min(MOST_TOKENS, engine.limits.solve_new_tokens))
    began = time.perf_counter()
    sampled = sample_attempts(pairs, -(-num // len(pairs)), solver, form, tokenizer, streams)
    grade(sampled, engine.verifier, form, tokenizer)
    return sampled, (time.perf_counter() - began) / sum(len(one.completions) for one in sampled)


def _longer(texts: Sequence[Completion], limit: int) -> float:
    """Return by what factor the texts are longer at most, when those that were cut off end at ``limit`` tokens."""
    cut = sum(not one.finished for one in texts) / len(texts)
    return 1.0 + cut * max(0.0, limit / MOST_TOKENS - 1.0)
