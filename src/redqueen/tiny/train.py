"""Train an embedded base, from nothing or from an earlier one: resumable, deterministic on one machine.

It takes a few hours of two cores at most.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Set
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from redqueen.domains.code.suite import SUITES
from redqueen.errors import UserError
from redqueen.policy.base import choose_precision
from redqueen.policy.memory import keep_freed_memory
from redqueen.timing import Report, unheard
from redqueen.tiny.attention import PACKED, additive
from redqueen.tiny.corpus import Batch, Corpus
from redqueen.tiny.held_out import held_out_skeletons
from redqueen.tiny.mixture import check_mixture
from redqueen.tiny.recipe import RECIPES, Recipe, build_model, build_recipe_tokenizer
from redqueen.tiny.start import begin_with, refuse_no_base

CHECKPOINT_EVERY_S = 120.0


class Trainer:
    """Owns the model, its two optimisers and the position in the corpus."""

    def __init__(
        self, recipe: Recipe, folder: Path, held_out: Set[str], device: str = "cpu", start: Path | None = None
    ) -> None:
        """``start``: the folder of the finished weights to begin with, for a recipe that continues another."""
        self.recipe = recipe
        self.folder = folder
        self.held_out = held_out
        self.device = torch.device(device)
        self.step = 0
        self.tokens_seen = 0
        self.curve: list[tuple[int, float]] = []
        if (folder / "recipe.json").exists():
            self._check_recipe()
            self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.tokenizer = build_recipe_tokenizer(recipe, held_out)
            self.tokenizer.save_pretrained(folder)
            (folder / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe), indent=2))
        keep_freed_memory()
        torch.manual_seed(recipe.rng_seed)
        self.model = build_model(recipe, self.tokenizer)
        self.model.config._attn_implementation = PACKED
        cast(torch.nn.Module, self.model).to(self.device)
        hidden = [p for n, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in n]
        others = [p for n, p in self.model.named_parameters() if p.ndim != 2 or "embed" in n]
        self.muon = torch.optim.Muon(
            hidden, lr=recipe.muon_lr, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
        )
        self.adamw = torch.optim.AdamW(others, lr=recipe.adamw_lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        if (folder / "progress.json").exists():
            self._load()
        elif recipe.continues:
            if start is None:
                raise UserError(f"the recipe continues {recipe.continues}: --start must name the folder of such a base")
            begin_with(self.model, self.tokenizer, start, RECIPES[recipe.continues].sharpness)

    def _check_recipe(self) -> None:
        if read_recipe(self.folder) != self.recipe:
            raise UserError(f"{self.folder}/recipe.json differs from the recipe asked for: choose another --out folder")

    def run(
        self,
        report: Callable[[str], None],
        stop_after_s: float = float("inf"),
        compiled: bool = False,
        heard: Report = unheard,
    ) -> None:
        """Train to the end of the recipe, or stop at a checkpoint after ``stop_after_s`` seconds.

        ``report`` gets a line now and then, ``heard`` is told of every step.

        ``compiled`` runs the model through torch.compile (a C++ compiler is needed on a CPU): about 1.2 times faster.
        """
        recipe = self.recipe
        if compiled:
            self.model.model.compile(dynamic=True)
        corpus = Corpus(
            self.tokenizer,
            recipe.rng_seed,
            recipe.num_steps,
            recipe.num_rows,
            recipe.row_tokens,
            self.held_out,
            recipe.teaching(),
            recipe.mixture,
        )
        rest = Subset(corpus, range(self.step, recipe.num_steps))
        loader = DataLoader(rest, batch_size=None, num_workers=1, prefetch_factor=8)
        began = saved = said = time.monotonic()
        tokens_before = self.tokens_seen
        losses: list[float] = []
        for batch in loader:
            losses.append(self._step(batch))
            heard(self.step - rest.indices[0], len(rest), self.tokens_seen - tokens_before)
            now = time.monotonic()
            if now - said > 20 or self.step == recipe.num_steps:
                speed = (self.tokens_seen - tokens_before) / (now - began)
                left_s = (recipe.num_steps - self.step) * (now - began) / max(1, self.step - rest.indices[0])
                loss = sum(losses) / len(losses)
                self.curve.append((self.tokens_seen, round(loss, 4)))
                report(
                    f"step {self.step}/{recipe.num_steps}  loss {loss:.4f}  tokens {self.tokens_seen / 1e6:.1f} M  "
                    f"{speed:,.0f} tokens/s  {left_s / 60:.0f} min left"
                )
                losses, said = [], now
            if now - saved > CHECKPOINT_EVERY_S or self.step == recipe.num_steps:
                self._save()
                saved = now
                if now - began > stop_after_s:
                    return

    def _step(self, batch: Batch) -> float:
        self._set_rates()
        loss = batch_loss(self.model, batch, self.device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        for optimizer in (self.muon, self.adamw):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens_seen += int((batch.pack.segment >= 0).sum())
        return loss.item()

    def _set_rates(self) -> None:
        recipe = self.recipe
        factor = min((self.step + 1) / recipe.warmup_steps, 1.0 - self.step / recipe.num_steps)
        for optimizer, lr in ((self.muon, recipe.muon_lr), (self.adamw, recipe.adamw_lr)):
            for group in optimizer.param_groups:
                group["lr"] = lr * factor

    def _optimizer_tensors(self) -> dict[str, Tensor]:
        """Return the optimisers' state as named tensors."""
        return {
            f"{name}/{i}/{key}": value.detach().clone().contiguous()
            for name, optimizer in (("muon", self.muon), ("adamw", self.adamw))
            for i, state in optimizer.state_dict()["state"].items()
            for key, value in state.items()
        }

    def _save(self) -> None:
        """Write weights, optimiser state and progress; progress last, so a cut leaves the older state readable."""
        save_model(self.model, self.folder / "checkpoint.safetensors.new")
        save_file(self._optimizer_tensors(), self.folder / "optimizer.safetensors.new")
        progress = {"step": self.step, "tokens_seen": self.tokens_seen, "curve": self.curve}
        (self.folder / "progress.json.new").write_text(json.dumps(progress))
        for name in ("checkpoint.safetensors", "optimizer.safetensors", "progress.json"):
            os.replace(self.folder / f"{name}.new", self.folder / name)

    def _load(self) -> None:
        progress = json.loads((self.folder / "progress.json").read_text())
        self.step, self.tokens_seen = progress["step"], progress["tokens_seen"]
        self.curve = [(t, x) for t, x in progress["curve"]]
        self.model.load_state_dict(load_file(self.folder / "checkpoint.safetensors"), strict=False)
        tensors = load_file(self.folder / "optimizer.safetensors")
        for name, optimizer in (("muon", self.muon), ("adamw", self.adamw)):
            state: dict[int, dict[str, Tensor]] = {}
            for key, value in tensors.items():
                owner, index, field = key.split("/")
                if owner == name:
                    state.setdefault(int(index), {})[field] = value
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def batch_loss(model: Qwen3ForCausalLM, batch: Batch, device: torch.device) -> Tensor:
    """Return the weighted mean cross-entropy (nats a token) over the pack's completion tokens."""
    pack = batch.pack
    tokens = pack.tokens.to(device)
    rounded = choose_precision("auto", device.type) == "bf16"
    with torch.autocast(device.type, torch.bfloat16, enabled=rounded):
        hidden = model.model(
            input_ids=tokens,
            attention_mask=additive(pack.mask().to(device), torch.bfloat16 if rounded else torch.float32),
            position_ids=pack.positions.to(device),
            use_cache=False,
        ).last_hidden_state
        wanted = batch.weights > 0
        row, source, target = (t[wanted].to(device) for t in (pack.row, pack.source, pack.target))
        logits = model.lm_head(hidden[row, source])
    weights = batch.weights[wanted].to(device)
    losses = cross_entropy(logits.float(), tokens[row, target], reduction="none")
    return (losses * weights).sum() / weights.sum()


