"""Profile a step: seconds of each part, and the share of each phase that is spent in matrix products.

Every round does the same phases from the same adapters: propose, solve, learn, distill. With ``--against``, another
checkout does them too, in alternating rounds, to measure a change. Seconds are CPU time of the process, which hardly
depends on other load; ``--wall`` measures elapsed time. Without ``--against``, a last round under torch's (slow)
profiler gives the shares: plain matrix products are the base's, batched ones those of the members' factors and of
attention. Prints a table and, as its last line, JSON.

    python bench/profile_step.py [--config configs/maths.toml] [--set model.base=FOLDER] [--against CHECKOUT]
        [--rounds 5] [--proposals 48] [--lanes 1] [--wall]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

from _shared import median_ratio, print_result, print_table
from torch.profiler import ProfilerActivity, profile

from redqueen import loop
from redqueen.adapters import torch_sampler
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import load_config
from redqueen.engine import Engine, open_engine
from redqueen.learn.answers import VerifiedAnswer
from redqueen.learn.distillation import examples_of, fine_tune
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Rollout
from redqueen.run.cold_start import grow_seed_buffer
from redqueen.solve import grade
from redqueen.state import State, initial_state
from redqueen.streams import Streams

PARTS = (
    (TorchSampler, "_prefill", "read prompts"),
    (TorchSampler, "_decode_one", "decode"),
    (torch_sampler, "draw", "draw"),
    (TorchLearner, "_reference_hidden", "reference"),
    (TorchLearner, "_predicting", "forward"),
    (TorchLearner, "_hidden_gradient", "logits and loss"),
)
"""Functions that are timed inside the phases: owner, function, name of the part. Parts may be nested."""


class Times:
    """Seconds and tokens by part, added up over a round."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.seconds, self.tokens = clock, defaultdict[str, float](float), defaultdict[str, int](int)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = self.clock()
        try:
            yield
        finally:
            self.seconds[name] += self.clock() - began

    def wrap(self, owner: object, function: str, name: str) -> None:
        """Time every call of a function of a class or module."""
        plain = getattr(owner, function)

        @wraps(plain)
        def timed(*args: object, **named: object) -> object:
            with self.part(name):
                return plain(*args, **named)

        setattr(owner, function, timed)


PRODUCTS = {"matrix": ("aten::mm", "aten::addmm"), "batched": ("aten::bmm", "aten::baddbmm")}


