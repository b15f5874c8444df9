"""A journal as a long run leaves it: thousands of steps and 100,000 tasks, through the journal's own writer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from synthetic_run import Population, drift, evaluate, evolve, fitness, founders, metrics, play

from redqueen.journal import Journal, RunRecord
from redqueen.report.metrics import PHASES
from redqueen.run.store import JOURNAL

WORDS = ("total", "left", "right", "pairs", "count", "key", "value", "word", "stack", "seen", "limit", "steps")


def build_large_run(run_dir: Path, num_steps: int = 2400, num_members: int = 8, tasks_per_match: int = 6) -> Path:
    """Write a run of ``num_members`` teachers and students with about 43 valid tasks a step into ``run_dir``."""
    rng = np.random.default_rng(7)
    run_dir.mkdir(parents=True)
    population = Population(founders(num_members, num_members))
    texts = [program_text(rng) for _ in range(400)]
    arm = f"{num_members}T+{num_members}S"
    run = RunRecord(run_dir.name, arm, 7, {"run": {"num_steps": num_steps}}, {"redqueen": "0.1.0"})
    with Journal.create(run_dir / JOURNAL, run) as journal:
        journal.connection.execute("PRAGMA synchronous = OFF")
        journal.add_session(1_700_000_000.0, None)
        with journal.step(0) as tx:
            tx.add_individuals(population.members)
            tx.add_ratings((m, fitness(m)) for m in population.members)
            tx.add_evaluations(evaluate(rng, "base", 0.42, 7))
        for step in range(1, num_steps + 1):
            births = evolve(rng, population, step) if step % 10 == 0 else []
            with journal.step(step) as tx:
                rates = play(rng, tx, population, step, step / num_steps, tasks_per_match, 4, texts)
                tx.add_individuals(m for m in population.members if m.born_step == step)
                tx.add_births(births)
                population.members = [drift(rng, member) for member in population.members]
                tx.add_ratings((m, fitness(m)) for m in population.members)
                tx.add_metrics(metrics(rng, step / num_steps, rates))
                tx.add_timings({phase: float(rng.gamma(4.0, 0.2)) for phase in PHASES})
                if step % 100 == 0:
                    tx.add_evaluations(evaluate(rng, "students", 0.5, 7))
    return run_dir


def program_text(rng: np.random.Generator) -> str:
    """Return some lines like those of a program, about 250 characters."""
    lines = [f"{rng.choice(WORDS)} = {rng.choice(WORDS)} + {rng.integers(100)}" for _ in range(12)]
    return "\n    # ".join(lines)
