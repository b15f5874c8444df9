"""Train the embedded base from random weights, in three stages, on one machine.

    python -m recipes.embedded_base.train --out FOLDER

Continues where an earlier call stopped. The result is a Hugging Face model folder, FOLDER/broad.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence, Set
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from recipes.embedded_base.corpus import Corpus, read_vocabulary
from recipes.embedded_base.packing import Batch
from recipes.embedded_base.problems import skeleton
from recipes.embedded_base.stages import (
    MAX_GRAD_NORM,
    SHARPNESS,
    STAGES,
    VOCABULARY_PROGRAMS,
    WARMUP_STEPS,
    WEIGHT_DECAY,
    Stage,
    build_model,
)
from redqueen.adapters.base import choose_precision
from redqueen.adapters.memory import keep_freed_memory
from redqueen.domains.code.suite import SUITES, load_functions
from redqueen.domains.frames import MARKS
from redqueen.domains.rows import frozen_files
from redqueen.errors import UserError

SECONDS_BETWEEN_CHECKPOINTS, SECONDS_BETWEEN_LINES = 120.0, 20.0


class Trainer:
    """The model of one stage, its two optimisers and its position in the corpus.

    ``checkpoint`` is the file that the state is saved in and, when it exists, continued from. ``start`` is the folder
    of the finished stage before this one (None: the weights are random).
    """

    def __init__(
        self, stage: Stage, tokenizer: PreTrainedTokenizerFast, checkpoint: Path, start: Path | None, device: str
    ) -> None:
        self.stage, self.tokenizer, self.checkpoint = stage, tokenizer, checkpoint
        self.device = torch.device(device)
        self.step = 0
        keep_freed_memory()
        torch.manual_seed(stage.rng_seed)
        self.model = build_model(tokenizer)
        self.model.to(self.device)  # type: ignore[arg-type]
        hidden = [p for n, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in n]
        others = [p for n, p in self.model.named_parameters() if p.ndim != 2 or "embed" in n]
        self.muon = torch.optim.Muon(
            hidden, lr=stage.learning_rate, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"
        )
        self.adamw = torch.optim.AdamW(others, lr=stage.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        if checkpoint.exists():
            self._load()
        elif start is not None:
            begin_with(self.model, tokenizer, start)

    def run(self, held_out: Set[str], compiled: bool = False) -> None:
        """Train to the end of the stage, with a checkpoint every two minutes."""
        if compiled:
            self.model.model.compile(dynamic=True)
        rest = Subset(Corpus(self.tokenizer, self.stage, held_out), range(self.step, self.stage.num_steps))
        began = saved = said = time.monotonic()
        losses: list[float] = []
        tokens = 0
        for batch in DataLoader(rest, batch_size=None, num_workers=1, prefetch_factor=8):
            losses.append(self.take_step(batch))
            tokens += int((batch.segment >= 0).sum())
            now, is_last = time.monotonic(), self.step == self.stage.num_steps
            if now - said > SECONDS_BETWEEN_LINES or is_last:
                loss, speed = sum(losses) / len(losses), tokens / (now - began)
                left_min = (self.stage.num_steps - self.step) * (now - began) / (self.step - rest.indices[0]) / 60
                print(
                    f"{self.stage.name}: step {self.step}/{self.stage.num_steps}  loss {loss:.4f}  "
                    f"{speed:,.0f} tokens/s  {left_min:.0f} min left",
                    flush=True,
                )
                losses, said = [], now
            if now - saved > SECONDS_BETWEEN_CHECKPOINTS or is_last:
                self._save()
                saved = now

    def take_step(self, batch: Batch) -> float:
        """Take one optimiser step; return the loss (nats a token)."""
        factor = min((self.step + 1) / WARMUP_STEPS, 1.0 - self.step / self.stage.num_steps)
        loss = batch_loss(self.model, batch, self.device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)
        for optimizer in (self.muon, self.adamw):
            for group in optimizer.param_groups:
                group["lr"] = self.stage.learning_rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.item()

    def write(self, folder: Path) -> None:
        """Write the weights as a Hugging Face model folder in fp16, with sharpened logits."""
        with torch.no_grad():
            self.model.model.norm.weight.mul_(SHARPNESS)
        self.model.half().save_pretrained(folder)

    def _save(self) -> None:
        state = {"stage": json.dumps(dataclasses.asdict(self.stage)), "step": self.step}
        parts = {name: getattr(self, name).state_dict() for name in ("model", "muon", "adamw")}
        new = self.checkpoint.with_suffix(".new")
        torch.save(state | parts, new)
        os.replace(new, self.checkpoint)

    def _load(self) -> None:
        state = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        if state["stage"] != json.dumps(dataclasses.asdict(self.stage)):
            raise UserError(f"{self.checkpoint} has other settings: choose another --out, or give the same --steps")
        self.step = state["step"]
        for name in ("model", "muon", "adamw"):
            getattr(self, name).load_state_dict(state[name])


def batch_loss(model: Qwen3ForCausalLM, batch: Batch, device: torch.device) -> Tensor:
    """Return the weighted mean cross-entropy (nats a token) over the batch's completion tokens."""
    tokens = batch.tokens.to(device)  # (rows, length)
    rounded = choose_precision("auto", device.type) == "bf16"
    with torch.autocast(device.type, torch.bfloat16, enabled=rounded):
        hidden = model.model(
            input_ids=tokens,
            attention_mask=batch.mask().to(device),
            position_ids=batch.positions.to(device),
            use_cache=False,
        ).last_hidden_state  # (rows, length, hidden)
        wanted = batch.weights > 0
        row, source, target = (t[wanted].to(device) for t in (batch.row, batch.source, batch.target))
        logits = model.lm_head(hidden[row, source])  # (tokens with a weight, vocabulary)
    weights = batch.weights[wanted].to(device)
    losses = cross_entropy(logits.float(), tokens[row, target], reduction="none")
    return (losses * weights).sum() / weights.sum()


