"""P1: how many tasks and answers the untrained base gets right at each temperature of its attempts.

    python experiments/cooler_attempts.py RUN_DIR --temperatures 1.0 0.7 --attempts 2 --tasks 6000 --seed 0

The tasks are drawn from the tasks of the run. At each temperature the same tasks get the same number of attempts.
Differences are paired over tasks, with bootstrap intervals.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from redqueen.engine import open_engine
from redqueen.journal import Journal
from redqueen.journal.read import as_task, with_pairs
from redqueen.records import BASE_SLOT, Individual, Rating, Request
from redqueen.run.store import JOURNAL, load_run_config
from redqueen.solve import SampledAttempts, grade
from redqueen.statistics import bootstrap_mean
from redqueen.streams import Streams

BASE = Individual("base", "student", BASE_SLOT, Rating(0.0, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[1.0, 0.7], help="the first is the reference")
    parser.add_argument("--attempts", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config, streams = load_run_config(options.run_dir), Streams(options.seed, 0)
    with Journal.open(options.run_dir / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT * FROM task WHERE num_attempts > 0 ORDER BY seq")
    known = [as_task(with_pairs(row)) for row in rows]
    drawn = streams.rng("tasks").permutation(len(known))[: options.tasks]
    tasks = [known[i] for i in sorted(drawn)]
    found = {}
    with open_engine(config) as engine:
        form = engine.prompt_format
        prompts = [form.encode(engine.tokenizer, form.solve(task)) for task in tasks]
        for temperature in options.temperatures:
            requests = [
                Request(BASE_SLOT, prompt, options.attempts, streams.seed("solve", str(temperature), task.id))
                for task, prompt in zip(tasks, prompts, strict=True)
            ]
            groups = engine.sampler(temperature).sample(requests)
            sampled = [SampledAttempts(t, BASE, p, tuple(g)) for t, p, g in zip(tasks, prompts, groups, strict=True)]
            graded = grade(sampled, engine.verifier, form, engine.tokenizer)
            right = [[outcome.grade.correct for outcome in one.outcomes] for one in graded]
            found[temperature] = np.array(right, dtype=float)  # (tasks, attempts)
    reference = found[options.temperatures[0]]
    print(f"{len(tasks):,} tasks, {options.attempts} attempts each")
    for temperature, right in found.items():
        cells = []
        for name, own, other in (
            ("answers", right.mean(axis=1), reference.mean(axis=1)),
            ("tasks", right.max(axis=1), reference.max(axis=1)),
        ):
            scale = 100 / other.mean()
            low, high = bootstrap_mean(scale * (own - other), streams.rng("bootstrap"))
            change = scale * (own - other).mean()
            cells.append(f"right {name} {100 * own.mean():.1f} %, {change:+.1f} % ({low:.1f} to {high:.1f})")
        print(f"temperature {temperature}: {'; '.join(cells)}")


if __name__ == "__main__":
    main()
