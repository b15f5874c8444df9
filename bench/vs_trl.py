"""A whole step compared with TRL's ``GRPOTrainer`` with a LoRA: same base, prompts, lengths, threads and precision.

Eight prompts of exactly 160 tokens, six attempts of exactly 96 tokens each, one update. TRL samples with the library's
``generate`` and trains one adapter; the engine does so with one member and, for the same number of attempts, with four.
Rewards are arbitrary and cheap on both sides, each side has its own process, and both keep freed memory as a run does.
Prints a table and, as its last line, JSON.

    python bench/vs_trl.py [--base models/smollm2-135m-instruct] [--new-tokens 96] [--threads 2]
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import torch
import trl
from _shared import load_model, print_result, print_table, sample_and_learn
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoTokenizer, PreTrainedTokenizerBase, TrainerCallback

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import choose_precision, freeze
from redqueen.adapters.base_shape import model_source
from redqueen.adapters.memory import keep_freed_memory
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request

LEARNING_RATE = 1e-5
WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "you",
    "that",
    "it",
    "he",
    "was",
    "for",
    "on",
    "are",
    "as",
    "with",
    "x",
    "y",
)
TRIES = 1000
T = TypeVar("T")


def prompts_of(tokenizer: PreTrainedTokenizerBase, options: argparse.Namespace) -> list[str]:
    """Return texts of exactly ``prompt_tokens`` tokens that differ from the first words on."""
    rng, found = random.Random(0), []
    for _ in range(TRIES):
        words: list[str] = []
        while len(tokenizer.encode(" ".join(words))) < options.prompt_tokens:
            words.append(rng.choice(WORDS))
        if len(tokenizer.encode(" ".join(words))) == options.prompt_tokens:
            found.append(" ".join(words))
        if len(found) == options.prompts:
            return found
    raise SystemExit(f"no texts of {options.prompt_tokens} tokens could be made: choose another --prompt-tokens")


class Clock(TrainerCallback):
    """Measures the time of each step of the trainer, sampling included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.start = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.start = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(time.perf_counter() - self.start)


def theirs(prompts: list[str], tokenizer: PreTrainedTokenizerBase, options: argparse.Namespace) -> list[float]:
    """Return the seconds of each step of ``GRPOTrainer`` after a warm-up step."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = trl.GRPOTrainer(
            model=load_model(options.base),
            processing_class=tokenizer,
            reward_funcs=lambda completions, **_: [float(i % 2) for i in range(len(completions))],
            train_dataset=Dataset.from_dict({"prompt": prompts * (options.steps + 1)}),
            peft_config=LoraConfig(
                r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear", task_type="CAUSAL_LM"
            ),
            callbacks=[clock],
            args=trl.GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=options.prompts * options.attempts,
                num_generations=options.attempts,
                max_completion_length=options.new_tokens,
                generation_kwargs={"min_new_tokens": options.new_tokens},
                max_steps=options.steps + 1,
                learning_rate=LEARNING_RATE,
                beta=0.0,
                use_cpu=True,
                bf16=choose_precision("auto", "cpu") == "bf16",
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            ),
        )
        trainer.train()
    return clock.seconds[1:]


def in_own_process(side: Callable[..., T], *given: Any) -> T:
    """Call ``side`` in a separate process, so that its memory does not depend on earlier calls."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_prepared, side, *given).result()


def _prepared(side: Callable[..., T], *given: Any) -> T:
    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.set_num_threads(given[-1].threads)
    keep_freed_memory()
    return side(*given)


def ours(
    prompts: list[str], tokenizer: PreTrainedTokenizerBase, num_members: int, options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Return the seconds of sampling and of learning in each step except the first."""
    bank = AdapterBank(
        freeze(load_model(options.base), precision=choose_precision("auto", "cpu")),
        num_members,
        options.rank,
        2.0 * options.rank,
    )
    sampler = TorchSampler(bank, options.new_tokens, end_tokens=[])
    learner = TorchLearner(bank, LearnConfig(learning_rate=LEARNING_RATE))
    seconds = []
    for step in range(options.steps + 1):
        requests = [
            Request(i % num_members, tuple(tokenizer.encode(prompt)), options.attempts, rng_seed=step * 1000 + i)
            for i, prompt in enumerate(prompts)
        ]
        seconds.append(sample_and_learn(sampler, learner, requests))
    sampling, learning = zip(*seconds[1:], strict=True)
    return list(sampling), list(learning)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="models/smollm2-135m-instruct", help="as model.base of a config")
    parser.add_argument("--steps", type=int, default=3, help="measured steps, after one warm-up step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--attempts", type=int, default=6)
    parser.add_argument("--prompt-tokens", type=int, default=160)
    parser.add_argument("--new-tokens", type=int, default=96)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(model_source(options.base))
    prompts = prompts_of(tokenizer, options)
    whole = statistics.median(in_own_process(theirs, prompts, tokenizer, options))
    rows: list[list[object]] = [["TRL, one adapter", "", "", whole, 1.0]]
    ratios = {}
    for num_members in (1, 4):
        sampling, learning = in_own_process(ours, prompts, tokenizer, num_members, options)
        step = statistics.median(a + b for a, b in zip(sampling, learning, strict=True))
        ratios[num_members] = whole / step
        who = f"redqueen, {num_members} member{'s' * (num_members > 1)}"
        rows.append([who, statistics.median(sampling), statistics.median(learning), step, whole / step])
    print_table(["who", "sample s", "learn s", "step s", "TRL's time / own"], rows)
    print_result(
        {"ratio_1_member": ratios[1], "ratio_4_members": ratios[4], "settings": vars(options), "trl": trl.__version__}
    )


if __name__ == "__main__":
    main()
