"""A run that never was, written through the journal's own API: whole, plausible, and with hostile texts in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from redqueen.domains.code.suite import KINDS
from redqueen.journal import (
    AttemptRecord,
    CandidateRecord,
    EvaluationRecord,
    Journal,
    MatchRecord,
    RunRecord,
    TaskRecord,
)
from redqueen.journal.schema import MEASURES
from redqueen.records import Attempt, Birth, Candidate, Grade, Individual, Match, Outcome, Rating, Task
from redqueen.run.store import JOURNAL

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script><!--",
    "{{ 7 * 7 }} {% for x in range(9) %}x{% endfor %} ${7*7}",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x08\x08\x00 \r over",
    "\u202eevil\u202c \u2066isolate\u2069 zero\u200bwidth \ufeff",
    '" onmouseover="document.title = \'owned\'" x="',
    "<img src=x onerror=\"document.title='owned'\">",
    "a" * 20_000,
    "line\u2028separator\u2029paragraph",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324algo",
    "javascript:alert(1) [x](javascript:alert(1)) | a | b |",
)
STRATA = ("all", "everyday", "generated", "generated/1", "generated/2", "generated/3", "generated/4")
PHASES = ("match", "propose", "verify", "solve", "learn", "evolve", "evaluate", "checkpoint")
REASONS = (
    "unparsable",
    "syntax",
    "timeout",
    "nondeterministic",
    "forbidden_import",
    "duplicate",
    "no_literal",
    "too_long",
    "error",
)


def measured(*values: float) -> dict[str, float]:
    return dict(zip(MEASURES, values, strict=True))


@dataclass
class Population:
    """Who is there; replaced members leave, children take their slot."""

    members: list[Individual]
    births: list[Birth] = field(default_factory=list)

    def of(self, *roles: str) -> list[Individual]:
        return [member for member in self.members if member.role in roles]


def build_run(
    run_dir: Path,
    num_steps: int = 40,
    num_teachers: int = 4,
    num_students: int = 4,
    rng_seed: int = 0,
    gain: float = 0.12,
    tasks_per_match: int = 6,
    num_attempts: int = 8,
    evolve_every: int = 10,
    hostile: bool = True,
) -> Path:
    """Write a run of ``nT+mS`` (0 teachers: the single arm) into ``run_dir`` and return it."""
    rng = np.random.default_rng(rng_seed)
    run_dir.mkdir(parents=True)
    arm = f"{num_teachers}T+{num_students}S" if num_teachers else "single"
    population = Population(founders(num_teachers, num_students))
    texts = HOSTILE if hostile else ()
    config = {"seed": rng_seed, "steps": num_steps, "note": HOSTILE[0] if hostile else "", "match": {"rule": "pfsp"}}
    run = RunRecord(run_dir.name, arm, rng_seed, config, {"redqueen": "0.1.0", "torch": "2.13.0"})
    with Journal.create(run_dir / JOURNAL, run) as journal:
        journal.add_session(1_700_000_000.0, None)
        with journal.step(0) as tx:
            tx.add_individuals(population.members)
            if num_teachers:
                tx.add_ratings((m, fitness(m)) for m in population.members)
            tx.add_evaluations(evaluate(rng, "base", 0.42, len(STRATA)))
        for step in range(1, num_steps + 1):
            progress = step / num_steps
            births = evolve(rng, population, step) if num_teachers and step % evolve_every == 0 else []
            with journal.step(step) as tx:
                rates = play(rng, tx, population, step, progress, tasks_per_match, num_attempts, texts)
                tx.add_individuals(m for m in population.members if m.born_step == step)
                tx.add_births(births)
                if num_teachers:
                    population.members = [drift(rng, member) for member in population.members]
                    tx.add_ratings((m, fitness(m)) for m in population.members)
                tx.add_metrics(metrics(rng, progress, rates))
                tx.add_timings({phase: float(rng.gamma(4.0, 0.2 * (1 + PHASES.index(phase) % 4))) for phase in PHASES})
                if step % 20 == 0 or step == num_steps:
                    means = [
                        0.42 + gain * progress + float(rng.normal(0, 0.01)) for _ in population.of("student", "both")
                    ]
                    for member, mean in zip(population.of("student", "both"), means, strict=True):
                        tx.add_evaluations(evaluate(rng, member.id, mean, 1))
                    tx.add_evaluations(evaluate(rng, "students", float(np.mean(means)), len(STRATA)))
    return run_dir


def founders(num_teachers: int, num_students: int) -> list[Individual]:
    fresh = Rating(25.0, 25 / 3)
    if not num_teachers:
        return [Individual("A1", "both", 0, fresh)]
    teachers = [Individual(f"T{n + 1}", "teacher", n, fresh) for n in range(num_teachers)]
    return teachers + [Individual(f"S{n + 1}", "student", num_teachers + n, fresh) for n in range(num_students)]


def fitness(member: Individual) -> float:
    return member.rating.mu - 3 * member.rating.sigma


def drift(rng: np.random.Generator, member: Individual) -> Individual:
    rating = Rating(member.rating.mu + float(rng.normal(0, 0.5)), 1.2 + (member.rating.sigma - 1.2) * 0.9)
    return replace(member, rating=rating)


def evolve(rng: np.random.Generator, population: Population, step: int) -> list[Birth]:
    births = []
    for role in ("teacher", "student"):
        ranked = sorted(population.of(role), key=fitness)
        weakest, best = ranked[0], ranked[-1]
        operator = str(rng.choice(["M1", "M4", "X2", "X3", "copy_parent"]))
        parents = (best.id, ranked[-2].id) if operator.startswith("X") and len(ranked) > 2 else (best.id,)
        name = f"{weakest.id.split('.')[0]}.{step}"
        child = Individual(name, weakest.role, weakest.slot, Rating(25.0, 25 / 3), step, parents, operator)
        population.members[population.members.index(weakest)] = child
        constants = {"e": 0.1} if operator.startswith("M") else {}
        births.append(Birth(step, name, weakest.id, parents, operator, constants, int(rng.integers(2**62)), 0.1))
    return births


def play(
    rng: np.random.Generator,
    tx,
    population: Population,
    step: int,
    progress: float,
    tasks_per_match: int,
    num_attempts: int,
    texts: Sequence[str],
) -> dict[str, list[float]]:
    """Write matches, candidates, tasks and attempts of a step; return solve rates of tasks by kind."""
    teachers, students = population.of("teacher", "both"), population.of("student", "both")
    order = rng.permutation(len(students))
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for at, teacher in enumerate(teachers):
        student = students[int(order[at % len(order)])]
        tasks, attempts, candidates, solved = [], [], [], []
        for number in range(tasks_per_match):
            kind = KINDS[number % 3]
            text = texts[int(rng.integers(len(texts)))] if texts else "plain"
            candidate = Candidate(
                f"{step}.{teacher.id}.{number}", teacher.id, student.id, kind, f"```python\n{text}\n```"
            )
            if rng.random() < 0.1:
                reason = REASONS[int(rng.integers(len(REASONS)))]
                candidates.append(CandidateRecord(candidate, reason, text, -1.0, -1.5, 60))
                continue
            rate = float(np.clip(0.5 + 0.25 * np.sin(8 * progress) + rng.normal(0, 0.15), 0, 1))
            tasks.append(task_record(rng, candidate, text, progress))
            results = rng.random(num_attempts) < rate
            attempts += [attempt_record(rng, candidate, text, bool(right), progress) for right in results]
            solved.append(float(results.mean()))
            rates[kind].append(solved[-1])
            candidates.append(CandidateRecord(candidate, "ok", "", 1 - solved[-1], 0.3, 64))
        mean = float(np.mean(solved)) if solved else None
        winner = "student" if mean is None or mean > 0.5 else "teacher"
        tx.add_matches([MatchRecord(Match(teacher.id, student.id, 0.5), len(tasks), mean, winner)])
        tx.add_candidates(candidates)
        tx.add_tasks(tasks)
        tx.add_attempts(attempts)
    return rates


def task_record(rng: np.random.Generator, candidate: Candidate, text: str, progress: float) -> TaskRecord:
    num_pairs = 10 if candidate.kind == "code_f" else 1
    constant = int(rng.integers(30_000))
    task = Task(
        candidate.id,
        candidate.teacher,
        candidate.student,
        candidate.kind,
        f"def f(x):\n    y = x + {constant}\n    # {text}\n    return [y, {text[:40]!r}]",
        tuple(str(n) for n in range(num_pairs)),
        tuple(f"[{n + constant}, {text[:40]!r}]" for n in range(num_pairs)),
        text if candidate.kind == "code_f" else "",
        5 if candidate.kind == "code_f" else 0,
        "rlimit",
    )
    grown = int(rng.poisson(2 + 2 * progress))
    return TaskRecord(task, measured(4 + grown, 1 + grown // 2, 3 + grown, 1 + grown // 2), f"add {constant}")


def attempt_record(
    rng: np.random.Generator, candidate: Candidate, text: str, right: bool, progress: float
) -> AttemptRecord:
    thought = f"x=3; y={text[:60]}" if rng.random() < 0.15 + 0.5 * progress else ""
    marked = f"<think>{thought}</think>" if thought else ""
    answer = None if rng.random() < 0.03 else "[3, 'a']"
    written = f"{marked}<answer>{answer}</answer>" if answer else text
    grade = Grade(right and answer is not None, "ok" if answer else "unparsable")
    attempt = Attempt(candidate.id, candidate.student, written, answer, thought, 12 + len(thought) // 3)
    return AttemptRecord(Outcome(attempt, grade), 1.0 if grade.correct else -0.5, float(rng.normal()))


def metrics(rng: np.random.Generator, progress: float, rates: dict[str, list[float]]) -> dict[str, float]:
    def noisy(value: float, spread: float = 0.03) -> float:
        return float(value + rng.normal(0, spread))

    every = [rate for kind in rates.values() for rate in kind]
    by_kind = {
        f"solve/rate/{kind}": float(np.mean(values)) if values else float("nan") for kind, values in rates.items()
    }
    valid = {f"propose/valid_frac/{kind}": min(1.0, noisy(0.9)) for kind in KINDS}
    return {
        "match/expected_win_mean": noisy(0.5),
        "propose/rejected/timeout": float(round(3 * (1 - progress))),
        "propose/valid_frac": min(1.0, noisy(0.9)),
        **valid,
        "propose/unique_frac": min(1.0, noisy(0.93)),
        "propose/entropy": noisy(0.8 - 0.1 * progress),
        "propose/tokens_mean": noisy(62, 3),
        "solve/rate": float(np.mean(every)) if every else float("nan"),
        **by_kind,
        "solve/thought_frac": min(1.0, noisy(0.15 + 0.5 * progress)),
        "solve/entropy": noisy(0.4 - 0.15 * progress),
        "solve/tokens_mean": noisy(20 + 25 * progress, 2),
        "solve/unparsable_frac": max(0.0, noisy(0.03, 0.01)),
        "reward/teacher_mean": noisy(0.35),
        "reward/student_mean": noisy(0.25),
        "learn/teacher/loss": noisy(0.01),
        "learn/student/loss": noisy(0.02),
        "learn/teacher/grad_norm": abs(noisy(0.5, 0.1)),
        "learn/student/grad_norm": abs(noisy(0.7, 0.1)),
        "evolve/births": 0.0,
    }


def evaluate(rng: np.random.Generator, individual: str, mean: float, num_strata: int) -> list[EvaluationRecord]:
    """Score an individual on the first ``num_strata`` strata times all kinds, sampled and greedy."""
    records = []
    for at, stratum in enumerate(STRATA[:num_strata]):
        for kind in ("all", *KINDS):
            for mode, lift in (("sampled", 0.0), ("greedy", 0.12)):
                half = 0.018 if (stratum, kind) == ("all", "all") else 0.045
                level = float(np.clip(mean + lift - 0.04 * at + rng.normal(0, 0.01), 0.02, 0.98))
                records.append(
                    EvaluationRecord(
                        individual,
                        stratum,
                        kind,
                        mode,
                        1200 // (1 + at),
                        level,
                        level - half,
                        level + half,
                        0.3,
                        24.0,
                    )
                )
    return records
