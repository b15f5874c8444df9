"""Write a member of a run as a folder that other tools load: a PEFT adapter or a merged model, with its card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from redqueen.config import EMBEDDED, Config
from redqueen.engine import build_bank, load_base
from redqueen.errors import UserError
from redqueen.files import making_folder, write_whole
from redqueen.learn.torch_store import FACTORS
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import freeze
from redqueen.policy.base_identity import OWN_BASE, BaseIdentity, identify_base
from redqueen.policy.base_shape import embedded_folder
from redqueen.population.genotype import Genotype
from redqueen.population.peft import plain_config, write_adapter
from redqueen.report.model_card import model_card
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS, load_run_config
from redqueen.state import state_from_plain

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CARD = "README.md"


def export_member(run_dir: Path, member: str, out: Path, merge: bool = False) -> Path:
    """Write ``member`` as it is in the newest checkpoint, with its model card; return the folder.

    Without ``merge`` a PEFT adapter; for the embedded base its weights and tokenizer are put beside it, so that the
    folder is whole. With ``merge`` a model with tokenizer, whose weights are W + dW rounded once to the base's own
    precision. Raises UserError for an unknown member, or a folder that exists or cannot be written.
    """
    if out.exists():
        raise UserError(f"--out {out} exists already: choose a folder to be made")
    config, bank, slot, step = open_member(run_dir, member)
    embedded, base = config.model.base == EMBEDDED, identify_base(config.model.base)
    try:
        with making_folder(out) as aside:
            if merge:
                write_merged(config.model.base, bank.genotype(slot), aside)
            else:
                write_member(bank, slot, aside, base)
                if embedded:
                    shutil.copytree(embedded_folder(), aside / OWN_BASE)
            write_whole(aside / CARD, model_card(run_dir, member, base, merge, step))
    except OSError as error:
        raise UserError(
            f"--out {out} cannot be written ({error.strerror}): choose a folder you may write to on a disk with free "
            "space"
        ) from None
    return out


def open_member(run_dir: Path, member: str) -> tuple[Config, AdapterBank, int, int]:
    """Return a run's config, a bank with all its adapters, the slot of ``member`` in it, and the checkpoint's step.

    Raises UserError when there is no checkpoint, or no such member in the newest one.
    """
    config = load_run_config(run_dir)
    checkpoint = Checkpoint.latest_valid(run_dir / CHECKPOINTS)
    if checkpoint is None:
        raise UserError(f"{run_dir} has no checkpoint yet: there is nothing to export")
    members = state_from_plain(checkpoint.state["state"]).by_id()
    if member not in members:
        raise UserError(f"--member {member} does not live in {run_dir}: choose one of {', '.join(members)}")
    model, _ = load_base(config.model.base)
    bank = build_bank(config, freeze(model, "cpu", "fp32"))
    bank.load_all(checkpoint.tensors[FACTORS])
    return config, bank, members[member].slot, checkpoint.step


def write_member(bank: AdapterBank, slot: int, out: Path, base: BaseIdentity) -> None:
    """Write the adapter in a slot as a PEFT folder that says which base it belongs to."""
    genotype = bank.genotype(slot)
    write_adapter(out, plain_config(genotype, base.name, bank.shortest_targets()), genotype, base.sha256)


def write_merged(base: str, genotype: Genotype, out: Path) -> None:
    """Write the base with an adapter merged into it, and its tokenizer, into ``out``."""
    model, tokenizer = merged(base, genotype)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def merged(base: str, genotype: Genotype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the base with W + (lora_alpha / lora_rank) B A in each adapted layer, and its tokenizer.

    Raises UserError when the base has not the adapted layers.
    """
    model, tokenizer = load_base(base)
    with torch.no_grad():
        for name, (a, b) in genotype.factors.items():
            try:
                weight = model.get_parameter(f"{name}.weight")
            except AttributeError:
                raise UserError(f"the adapter changes {name}, which {base} has not: give its own base") from None
            change = (genotype.alpha / genotype.rank) * (b @ a)
            weight.copy_((weight.float() + change).to(weight.dtype))
    return model, tokenizer
