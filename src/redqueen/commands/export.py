"""Write a member of a run as a folder that other tools load: a PEFT adapter or a merged model, with its card."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from redqueen.config import EMBEDDED, Config
from redqueen.engine import build_bank, load_base
from redqueen.errors import UserError
from redqueen.evolve.merge import MERGED, mean_of
from redqueen.files import making_folder, write_whole
from redqueen.journal import Journal, read
from redqueen.learn.torch_store import FACTORS
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import freeze
from redqueen.policy.base_shape import embedded_folder
from redqueen.population.genotype import Genotype
from redqueen.population.peft import plain_config, write_adapter
from redqueen.report.model_card import model_card
from redqueen.report.summary import product_name
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS, JOURNAL, load_run_config
from redqueen.state import State, state_from_plain

CARD = "README.md"


def export_member(run_dir: Path, member: str, out: Path, merge: bool = False, merged_students: bool = False) -> Path:
    """Write ``member`` ("": the run's product) as it is in the newest checkpoint, with its model card; return the
    folder.

    With ``merged_students`` it is the mean of all students in delta space. Where members have averages, those are
    written, since they were judged. Without ``merge`` a PEFT adapter; for the embedded base its weights and tokenizer
    are put beside it, so that the folder is whole. With ``merge`` a model with tokenizer, whose weights are W + dW
    rounded once to the base's own precision. Raises UserError for an unknown member, a run without a product, or a
    folder that exists or cannot be written.
    """
    if out.exists():
        raise UserError(f"--out {out} exists already: choose a folder to be made")
    if member and merged_students:
        raise UserError("--member and --merged-students name two adapters: leave one of them out")
    config = load_run_config(run_dir)
    checkpoint = Checkpoint.latest_valid(run_dir / CHECKPOINTS)
    if checkpoint is None:
        raise UserError(f"{run_dir} has no checkpoint yet: there is nothing to export")
    state = state_from_plain(checkpoint.state["state"])
    name = MERGED if merged_students else member or _product(run_dir, state)
    model, _ = load_base(config.model.base)
    bank = build_bank(config, freeze(model, "cpu", "fp32"))
    bank.load_all(checkpoint.tensors[FACTORS])
    genotype, sources = _named(name, state, bank, config)
    embedded = config.model.base == EMBEDDED
    base_name = str(out / "base") if embedded else config.model.base
    try:
        with making_folder(out) as aside:
            if merge:
                write_merged(config.model.base, genotype, aside)
            else:
                write_adapter(aside, plain_config(genotype, base_name, bank.shortest_targets()), genotype)
                if embedded:
                    shutil.copytree(embedded_folder(), aside / "base")
            card = model_card(run_dir, name, base_name, out.name, merge, checkpoint.step, sources)
            write_whole(aside / CARD, card)
    except OSError as error:
        raise UserError(
            f"--out {out} cannot be written ({error.strerror}): choose a folder you may write to on a disk with free "
            "space"
        ) from None
    return out


def _product(run_dir: Path, state: State) -> str:
    """Return the name of the run's product."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        name = product_name(read.metric_series(journal))
    if name is None:
        raise UserError(
            f"{run_dir} has no product yet (a run names it at its end): choose one by --member, of "
            f"{', '.join(state.by_id())}, or --merged-students"
        )
    return name


def _named(name: str, state: State, bank: AdapterBank, config: Config) -> tuple[Genotype, tuple[str, ...]]:
    """Return the factors of a member, or of the students' mean, and whose they are."""
    judged, members = config.slots.judged, state.by_id()
    if name == MERGED:
        slots = [judged.get(i.slot, i.slot) for i in state.students]
        return mean_of([bank.genotype(slot) for slot in slots]), tuple(i.id for i in state.students)
    if name not in members:
        raise UserError(f"--member {name} does not live in that run: choose one of {', '.join(members)}")
    slot = members[name].slot
    return bank.genotype(judged.get(slot, slot)), (name,)


def write_member(bank: AdapterBank, slot: int, out: Path, base_model_name: str) -> None:
    """Write the adapter in a slot as a PEFT folder; ``base_model_name`` is what PEFT will look for as the base."""
    genotype = bank.genotype(slot)
    write_adapter(out, plain_config(genotype, base_model_name, bank.shortest_targets()), genotype)


def write_merged(base: str, genotype: Genotype, out: Path) -> None:
    """Write the base with W + (lora_alpha / lora_rank) B A in each adapted layer, and its tokenizer, into ``out``."""
    model, tokenizer = load_base(base)
    with torch.no_grad():
        for name, (a, b) in genotype.factors.items():
            weight = model.get_parameter(f"{name}.weight")
            change = (genotype.alpha / genotype.rank) * (b @ a)
            weight.copy_((weight.float() + change).to(weight.dtype))
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
