"""The gain from keeping the memory that a step frees: for one process, and for two at the same time on one core each.

A step samples and learns at the size of one shard of ``make cluster-demo``. Each process runs it with the C library's
default and with the setting of a run (``adapters/memory.py``). If two at a time are slower than one, they wait for a
resource that the cores share. Prints a table and, as its last line, JSON.

    python bench/freed_memory.py [--base embedded] [--steps 5] [--prompts 16] [--attempts 8] [--new-tokens 100]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch
from _shared import load_model, print_result, print_table, sample_and_learn

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import choose_precision, freeze
from redqueen.adapters.memory import keep_freed_memory
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request

USUAL, KEPT = "given back", "kept"


def play(pipe: Connection, how: str, core: int, options: argparse.Namespace) -> None:
    """Run the steps on a core; send the medians per step of seconds, page faults and kernel seconds, and the peak."""
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    if how == KEPT and not keep_freed_memory():
        raise SystemExit("the C library's settings cannot be changed here: is it glibc, and MALLOC_ARENA_MAX unset?")
    bank = AdapterBank(
        freeze(load_model(options.base), precision=choose_precision("auto", "cpu")), 4, options.rank, 2.0 * options.rank
    )
    sampler = TorchSampler(bank, options.new_tokens, end_tokens=[])
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-5))
    prompts = torch.randint(0, bank.base.head.out_features, (options.prompts, options.prompt_tokens)).tolist()

    def step(number: int) -> tuple[float, float]:
        requests = [Request(i % 4, tuple(p), options.attempts, rng_seed=number) for i, p in enumerate(prompts)]
        return sample_and_learn(sampler, learner, requests)

    step(0)  # to warm up
    before = resource.getrusage(resource.RUSAGE_SELF)
    medians = [statistics.median(s) for s in zip(*(step(i + 1) for i in range(options.steps)), strict=True)]
    after = resource.getrusage(resource.RUSAGE_SELF)
    faults = (after.ru_minflt - before.ru_minflt) / options.steps
    kernel_s = (after.ru_stime - before.ru_stime) / options.steps
    pipe.send((*medians, faults, kernel_s, after.ru_maxrss / 1024))


def together(how: str, cores: list[int], options: argparse.Namespace) -> list[float]:
    """Run on these cores at the same time; return the means of the processes' results."""
    context, pipes = get_context("spawn"), []
    for core in cores:
        ours, theirs = context.Pipe()
        context.Process(target=play, args=(theirs, how, core, options), daemon=True).start()
        theirs.close()
        pipes.append(ours)
    return [statistics.mean(values) for values in zip(*(pipe.recv() for pipe in pipes), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--steps", type=int, default=5, help="steps that count, after one to warm up")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=100)
    parser.add_argument("--new-tokens", type=int, default=100)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("two processes at a time need two cores")
    rows, slower = [], {}
    for how in (USUAL, KEPT):
        alone, beside = together(how, cores[:1], options), together(how, cores, options)
        slower[how] = [beside[i] / alone[i] for i in range(2)]
        rows += [[how, "alone", *alone], [how, "two at a time", *beside]]
    print_table(["freed memory", "", "sample s", "learn s", "faults", "kernel s", "peak MB"], rows)
    print_result({"two_over_one_sample_learn": slower, "settings": vars(options)})


if __name__ == "__main__":
    main()
