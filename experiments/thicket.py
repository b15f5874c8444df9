"""P6, the thicket curve: the share of children of each operator, at three strengths, that beat their parent.

    python experiments/thicket.py runs/maths-0 --out thicket.csv      # inference only; --set changes the run's config
    python experiments/thicket.py RUN_DIR --suite cruxeval-o --data cruxeval.jsonl --limit 200    # items of a benchmark
    python experiments/thicket.py --report thicket.csv                # the table of results

The parents are two different adapters of the run's newest checkpoint: the distilled one, if any, then the students, by
rating. All members answer the same held-out items greedily. A *strength* multiplies a mutation's first constant; a
crossover has only strength 1. Items are divided into halves: the best child on one half is compared with the parent on
the other half, and vice versa, so "best child" is the gain of selecting among these children without selection bias.
Prediction: "Neural Thickets" (arXiv 2603.12228) finds that the share of better children grows with the base.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from redqueen.adapters.genotype import Genotype, relative_change
from redqueen.config import Config, load_config, parse_config
from redqueen.domains.domain import Item
from redqueen.engine import open_engine
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.external import EVALUATION_SEED, Examiner
from redqueen.evaluate.fitness_suite import score
from redqueen.evaluate.questions import TaskQuestion
from redqueen.evolve.operators import Operator, apply, find, tuned
from redqueen.run.checkpoint import open_checkpoint
from redqueen.run.store import CHECKPOINTS, load_run_config

OPERATORS = ("M1", "M2", "M3", "M4", "X1", "X3", "linear_0_5")
COLUMNS = ("operator", "strength", "child", "change", "half_1", "half_2")
PARENT = "parent"


def parents_of(folder: Path, config: Config) -> list[Genotype]:
    """Return two different adapters of a run. Raises UserError when it has no checkpoint or only one adapter."""
    found = open_checkpoint(folder / CHECKPOINTS, config)
    if found is None:
        raise UserError(f"{folder} has no checkpoint yet")
    checkpoint, state = found
    with open_engine(config) as engine:
        engine.store.load_state(checkpoint.tensors)
        students = sorted(state.students, key=lambda one: -one.rating.mu)
        slots = [*config.slots.distilled, *(one.slot for one in students)]
        first, *others = [engine.store.genotype(slot) for slot in slots]
    for other in others:
        if relative_change(other, first).overall > 0.01:
            return [first, other]
    raise UserError(f"{folder} has only one adapter, or copies of it: the operators need two parents")


def with_changes(config: Config, changes: Mapping[str, Mapping[str, Any]], overrides: Sequence[str]) -> Config:
    """Return the config of a run with ``changes`` by section, and then with the user's ``section.field=value``."""
    data, given = config.model_dump(mode="json"), load_config(None, overrides)
    for section, fields in changes.items():
        data[section] |= fields
    for section in given.model_fields_set:
        data[section] |= getattr(given, section).model_dump(mode="json", exclude_unset=True)
    return parse_config(data, "the changed config of the run")


def at_strength(operator: Operator, strength: float) -> Operator:
    """Return the operator with its first constant multiplied by ``strength``."""
    constants = asdict(operator.constants)
    name = next(iter(sorted(constants, key=lambda name: name != "mutation_std")))
    return tuned(operator, {name: constants[name] * strength})


def items_of_benchmark(suite: str, data: Path | None, limit: int | None) -> list[Item]:
    """Return a benchmark's tasks as held-out items. Raises UserError for a benchmark that does not consist of tasks."""
    questions = load_questions(suite, data, limit)
    if not all(isinstance(one, TaskQuestion) for one in questions):
        raise UserError(f"--suite {suite} does not consist of tasks: choose cruxeval-o or cruxeval-i")
    return [Item(one.id, one.cluster or one.id, f"{suite}/all", one.task.kind, one.task) for one in questions]