class Shares(Times):
    """The share of each phase that is spent in matrix products, instead of its seconds."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        if name in [part for _, _, part in PARTS]:  # within a phase
            yield
            return
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            began = time.perf_counter()
            yield
            seconds = time.perf_counter() - began
        own = {one.key: one.self_cpu_time_total for one in profiled.key_averages()}
        for kind, names in PRODUCTS.items():
            self.seconds[f"{name} {kind}"] = sum(own.get(op, 0.0) for op in names) / seconds / 1e6


def play(engine: Engine, state: State, times: Times) -> None:
    """Do the phases of step 1, then restore the adapters."""
    streams = Streams(engine.config.run.rng_seed, 1)
    before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
    matches = loop.match(state, engine, streams)
    with times.part("propose"):
        proposals = loop.propose(state, engine, streams, matches)
    with times.part("verify"):
        verdicts = loop.verify(state, engine, streams, proposals)
    with times.part("solve"):
        sampled = loop.solve(state, engine, streams, matches, verdicts)
    with times.part("grade"):
        graded = grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)
    with times.part("learn"):
        engine.learner.update(
            [Rollout(p.slot, p.prompt, (p.completion,), ((-1.0) ** i,)) for i, p in enumerate(proposals)]
        )
    answers = [VerifiedAnswer(one.task, one.outcomes[i].attempt.text, 1) for one in graded for i in one.kept[:1]]
    slot = (engine.config.slots.distilled or (0,))[0]
    examples = examples_of(answers[:192], engine.prompt_format, engine.tokenizer)
    with times.part("distill"):
        fine_tune(examples, engine.store, engine.learner, slot, engine.config.distill, streams)
    engine.store.load_state(before)
    times.tokens["propose"] = sum(len(p.prompt) + len(p.completion.tokens) for p in proposals)
    times.tokens["solve"] = sum(len(s.prompt) + sum(len(c.tokens) for c in s.completions) for s in sampled)
    times.tokens["learn"] = 2 * times.tokens["propose"]
    times.tokens["distill"] = 2 * sum(len(e.prompt) + len(e.answer) for e in examples)


def serve(options: argparse.Namespace) -> None:
    """Do a round for each line of standard input and print its seconds and tokens as JSON."""
    config = load_config(
        options.config,
        [f"propose.num_of_each_kind={options.proposals}", f"run.num_lanes={options.lanes}", *options.set],
    )
    clock = time.perf_counter if options.wall else time.process_time
    with open_engine(config) as engine:
        state, _ = grow_seed_buffer(initial_state(config), engine)
        times = Times(clock)
        for owner, function, name in PARTS:
            times.wrap(owner, function, name)
        for line in sys.stdin:
            found = Shares(clock) if line.startswith("shares") else times
            found.seconds.clear()
            play(engine, state, found)
            print(json.dumps({"seconds": found.seconds, "tokens": found.tokens}), flush=True)


def ask(worker: subprocess.Popen[str], line: str) -> dict[str, dict[str, float]]:
    """Let a worker do one round; return its results. Lines that the profiler prints are skipped."""
    assert worker.stdin and worker.stdout
    worker.stdin.write(f"{line}\n")
    worker.stdin.flush()
    found: dict[str, dict[str, float]] = json.loads(next(line for line in worker.stdout if line.startswith("{")))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("configs/maths.toml"))
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--against", type=Path, help="the root of another checkout, for example before a change")
    parser.add_argument("--against-set", action="append", default=[], metavar="FIELD=VALUE", help="for --against only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--proposals", type=int, default=48, help="proposals per kind and teacher")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--wall", action="store_true", help="measure elapsed time instead of CPU time")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    here = Path(__file__).resolve().parent.parent
    roots = {"now": here} | (
        {"before": (options.against or here).resolve()} if options.against_set or options.against else {}
    )
    changed = {"now": [], "before": [f"--set={one}" for one in options.against_set]}
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--serve", *sys.argv[1:], *changed[name]],
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, root in roots.items()
    }
    rounds: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in workers}
    for number in range(options.rounds + 1):
        for name, worker in workers.items():
            found = ask(worker, "round")
            if number:  # the first round is a warm-up
                rounds[name].append(found)
    shares: dict[str, float] = {}
    if len(workers) == 1:
        ask(workers["now"], "shares")  # warm-up: the profiler's first round allocates memory
        shares = ask(workers["now"], "shares")["seconds"]
    for worker in workers.values():
        worker.communicate()
    kinds = PRODUCTS if shares else ()
    compared = ["x before"] if "before" in rounds else []
    rows, result = [], {}
    for part in rounds["now"][0]["seconds"]:
        of = {name: [one["seconds"].get(part, float("nan")) for one in own] for name, own in rounds.items()}
        tokens = rounds["now"][-1]["tokens"].get(part, 0)
        seconds = statistics.median(of["now"])
        products = {kind: shares.get(f"{part} {kind}", float("nan")) for kind in kinds}
        gain = median_ratio(of["before"], of["now"]) if compared else None
        result[part] = {"seconds": seconds, "tokens": tokens, "products": products, "times_as_fast": gain}
        rows.append([part, seconds, tokens / seconds, *(100 * share for share in products.values())])
        rows[-1] += [gain] if compared else []
    print_table(["part", "seconds", "tokens/s", *(f"% {kind}" for kind in kinds), *compared], rows)
    print_result({"parts": result})


if __name__ == "__main__":
    main()
