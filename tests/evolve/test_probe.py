"""The probe: paired results by hand, and whether selection by it finds the worst student."""

import math

import numpy as np
from scripted import Scripted
from transformers import AutoTokenizer

from redqueen.adapters.base_shape import embedded_folder
from redqueen.config import EvolveConfig
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.evolve.probe import NUM_ATTEMPTS, Prober, ProbeResult, probe_students
from redqueen.evolve.selection import Evidence, choose_leaving, internal_fitness, select_parents
from redqueen.match import STANDARD, decide
from redqueen.propose.buffer import TaskArchive
from redqueen.records import Individual, Rating, Task
from redqueen.streams import Streams
from redqueen_sandbox import Sandbox

NAN = float("nan")


def tasks(num: int) -> tuple[Task, ...]:
    return tuple(Task(f"t{i}", "T1", "S1", "code_o", "def f(x): return x", ("1",), ("1",)) for i in range(num))


def student(name: str, born_step: int = 0) -> Individual:
    return Individual(name, "student", int(name[1]), Rating(25, 8), born_step)


def test_members_are_compared_on_the_tasks_that_all_of_them_have_a_share_of() -> None:
    result = ProbeResult(("S1", "S2"), tasks(3), np.array([[1.0, 0.5, 0.0], [0.5, NAN, 0.0]]))
    assert result.means() == {"S1": 0.5, "S2": 0.25}
    assert result.solve_fracs() == {"t0": 0.75, "t2": 0.0}
    assert ProbeResult(("S1",), tasks(1), np.array([[NAN]])).means() == {}


def test_two_results_on_the_same_tasks_are_compared_where_both_have_a_share() -> None:
    first = ProbeResult(("S1",), tasks(3), np.array([[1.0, NAN, 0.0]]), 5)
    second = ProbeResult(("S2",), tasks(3), np.array([[0.5, 1.0, 0.0]]), 7)
    both = first.joined(second)
    assert both.means() == {"S1": 0.5, "S2": 0.25} and both.num_tokens == 12
    nobody = ProbeResult((), (), np.zeros((0, 0)))
    assert nobody.joined(second) is second and first.joined(nobody) is first


def test_all_students_answer_the_same_tasks_with_equal_random_numbers_and_none_where_evolution_is_off(
    verifier: Sandbox,
) -> None:
    tokenizer, members = AutoTokenizer.from_pretrained(embedded_folder()), [student("S1"), student("S2")]
    sampler = Scripted(tokenizer, lambda prompt, slot, sample: "1" if slot == 1 or sample else "2")
    prober = Prober(sampler, verifier, PromptFormat(FRAMES["compact"]), tokenizer, Streams(0, 1), 2)  # type: ignore[arg-type]
    archive = TaskArchive(8).add(tasks(2), {"t0": 0.5, "t1": 0.5}, 1)
    rules, rng = EvolveConfig(fitness="probe", enabled=True), np.random.default_rng(0)
    result = probe_students(archive, members, prober, rules, rng)
    assert result.means() == {"S1": 1.0, "S2": 0.5} and result.num_tokens == 16
    seeds = {slot: [r.rng_seed for r in sampler.requests if r.slot == slot] for slot in (1, 2)}
    assert seeds[1] == seeds[2] and len(set(seeds[1])) == 2
    off = rules.model_copy(update={"enabled": False})
    assert probe_students(archive, members, prober, off, rng).members == () and len(sampler.requests) == 4


def test_by_the_probe_students_are_judged_by_it_and_teachers_by_their_rewards() -> None:
    members = [student("S1"), student("S2"), student("S3"), Individual("T1", "teacher", 0, Rating(25, 8))]
    evidence = Evidence({"T1": (-1.0, 0.5)}, {"S1": 0.75, "S2": 0.25})
    found = internal_fitness(members, evidence, 10, EvolveConfig(fitness="probe"))
    assert found == {"S1": 0.75, "S2": 0.25, "S3": 0.5, "T1": -0.25}  # S3, not probed, is neither good nor bad


