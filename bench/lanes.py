"""The speed-up by lanes: a step on one core, on all cores by threads inside operations, and on all cores by lanes.

Each way samples and learns from the same prompts, in interleaved rounds; the total size of rows and micro-batches does
not depend on the number of lanes. Prints a table and, as its last line, JSON.

    python bench/lanes.py [--base embedded] [--cores 2] [--repeats 5] [--prompts 512] [--attempts 2] [--new-tokens 100]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import torch
from _shared import interleaved, load_model, median_ratio, print_result, print_table, sample_and_learn

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import choose_precision, freeze
from redqueen.adapters.memory import keep_freed_memory
from redqueen.adapters.threads import LaneSampler
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request


def way(
    bank: AdapterBank, requests: list[Request], num_threads: int, num_lanes: int, options: argparse.Namespace
) -> tuple[Callable[[], None], list[tuple[float, float]]]:
    """Return a step with these threads and lanes, and the list of its sampling and learning seconds."""
    sampler = LaneSampler(TorchSampler(bank, options.new_tokens, end_tokens=[], max_rows=options.max_rows), num_lanes)
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-5), num_lanes=num_lanes)
    seconds: list[tuple[float, float]] = []

    def step() -> None:
        torch.set_num_threads(num_threads)
        seconds.append(sample_and_learn(sampler, learner, requests))

    return step, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--max-rows", type=int, default=1024)
    parser.add_argument("--prompts", type=int, default=512)
    parser.add_argument("--attempts", type=int, default=2)
    parser.add_argument("--prompt-tokens", type=int, default=100)
    parser.add_argument("--new-tokens", type=int, default=100)
    options = parser.parse_args()
    keep_freed_memory()
    bank = AdapterBank(
        freeze(load_model(options.base), precision=choose_precision("auto", "cpu")),
        options.members,
        options.rank,
        2.0 * options.rank,
    )
    prompts = torch.randint(3, bank.base.head.out_features, (options.prompts, options.prompt_tokens)).tolist()
    requests = [Request(i % options.members, tuple(p), options.attempts, rng_seed=i) for i, p in enumerate(prompts)]
    make = partial(way, bank, requests, options=options)
    ways = {
        "one core": make(num_threads=1, num_lanes=1),
        f"{options.cores} threads": make(num_threads=options.cores, num_lanes=1),
        f"{options.cores} lanes": make(num_threads=1, num_lanes=options.cores),
    }
    interleaved({name: step for name, (step, _) in ways.items()}, options.repeats)
    parts = {name: [list(part) for part in zip(*seconds[1:], strict=True)] for name, (_, seconds) in ways.items()}
    tokens = options.prompts * options.attempts * options.new_tokens
    one = parts["one core"]
    rows, faster = [], {}
    for name, part in parts.items():
        faster[name] = [median_ratio(one[i], part[i]) for i in range(2)]
        rows.append([name, *(statistics.median(p) for p in part), tokens / statistics.median(part[0]), *faster[name]])
    print_table(["way", "sample s", "learn s", "tokens/s", "sample x", "learn x"], rows)
    print_result({"over_one_core_sample_learn": faster, "settings": vars(options)})


if __name__ == "__main__":
    main()
