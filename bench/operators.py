"""Time every variation operator on one adapter in the shape of Qwen2.5-7B: rank 32, all linear layers, fp32.

196 modules, 80.7 million entries, 323 MB. The parents are random (the time of an operator does not depend on their
values) and made in memory, so that no file is read. For comparison: PEFT's ``add_weighted_adapter`` on one of the 28
layers, scaled up. The last line is JSON: {"seconds": {operator: s}, "peak_extra_mb": {operator: MB}, ...}.

    python bench/operators.py [--only M1 X1] [--repeats 5] [--skip-peft]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import torch
from _shared import machine

from redqueen.adapters.genotype import Genotype
from redqueen.evolve.operators import OPERATORS, apply

HIDDEN, KEY_VALUE, INTERMEDIATE, NUM_LAYERS, RANK, ALPHA = 3584, 512, 18944, 28, 32, 64.0
REPEATS = 5
MODULES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KEY_VALUE, HIDDEN),
    "self_attn.v_proj": (KEY_VALUE, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}
"""(out, in) of the linear modules of one layer."""


def parent(rng_seed: int, num_layers: int) -> Genotype:
    """Return a random adapter in the real shape."""
    rng = torch.Generator().manual_seed(rng_seed)
    factors = {}
    for layer in range(num_layers):
        for name, (num_out, num_in) in MODULES.items():
            a = 0.02 * torch.randn(RANK, num_in, generator=rng)
            factors[f"model.layers.{layer}.{name}"] = (a, 0.01 * torch.randn(num_out, RANK, generator=rng))
    return Genotype(factors, ALPHA)


def measure(operator_id: str, num_layers: int, repeats: int) -> dict[str, float]:
    """Return median and least seconds of a child (with its relative change), and the first one's extra peak memory."""
    operator = OPERATORS[operator_id]
    parents = [parent(seed, num_layers) for seed in range(operator.num_parents)]
    small = [parent(seed, 1) for seed in range(operator.num_parents)]
    apply(operator, small, [1.0, 2.0][: len(parents)], 0)  # warm the thread pool and the libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu_s, peak = [], [], 0.0
    for rng_seed in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        apply(operator, parents, [1.0, 2.0][: len(parents)], rng_seed)
        seconds.append(time.perf_counter() - start)
        cpu_s.append(time.process_time() - cpu_start)
        peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": statistics.median(seconds),
        "least_s": min(seconds),
        "cpu_s": statistics.median(cpu_s),
        "peak_extra_mb": (peak - before) / 1024,
    }


class OneLayer(torch.nn.Module):
    """The seven linear modules of one layer, for PEFT to adapt."""

    def __init__(self) -> None:
        super().__init__()
        for name, (num_out, num_in) in MODULES.items():
            linear = torch.nn.Linear(num_in, num_out, bias=False, device="meta").to_empty(device="cpu")
            setattr(self, name.split(".")[1], linear)


def measure_peft() -> dict[str, float]:
    """Return the seconds of PEFT's ``add_weighted_adapter`` for two adapters, measured on one layer and scaled to all.

    Its ``linear`` and ``ties`` merge the factors as written. Its ``svd`` merges dW and decomposes it densely, so only
    the decomposition of the smallest module is timed: a lower bound, and long enough.
    """
    import peft

    targets = [name.split(".")[1] for name in MODULES]
    config = peft.LoraConfig(r=RANK, lora_alpha=int(ALPHA), target_modules=targets)
    model = peft.get_peft_model(OneLayer(), config, adapter_name="one")
    model.add_adapter("two", config)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.01)
    seconds = {}
    for kind, density in (("linear", None), ("ties", 0.2)):
        taken = []
        for i in range(1 + REPEATS):
            made = f"{kind}-{i}"
            start = time.perf_counter()
            model.base_model.add_weighted_adapter(
                ["one", "two"], [0.5, 0.5], made, combination_type=kind, density=density
            )
            taken.append((time.perf_counter() - start) * NUM_LAYERS)
            model.delete_adapter(made)
        seconds[kind] = statistics.median(taken[1:])  # without the first, which includes set-up
    start = time.perf_counter()
    torch.linalg.svd(torch.randn(KEY_VALUE, HIDDEN), full_matrices=False)
    seconds["svd, the k_proj alone"] = (time.perf_counter() - start) * NUM_LAYERS
    return seconds


def in_fresh_process(operator_id: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Measure in a separate process, so that one operator's peak memory is not hidden by another's."""
    command = [sys.executable, __file__, "--one", operator_id]
    command += ["--layers", str(arguments.layers), "--repeats", str(arguments.repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{operator_id} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(OPERATORS), choices=list(OPERATORS))
    parser.add_argument("--layers", type=int, default=NUM_LAYERS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--skip-peft", action="store_true")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.layers, arguments.repeats)))
        return
    print(f"{arguments.layers} layers, rank {RANK}, {torch.get_num_threads()} threads")
    results = {}
    for operator_id in arguments.only:
        results[operator_id] = row = in_fresh_process(operator_id, arguments)
        name = OPERATORS[operator_id].name
        times = f"{row['seconds']:6.2f} s  (least {row['least_s']:5.2f} s, {row['cpu_s']:5.2f} s of CPU)"
        print(f"{operator_id:12} {name:26} {times}  {row['peak_extra_mb']:6.0f} MB extra", flush=True)
    summary: dict[str, object] = {
        key: {name: round(row[key], 3) for name, row in results.items()}
        for key in ("seconds", "least_s", "cpu_s", "peak_extra_mb")
    }
    if not arguments.skip_peft:
        peft_seconds = {name: round(value, 3) for name, value in measure_peft().items()}
        for name, value in peft_seconds.items():
            print(f"{'PEFT':12} {name:26} {value:6.2f} s")
        summary["peft_seconds"] = peft_seconds
    print(json.dumps({**summary, "repeats": arguments.repeats, "machine": machine()}))


if __name__ == "__main__":
    main()