def test_where_nobody_was_probed_students_are_judged_by_their_rating() -> None:
    members = [student("S1"), Individual("S2", "student", 2, Rating(40, 1))]
    found = internal_fitness(members, Evidence(), 10, EvolveConfig(fitness="probe"))
    assert found == {"S1": 25 - 3 * 8, "S2": 40 - 3 * 1}


# A simulation with known skills --------------------------------------------------------------------------------

NUM_STUDENTS, NUM_GENERATIONS, STEPS_OF_A_GENERATION = 4, 300, 10
SKILL_SPREAD = 0.4
"""Of skills in logits: about eight points of a solve rate near a half."""


class World:
    """Four students whose skills wander; a child has its parent's skill, give or take; who leaves is up to a rule."""

    def __init__(self, rules: EvolveConfig) -> None:
        self.rules, self.rng = rules, np.random.default_rng(7)
        self.members = [student(f"S{i}") for i in range(NUM_STUDENTS)]
        self.skills = {m.id: SKILL_SPREAD * float(self.rng.normal()) for m in self.members}
        self.teacher = Rating(25.0, 2.0)

    def difficulties(self, num: int) -> np.ndarray:
        """Tasks keep pace with the students, or in the end everybody would solve everything."""
        return self.rng.normal(float(np.mean(list(self.skills.values()))), 1.0, size=num)

    def solves(self, skill: float, difficulties: np.ndarray, attempts: int) -> np.ndarray:
        right = 1 / (1 + np.exp(difficulties - skill))
        return self.rng.binomial(attempts, right) / attempts

    def learn(self) -> None:
        """Play and learn for a generation: skills wander, and ratings move by games against teachers."""
        for _ in range(STEPS_OF_A_GENERATION):
            for i, member in enumerate(self.members):
                rate = float(self.solves(self.skills[member.id], self.difficulties(6), 8).mean())
                winner = decide(rate, STANDARD.expected_win(member.rating, self.teacher))
                _, rating = STANDARD.update(self.teacher, member.rating, winner)
                self.members[i] = Individual(member.id, "student", i, rating, member.born_step)
        for name in self.skills:
            self.skills[name] += 0.1 * float(self.rng.normal())

    def generation(self, step: int) -> bool:
        """Replace one; tell whether it was the truly worst."""
        self.learn()
        difficulties = self.difficulties(self.rules.probe_tasks)
        shares = [self.solves(self.skills[m.id], difficulties, NUM_ATTEMPTS) for m in self.members]
        result = ProbeResult(tuple(m.id for m in self.members), tasks(len(difficulties)), np.array(shares))
        fitness = internal_fitness(self.members, Evidence(probes=result.means()), step, self.rules)
        values = [fitness[m.id] for m in self.members]
        (leaving,) = choose_leaving(values)
        worst = min(self.skills, key=lambda name: self.skills[name])
        was_worst = self.members[leaving].id == worst
        (parent,) = select_parents(
            "truncation", [v if i != leaving else -math.inf for i, v in enumerate(values)], 1, self.rng
        )
        child = Individual(f"S{leaving}.{step}", "student", leaving, STANDARD.newcomer(), step)
        self.skills[child.id] = self.skills[self.members[parent].id] + SKILL_SPREAD * float(self.rng.normal())
        del self.skills[self.members[leaving].id]
        self.members[leaving] = child
        return was_worst


def share_of_generations_in_which_the_worst_left(**rules: object) -> float:
    world = World(EvolveConfig(**rules))
    steps = range(STEPS_OF_A_GENERATION, STEPS_OF_A_GENERATION * (NUM_GENERATIONS + 1), STEPS_OF_A_GENERATION)
    return sum(world.generation(step) for step in steps) / NUM_GENERATIONS


def test_by_the_probe_the_worst_student_leaves_in_at_least_sixty_of_a_hundred_generations() -> None:
    assert share_of_generations_in_which_the_worst_left(fitness="probe") >= 0.6


def test_sheltering_newborns_for_a_generation_costs_the_probe_little() -> None:
    assert share_of_generations_in_which_the_worst_left(fitness="probe", protected_steps=20) >= 0.6
