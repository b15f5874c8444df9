"""Load the target of an evaluation into one engine: a run's members, a PEFT adapter, a whole model, or the base."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.adapters.base_shape import is_embedded_copy, refuse_missing_folder
from redqueen.adapters.peft import CONFIG_FILE, read_adapter
from redqueen.commands.adapter_base import base_of
from redqueen.config import Config, load_config, parse_config
from redqueen.engine import Engine, open_engine
from redqueen.errors import UserError
from redqueen.files import read_plain
from redqueen.fitting import fit_to_base
from redqueen.journal.schema import DISTILLED
from redqueen.records import BASE_SLOT
from redqueen.report.summary import has_distilled
from redqueen.run.checkpoint import naming_the_checkpoint, open_checkpoint
from redqueen.run.store import CHECKPOINTS, CONFIG, load_run_config
from redqueen.timing import Report, unheard

BASE_NAME = "base"
"""The word for the bare base on the command line, and its name in results."""


@dataclass(frozen=True)
class Examinee:
    """A model to evaluate: ``role`` is teacher, student, both, adapter or base; ``slot`` is its slot in the bank."""

    name: str
    role: str
    slot: int


@dataclass(frozen=True)
class Examination:
    """An open engine and its models to evaluate. ``where``: the run's step or the folder's name, for file names."""

    engine: Engine
    examinees: tuple[Examinee, ...]
    where: str
    of_run: bool = False


@contextmanager
def open_examination(target: str, overrides: Sequence[str], report: Report = unheard) -> Iterator[Examination]:
    """Load a target: a run directory, a PEFT folder, a Hugging Face model folder, or the word ``base``.

    For a run: the base, all members of its newest checkpoint, and its distilled adapter. For an adapter: its base and
    the adapter. ``overrides`` are ``section.field=value``; ``report`` gets the progress.

    Raises UserError when the target is none of the four or cannot be loaded.
    """
    folder = Path(target)
    asked = load_config(None, overrides)
    if target == BASE_NAME:
        with open_engine(fit_to_base(_with(_smallest(), asked)).config, report=report) as engine:
            yield Examination(engine, (Examinee(BASE_NAME, "base", BASE_SLOT),), BASE_NAME)
    elif (folder / CONFIG_FILE).is_file():
        with _open_adapter(folder, asked, report) as found:
            yield found
    elif _holds_model(folder):
        config = fit_to_base(_with(_smallest() | {"model": _model(folder)}, asked)).config
        with open_engine(config, report=report) as engine:
            name = folder.resolve().name
            yield Examination(engine, (Examinee(name, "base", BASE_SLOT),), name)
    elif (folder / CONFIG).is_file():
        with _open_run(folder, asked, report) as found:
            yield found
    else:
        if folder.is_file():
            refuse_missing_folder(target)
        raise UserError(
            f"{target} is neither a run directory nor a PEFT folder (with {CONFIG_FILE}) nor a model folder (with "
            f"{CONFIG}): give one of these, or the word {BASE_NAME} (a model on the hub: {BASE_NAME} --set "
            "model.base=owner/name)"
        )


@contextmanager
def _open_run(folder: Path, asked: Config, report: Report) -> Iterator[Examination]:
    config = _with(_safe_config(load_run_config(folder)), asked)
    found = open_checkpoint(folder / CHECKPOINTS, config)
    if found is None:
        raise UserError(f"{folder} has no checkpoint yet: there is no member to evaluate")
    checkpoint, state = found
    with open_engine(config, report=report) as engine:
        with naming_the_checkpoint(checkpoint, folder / CHECKPOINTS):
            engine.store.load_state(checkpoint.tensors)
        members = [Examinee(i.id, i.role, i.slot) for i in state.individuals]
        if config.slots.distilled and has_distilled(folder, state.step):
            members.append(Examinee(DISTILLED, "adapter", config.slots.distilled[0]))
        yield Examination(
            engine, (Examinee(BASE_NAME, "base", BASE_SLOT), *members), f"step-{state.step:06d}", of_run=True
        )


def _safe_config(config: Config) -> dict[str, Any]:
    """Return a run folder's config without settings that run code, weaken the sandbox or contact the run's servers."""
    data: dict[str, Any] = config.model_dump(mode="json")
    del data["sampler"], data["evolve"]  # operators and fitness may name files with code, and nothing is bred here
    known = [name for name in config.propose.domains if name not in config.propose.domains_to_import]
    data["propose"] |= {"policy_hook": "", "policy_rules": [], "domains": known or ["code"]}
    if len(known) < len(config.propose.domains):  # nothing is proposed here, so these numbers have no effect
        data["propose"] |= {"num_proposals": {}, "num_of_each_kind": 1}
    data["verify"]["allow_weak"] = False
    return data


@contextmanager
def _open_adapter(folder: Path, asked: Config, report: Report) -> Iterator[Examination]:
    adapter = read_adapter(folder)
    genotype, data = adapter.genotype, _smallest()
    data["population"] |= {"lora_rank": genotype.rank, "lora_alpha": genotype.alpha, "lora_targets": genotype.names}
    data["model"] = _model(asked.model.base if "base" in asked.model.model_fields_set else base_of(adapter))
    with open_engine(fit_to_base(_with(data, asked)).config, report=report) as engine:
        engine.store.load(0, genotype)
        name = folder.resolve().name
        yield Examination(engine, (Examinee(BASE_NAME, "base", BASE_SLOT), Examinee(name, "adapter", 0)), name)


def _holds_model(folder: Path) -> bool:
    """Return whether a folder's config.json is a Hugging Face model's; a run's config has no model_type."""
    try:
        return isinstance(json.loads(read_plain(folder / CONFIG)).get("model_type"), str)
    except (OSError, UserError, ValueError, AttributeError, RecursionError):
        return False


def _model(base: Path | str) -> dict[str, Any]:
    """Return the section ``model`` for a base; a copy of the embedded base gets its own prompt format."""
    return {"base": str(base)} | ({"prompt_format": "compact"} if is_embedded_copy(base) else {})


def _smallest() -> dict[str, Any]:
    """Return a config of the smallest possible bank, as plain values."""
    return {"population": {"num_teachers": 1, "num_students": 1, "single": True, "lora_rank": 1}}


def _with(data: dict[str, Any], asked: Config) -> Config:
    """Return the config in ``data`` with the fields that were set on the command line."""
    plain = asked.model_dump(mode="json")
    for section in asked.model_fields_set:
        for field in getattr(asked, section).model_fields_set:
            data.setdefault(section, {})[field] = plain[section][field]
    return parse_config(data, "the evaluation's config")
