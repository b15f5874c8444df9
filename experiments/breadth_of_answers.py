"""P7a: does distilling right answers of more task families improve a base more on families it was not trained on?

    python experiments/breadth_of_answers.py --out breadth.jsonl             # one line per arm and seed; can be resumed
    python experiments/breadth_of_answers.py --out breadth.jsonl --report    # the results, in points

This is a cheap upper bound for self-play: the generators themselves give the right answers. Every arm distils the same
number of answers, as a run does, to tasks with default parameters spread evenly over its families. The evaluation is
greedy, on families of categories that no arm contains (except two of the twenty families, which are left out), and, as
a check that training works, on new tasks of the twenty families of gym-mix. Needs the extra gym and `make smollm2`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redqueen.config import Config, load_config
from redqueen.domains.domain import Item
from redqueen.domains.gym import kinds
from redqueen.domains.registry import check
from redqueen.engine import Engine, open_engine
from redqueen.evaluate.external import EVALUATION_SEED
from redqueen.evaluate.fitness_suite import score
from redqueen.learn.answers import VerifiedAnswer
from redqueen.learn.distillation import examples_of, fine_tune
from redqueen.records import BASE_SLOT, Candidate, Task
from redqueen.statistics import bootstrap_mean
from redqueen.streams import Streams

FOUR = ["chain_sum", "gcd", "spell_backward", "count_bits"]
TRAINED_ON = ["algorithmic", "arithmetic", "algebra", "cognition"]
HELD_OUT = ["graphs", "games", "logic", "induction", "geometry", "probability", "code"]
MAX_PROMPT, MAX_ANSWER = 640, 48
"""Maximum tokens; longer tasks are left out of the training answers and the held-out items."""
SETTINGS = (
    "population.num_teachers=1", "population.num_students=1", "run.product=distilled",
    "distill.learning_rate=3e-4", "distill.batch_size=24", "distill.warmup_updates=5",
)  # fmt: skip

SUITES = ("held out", "seen")
Line = dict[str, Any]


def of_categories(categories: Sequence[str]) -> list[str]:
    return [one.name for one in kinds.families().values() if one.category in categories and not one.error]


def answer_of(task: Task) -> VerifiedAnswer:
    return VerifiedAnswer(task, f" {task.outputs[0]}\n###", 0)


def fits(task: Task, engine: Engine) -> bool:
    [example] = examples_of([answer_of(task)], engine.prompt_format, engine.tokenizer)
    return len(example.prompt) <= MAX_PROMPT and len(example.answer) <= MAX_ANSWER


def tasks_of(families: Sequence[str], num: int, seed: int, engine: Engine) -> list[Task]:
    """Return ``num`` tasks, spread evenly over the families, each with default parameters and its own seed."""
    rng, found = np.random.default_rng(seed), []
    for name in families:
        drawn = rng.choice(10**6, 2 * -(-num // len(families)), replace=False)
        texts = [json.dumps({"seed": int(one)}) for one in drawn]
        proposals = [Candidate(f"{name}{n}", "", "", f"gym_{name}", "", code=text) for n, text in enumerate(texts)]
        made = [one for one in check(proposals, engine.verifier) if isinstance(one, Task) and fits(one, engine)]
        found.append({one.message: one for one in made}.values())
    return [one for part in itertools.zip_longest(*found) for one in part if one is not None][:num]


def held_out(names: Sequence[str], num_each: int, engine: Engine) -> list[Item]:
    """Return ``num_each`` held-out items of each family; families with fewer items that fit are left out."""
    kinds.NUM_HELD_OUT = 2 * num_each
    kinds.HELD_OUT_ROWS.clear()
    items = [item for item in kinds.held_out([f"gym_{name}" for name in names]) if fits(item.task, engine)]
    by_family = [[item for item in items if item.kind == f"gym_{name}"][:num_each] for name in names]
    return [item for own in by_family if len(own) == num_each for item in own]


def measure(config: Config, num: int, num_each: int, seeds: Sequence[int], known: Sequence[Line]) -> Iterator[Line]:
    """Yield a line for the base (seed -1) and for each arm and seed, except those in ``known``."""
    twenty = [name.removeprefix("gym:") for name in config.propose.domains]
    arms = {"1 family": FOUR[:1], "4 families": FOUR, "20 families": twenty, "56 families": of_categories(TRAINED_ON)}
    with open_engine(config) as engine:
        unseen = [name for name in of_categories(HELD_OUT) if name not in twenty]
        suites = dict(
            zip(SUITES, (held_out(unseen, num_each, engine), held_out(twenty, num_each // 3, engine)), strict=True)
        )
        done = {(line["arm"], line["seed"]) for line in known}
        for seed, arm in [(-1, "base"), *itertools.product(seeds, arms)]:
            if (arm, seed) in done:
                continue
            began, line, slot = time.monotonic(), {"arm": arm, "seed": seed}, BASE_SLOT
            if seed >= 0:
                [slot] = config.slots.distilled
                tasks = tasks_of(arms[arm], num, seed, engine)
                examples = examples_of(map(answer_of, tasks), engine.prompt_format, engine.tokenizer)
                tuned = fine_tune(examples, engine.store, engine.learner, slot, config.distill, Streams(seed, 0))
                line |= {"families": len({one.kind for one in tasks}), "answers": len(tasks), "nats": tuned.nats}
                line["tokens"] = sum(len(one.prompt) + len(one.answer) for one in examples)
            for name, items in suites.items():
                [found] = score(
                    [slot], items, engine.sampler, engine.prompt_format, engine.tokenizer, engine.verifier, 1,
                    EVALUATION_SEED, modes=["greedy"],
                )  # fmt: skip
                line[name] = list(found.item_means)
            yield line | {"seconds": round(time.monotonic() - began)}


def report(lines: Sequence[Line]) -> str:
    """Return the arms' means, and their differences from the base and from one family: paired by item and, for arms, by
    seed, with bootstrap intervals over items."""
    scores = {(one["arm"], one["seed"], suite): 100 * np.array(one[suite]) for one in lines for suite in SUITES}
    rows = ["| families | tokens per epoch | suite | mean | minus base | minus 1 family |", "|---|---|---|---|---|---|"]
    for arm, suite in itertools.product(dict.fromkeys(one["arm"] for one in lines), SUITES):
        own = [one for one in lines if one["arm"] == arm]
        cells = [f"{np.mean([scores[arm, one['seed'], suite] for one in own]):.1f}"]
        for other in ("base", "1 family"):
            seeds = [(one["seed"], -1 if other == "base" else one["seed"]) for one in own if arm not in ("base", other)]
            pairs = [scores[arm, a, suite] - scores[other, b, suite] for a, b in seeds if (other, b, suite) in scores]
            cells.append(_with_interval(np.mean(pairs, axis=0)) if pairs else "")
        tokens = f"{np.mean([one['tokens'] for one in own]):,.0f}" if arm != "base" else ""
        rows.append(f"| {arm} | {tokens} | {suite} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _with_interval(gains: np.ndarray) -> str:
    low, high = bootstrap_mean(gains, np.random.default_rng(EVALUATION_SEED))
    return f"{gains.mean():.1f} ({low:.1f} to {high:.1f})"


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--report", action="store_true", help="only print the report of the file")
    parser.add_argument("--num", type=int, default=600, help="answers per arm")
    parser.add_argument("--items", type=int, default=12, help="held-out items per family")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], help="section.field=value, over configs/gym-mix.toml")
    options = parser.parse_args()
    if not options.report:
        config = load_config(Path("configs/gym-mix.toml"), [*SETTINGS, *options.set])
        for line in measure(config, options.num, options.items, options.seeds, read(options.out)):
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print({name: value for name, value in line.items() if not isinstance(value, list)}, flush=True)
    print(report(read(options.out)))


if __name__ == "__main__":
    main()
