"""The tax of a population: time of one step (sample and learn) of M members relative to one adapter, on equal tokens.

Every setting has its own bank on its own copy of the embedded base, and the same prompts, assigned to the members in
turn; completions have a fixed length, so every setting processes the same number of tokens. Three ways to run M
members: ``resident`` (all in the bank, in mixed batches, as in a run), ``in-turn`` (all in the bank, one batch per
member), ``swapped`` (a bank of one; each member's factors and moments are copied in, and out after learning). The tax
is the median over rounds of time(M) / time(1 resident). Prints a table and, as its last line, a JSON object.

    python bench/population_tax.py [--members 1 2 4 8 16 32 100] [--ways resident in-turn swapped] [--repeats 5]
    python bench/population_tax.py --members 1 32 100 300 1000 --prompts 1000 --attempts 2 --repeats 3
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import torch
from _shared import interleaved, load_model, median_ratio, print_result, print_table

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Precision, choose_precision, freeze
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request, Rollout

WAYS = ("resident", "in-turn", "swapped")
PHASES = ("sample", "learn")
ONE = (1, "resident")
"""The reference of all comparisons."""
Phases = dict[str, list[float]]


def prompts_of(num_members: int, vocabulary: int, options: argparse.Namespace) -> list[Request]:
    """Return the same random prompts for any number of members, assigned in turn."""
    generator = torch.Generator().manual_seed(0)
    requests = []
    for i in range(options.prompts):
        length = int(torch.randint(60, 201, (1,), generator=generator))
        prompt = tuple(torch.randint(0, vocabulary, (length,), generator=generator).tolist())
        requests.append(Request(i % num_members, prompt, options.attempts, rng_seed=i))
    return requests


class Setting:
    """A bank with its sampler and learner, and one step of M members on it; records the seconds of its phases."""

    def __init__(self, num_members: int, way: str, options: argparse.Namespace, phases: Phases, device: str) -> None:
        precision: Precision = options.precision
        base = freeze(load_model(options.base), device, precision)
        self.bank = AdapterBank(base, 1 if way == "swapped" else num_members, options.rank, 2.0 * options.rank)
        self.sampler = TorchSampler(self.bank, options.new_tokens, end_tokens=[], max_rows=options.rows)
        self.learner = TorchLearner(self.bank, LearnConfig(learning_rate=1e-4))
        requests = prompts_of(num_members, self.bank.base.head.out_features, options)
        self.swapped_out: list[tuple[Genotype, dict[str, torch.Tensor]]] = []
        if way == "swapped":
            requests = [replace(request, slot=0) for request in requests]
            self.swapped_out = [(self.bank.genotype(0), self._moments()) for _ in range(num_members)]
        self.batches = [requests] if way == "resident" else [requests[m::num_members] for m in range(num_members)]
        self.signs = tuple((-1.0) ** i for i in range(options.attempts))
        self.phases = phases

    def _moments(self) -> dict[str, torch.Tensor]:
        """Return a copy of the optimiser state of the one member in the bank."""
        return {name: tensor.clone() for name, tensor in self.learner.state_dict().items()}

    def step(self) -> None:
        """Sample all prompts, then learn from all completions, batch by batch."""
        start = time.perf_counter()
        answers = []
        for i, requests in enumerate(self.batches):
            if self.swapped_out:
                self.bank.load(0, self.swapped_out[i][0])
            answers.append(self.sampler.sample(requests))
        middle = time.perf_counter()
        for i, (requests, groups) in enumerate(zip(self.batches, answers, strict=True)):
            if self.swapped_out:
                self.bank.load(0, self.swapped_out[i][0])
                self.learner.load_state(self.swapped_out[i][1])
            pairs = zip(requests, groups, strict=True)
            self.learner.update([Rollout(r.slot, r.prompt, tuple(g), self.signs) for r, g in pairs])
            if self.swapped_out:
                self.swapped_out[i] = (self.bank.genotype(0), self._moments())
        self.phases.setdefault("sample", []).append(middle - start)
        self.phases.setdefault("learn", []).append(time.perf_counter() - middle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 100])
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=["resident"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default=choose_precision("auto", "cpu"))
    parser.add_argument("--rank", type=int, default=8, help="lora_rank; the shipped configuration has 8")
    parser.add_argument("--prompts", type=int, default=104)
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--rows", type=int, default=512, help="sequences decoded at a time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = [(m, way) for way in options.ways for m in sorted(set(options.members)) if (m, way) != ONE]
    names = {setting: " ".join(map(str, setting)) for setting in [ONE, *settings]}
    phases: dict[str, Phases] = {name: {} for name in names.values()}
    jobs = {name: Setting(*setting, options, phases[name], device).step for setting, name in names.items()}
    seconds = interleaved(jobs, options.repeats)
    one = names[ONE]
    step = {name: [values, *(phases[name][phase][1:] for phase in PHASES)] for name, values in seconds.items()}
    taxes = {
        name: [median_ratio(mine, its) for mine, its in zip(columns, step[one], strict=True)]
        for name, columns in step.items()
    }
    print_table(
        ["members", "way", "step s", "sample s", "learn s", "tax", "sample tax", "learn tax"],
        [[*setting, *map(statistics.median, step[name]), *taxes[name]] for setting, name in names.items()],
    )
    print_result(
        {
            "tax": {name: values[0] for name, values in taxes.items()},
            "sample_tax": {name: values[1] for name, values in taxes.items()},
            "learn_tax": {name: values[2] for name, values in taxes.items()},
            "step_s": {name: statistics.median(values) for name, values in seconds.items()},
            "settings": vars(options),
        }
    )


if __name__ == "__main__":
    main()
