"""Members at rest: memory and the time of a step with all members in memory, and with those that rest in a file.

Two processes hold the same population on a copy of the embedded base each; every member has moments. A step samples as
some of the members and steps them, other ones each time; the processes take turns, so that drifts of the machine hit
both, and CPU time is counted too, which a busy machine disturbs less. Memory is what the system counts as the process's
own (VmRSS, and VmHWM for the peak). At the end both save a checkpoint, and the last line tells whether the two hold the
same numbers. Prints a table and, as its last line, JSON.

    python bench/resting_members.py [--members 300] [--playing 16] [--repeats 12] [--folder .]
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from _shared import load_model, median_ratio, print_result, print_table, sample_and_learn
from transformers.utils.logging import disable_progress_bar

from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.learn.torch_store import TorchStore
from redqueen.nouns import Request
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import freeze
from redqueen.policy.precision import choose_precision
from redqueen.policy.torch_sampler import TorchSampler
from redqueen.run.checkpoint import TENSORS, Checkpoint

MB = 1 << 20


def memory() -> dict[str, float]:
    """Return this process's memory in MB: now, at its peak, and the part of now that is pages of a file."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"now": "VmRSS", "peak": "VmHWM", "of_file": "RssFile"}
    return {name: int(lines[field].split()[0]) / 1024 for name, field in names.items()}


def forget_peak() -> None:
    """Let the peak begin anew from what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def build(options: argparse.Namespace, folder: str) -> TorchStore:
    """Return a population in which every member has moments, random ones."""
    disable_progress_bar()
    torch.set_num_threads(options.threads)
    base = freeze(load_model(options.base), "cpu", choose_precision("auto", "cpu"))
    bank = AdapterBank(base, options.members, options.rank, 2.0 * options.rank, resting_folder=folder)
    store = TorchStore(bank, TorchLearner(bank, LearnConfig(learning_rate=1e-4)))
    generator = torch.Generator().manual_seed(0)
    for slot in range(options.members):
        moments = {
            name: 1e-3 * torch.rand(bank.num_parameters, generator=generator) for name in ("exp_avg", "exp_avg_sq")
        }
        store.learner.set_moments(slot, {"step": torch.tensor(3.0)} | moments)
    bank.let_go()
    return store


def step(store: TorchStore, number: int, options: argparse.Namespace) -> None:
    """Sample as the members whose turn it is and step them."""
    generator = torch.Generator().manual_seed(number)
    sampler = TorchSampler(store.bank, max_new_tokens=options.new_tokens, end_tokens=[], max_rows=options.rows)
    slots = [(number * options.playing + i) % options.members for i in range(options.playing)]
    prompts = torch.randint(0, store.bank.base.head.out_features, (len(slots), 64), generator=generator).tolist()
    pairs = zip(slots, prompts, strict=True)
    requests = [Request(slot, tuple(prompt), options.attempts, rng_seed=slot) for slot, prompt in pairs]
    sample_and_learn(sampler, store.learner, requests)


def serve(pipe: Connection, options: argparse.Namespace, folder: str) -> None:
    """Take turns: a number asks for that step, None for a checkpoint and the end."""
    store = build(options, folder)
    step(store, 0, options)  # to warm up
    held = memory()["now"]
    forget_peak()
    pipe.send(held)
    while (number := pipe.recv()) is not None:
        start, cpu = time.perf_counter(), time.process_time()
        step(store, number, options)
        pipe.send((time.perf_counter() - start, time.process_time() - cpu))
    stepping = memory()
    forget_peak()
    with tempfile.TemporaryDirectory(dir=options.folder) as at:
        saved = Checkpoint.save(Path(at), 1, store.state_dict(), {}) / TENSORS
        saving = memory()
        digest = hashlib.file_digest(saved.open("rb"), "sha256").hexdigest()
    ends = {
        "step_peak_mb": stepping["peak"],
        "checkpoint_peak_mb": saving["peak"],
        "of_file_mb": saving["of_file"] - stepping["of_file"],
        "members_mb": 3 * store.bank.flat.numel() * 4 / MB,
        "digest": digest,
    }
    pipe.send(ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=300)
    parser.add_argument("--playing", type=int, default=16, help="members that play and learn in a step")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--folder", default=".", help="where the members rest and the checkpoints are written: a disk")
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rank", type=int, default=8, help="lora_rank; the shipped configuration has 8")
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--rows", type=int, default=128, help="sequences decoded at a time")
    options = parser.parse_args()
    context, pipes, processes = get_context("spawn"), {}, []
    for name, folder in (("memory", ""), ("file", options.folder)):
        pipes[name], theirs = context.Pipe()
        processes.append(context.Process(target=serve, args=(theirs, options, folder), daemon=True))
        processes[-1].start()
    held = {name: pipe.recv() for name, pipe in pipes.items()}
    seconds: dict[str, list[float]] = {name: [] for name in pipes}
    cpu_s: dict[str, list[float]] = {name: [] for name in pipes}
    for number in range(1, options.repeats + 1):
        for name, pipe in pipes.items():
            pipe.send(number)
            for times, spent in zip((seconds, cpu_s), pipe.recv(), strict=True):
                times[name].append(spent)
    ends = {}
    for name, pipe in pipes.items():
        pipe.send(None)
        ends[name] = pipe.recv()
    for process in processes:
        process.join()
    peaks = ("step_peak_mb", "checkpoint_peak_mb", "of_file_mb")
    rows = [[name, held[name], *(ends[name][p] for p in peaks), statistics.median(cpu_s[name])] for name in pipes]
    header = ["members in", "MB between steps", "peak of a step", "peak of a checkpoint", "of it the file's", "CPU s"]
    print_table(header, rows)
    print_result(
        {
            "members_mb": ends["file"]["members_mb"],
            "held_mb": held,
            **{peak: {name: end[peak] for name, end in ends.items()} for peak in peaks},
            "step_s": {name: statistics.median(values) for name, values in seconds.items()},
            "time_ratio": median_ratio(seconds["file"], seconds["memory"]),
            "cpu_s": {name: statistics.median(values) for name, values in cpu_s.items()},
            "cpu_ratio": median_ratio(cpu_s["file"], cpu_s["memory"]),
            "equal": ends["file"]["digest"] == ends["memory"]["digest"],
            "settings": vars(options),
        }
    )


if __name__ == "__main__":
    main()
