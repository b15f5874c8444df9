"""P5: evolution strategies on a student's adapter, instead of policy gradients or distillation.

    python experiments/evolution_strategies.py RUN_DIR --generations 20 --pairs 16 --tasks 128 --seed 0

The tasks are the run's. Each generation draws ``--tasks`` of them; all its members answer the same tasks once, in one
mixed batch. Members are the mean dW plus and minus one perturbation per pair (antithetic pairs): in every module a
Gaussian matrix of rank 1 whose norm is ``--sigma`` times that of the base's weight matrix. The mean moves by the sum
over pairs of the score difference times the perturbation, normalized to ``--rate`` perturbation lengths, and is cut to
the adapter's rank minus one, because members need one rank for their perturbation.
Sources: OpenAI-ES (Salimans et al. 2017, arXiv 1703.03864); perturbations of rank 1 as in EGGROLL (arXiv 2511.16652).

Prints, before the first generation and every ``--every`` of them, the paired gain of the mean over the base on held-out
items, greedy and sampled.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch

from redqueen.adapters.genotype import Genotype
from redqueen.config import Config, parse_config
from redqueen.engine import Engine, open_engine
from redqueen.evaluate.external import EVALUATION_SEED, Examiner
from redqueen.evaluate.fitness_suite import difference, score
from redqueen.journal import Journal
from redqueen.journal.read import as_task, with_pairs
from redqueen.records import BASE_SLOT, Individual, Rating, Request, Task
from redqueen.run.store import JOURNAL, load_run_config
from redqueen.solve import SampledAttempts, grade
from redqueen.streams import Streams

Matrices = dict[str, torch.Tensor]
"""dW by module, each (out, in)."""


def settings(run_dir: Path, num_members: int, num_items: int) -> Config:
    """Return the run's config with a student for each member and the mean in the last slot."""
    data = load_run_config(run_dir).model_dump(mode="json")
    data["population"] |= {"num_teachers": 1, "num_students": num_members, "founders": []}
    data["run"] |= {"product": "none"}
    data["distill"] |= {"every_steps": 0}
    data["evaluate"] |= {"max_items": num_items}
    return parse_config(data, "the run's config")


def member(
    mean: Matrices, noise: dict[str, tuple[torch.Tensor, torch.Tensor]], like: Genotype, sign: float
) -> Genotype:
    """Return mean + sign * noise as factors of the rank of ``like``; the mean has one rank less."""
    factors = {}
    for name, whole in mean.items():
        u, s, v = torch.svd_lowrank(whole, q=like.rank - 1, niter=4)
        left, right = noise[name]
        b = torch.cat([u * s.sqrt(), sign * left[:, None]], dim=1)  # (out, rank)
        a = torch.cat([(v * s.sqrt()).T, right[None]])  # (rank, in)
        factors[name] = (a, b / like.scale)
    return Genotype(factors, like.alpha)


def fitness(engine: Engine, slots: range, tasks: list[Task], streams: Streams) -> list[float]:
    """Return the share of ``tasks`` that each slot solves with one attempt per task."""
    form, members = engine.prompt_format, [Individual(f"{slot}", "student", slot, Rating(0.0, 0.0)) for slot in slots]
    prompts = [form.encode(engine.tokenizer, form.solve(task)) for task in tasks]
    asked = [(one, task, prompt) for one in members for task, prompt in zip(tasks, prompts, strict=True)]
    requests = [Request(one.slot, prompt, 1, streams.seed("solve", task.id)) for one, task, prompt in asked]
    groups = engine.solver.sample(requests)
    sampled = [SampledAttempts(t, one, p, tuple(g)) for (one, t, p), g in zip(asked, groups, strict=True)]
    right = [one.solve_frac or 0.0 for one in grade(sampled, engine.verifier, form, engine.tokenizer)]
    return [sum(right[i : i + len(tasks)]) / len(tasks) for i in range(0, len(right), len(tasks))]


def gains(engine: Engine, slot: int) -> str:
    """Return the paired gain over the base on the held-out items, in points."""
    items = Examiner.of(engine).items
    scores = score(
        [BASE_SLOT, slot], items, engine.sampler, engine.prompt_format, engine.tokenizer, engine.verifier, 1,
        EVALUATION_SEED, engine.config.solve.temperature,
    )  # fmt: skip
    by_mode = {(one.slots[0], one.mode): one for one in scores}
    cells = []
    for mode in ("greedy", "sampled"):
        own, base = by_mode[slot, mode], by_mode[BASE_SLOT, mode]
        low, high = difference(own, base, items, EVALUATION_SEED)
        change = 100 * (own.overall.mean - base.overall.mean)
        cells.append(f"{mode} {100 * own.overall.mean:.1f} %, {change:+.1f} ({100 * low:.1f} to {100 * high:.1f})")
    return "; ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=128)
    parser.add_argument("--sigma", type=float, default=0.02, help="norm of a perturbation relative to the weights")
    parser.add_argument("--rate", type=float, default=1.0, help="norm of a step relative to a perturbation")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--items", type=int, default=1600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with Journal.open(options.run_dir / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT * FROM task WHERE num_attempts > 0 ORDER BY seq")
    known = [as_task(with_pairs(row)) for row in rows]
    config = settings(options.run_dir, 2 * options.pairs + 1, options.items)
    slots, at_mean = range(2 * options.pairs), 2 * options.pairs
    with open_engine(config) as engine:
        like = engine.store.genotype(0)
        shapes = {name: (b.shape[0], a.shape[1]) for name, (a, b) in like.factors.items()}
        lengths = {name: float(engine.store.bank.base.model.get_submodule(name).weight.norm()) for name in shapes}
        mean = {name: torch.zeros(shape) for name, shape in shapes.items()}
        for generation in range(options.generations + 1):
            streams = Streams(options.seed, generation)
            zero = {name: (torch.zeros(out), torch.zeros(inside)) for name, (out, inside) in shapes.items()}
            engine.store.load(at_mean, member(mean, zero, like, 1.0))
            if generation % options.every == 0:
                print(f"generation {generation}: {gains(engine, at_mean)}", flush=True)
            if generation == options.generations:
                break
            rng, noises = torch.Generator().manual_seed(streams.seed("noise")), []
            for pair in range(options.pairs):
                noise = {}
                for name, (out, inside) in shapes.items():
                    left, right = torch.randn(out, generator=rng), torch.randn(inside, generator=rng)
                    length = options.sigma * lengths[name] / math.sqrt(out * inside)
                    noise[name] = (length * left, right)
                noises.append(noise)
                for number, sign in enumerate((1.0, -1.0)):
                    engine.store.load(2 * pair + number, member(mean, noise, like, sign))
            drawn = streams.rng("tasks").permutation(len(known))[: options.tasks]
            found = fitness(engine, slots, [known[i] for i in drawn], streams)
            weights = [found[2 * pair] - found[2 * pair + 1] for pair in range(options.pairs)]
            length = math.sqrt(sum(w * w for w in weights)) or 1.0
            for name, whole in mean.items():
                step = sum(w * torch.outer(*noise[name]) for w, noise in zip(weights, noises, strict=True))
                mean[name] = whole + options.rate / length * step
            print(f"generation {generation + 1}: members solve {100 * sum(found) / len(found):.1f} %", flush=True)


if __name__ == "__main__":
    main()