def measure(
    folder: Path, num_children: int, strengths: Sequence[float], overrides: Sequence[str], items: Sequence[Item] = ()
) -> Iterator[list[str]]:
    """Yield the rows of the table: the parent, then ``num_children`` children of each operator and strength.

    They answer ``items`` or, if empty, the run's own held-out items.
    """
    config = load_run_config(folder)
    parents = parents_of(folder, config)
    plans = [(find(name), s) for name in OPERATORS for s in strengths if s == 1.0 or find(name).family == "mutation"]
    changed: dict[str, dict[str, Any]] = {
        "population": {"num_teachers": 1, "num_students": num_children, "founders": []},
        "run": {"product": "none"},
        "distill": {"every_steps": 0},
    }
    with open_engine(with_changes(config, changed, overrides)) as engine:
        items = items or Examiner.of(engine).items
        half = np.random.default_rng(EVALUATION_SEED).permutation(len(items)) % 2 == 0

        def rows(operator: str, strength: float, changes: Sequence[float]) -> Iterator[list[str]]:
            scores = score(
                range(len(changes)), items, engine.sampler, engine.prompt_format, engine.tokenizer, engine.verifier, 1,
                EVALUATION_SEED, modes=["greedy"],
            )  # fmt: skip
            for number, (change, one) in enumerate(zip(changes, scores, strict=True)):
                means = np.array(one.item_means)
                halves = [f"{100 * np.nanmean(means[part]):.3f}" for part in (half, ~half)]
                yield [operator, str(strength), str(number), f"{change:.3f}", *halves]

        engine.store.load(0, parents[0])
        yield from rows(PARENT, 0.0, [0.0])
        for at, (operator, strength) in enumerate(plans):
            scaled = at_strength(operator, strength) if asdict(operator.constants) else operator
            changes = []
            for number in range(num_children):
                seed = 1000 * (at * num_children + number + 1) + number
                child = apply(scaled, parents[: scaled.num_parents], [1.0] * scaled.num_parents, seed)
                engine.store.load(number, child.genotype)
                changes.append(child.change.overall)
            yield from rows(operator.id, strength, changes)


def report(path: Path) -> str:
    """Return the table of results, in points above the parent."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    scores = np.array([[float(row["half_1"]), float(row["half_2"])] for row in rows])
    gains = scores[1:] - scores[0]
    cells: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows[1:]):
        cells.setdefault((row["operator"], row["strength"]), []).append(number)
    lines = [f"parent {scores[0].mean():.1f}", ""]
    lines += ["| operator | strength | change | mean child | children above | by a point | best child |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for (operator, strength), own in cells.items():
        mean, both = gains[own].mean(axis=1), gains[own]
        best = fmean((both[both[:, 0].argmax(), 1], both[both[:, 1].argmax(), 0]))
        change = fmean(float(rows[number + 1]["change"]) for number in own)
        shares = f"{100 * np.mean(mean > 0):.0f} % | {100 * np.mean(mean >= 1):.0f} %"
        lines.append(f"| {operator} | {strength} | {change:.2f} | {mean.mean():+.2f} | {shares} | {best:+.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", nargs="?", type=Path)
    parser.add_argument("--children", type=int, default=12, help="number of children per operator and strength")
    parser.add_argument("--strengths", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--suite", help="a benchmark of tasks instead of the run's own held-out items")
    parser.add_argument("--data", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, metavar="N", help="only its first N items")
    parser.add_argument("--out", type=Path, default=Path("thicket.csv"))
    parser.add_argument("--report", type=Path, metavar="TABLE", help="only print the report of a table")
    options = parser.parse_args()
    if options.report is None:
        items = items_of_benchmark(options.suite, options.data, options.limit) if options.suite else []
        with options.out.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            for row in measure(options.run_dir, options.children, options.strengths, options.set, items):
                table.writerow(row)
                file.flush()  # keeps the results if the script is stopped
    print(report(options.report or options.out))


if __name__ == "__main__":
    main()
