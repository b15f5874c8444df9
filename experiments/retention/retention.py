"""How well children of each operator score after further training, compared with a copy and the parents' mean.

    python experiments/retention/retention.py --seeds 3 --out retention.csv    # on the embedded base
    python experiments/retention/retention.py --report retention.csv           # print its table

For each seed, two adapters learn deduction and abduction by policy gradients, each on its own programs; the one with
the higher held-out score is the first parent. Every operator makes one child. All children are then trained on the same
tasks with the same random seeds, and scored on the held-out programs at birth and every few updates. Programs come from
the frozen suite; held-out programs are never trained on. The *area* under a child's curve, divided by its length, is
its mean score; the report compares areas paired by seed, with Student's t intervals over seeds.

``experiments/tables/retention.csv`` was measured on an earlier base and on generated programs (commit 52e3c47).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from redqueen.config import parse_config
from redqueen.domains.registry import load_suites
from redqueen.engine import Engine, open_engine
from redqueen.evolve.operators import OPERATORS, apply
from redqueen.learn.rewards import assign_credit
from redqueen.records import BASE_SLOT, Individual, Rating, Request, Task
from redqueen.solve import GradedAttempts, SampledAttempts, grade
from redqueen.statistics import mean_interval
from redqueen.streams import Streams

PARENTS = (0, 1)
KINDS = ("code_o", "code_i")
COPY, MEAN = "copy_parent", "linear_0_5"
COLUMNS = ("seed", "member", "change", "birth", "end", "area")
SEED = 20_260_102
"""Seed of the held-out programs, the same in all trials."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of updates of parents and children, and programs per update; a program gives one task of each kind."""

    parent_updates: int = 24
    parent_programs: int = 8
    updates: int = 12
    programs: int = 3
    measure_every: int = 4
    held_out: int = 32
    attempts: int = 6
    max_new_tokens: int = 320
    operators: tuple[str, ...] = tuple(OPERATORS)

    @property
    def children(self) -> tuple[int, ...]:
        """The slots of the children, in the order of the operators."""
        return tuple(range(len(PARENTS), len(PARENTS) + len(self.operators)))


QUICK = Sizes(1, 1, 1, 1, 1, 2, 2, 64, ("M1", "X3", COPY, MEAN))


def open_bench(sizes: Sizes, num_threads: int = 0) -> Engine:
    """Open the embedded base with two parents and a child of each operator."""
    population = {
        "num_teachers": 1,
        "num_students": len(PARENTS) + len(sizes.children) - 1,
        "lora_rank": 8,
        "lora_alpha": 16,
    }
    sections = {
        "run": {"name": "retention", "num_threads": num_threads},
        "population": population,
        "solve": {"num_attempts": sizes.attempts, "max_new_tokens": sizes.max_new_tokens},
        "learn": {"learning_rate": 3e-3},
    }
    return open_engine(parse_config(sections, "the retention experiment"))


