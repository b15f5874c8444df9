"""The tax of a population: one step (sample and learn) of M members against one adapter, on the same tokens.

Every setting has its own bank of M members on its own copy of the embedded base, and the same prompts, dealt out to the
members in turn; completions have a fixed length, so that every setting reads, writes and learns the very same number of
tokens. The tax is the median over rounds of time(M) / time(1). Prints a table and, as its last line, a JSON object.

    python bench/population_tax.py [--members 1 2 4 8 16 32 100] [--repeats 5] [--threads 2] [--precision bf16]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from _shared import interleaved, load_model, median_ratio, print_result, print_table

from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.nouns import Request, Rollout
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import Precision, freeze
from redqueen.policy.torch_sampler import TorchSampler


def build_step(
    num_members: int, options: argparse.Namespace, phases: dict[str, list[float]], device: str
) -> Callable[[], None]:
    """Return one step of a population of ``num_members`` as a job; it notes the seconds of its phases."""
    precision: Precision = options.precision
    base = freeze(load_model(options.base), device, precision)
    bank = AdapterBank(base, num_members, options.rank, 2.0 * options.rank)
    generator = torch.Generator().manual_seed(0)
    vocabulary = bank.base.head.out_features
    requests = []
    for i in range(options.prompts):
        length = int(torch.randint(60, 201, (1,), generator=generator))
        prompt = tuple(torch.randint(0, vocabulary, (length,), generator=generator).tolist())
        requests.append(Request(i % num_members, prompt, options.attempts, rng_seed=i))
    sampler = TorchSampler(bank, max_new_tokens=options.new_tokens, end_tokens=[], max_rows=options.rows)
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-4))
    signs = tuple((-1.0) ** i for i in range(options.attempts))

    def step() -> None:
        start = time.perf_counter()
        groups = sampler.sample(requests)
        middle = time.perf_counter()
        learner.update([Rollout(r.slot, r.prompt, tuple(g), signs) for r, g in zip(requests, groups, strict=True)])
        phases.setdefault("sample", []).append(middle - start)
        phases.setdefault("learn", []).append(time.perf_counter() - middle)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 100])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--rank", type=int, default=8, help="lora_rank; the shipped configuration has 8")
    parser.add_argument("--prompts", type=int, default=104)
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--rows", type=int, default=512, help="sequences decoded at a time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    members = sorted({1, *options.members})
    phases: dict[int, dict[str, list[float]]] = {m: {} for m in members}
    seconds = interleaved({str(m): build_step(m, options, phases[m], device) for m in members}, options.repeats)
    tax = {str(m): median_ratio(seconds[str(m)], seconds["1"]) for m in members if m > 1}
    parts = {
        name: {str(m): median_ratio(phases[m][name][1:], phases[1][name][1:]) for m in members if m > 1}
        for name in ("sample", "learn")
    }
    print_table(
        ["members", "step s", "sample s", "learn s", "tax", "sample tax", "learn tax"],
        [
            [
                m,
                statistics.median(seconds[str(m)]),
                statistics.median(phases[m]["sample"][1:]),
                statistics.median(phases[m]["learn"][1:]),
                tax.get(str(m), 1.0),
                parts["sample"].get(str(m), 1.0),
                parts["learn"].get(str(m), 1.0),
            ]
            for m in members
        ],
    )
    print_result(
        {
            "tax": tax,
            "sample_tax": parts["sample"],
            "learn_tax": parts["learn"],
            "step_s": {name: statistics.median(values) for name, values in seconds.items()},
            "settings": vars(options),
        }
    )


if __name__ == "__main__":
    main()