def save_model(model: Qwen3ForCausalLM, path: Path) -> None:
    """Write the weights (the tied output layer once)."""
    state = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(state, path, metadata={"format": "pt"})


def train_base(
    folder: Path,
    name: str,
    num_steps: int | None,
    device: str,
    compiled: bool,
    report: Callable[[str], None],
    start: Path | None = None,
    heard: Report = unheard,
) -> None:
    """Train by the recipe of this name in ``folder`` (going on where it was); write the model to ``folder/base``.

    A recipe that continues another begins with the base in ``start``; without it the other is trained first, by its
    whole recipe, in a folder of its name inside ``folder``. Raises UserError, before anything is written, for what
    cannot be trained.
    """
    if name not in RECIPES:
        raise UserError(f"--recipe {name}: there is no such recipe; choose one of {', '.join(RECIPES)}")
    _check_asked(folder, num_steps, device)
    recipe = RECIPES[name] if num_steps is None else dataclasses.replace(RECIPES[name], num_steps=num_steps)
    check_mixture(recipe.mixture, f"the recipe {name}")
    if start is not None and not recipe.continues:
        raise UserError(f"--start: the recipe {name} begins from nothing; leave --start out")
    if start is not None and not (folder / "progress.json").exists():
        refuse_no_base(start)
    if recipe.continues and start is None:
        start = folder / recipe.continues / "base"
        if not (start / "tokenizer_config.json").exists():  # what is written last
            train_base(folder / recipe.continues, recipe.continues, None, device, compiled, report, heard=heard)
    trainer = Trainer(recipe, folder, held_out_skeletons(SUITES), device, start)
    trainer.run(report, compiled=compiled, heard=heard)
    report(f"wrote {write_base(folder, folder / 'base')}")


def _check_asked(folder: Path, num_steps: int | None, device: str) -> None:
    """Raise UserError for a folder, a number of steps or a device with which nothing can be trained."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder} is a file: name a folder")
    if num_steps is not None and num_steps < 1:
        raise UserError(f"--steps {num_steps} trains nothing: give 1 or more")
    if device not in ("cpu", "cuda"):
        raise UserError(f"--device {device} is unknown: choose cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: this machine shows no CUDA device; leave --device out")


def read_recipe(folder: Path) -> Recipe:
    """Read the recipe of a training folder. Raises UserError when it is of another version of the project."""
    try:
        return Recipe(**json.loads((folder / "recipe.json").read_text()))
    except TypeError:
        raise UserError(f"{folder}/recipe.json has fields that are unknown here: choose another --out folder") from None


def write_base(folder: Path, out: Path) -> Path:
    """Write the newest weights of a training folder as a Hugging Face model folder in fp16; return it."""
    recipe = read_recipe(folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = build_model(recipe, tokenizer)
    model.load_state_dict(load_file(folder / "checkpoint.safetensors"), strict=False)
    with torch.no_grad():
        model.model.norm.weight.mul_(recipe.sharpness)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out
