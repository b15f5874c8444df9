"""What changes from step to step beside tensors: who lives, what was asked, who has beaten whom, who is remembered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from redqueen.config import Config
from redqueen.match.payoff import PayoffMatrix, from_plain, to_plain
from redqueen.match.rating import RatingConstants
from redqueen.nouns import Individual, Rating, Task
from redqueen.population import hall_of_fame
from redqueen.population.hall_of_fame import HallOfFame
from redqueen.propose import task_memory
from redqueen.propose.buffer import TaskBuffer
from redqueen.propose.task_memory import TaskMemory


@dataclass(frozen=True)
class State:
    """The state after ``step`` steps.

    ``broken`` are members whose last update was not finite: the next to leave. ``scores`` are each member's payoffs in
    its latest games, in order of time: a student's solve rate, a teacher's complement of it. ``memory`` is what was
    posed, ``hall`` the frozen past members.
    """

    step: int
    individuals: tuple[Individual, ...]
    buffer: TaskBuffer
    payoff: PayoffMatrix
    broken: frozenset[str] = field(default_factory=frozenset)
    scores: dict[str, tuple[float, ...]] = field(default_factory=dict)
    memory: TaskMemory = field(default_factory=TaskMemory)
    hall: HallOfFame = field(default_factory=HallOfFame)

    @property
    def teachers(self) -> tuple[Individual, ...]:
        """Those who propose, by slot."""
        return tuple(i for i in self.individuals if i.role != "student")

    @property
    def students(self) -> tuple[Individual, ...]:
        """Those who solve, by slot."""
        return tuple(i for i in self.individuals if i.role != "teacher")

    @property
    def past(self) -> tuple[Individual, ...]:
        """The frozen past members in the hall of fame, oldest first."""
        return tuple(entry.individual for entry in self.hall.entries)

    @property
    def has_newborns(self) -> bool:
        """Whether somebody was born in the latest step, and so has learned nothing yet."""
        return self.step > 0 and any(i.born_step == self.step for i in self.individuals)

    def by_id(self) -> dict[str, Individual]:
        """Return the living by their ids."""
        return {i.id: i for i in self.individuals}


def found(config: Config) -> State:
    """Return the state before the first step: fresh founders, the seed buffer, no games."""
    population = config.population
    newcomer = rating_constants(config).newcomer()
    if population.single:
        people = [Individual("A1", "both", 0, newcomer)]
    else:
        people = [Individual(f"T{i + 1}", "teacher", i, newcomer) for i in range(population.num_teachers)]
        first = population.num_teachers
        people += [Individual(f"S{i + 1}", "student", first + i, newcomer) for i in range(population.num_students)]
    payoff = PayoffMatrix(config.match.payoff_decay_frac)
    buffer, memory = TaskBuffer(config.propose.buffer_capacity), TaskMemory(config.propose.class_decay_frac)
    hall = HallOfFame(config.num_hall_places // 2, population.num_members)
    return State(0, tuple(people), buffer, payoff, memory=memory, hall=hall)


def rating_constants(config: Config) -> RatingConstants:
    """Return the rating system's numbers."""
    match = config.match
    return RatingConstants(match.rating_mu, match.rating_sigma, match.rating_beta, match.rating_tau, match.draw_frac)


def state_to_plain(state: State) -> dict[str, Any]:
    """Return the state as plain JSON values; ``state_from_plain`` reads them back exactly."""
    return {
        "step": state.step,
        "individuals": [asdict(i) for i in state.individuals],
        "buffer": {
            "capacity": state.buffer.capacity,
            "tasks": [asdict(t) for t in state.buffer.tasks],
            "asked": list(state.buffer.asked),
        },
        "payoff": to_plain(state.payoff),
        "broken": sorted(state.broken),
        "scores": {name: list(values) for name, values in state.scores.items()},
        "memory": task_memory.to_plain(state.memory),
        "hall": hall_of_fame.to_plain(state.hall),
    }


def state_from_plain(plain: dict[str, Any]) -> State:
    """Read back what ``state_to_plain`` wrote."""
    people = tuple(
        Individual(**{**i, "rating": Rating(**i["rating"]), "parents": tuple(i["parents"])})
        for i in plain["individuals"]
    )
    tasks = tuple(
        Task(**{**t, "inputs": tuple(t["inputs"]), "outputs": tuple(t["outputs"])}) for t in plain["buffer"]["tasks"]
    )
    buffer = TaskBuffer(plain["buffer"]["capacity"], tasks, tuple(plain["buffer"]["asked"]))
    return State(
        plain["step"],
        people,
        buffer,
        from_plain(plain["payoff"]),
        frozenset(plain["broken"]),
        {name: tuple(values) for name, values in plain["scores"].items()},
        task_memory.from_plain(plain["memory"]),
        hall_of_fame.from_plain(plain["hall"]),
    )
