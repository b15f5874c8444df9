"""The product of a run: one adapter, chosen on tasks of the run itself.

After the last step the candidates attempt the same archived tasks; the one that solves most becomes the product. The
candidates are the students (the ``NUM_CANDIDATES`` with the highest ratings), their mean in delta space and, with
``run.product = "distilled"``, an adapter distilled from the verified answers to all other tasks. A tie is won by the
distilled adapter, then by the mean. No held-out suite is used, so the choice does not inflate a held-out score. Ours.
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
"""Maximum number of students among the candidates. Ours: five hundred would take as long as many steps."""


@dataclass(frozen=True)
class Product:
    """``name``: a student's, ``merged`` or ``distilled``; ``shares``: the share of tasks that each candidate solved."""

    name: str
    shares: dict[str, float]
    scores: list[Score]

    @property
    def records(self) -> list[EvaluationRecord]:
        """The journal's records of its external fitness."""
        return member_records(PRODUCT, self.scores)

    def metrics(self, base: Sequence[Score]) -> dict[str, float]:
        """Return the metrics of the choice, which ``journal/schema.py`` lists; ``base``: the base's scores."""
        greedy = [one.item_means for one in (*self.scores, *base) if one.mode == "greedy"]
        gained = [number for number, means in enumerate(zip(*greedy, strict=True)) if means == (1.0, 0.0)]
        shares = {f"{SHARE}{name}": share for name, share in self.shares.items()}
        return shares | {f"{CHOSEN}{self.name}": 1.0} | ({EXAMPLE: float(gained[0])} if gained else {})


def probe_tasks(config: Config, state: State) -> list[Task]:
    """Return the archived tasks that the candidates for the product attempt.

    With a distilled candidate, they were proposed after the last distillation of the students and not solved before it:
    no candidate was fine-tuned on their answers. They are at most a quarter of the archive, since the product is
    distilled without them.
    """
    num, entries = num_probe_tasks(config, len(state.archive.entries)), state.archive.entries
    if config.slots.distilled:
        last = state.distilled_step
        used = {key for key, answer in state.answers.by_task.items() if answer.step <= last}
        entries = tuple(one for one in entries if one.step > last and task_key(one.task) not in used)
    rng = Streams(config.run.rng_seed, state.step).rng("product")
    return [one.task for one in draw_of_all_ages(entries, num, rng)]


def num_probe_tasks(config: Config, num_archived: int) -> int:
    """Return the maximum number of archived tasks that the candidates attempt."""
    return min(config.run.product_tasks, num_archived // 4 if config.slots.distilled else num_archived)


def num_answers_to_choose(config: Config, num_archived: int) -> int:
    """Return how many answers the candidates (students, their mean, the distilled adapter) write in all."""
    if config.run.product == "none":
        return 0
    students = min(config.population.num_students, num_candidates(config))
    num = students + (students > 1) + len(config.slots.distilled)
    return num * num_probe_tasks(config, num_archived) * NUM_ATTEMPTS


def distill_product(
    engine: Engine, state: State, held_out: Sequence[Task], on_progress: Callable[[str], None]
) -> Distilled | None:
    """Distil a candidate for the product from all verified answers; None if the config does not ask for one.

    Answers to the tasks ``held_out`` are left out. If interrupted, it restores the slot's previous adapter.
    """
    slots, left_out = engine.config.slots.distilled, {task_key(task) for task in held_out}
    if not slots:
        return None
    before, config = engine.store.genotype(slots[0]), engine.config
    answers = [answer for key, answer in state.answers.by_task.items() if key not in left_out]
    streams = Streams(config.run.rng_seed, state.step)
    examples = examples_of(answers, engine.prompt_format, engine.tokenizer)
    try:
        return fine_tune(examples, engine.store, engine.learner, slots[0], config.distill, streams, on_progress)
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
    """Choose the product of a run that ends with ``state`` by ``tasks``; None if the config does not ask for one.

    ``scores`` are the students' external scores: they are not used for the choice, but reused if the product is a
    student. Without tasks the product is the mean, or the first student. ``distilled``: from ``distill_product``.
    """
    config = engine.config.run
    if config.product == "none":
        return None
    students = candidates(state, num_candidates(engine.config))
    prober = engine.prober(Streams(config.rng_seed, state.step))
    distilled_members = [distilled_member(engine.config, state)] if distilled and distilled.num_answers else []
    result = prober.attempt(tasks, [*distilled_members, *students])
    shares = result.means()
    if len(students) > 1:
        with merged_in_place(engine, students) as merged:
            shares = result.joined(prober.attempt(tasks, [merged])).means()
            if config.product == "merged" or preferred(shares) == MERGED:
                return Product(MERGED, shares, examiner.members([merged]))
    chosen = next(one for one in [*students, *distilled_members] if not shares or one.id == preferred(shares))
    own = [score for score in scores if score.slots == (chosen.slot,)] or examiner.members([chosen])
    return Product(chosen.id, shares, own)


def num_candidates(config: Config) -> int:
    """Return the maximum number of students among the candidates."""
    return 1 if config.students_are_clones else NUM_CANDIDATES


def preferred(shares: Mapping[str, float]) -> str:
    """Return the candidate that solves most; on a tie the distilled adapter, then the mean, then the first student."""
    order = [name for name in (DISTILLED, MERGED) if name in shares]
    return max([*order, *shares], key=lambda name: shares[name], default=MERGED)


def distilled_member(config: Config, state: State) -> Individual:
    """Return the distilled adapter as a student."""
    return Individual(DISTILLED, "student", config.slots.distilled[0], state.students[0].rating, state.step)


def candidates(state: State, most: int) -> list[Individual]:
    """Return the students that may become the product: at most ``most`` (0: all), those with the highest ratings."""
    intact = [i for i in state.students if i.id not in state.broken] or list(state.students)
    best = {i.id for i in sorted(intact, key=lambda i: -i.rating.mu)[: most or None]}
    return [i for i in intact if i.id in best]


@contextmanager
def merged_in_place(engine: Engine, students: Sequence[Individual]) -> Iterator[Individual]:
    """Put the students' mean into the first student's slot within the context; then restore all adapters exactly."""
    before = {name: tensor.detach().cpu().clone() for name, tensor in engine.store.state_dict().items()}
    slot = students[0].slot
    try:
        engine.store.load(slot, mean_of([engine.store.genotype(student.slot) for student in students]))
        yield Individual(MERGED, "student", slot, students[0].rating)
    finally:
        engine.store.load_state(before)