class Trial:
    """One seed. ``rows`` of the table: base and parents (only scored at birth), then the child of every operator."""

    def __init__(self, engine: Engine, seed: int, sizes: Sizes) -> None:
        self.engine, self.seed, self.sizes = engine, seed, sizes
        programs: dict[str, list[Task]] = {}
        for item in load_suites(engine.config.propose)["code"]:
            if item.kind in KINDS:
                programs.setdefault(item.cluster, []).append(item.task)
        names = sorted(programs)
        order = Streams(SEED, 0).rng("held-out").permutation(len(names))
        self.held_out = [task for i in order[: sizes.held_out] for task in programs[names[i]]]
        self.trained = [programs[names[i]] for i in order[sizes.held_out :]]
        self.rows: list[dict[str, object]] = []

    def run(self) -> list[dict[str, object]]:
        """Train the parents, breed, train the children; return the rows."""
        for slot in (*PARENTS, *self.sizes.children):
            self.engine.store.reset(slot, self.seed)
        self._row("base", birth=self._score([BASE_SLOT])[0])
        for update in range(1, self.sizes.parent_updates + 1):
            draws = {slot: self._draw(update, self.sizes.parent_programs, slot) for slot in PARENTS}
            self._train(update, [(task, slot) for slot, tasks in draws.items() for task in tasks])
        changes = self._breed()
        updates, curves = [0], [self._score(self.sizes.children)]
        for update in range(1, self.sizes.updates + 1):
            step = self.sizes.parent_updates + update
            tasks = self._draw(step, self.sizes.programs)
            self._train(step, [(task, slot) for slot in self.sizes.children for task in tasks])
            if update % self.sizes.measure_every == 0 or update == self.sizes.updates:
                updates.append(update)
                curves.append(self._score(self.sizes.children))
        for name, change, curve in zip(self.sizes.operators, changes, zip(*curves, strict=True), strict=True):
            self._row(name, change=change, birth=curve[0], end=curve[-1], area=area(updates, curve))
        return self.rows

    def _breed(self) -> list[float]:
        """Load every operator's child into its slot; return |dW_child - dW_parent| / |dW_parent| of each."""
        store = self.engine.store
        scores = dict(zip(PARENTS, self._score(PARENTS), strict=True))
        order = sorted(PARENTS, key=lambda slot: -scores[slot])
        for number, slot in enumerate(order, start=1):
            self._row(f"parent {number}", birth=scores[slot])
        parents, fitness = [store.genotype(slot) for slot in order], [scores[slot] for slot in order]
        changes = []
        for slot, name in zip(self.sizes.children, self.sizes.operators, strict=True):
            operator = OPERATORS[name]
            count = operator.num_parents
            draw = Streams(self.seed, self.sizes.parent_updates).seed("breed", operator.id)
            child = apply(operator, parents[:count], fitness[:count], draw)
            store.load(slot, child.genotype)
            changes.append(child.change.overall)
        return changes

    def _draw(self, update: int, num_programs: int, slot: int = -1) -> list[Task]:
        rng = Streams(self.seed, update).rng("programs", str(slot))
        return [task for i in rng.permutation(len(self.trained))[:num_programs] for task in self.trained[i]]

    def _train(self, update: int, pairs: Sequence[tuple[Task, int]]) -> None:
        answered = self._attempt(pairs, self.sizes.attempts, Streams(self.seed, update))
        self.engine.learner.update(assign_credit([], [], answered, self.engine.config.learn).rollouts)

    def _score(self, slots: Sequence[int]) -> list[float]:
        """Return each slot's share of right attempts at the held-out tasks, with the same seeds every time."""
        answered = self._attempt([(task, slot) for slot in slots for task in self.held_out], 1, Streams(SEED, 1))
        shares = [one.solve_frac or 0.0 for one in answered]
        size = len(self.held_out)
        return [fmean(shares[i * size : (i + 1) * size]) for i in range(len(slots))]

    def _attempt(self, pairs: Sequence[tuple[Task, int]], num_attempts: int, streams: Streams) -> list[GradedAttempts]:
        engine, form = self.engine, self.engine.prompt_format
        prompts = [form.encode(engine.tokenizer, form.solve(task)) for task, _ in pairs]
        requests = [
            Request(slot, prompt, num_attempts, streams.seed("solve", task.id))
            for (task, slot), prompt in zip(pairs, prompts, strict=True)
        ]
        sampled = [
            SampledAttempts(task, Individual(f"slot {slot}", "student", slot, Rating(0.0, 0.0)), prompt, tuple(group))
            for (task, slot), prompt, group in zip(pairs, prompts, engine.solver.sample(requests), strict=True)
        ]
        return grade(sampled, engine.verifier, form, engine.tokenizer)

    def _row(self, member: str, **numbers: float) -> None:
        shown = {name: f"{value:.4f}" for name, value in numbers.items()}
        self.rows.append({"seed": self.seed, "member": member, **shown})


def area(updates: Sequence[int], curve: Sequence[float]) -> float:
    """Return the area under a curve by the trapezoid rule, divided by its length: a mean score."""
    pieces = zip(updates, updates[1:], curve, curve[1:], strict=False)
    return sum((after - before) * (a + b) / 2 for before, after, a, b in pieces) / (updates[-1] - updates[0])


def report(path: Path) -> str:
    """Return the table of results: means over seeds in points, and differences with 95 % t intervals."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    areas: dict[str, list[float]] = {}
    for row in rows:
        if row["area"]:
            areas.setdefault(row["member"], []).append(100 * float(row["area"]))
    births = {
        name: fmean(100 * float(r["birth"]) for r in rows if r["member"] == name) for name in ("base", "parent 1")
    }
    lines = [f"base {births['base']:.1f}, first parents {births['parent 1']:.1f}, {len(areas[COPY])} seeds", ""]
    lines += ["| operator | area | less a copy's | less the mean's |", "|---|---|---|---|"]
    for name, own in areas.items():
        cells = [_difference(own, areas[other]) for other in (COPY, MEAN)]
        lines.append(f"| {name} | {fmean(own):.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _difference(own: Sequence[float], other: Sequence[float]) -> str:
    paired = [a - b for a, b in zip(own, other, strict=True)]
    low, high = mean_interval(paired)
    return f"{fmean(paired):.1f} ({low:.1f} to {high:.1f})" if low <= high else f"{fmean(paired):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--out", type=Path, default=Path("retention.csv"))
    parser.add_argument("--quick", action="store_true", help="a tiny version that only tests that everything runs")
    parser.add_argument("--report", type=Path, metavar="TABLE", help="only print the report of a table")
    options = parser.parse_args()
    if options.report is None:
        sizes = QUICK if options.quick else Sizes()
        with options.out.open("w", encoding="utf-8", newline="") as file, open_bench(sizes, options.threads) as engine:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for seed in range(options.seeds):
                writer.writerows(Trial(engine, seed, sizes).run())
    print(report(options.report or options.out))


if __name__ == "__main__":
    main()
