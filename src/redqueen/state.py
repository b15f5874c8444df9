"""The state of a run except for tensors: population, tasks, verified answers, ratings, hall of fame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from redqueen.adapters.hall_of_fame import HallOfFame
from redqueen.config import Config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import is_written, open_domain
from redqueen.errors import UserError, first_fault
from redqueen.evolve.selection import Evidence, founder_genes
from redqueen.learn.answers import MAX_ANSWERS, AnswerArchive
from redqueen.learn.rewards import Baselines
from redqueen.match import STANDARD
from redqueen.propose.buffer import TaskArchive, TaskBuffer, task_key
from redqueen.propose.curriculum import Names, TaskMemory, keep_only
from redqueen.records import Individual, Task
from redqueen.streams import Streams


@dataclass(frozen=True)
class State:
    """The state after ``step`` steps.

    ``buffer``: tasks to show in prompts. ``broken``: ids of members whose last update was not finite; they are replaced
    next. ``memory``: which classes of tasks were proposed. ``hall``: frozen past members. ``baselines``: running means
    of the teachers' rewards. ``rewards``: each member's mean rewards of recent steps. ``archive``: tasks of all ages.
    ``probes``: the share of the last probe that each student solved. ``answers``: verified answers to distil.
    ``distilled_step``: the last step in which the students were reset to the distilled adapter (0: none). ``anchors``:
    verified tasks from the user's files, of which students get a share.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    step: int
    individuals: tuple[Individual, ...]
    buffer: TaskBuffer
    broken: Names = field(default_factory=frozenset)
    memory: TaskMemory = field(default_factory=TaskMemory)
    hall: HallOfFame = field(default_factory=HallOfFame)
    baselines: Baselines = field(default_factory=Baselines)
    rewards: dict[str, tuple[float, ...]] = field(default_factory=dict)
    archive: TaskArchive = field(default_factory=TaskArchive)
    probes: dict[str, float] = field(default_factory=dict)
    answers: AnswerArchive = field(default_factory=AnswerArchive)
    distilled_step: int = 0
    anchors: tuple[Task, ...] = ()

    @property
    def evidence(self) -> Evidence:
        """The data from which fitness is computed."""
        return Evidence(self.rewards, self.probes)

    @property
    def teachers(self) -> tuple[Individual, ...]:
        """The members that propose, by slot."""
        return tuple(i for i in self.individuals if i.role != "student")

    @property
    def students(self) -> tuple[Individual, ...]:
        """The members that solve, by slot."""
        return tuple(i for i in self.individuals if i.role != "teacher")

    @property
    def past(self) -> tuple[Individual, ...]:
        """The frozen past members in the hall of fame, oldest first."""
        return tuple(entry.individual for entry in self.hall.entries)

    @property
    def has_new_members(self) -> bool:
        """Whether members without a match exist: born, or reset to the distilled adapter, in the latest step."""
        return self.step > 0 and self.step in (self.distilled_step, *(i.born_step for i in self.individuals))

    @property
    def players(self) -> dict[str, Individual]:
        """All members that can be in a match, present or past, by id."""
        return {i.id: i for i in (*self.individuals, *self.past)}

    def by_id(self) -> dict[str, Individual]:
        """Return the present members by id."""
        return {i.id: i for i in self.individuals}

    def with_newborns(self, newborns: Sequence[Individual]) -> State:
        """Put children into the slots of the replaced members; drop records of ids outside population and hall."""
        by_slot = {child.slot: child for child in newborns}
        individuals = tuple(by_slot.get(i.slot, i) for i in self.individuals)
        living, past = {i.id for i in individuals}, {i.id for i in self.past}
        return replace(
            self,
            individuals=individuals,
            memory=keep_only(self.memory, living | past),
            baselines=self.baselines.keep_only(living | past),
            rewards={name: values for name, values in self.rewards.items() if name in living},
            probes={name: value for name, value in self.probes.items() if name in living},
            broken=self.broken & living,
        )


def initial_state(config: Config) -> State:
    """Return the state before the first step: fresh founders, and the domains' seed tasks in the buffer."""
    population = config.population
    newcomer = STANDARD.newcomer()
    if population.single:
        members = [Individual("A1", "both", 0, newcomer)]
    else:
        members = [Individual(f"T{i + 1}", "teacher", i, newcomer) for i in range(population.num_teachers)]
        first = population.num_teachers
        members += [Individual(f"S{i + 1}", "student", first + i, newcomer) for i in range(population.num_students)]
    rng = Streams(config.run.rng_seed, 0).rng("genes")
    members = [replace(member, genes=founder_genes(config.evolve.genes, rng)) for member in members]
    shown = choose_format(config).shows_examples
    domains = [open_domain(name) for name in config.propose.domains if is_written(name)]
    seeds = tuple(task for domain in domains for task in (shown and domain.examples) or (domain.seed,))
    # With their keys as asked already, a copy of a seed is a duplicate.
    buffer = TaskBuffer(config.propose.buffer_capacity, seeds, tuple(map(task_key, seeds)))
    memory = TaskMemory()
    hall = HallOfFame(config.num_hall_places // 2, population.num_members)
    archive = TaskArchive(config.archive_places)
    answers = AnswerArchive(MAX_ANSWERS if config.keeps_answers else 0)
    return State(0, tuple(members), buffer, memory=memory, hall=hall, archive=archive, answers=answers)


def state_to_plain(state: State) -> dict[str, Any]:
    """Return the state as plain JSON values; ``state_from_plain`` reads them back exactly."""
    plain: dict[str, Any] = _STATE.dump_python(state, mode="json")
    return plain


def state_from_plain(plain: dict[str, Any]) -> State:
    """Restore what ``state_to_plain`` returned. Raises UserError, naming the field, for another version's state."""
    try:
        return _STATE.validate_python(_without_removed(plain))
    except ValidationError as error:
        raise UserError(
            f"the state of this checkpoint was written by another version of redqueen ({first_fault(error)}): "
            "resume with the version that wrote it (the table `run` names it)"
        ) from None


REMOVED = {
    "": {"payoff", "scores"},
    "individuals": {"domain_ratings"},
    "individual": {"domain_ratings"},
    "genes": {"entropy_weight"},
    "entries": {"last_look"},
}
"""What earlier versions wrote and is ignored, by the field that contains it ("": the state)."""


def _without_removed(plain: Any, field: str = "") -> Any:
    if isinstance(plain, dict):
        left = plain.keys() - REMOVED.get(field, ())
        return {name: _without_removed(value, name) for name, value in plain.items() if name in left}
    return [_without_removed(value, field) for value in plain] if isinstance(plain, list) else plain


_STATE = TypeAdapter(State)
