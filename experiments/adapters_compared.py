"""Evolve four LoRA adapters of the embedded base by redqueen, by populora and by averaging, with equal evaluations.

The adapters are trained with peft on four different slices of the code suite. Fitness is the mean log-likelihood per
token of the right answers, in nats, over 32 items that no adapter was trained on; 160 other items test the selected
adapter. Every method may evaluate 32 adapters (the mean of all four needs one, the best mean of a subset 15).

    python -m venv v && v/bin/pip install redqueen peft populora && v/bin/python experiments/adapters_compared.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from populora import Population
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

import redqueen
from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.peft import read_adapter
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import DOMAINS, frozen_items

NUM_ADAPTERS, NUM_TRAINED, NUM_DEV, NUM_TEST, RANK = 4, 60, 32, 160, 8
BUDGET, SEEDS = 32, range(3)
TOKENIZER = AutoTokenizer.from_pretrained(embedded_folder())

Deltas = Mapping[str, Tensor]
"""The change of each adapted weight, (out, in)."""


def load() -> torch.nn.Module:
    return AutoModelForCausalLM.from_pretrained(embedded_folder(), dtype="float32").eval()


def texts() -> list[tuple[str, str]]:
    """Return prompts with their right answers, in a fixed random order that mixes the levels."""
    form = PromptFormat(FRAMES["compact"])
    tasks = [item.task for item in frozen_items(DOMAINS["code"].suite) if item.kind == "code_o"]
    order = torch.randperm(len(tasks), generator=torch.Generator().manual_seed(0)).tolist()
    return [(form.solve(tasks[at]), tasks[at].outputs[0] + TOKENIZER.eos_token) for at in order]


def log_likelihood(model: torch.nn.Module, pairs: list[tuple[str, str]]) -> Tensor:
    """Return the mean log-likelihood (nats) per answer token, given the prompts."""
    rows = [[TOKENIZER(text, add_special_tokens=False)["input_ids"] for text in pair] for pair in pairs]
    longest = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.zeros(len(pairs), longest, dtype=torch.long)  # (items, tokens), padded on the right
    answers = torch.zeros_like(ids, dtype=torch.bool)
    for row, (a, b) in enumerate(rows):
        ids[row, : len(a) + len(b)] = torch.tensor(a + b)
        answers[row, len(a) : len(a) + len(b)] = True
    logits = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return logits.gather(-1, ids[:, 1:, None])[..., 0][answers[:, 1:]].mean()


def train(folder: Path, pairs: list[tuple[str, str]], seed: int) -> None:
    torch.manual_seed(seed)
    lora = LoraConfig(r=RANK, lora_alpha=16, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM")
    model = get_peft_model(load(), lora)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for update in range(30):
        batch = [pairs[(4 * update + at) % len(pairs)] for at in range(4)]
        (-log_likelihood(model, batch)).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)


class Judge:
    """Evaluates adapters and counts the evaluations on the development items."""

    def __init__(self, dev: list[tuple[str, str]], test: list[tuple[str, str]]) -> None:
        self.model, self.dev, self.test, self.count = load(), dev, test, 0

    @contextmanager
    def changed(self, deltas: Deltas) -> Iterator[None]:
        with torch.no_grad():
            for sign in (1, -1):
                for name, delta in deltas.items():
                    self.model.get_parameter(f"{name}.weight").add_(sign * delta)
                if sign == 1:
                    yield

    def fitness(self, deltas: Deltas) -> float:
        self.count += 1
        with self.changed(deltas):
            return float(log_likelihood(self.model, self.dev))

    def report(self, method: str, found: list[tuple[float, Deltas]]) -> None:
        tested = []
        for _, deltas in found:
            with self.changed(deltas):
                tested.append(float(log_likelihood(self.model, self.test)))
        columns = ["/".join(f"{value:.3f}" for value in part) for part in ([f for f, _ in found], tested)]
        print(f"{method:28} evaluations {self.count // len(found):3}  dev {columns[0]}  test {columns[1]}", flush=True)
        self.count = 0


def deltas_of(folder: Path) -> Deltas:
    genotype = read_adapter(folder).genotype
    return {name: genotype.alpha / genotype.rank * (b @ a) for name, (a, b) in genotype.factors.items()}


def by_redqueen(folders: list[Path], judge: Judge, out: Path, seed: int) -> tuple[float, Deltas]:
    generations = BUDGET // NUM_ADAPTERS - 1
    best, *_ = redqueen.evolve_adapters(
        folders, lambda folder: judge.fitness(deltas_of(folder)), out, generations=generations, seed=seed
    )
    return best["fitness"], deltas_of(Path(best["folder"]))


def by_populora(folders: list[Path], judge: Judge, seed: int) -> tuple[float, Deltas]:
    """populora's ``evolve_`` with its defaults; only adapters that changed are evaluated again."""
    names = list(read_adapter(folders[0]).genotype.factors)
    population = Population(load(), pop_size=len(folders), low_rank=RANK, lora_targets=names, seed=seed)
    for at, folder in enumerate(folders):
        genotype = read_adapter(folder).genotype
        scale = genotype.alpha / genotype.rank
        down = {name.replace(".", "_"): a.T for name, (a, _) in genotype.factors.items()}
        up = {name.replace(".", "_"): scale * b for name, (_, b) in genotype.factors.items()}
        population.load_individual({"weight_down": down, "weight_up": up}, at)

    def deltas(at: int) -> Deltas:
        _, (down, up) = population.individual_weights(at)
        return {name: up[key] @ down[key].T for name in names for key in [name.replace(".", "_")]}

    begun, found = judge.count, [(judge.fitness(deltas(at)), deltas(at)) for at in range(len(folders))]
    best = max(found, key=lambda one: one[0])
    while True:
        changed = population.evolve_(torch.tensor([one[0] for one in found])).culled.tolist()
        if judge.count - begun + len(changed) > BUDGET:
            return best
        for at in changed:
            found[at] = (judge.fitness(deltas(at)), deltas(at))
        best = max([best, *found], key=lambda one: one[0])


def main(folder: Path) -> None:
    pairs = texts()
    parts = [pairs[at * NUM_TRAINED : (at + 1) * NUM_TRAINED] for at in range(NUM_ADAPTERS)]
    rest = pairs[NUM_ADAPTERS * NUM_TRAINED :]
    folders = [folder / f"slice-{at}" for at in range(NUM_ADAPTERS)]
    for at, (one, part) in enumerate(zip(folders, parts, strict=True)):
        if not one.exists():
            train(one, part, at)
    judge = Judge(rest[:NUM_DEV], rest[NUM_DEV : NUM_DEV + NUM_TEST])
    judge.report("base", [(judge.fitness({}), {})])
    given = [deltas_of(one) for one in folders]
    alone = [(judge.fitness(one), one) for one in given]
    judge.report("best of the four", [max(alone, key=lambda one: one[0])])
    means = [
        {name: torch.stack([one[name] for one in some]).mean(0) for name in some[0]}
        for size in range(1, NUM_ADAPTERS + 1)
        for some in combinations(given, size)
    ]
    judge.report("mean of all four", [(judge.fitness(means[-1]), means[-1])])
    judge.report("best mean of a subset", [max(((judge.fitness(one), one) for one in means), key=lambda one: one[0])])
    judge.report("populora 0.4.5", [by_populora(folders, judge, seed) for seed in SEEDS])
    judge.report("redqueen.evolve_adapters", [by_redqueen(folders, judge, folder / f"e{seed}", seed) for seed in SEEDS])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
