"""What a run's right answers teach when they are read in another way, judged by tasks that no suite has.

    python experiments/distil_again.py RUN_DIR --judge OTHER_RUN [--set distill.num_epochs=4] [--several 4]

A fresh adapter reads the right answers of RUN_DIR, as ``run.product = "distilled"`` does at a run's end, with what
``--set`` changes. Base and adapter then answer tasks of another run with the same base that RUN_DIR has not posed,
once greedily and twice sampled: drawn evenly from all of them, in the order in which they were posed. So settings of
the reading are chosen without a frozen suite. With ``--several`` so many adapters read the same answers in orders of
their own, and their mean in delta space answers too. Prints each score in per cent, and differences with the paired
interval of 95 %.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from paired_answers import difference

from redqueen.config.load import parse_config
from redqueen.engine import open_engine
from redqueen.errors import UserError
from redqueen.evolve.merge import mean_of
from redqueen.evolve.probe import Prober
from redqueen.files import apply_override
from redqueen.journal.read import as_task
from redqueen.learn.distillation import examples_of, fine_tune
from redqueen.nouns import Individual, Rating, Task
from redqueen.report.task_list import TaskFilter, find_tasks
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS, load_run_config
from redqueen.state import state_from_plain
from redqueen.streams import Streams


def key(task: Task) -> tuple[str, str, tuple[str, ...]]:
    """Return what two equal tasks share."""
    return task.kind, task.code, task.inputs


def fresh_tasks(judge: Path, known: Path, most: int) -> list[Task]:
    """Return ``most`` of the tasks of ``judge`` that ``known`` has not posed, evenly from first to last."""
    posed = {key(as_task(row)) for row in find_tasks(known, TaskFilter(limit=0))}
    found = {key(task): task for task in map(as_task, reversed(find_tasks(judge, TaskFilter(limit=0))))}
    fresh = [task for name, task in found.items() if name not in posed]
    return [fresh[i] for i in np.linspace(0, len(fresh) - 1, min(most, len(fresh))).astype(int)]


def play(args: argparse.Namespace) -> None:
    """Distil, judge and print."""
    config = load_run_config(args.run_dir)
    data = config.model_dump()
    for setting in args.set:
        apply_override(data, setting)
    config = parse_config(data, "--set")
    most = config.num_adapters - (2 if args.several > 1 else 1)
    if not 1 <= args.several <= most:
        raise UserError(f"--several {args.several}: this run has room for 1 to {most} readers")
    tasks = fresh_tasks(args.judge, args.run_dir, args.tasks)
    checkpoint = Checkpoint.latest_valid(args.run_dir / CHECKPOINTS)
    if checkpoint is None:
        raise UserError(f"{args.run_dir} has no checkpoint")
    answers = state_from_plain(checkpoint.state["state"]).answers.by_task.values()
    with open_engine(config) as engine:
        streams = Streams(args.seed, 0)
        examples = examples_of(answers, engine.prompt_format, engine.tokenizer)
        names, began = ["base", *(f"reader {i + 1}" for i in range(args.several))], time.monotonic()
        engine.store.reset(0, args.seed)
        for slot in range(1, len(names)):
            made = fine_tune(examples, engine.store, engine.learner, slot, config.distill, Streams(args.seed, slot))
        print(f"{made.num_answers:,} answers in {time.monotonic() - began:.0f} s, {len(tasks):,} tasks", flush=True)
        if args.several > 1:
            engine.store.load(len(names), mean_of([engine.store.genotype(slot) for slot in range(1, len(names))]))
            names.append("their mean")
        rows = [("greedy", 0.0, 1), ("sampled", config.solve.temperature, 2)]
        members = [Individual(name, "student", slot, Rating(0.0, 1.0), 0) for slot, name in enumerate(names)]
        for name, heat, attempts in rows:
            prober = Prober(
                engine.sampler(heat), engine.verifier, engine.prompt_format, engine.tokenizer, streams, attempts
            )
            shares = prober.look(tasks, members).shares
            known = ~np.isnan(shares).any(axis=0)
            base, *others = shares[:, known].tolist()
            asked = [task.id for task, whole in zip(tasks, known, strict=True) if whole]
            print(f"{name}: base {100 * np.mean(base):.1f}", flush=True)
            for member, taught in zip(members[1:], others, strict=True):
                print(f"  {member.id} {100 * np.mean(taught):.1f}, {difference(taught, base, asked)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--tasks", type=int, default=1500)
    parser.add_argument("--several", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    try:
        play(parser.parse_args())
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