def begin_with(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, start: Path) -> None:
    """Load the finished weights in ``start``, whose vocabulary may differ, into ``model``.

    The factor ``SHARPNESS`` in its last norm is divided out.
    """
    known = PreTrainedTokenizerFast.from_pretrained(start)
    weights = {name: tensor.float() for name, tensor in load_file(start / "model.safetensors").items()}
    rows = weights["model.embed_tokens.weight"]
    weights["model.norm.weight"] /= SHARPNESS
    weights["model.embed_tokens.weight"] = carried_rows(rows, known, tokenizer, model.config.vocab_size)
    model.load_state_dict(weights, strict=False)  # lm_head is tied to the embedding


def carried_rows(
    rows: Tensor, known: PreTrainedTokenizerFast, wanted: PreTrainedTokenizerFast, num_rows: int
) -> Tensor:
    """Return the embedding (num_rows, width) of the wanted tokenizer's tokens.

    Rows are copied by token text. A new token gets the mean of its bytes' rows, a new mark the mean of the known marks'
    rows, and rows beyond the vocabulary the mean of all rows.
    """
    earlier = known.get_vocab()
    marks = torch.stack([rows[earlier[mark]] for mark in MARKS if mark in earlier]).mean(0)
    result = rows[: len(earlier)].mean(0).repeat(num_rows, 1)
    for token, index in wanted.get_vocab().items():
        if token in earlier:
            result[index] = rows[earlier[token]]
        elif token in MARKS:
            result[index] = marks
        else:  # each character of a token's text represents a byte and is itself a token
            result[index] = torch.stack([rows[earlier[character]] for character in token]).mean(0)
    return result


def held_out_skeletons() -> frozenset[str]:
    """Return the skeletons of all programs in the frozen suites: no training program may equal one up to names."""
    return frozenset(skeleton(f.code) for path in frozen_files(SUITES) for f in load_functions(path))


def train(
    out: Path, max_steps: int | None = None, num_programs: int = VOCABULARY_PROGRAMS, device: str = "cpu",
    compiled: bool = False,
) -> Path:  # fmt: skip
    """Train all stages that are not finished yet; return the folder of the last one's model."""
    held_out = held_out_skeletons()
    start: Path | None = None
    for stage in STAGES:
        if max_steps is not None:
            stage = dataclasses.replace(stage, num_steps=min(max_steps, stage.num_steps))
        folder = out / stage.name
        if not (folder / "model.safetensors").exists():
            if not (folder / "tokenizer.json").exists():
                print(f"{stage.name}: reading the vocabulary", flush=True)
                read_vocabulary(tuple(stage.mixture), held_out, num_programs).save_pretrained(folder)
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
            trainer = Trainer(stage, tokenizer, out / f"{stage.name}.pt", start, device)
            trainer.run(held_out, compiled)
            trainer.write(folder)
        start = folder
    assert start is not None
    return start


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the three models and their checkpoints")
    parser.add_argument("--steps", type=int, help="at most this many steps per stage, to try the recipe")
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=VOCABULARY_PROGRAMS,
        help="programs of each world to build the vocabulary from (default: %(default)s)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="use torch.compile (needs a C++ compiler): faster")
    chosen = parser.parse_args(arguments)
    if chosen.out.exists() and not chosen.out.is_dir():
        parser.error(f"--out {chosen.out} is a file: name a folder")
    if chosen.steps is not None and chosen.steps < 1:
        parser.error(f"--steps {chosen.steps}: give 1 or more")
    if chosen.vocabulary < 1:
        parser.error(f"--vocabulary {chosen.vocabulary}: give 1 or more")
    if chosen.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no CUDA device here; leave --device out")
    print(f"wrote {train(chosen.out, chosen.steps, chosen.vocabulary, chosen.device, chosen.compile)}")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
