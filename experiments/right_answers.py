"""What the right answers of a run teach by themselves: its base, trained on them as on any text.

    python experiments/right_answers.py RUN_DIR --out FOLDER [--epochs 3] [--rate 5e-4] [--rank 0] [--any] [--seed 0]
    redqueen evaluate base --suite mini --set model.base=FOLDER --set model.prompt_format=compact

Of each program and input that was solved at least once one right answer is drawn, so that rare successes count like
common ones. All weights learn by cross-entropy on the answers alone (AdamW, warm-up over 20 batches, then linear to
zero), or with ``--rank`` a LoRA on all linear layers, which is merged then. What this reaches is about what the run's
experience holds, however it is turned into gradients. ``--any`` is the control: one answer of each program and input
whatever its verdict, drawn from all of them until as many tokens are there. For a run on the embedded base or a folder
like it. Writes the model to ``--out`` and prints how much there was.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from redqueen.domains.prompt_format import choose_format
from redqueen.journal import Journal
from redqueen.journal.read import as_task
from redqueen.nouns import Task
from redqueen.policy.base_shape import model_source
from redqueen.report.task_list import TaskFilter, find_tasks
from redqueen.run.store import JOURNAL, load_run_config

BATCH = 48
IGNORED = -100

Sample = tuple[list[int], list[int]]
"""Tokens of a prompt, and of a right answer to it with its end."""


def answers_of(
    folder: Path, tokenizer: PreTrainedTokenizerBase, rng: random.Random, only_right: bool = True
) -> list[Sample]:
    """Return a sample for each program and input of a run that was answered, in the order in which they were posed."""
    prompt_format = choose_format(load_run_config(folder))
    found: dict[tuple[str, str, str], list[tuple[Task, str]]] = defaultdict(list)
    tasks = {row["seq"]: as_task(row) for row in find_tasks(folder, TaskFilter(limit=0))}
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        judged = f"SELECT task, text FROM attempt WHERE correct >= {int(only_right)} AND lost = 0 ORDER BY seq"
        for row in journal.query(judged):
            task = tasks[row["task"]]
            found[task.kind, task.code, task.inputs[0]].append((task, row["text"]))
    samples = []
    for answers in found.values():
        task, text = rng.choice(answers)
        answer = tokenizer(text, add_special_tokens=False)["input_ids"]
        samples.append(
            (list(prompt_format.encode(tokenizer, prompt_format.solve(task))), [*answer, tokenizer.eos_token_id])
        )
    return samples


def as_many(samples: list[Sample], others: list[Sample], rng: random.Random) -> list[Sample]:
    """Return samples drawn from ``others`` without replacement, with as many tokens of answers as ``samples`` have."""
    drawn, wanted = [], num_tokens(samples)
    for one in rng.sample(others, len(others)):
        if wanted <= 0:
            break
        drawn.append(one)
        wanted -= len(one[1])
    return drawn


def num_tokens(samples: list[Sample]) -> int:
    """Return how many tokens the answers have."""
    return sum(len(answer) for _, answer in samples)


def batches_of(samples: list[Sample], rng: random.Random) -> list[list[Sample]]:
    """Return the samples in shuffled batches of similar lengths."""
    rng.shuffle(samples)
    parts = [samples[i : i + 8 * BATCH] for i in range(0, len(samples), 8 * BATCH)]
    ordered = [one for part in parts for one in sorted(part, key=lambda sample: len(sample[0]) + len(sample[1]))]
    batches = [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]
    rng.shuffle(batches)
    return batches


def loss_of(model: torch.nn.Module, batch: list[Sample]) -> torch.Tensor:
    """Return the mean cross-entropy of the answers' tokens, in nats."""
    length = max(len(prompt) + len(answer) for prompt, answer in batch)
    ids, mask = torch.zeros(len(batch), length, dtype=torch.long), torch.zeros(len(batch), length, dtype=torch.long)
    labels = torch.full((len(batch), length), IGNORED)
    for row, (prompt, answer) in enumerate(batch):
        end = len(prompt) + len(answer)
        ids[row, :end], mask[row, :end] = torch.tensor(prompt + answer), 1
        labels[row, len(prompt) : end] = torch.tensor(answer)
    with torch.autocast("cpu", torch.bfloat16):
        loss: torch.Tensor = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--any", action="store_true", help="the control: whatever the verdict")
    parser.add_argument("--seed", type=int, default=0, help="of the draws, the order and a LoRA's first factors")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng, source = random.Random(options.seed), model_source(load_run_config(options.run).model.base)
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    if options.rank:
        terms = LoraConfig(r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear")
        model = get_peft_model(model, terms)
    samples = answers_of(options.run, tokenizer, rng)
    if options.any:
        samples = as_many(samples, answers_of(options.run, tokenizer, rng, only_right=False), rng)
    what = "answered" if options.any else "solved"
    print(f"{len(samples)} {what} pairs of program and input, {num_tokens(samples)} tokens of answers")
    epochs = [batches_of(samples, rng) for _ in range(options.epochs)]
    num_batches, done = sum(map(len, epochs)), 0
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, weight_decay=0.01, betas=(0.9, 0.95))
    for epoch, batches in enumerate(epochs, 1):
        total = 0.0
        for batch in batches:
            optimizer.param_groups[0]["lr"] = options.rate * min(1.0, (done + 1) / 20) * (1 - done / num_batches)
            loss = loss_of(model, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total, done = total + loss.item(), done + 1
        print(f"epoch {epoch}: {total / len(batches):.3f} nats a token", flush=True)
    if options.rank:
        model = model.merge_and_unload()
    model.half().save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
