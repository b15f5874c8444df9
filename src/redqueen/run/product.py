"""The product of a run: one adapter, chosen on tasks of the run itself.

After the last step the candidates attempt the same archived tasks, and the one that solves most is the product. The
candidates are the students (of many, those with the highest ratings), their mean in delta space and, with ``run.product
= "distilled"``, an adapter distilled from the verified answers to all other tasks. On a tie the distilled adapter is
preferred, then the mean. No held-out suite is used, so the product's score on one is not inflated by the choice. Ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redqueen.config import Config
from redqueen.engine import Engine
from redqueen.evaluate.external import Examiner, member_records
from redqueen.evaluate.fitness_suite import Score
from redqueen.evolve.probe import NUM_ATTEMPTS
from redqueen.evolve.spectrum import MERGED, mean_of
from redqueen.journal import EvaluationRecord
from redqueen.journal.schema import CHOSEN, DISTILLED, EXAMPLE, PRODUCT, SHARE
from redqueen.learn.distillation import Distilled, examples_of, fine_tune
from redqueen.propose.buffer import draw_of_all_ages, task_key
from redqueen.records import Individual, Task
from redqueen.state import State
from redqueen.streams import Streams

NUM_CANDIDATES = 32
"""Ours: five hundred students would take as long as many steps."""


@dataclass(frozen=True)
class Product:
    """``name``: a student's, ``merged`` or ``distilled``; ``shares``: the share of tasks that each candidate solved."""

    name: str
    shares: dict[str, float]
    scores: list[Score]

    @property
    def records(self) -> list[EvaluationRecord]:
        """What the journal keeps of its external fitness."""
        return member_records(PRODUCT, self.scores)

    def metrics(self, base: Sequence[Score]) -> dict[str, float]:
        """Return what the journal keeps of the choice, which ``journal/schema.py`` lists; ``base``: its scores."""
        greedy = [one.item_means for one in (*self.scores, *base) if one.mode == "greedy"]
        gained = [number for number, of_item in enumerate(zip(*greedy, strict=True)) if of_item == (1.0, 0.0)]
        shares = {f"{SHARE}{name}": share for name, share in self.shares.items()}
        return shares | {f"{CHOSEN}{self.name}": 1.0} | ({EXAMPLE: float(gained[0])} if gained else {})


def probe_tasks(config: Config, state: State) -> list[Task]:
    """Return the archived tasks that the candidates for the product answer.

    Where one of them is distilled, no candidate was fine-tuned on answers to these tasks: they were posed after the
    last distillation of the students and not solved before it. They are at most a quarter of the archive, since the
    product's distillation leaves them out.
    """
    num, entries = num_probe_tasks(config, len(state.archive.entries)), state.archive.entries
    if config.slots.distilled:
        last = state.distilled_step
        used = {key for key, answer in state.answers.by_task.items() if answer.step <= last}
        entries = tuple(one for one in entries if one.step > last and task_key(one.task) not in used)
    rng = Streams(config.run.rng_seed, state.step).rng("product")
    return [one.task for one in draw_of_all_ages(entries, num, rng)]


def num_probe_tasks(config: Config, num_archived: int) -> int:
    """Return how many of the archived tasks the candidates answer, at most."""
    return min(config.run.product_tasks, num_archived // 4 if config.slots.distilled else num_archived)


def num_answers_to_choose(config: Config, num_archived: int) -> int:
    """Return how many answers the candidates write: students, their mean, and the distilled adapter."""
    if config.run.product == "none":
        return 0
    students = min(config.population.num_students, num_candidates(config))
    num = students + (students > 1) + len(config.slots.distilled)
    return num * num_probe_tasks(config, num_archived) * NUM_ATTEMPTS


def distill_product(
    engine: Engine, state: State, held_out: Sequence[Task], tell: Callable[[str], None]
) -> Distilled | None:
    """Distil the candidate for the product from all verified answers; None where the config wants none.

    Answers to the tasks ``held_out`` are left out. When it is interrupted, the slot has the adapter it had before.
    """
    slots, left_out = engine.config.slots.distilled, {task_key(task) for task in held_out}
    if not slots:
        return None
    before, config = engine.store.genotype(slots[0]), engine.config
    answers = [answer for key, answer in state.answers.by_task.items() if key not in left_out]
    streams = Streams(config.run.rng_seed, state.step)
    examples = examples_of(answers, engine.prompt_format, engine.tokenizer)
    try:
        return fine_tune(examples, engine.store, engine.learner, slots[0], config.distill, streams, tell)
    except BaseException:
        engine.store.load(slots[0], before)
        raise


def choose_product(
    engine: Engine,
    state: State,
    examiner: Examiner,
    scores: Sequence[Score],
    tasks: Sequence[Task],
    distilled: Distilled | None = None,
) -> Product | None:
    """Return the product of a run that ends with ``state``, by ``tasks``; None where the config wants none.

    ``scores`` are the students' external ones. The choice does not use them; they are the product's if it is a student.
    Without tasks the product is the mean, or the first student. ``distilled``: the result of ``distill_product``.
    """
    config = engine.config.run
    if config.product == "none":
        return None
    students = candidates(state, num_candidates(engine.config))
    prober = engine.prober(Streams(config.rng_seed, state.step))
    taught = [distilled_member(engine.config, state)] if distilled and distilled.num_answers else []
    result = prober.attempt(tasks, [*taught, *students])
    shares = result.means()
    if len(students) > 1:
        with merged_in_place(engine, students) as stand_in:
            shares = result.joined(prober.attempt(tasks, [stand_in])).means()
            if config.product == "merged" or preferred(shares) == MERGED:
                return Product(MERGED, shares, examiner.members([stand_in]))
    chosen = next(one for one in [*students, *taught] if not shares or one.id == preferred(shares))
    own = [score for score in scores if score.slots == (chosen.slot,)] or examiner.members([chosen])
    return Product(chosen.id, shares, own)


def num_candidates(config: Config) -> int:
    """Return how many students the product is chosen from, at most: those with the highest ratings."""
    return 1 if config.students_are_clones else NUM_CANDIDATES


def preferred(shares: Mapping[str, float]) -> str:
    """Return the candidate that solves most; on a tie the distilled adapter, then the mean, then the first one."""
    order = [name for name in (DISTILLED, MERGED) if name in shares]
    return max([*order, *shares], key=lambda name: shares[name], default=MERGED)


def distilled_member(config: Config, state: State) -> Individual:
    """Return the distilled adapter as a student."""
    return Individual(DISTILLED, "student", config.slots.distilled[0], state.students[0].rating, state.step)


def candidates(state: State, most: int) -> list[Individual]:
    """Return the students that may become the product: at most ``most`` (0: all), those with the highest ratings."""
    whole = [i for i in state.students if i.id not in state.broken] or list(state.students)
    best = {i.id for i in sorted(whole, key=lambda i: -i.rating.mu)[: most or None]}
    return [i for i in whole if i.id in best]


@contextmanager
def merged_in_place(engine: Engine, students: Sequence[Individual]) -> Iterator[Individual]:
    """Put the students' mean into the first one's slot within the context; restore all adapters exactly after it."""
    before = {name: tensor.detach().cpu().clone() for name, tensor in engine.store.state_dict().items()}
    slot = students[0].slot
    try:
        engine.store.load(slot, mean_of([engine.store.genotype(student.slot) for student in students]))
        yield Individual(MERGED, "student", slot, students[0].rating)
    finally:
        engine.store.load_state(before)
