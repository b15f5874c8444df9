"""Who leaves, in runs with known skills: matches, ratings and replacement are the package's, only texts are not."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from redqueen.config import EvolveConfig
from redqueen.evolve.generation import plan
from redqueen.evolve.selection import Evidence, internal_fitness
from redqueen.match import STANDARD, decide, pair
from redqueen.records import Individual, Match, Rating
from redqueen.solve import Game, rated

NUM_STEPS, NUM_RUNS, NUM_IN_A_ROLE = 200, 12, 4
NOISE = 0.07
"""Standard deviation of a solve rate: 48 tasks of unlike difficulty, eight attempts each."""


@dataclass
class Counts:
    """What left: the truly worst of its role, the newest; and births in all, those of the first generation aside."""

    worst: int = 0
    newest: int = 0
    births: int = 0


@dataclass
class World:
    """Four teachers and four students. A child's skill is its parents' mean and ``mutation_std`` of noise.

    A student of skill s solves a share Phi(s - t) of the tasks of a teacher of skill t.
    """

    rules: EvolveConfig
    mutation_std: float
    rng: np.random.Generator
    counts: Counts
    members: list[Individual] = field(default_factory=list)
    skills: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in ("teacher", "student"):
            for i in range(NUM_IN_A_ROLE):
                member = Individual(f"{role[0].upper()}{i}", role, len(self.members), STANDARD.newcomer())
                self.members.append(member)
                self.skills[member.id] = float(self.rng.normal())

    def of(self, role: str) -> list[Individual]:
        return [member for member in self.members if member.role == role]

    def game(self, match: Match) -> Game:
        skills = Rating(self.skills[match.student], 0.0), Rating(self.skills[match.teacher], 0.0)
        known = replace(STANDARD, beta=0.5**0.5)  # so that the spread of a game is one point of skill
        share = known.expected_win(*skills) + NOISE * float(self.rng.normal())
        return Game(match, 48, share, decide(share, match.expected_win_frac))

    def step(self, step: int) -> None:
        games = [self.game(match) for match in pair(self.of("teacher"), self.of("student"), self.rng)]
        self.members = list(rated(self.members, (), games))
        if step % self.rules.every_steps == 0:
            fitness = internal_fitness(self.members, Evidence(), step, self.rules)
            for role in ("teacher", "student"):
                self.replace(self.of(role), fitness, step)

    def replace(self, members: list[Individual], fitness: dict[str, float], step: int) -> None:
        known = {member.id: member for member in members}
        for birth in plan(members, fitness, self.rules, self.rng):
            old, parents = known[birth.replaced], [known[name] for name in birth.parents]
            if step > self.rules.every_steps:
                self.counts.births += 1
                self.counts.worst += old.id == min(known, key=lambda name: self.skills[name])
                self.counts.newest += old.born_step == max(member.born_step for member in members)
            inherited = STANDARD.pool([parent.rating for parent in parents])
            rating = inherited if self.rules.child_rating == "inherit" else STANDARD.newcomer()
            child = replace(old, id=f"{old.id.split('.')[0]}.{step}", rating=rating, born_step=step)
            mean = np.mean([self.skills[parent.id] for parent in parents])
            self.skills[child.id] = float(mean + self.mutation_std * self.rng.normal())
            self.members[self.members.index(old)] = child


def shares_of(mutation_std: float, **rules: object) -> tuple[float, float]:
    """Return in what share of births the worst was replaced, and the newest."""
    counts = Counts()
    for seed in range(NUM_RUNS):
        world = World(EvolveConfig(**rules), mutation_std, np.random.default_rng(seed), counts)
        for step in range(1, NUM_STEPS):
            world.step(step)
    return counts.worst / counts.births, counts.newest / counts.births


@pytest.mark.parametrize("mutation_std", [0.25, 0.5, 1.0])
def test_under_the_defaults_the_worst_leaves_and_the_newest_is_not_favoured_to(mutation_std: float) -> None:
    worst, newest = shares_of(mutation_std)
    assert worst >= 0.5  # by chance 0.25
    assert newest <= 0.25


def test_under_the_re_implementations_rule_the_newest_leaves() -> None:
    worst, newest = shares_of(0.25, child_rating="reset", protected_steps=0)
    assert worst < 0.35 and newest > 0.75
