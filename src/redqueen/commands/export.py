"""Write a member of a run as a folder that other tools load: a PEFT adapter or a merged model, with its card."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError

from redqueen.adapters.bank import check_shape, find_targets
from redqueen.adapters.base import freeze
from redqueen.adapters.base_shape import OWN_BASE, embedded_folder, identify_base
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.peft import plain_config, write_adapter
from redqueen.config import EMBEDDED, Config
from redqueen.config.load import without_folders
from redqueen.engine import build_bank, load_base
from redqueen.errors import UserError, command
from redqueen.evolve.spectrum import MERGED, mean_of
from redqueen.files import making_folder, naming_remedy, write_whole
from redqueen.journal import Journal, read
from redqueen.journal.schema import DISTILLED
from redqueen.learn.torch_learner import FACTORS
from redqueen.records import Individual
from redqueen.report.model_card import model_card
from redqueen.report.summary import has_distilled, product_name
from redqueen.run.checkpoint import open_checkpoint
from redqueen.run.continuation import NOTHING_VALID, is_nothing_valid
from redqueen.run.product import candidates, num_candidates
from redqueen.run.store import CHECKPOINTS, JOURNAL, load_run_config
from redqueen.state import State

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CARD = "README.md"


@dataclass(frozen=True)
class Opened:
    """An adapter of a run's newest checkpoint: its name, its factors, and the members (``sources``) it is made from.

    ``targets`` are the adapted modules by PEFT's names; ``step`` is the checkpoint's.
    """

    config: Config
    name: str
    genotype: Genotype
    targets: list[str]
    sources: tuple[str, ...]
    step: int


def export_member(run_dir: Path, member: str, out: Path, merge: bool = False, base_name: str = "") -> Path:
    """Write ``member`` ("": the run's product; merged: the mean of all students in delta space) as it is in the newest
    checkpoint, with its card; return the folder.

    Without ``merge``, a PEFT adapter: adapter_config.json (rank, alpha, modules, the base's name) and
    adapter_model.safetensors (for each module A, (r, in), and B, (out, r), as ``base_model.model.MODULE.lora_A.weight``
    and ``lora_B``); the embedded base is written into the same folder. ``base_name``: the base's name on the hub, if
    the run loaded it from a folder. With ``merge``, a model with tokenizer; its weights are W + dW rounded once to the
    base's precision. Raises UserError for an unknown member, a run without a product, or a folder that exists or cannot
    be written.
    """
    if out.exists():
        raise UserError(f"--out {out} exists already: choose a new folder")
    opened = open_member(run_dir, member)
    name = opened.config.model.base
    known, genotype = identify_base(name), opened.genotype
    base = replace(known, name=base_name or known.name)
    remedy, errors = "choose a folder you may write to on a disk with free space", (OSError, SafetensorError)
    with naming_remedy(f"--out {out} cannot be written", remedy, errors), making_folder(out) as temporary:
        if merge:
            write_merged(name, genotype, temporary)
        else:
            peft_base = OWN_BASE if name == EMBEDDED else without_folders(base.name)
            write_adapter(temporary, plain_config(genotype, peft_base, opened.targets), genotype, base.sha256)
            if name == EMBEDDED:
                shutil.copytree(embedded_folder(), temporary / OWN_BASE)
        card = model_card(run_dir, opened.config, opened.name, base, merge, opened.step, out.name, opened.sources)
        write_whole(temporary / CARD, card)
    if genotype.is_zero:
        print(f"{opened.name} was never updated: it does not change the base's answers", file=sys.stderr)
    if not merge and os.path.isabs(base.name):
        print(
            f"{out} names its base {without_folders(base.name)}, without the folder it was loaded from: give "
            "PEFT the base's path, or export with --base-name OWNER/MODEL, its name on the hub",
            file=sys.stderr,
        )
    return out


def open_member(run_dir: Path, member: str) -> Opened:
    """Open a member, the mean of the students (``merged``), the ``distilled`` adapter, or the run's product ("").

    Raises UserError when there is no checkpoint, no such member in the newest one, or no product at its step.
    """
    config = load_run_config(run_dir)
    found = open_checkpoint(run_dir / CHECKPOINTS, config)
    if found is None:
        raise UserError(f"{run_dir} has no checkpoint yet: there is nothing to export")
    checkpoint, state = found
    members = state.by_id()
    name = member or _product(run_dir, state, config.run.product)
    distilled = list(config.slots.distilled)
    distilled = distilled if distilled and has_distilled(run_dir, checkpoint.step) else []
    known = [*members, *([DISTILLED] if distilled else [])]
    if name != MERGED and name not in known:
        raise UserError(f"--member {name} is not a present member of {run_dir}: choose one of {', '.join(known)}")
    model, _ = load_base(config.model.base)
    rank, layers = config.population.lora_rank, find_targets(model, config.population.lora_targets).values()
    per_member = rank * sum(layer.in_features + layer.out_features for layer in layers)
    check_shape(checkpoint.tensors[FACTORS], (config.num_adapters, per_member))  # before the bank takes memory
    bank = build_bank(config, freeze(model, "cpu", "fp32"))
    bank.load_all(checkpoint.tensors[FACTORS])
    sources = sources_of(name, state, None if member else num_candidates(config))
    slots = distilled if name == DISTILLED else [one.slot for one in sources]
    genotype = mean_of([bank.genotype(slot) for slot in slots])
    ids = tuple(one.id for one in sources)
    return Opened(config, name, genotype, bank.shortest_targets(), ids, checkpoint.step)


def sources_of(name: str, state: State, product_candidates: int | None) -> tuple[Individual, ...]:
    """Return the members that an adapter is made from: a single member, or students.

    For the merged product of a run they are its candidates, at most ``product_candidates``; None: all students.
    """
    if name == DISTILLED or (name == MERGED and product_candidates is None):
        return tuple(state.students)
    return tuple(candidates(state, product_candidates or 0)) if name == MERGED else (state.by_id()[name],)


def _product(run_dir: Path, state: State, wanted: str) -> str:
    """Return the name of the run's product, chosen after the step of its newest checkpoint."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        name, failed = product_name(read.metric_series(journal), state.step), is_nothing_valid(journal)
    if name is None and failed:
        raise UserError(f"{run_dir} cannot be exported: {NOTHING_VALID}; export one of its members with --member")
    if name is None:
        finish = "" if wanted == "none" else f"finish the run (`{command('resume', run_dir)}`), or "
        raise UserError(
            f"{run_dir} has no product after step {state.step}, that of its newest checkpoint (a run chooses one at "
            f"its end): {finish}choose a member with --member, one of {', '.join(state.by_id())}, {MERGED}"
        )
    return name


def write_merged(base: str, genotype: Genotype, out: Path) -> None:
    """Write the base with an adapter merged into it, and its tokenizer, to ``out``."""
    model, tokenizer = merged(base, genotype)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def merged(base: str, genotype: Genotype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the base with W + (lora_alpha / lora_rank) B A in each adapted layer, and its tokenizer.

    Raises UserError when the base does not have the adapted layers, or has them with other shapes.
    """
    model, tokenizer = load_base(base)
    with torch.no_grad():
        for name, (a, b) in genotype.factors.items():
            try:
                weight = model.get_parameter(f"{name}.weight")
            except AttributeError:
                raise UserError(
                    f"the adapter targets {name}, but {base} has no such module: pass the base it was trained on"
                ) from None
            change = (genotype.alpha / genotype.rank) * (b.float() @ a.float())
            if change.shape != weight.shape:
                raise UserError(
                    f"the adapter's factors of {name} make a matrix of {tuple(change.shape)}, but the module of {base} "
                    f"has {tuple(weight.shape)}: pass the base it was trained on"
                )
            weight.copy_((weight.float() + change).to(weight.dtype))
    return model, tokenizer
