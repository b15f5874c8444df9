"""The speed-up by bfloat16 on this processor: the same step with the base in float32 and in bfloat16.

Rounds are interleaved; ``model.precision = auto`` should name the faster one. Prints a table and, as its last line,
JSON.

    python bench/precision.py [--base embedded] [--threads 2] [--repeats 3] [--prompts 32] [--new-tokens 32]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import get_args

import torch
from _shared import interleaved, load_model, median_ratio, print_result, print_table, sample_and_learn

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Precision, choose_precision, freeze
from redqueen.adapters.memory import keep_freed_memory
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request


def step_in(precision: Precision, options: argparse.Namespace) -> tuple[Callable[[], None], list[tuple[float, float]]]:
    """Return a step in this precision, and the list to which it appends its seconds of sampling and of learning."""
    bank = AdapterBank(freeze(load_model(options.base), precision=precision), 1, options.rank, 2.0 * options.rank)
    sampler = TorchSampler(bank, options.new_tokens, end_tokens=[])
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-5))
    prompts = torch.randint(3, bank.base.head.out_features, (options.prompts, options.prompt_tokens)).tolist()
    requests = [Request(0, tuple(prompt), options.attempts, rng_seed=i) for i, prompt in enumerate(prompts)]
    seconds: list[tuple[float, float]] = []
    return lambda: seconds.append(sample_and_learn(sampler, learner, requests)), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--attempts", type=int, default=2)
    parser.add_argument("--prompt-tokens", type=int, default=100)
    parser.add_argument("--new-tokens", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    steps = {precision: step_in(precision, options) for precision in get_args(Precision)}
    interleaved({precision: step for precision, (step, _) in steps.items()}, options.repeats)
    parts = {p: [list(part) for part in zip(*seconds[1:], strict=True)] for p, (_, seconds) in steps.items()}
    faster = {name: median_ratio(parts["fp32"][i], parts["bf16"][i]) for i, name in enumerate(("sample", "learn"))}
    print_table(
        ["precision", "sample s", "learn s"],
        [[precision, *(statistics.median(part) for part in both)] for precision, both in parts.items()],
    )
    chosen = choose_precision("auto", "cpu")
    print_result({"fp32_over_bf16": faster, "auto": chosen, "settings": vars(options)})


if __name__ == "__main__":
    main()
