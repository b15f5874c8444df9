"""Plain PEFT folders, without peft: read a LoRA adapter as a genotype, write a child beside it.

A folder holds ``adapter_config.json`` and ``adapter_model.safetensors`` whose keys are
``base_model.model.<module>.lora_A.weight`` and ``lora_B.weight``.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from redqueen.errors import UserError
from redqueen.files import open_plain, read_plain
from redqueen.population.genotype import Factors, Genotype, is_finite

CONFIG_NAME = "adapter_config.json"
WEIGHTS_NAME = "adapter_model.safetensors"
MAX_WEIGHTS_BYTES = 64 << 30
"""Largest adapter that is read."""

_PREFIX = "base_model.model."
_SUFFIXES = (".lora_A.weight", ".lora_B.weight")


@dataclass(frozen=True)
class Adapter:
    """An adapter as it lies on disk: its folder, its ``adapter_config.json`` as read, and its factors."""

    folder: Path
    config: dict[str, Any]
    genotype: Genotype


def read_adapter(folder: Path) -> Adapter:
    """Read a LoRA adapter of one rank for all modules.

    Raises UserError, naming folder and remedy, for: a missing or unreadable file, another kind of adapter, tensors
    beside the LoRA factors (DoRA), ranks or alphas that differ from module to module, shapes that do not fit, NaN.
    """
    config = _read_config(folder)
    factors = _pair_up(folder, _read_tensors(folder))
    try:
        genotype = Genotype(factors, float(config["lora_alpha"]))
    except ValueError as error:
        raise UserError(f"{folder / WEIGHTS_NAME}: {error}") from error
    if genotype.rank != config["r"]:
        raise UserError(
            f"{folder}: {CONFIG_NAME} says rank {config['r']}, the weights have rank {genotype.rank}; save it again"
        )
    if not is_finite(genotype):
        raise UserError(f"{folder / WEIGHTS_NAME} holds NaN or infinity: a broken adapter cannot breed, choose another")
    return Adapter(folder, config, genotype)


def write_adapter(folder: Path, config: dict[str, Any], genotype: Genotype, record: dict[str, Any]) -> None:
    """Write a new folder with ``config`` as given and ``record`` as ``breeding.json``; all of it or nothing.

    ``folder`` must not exist yet, or be empty. Raises UserError when it cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    for name, pair in genotype.factors.items():
        for part, suffix in zip(pair, _SUFFIXES, strict=True):
            tensors[f"{_PREFIX}{name}{suffix}"] = part.contiguous()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be made ({error.strerror}); choose another place") from error
    try:
        save_file(tensors, making / WEIGHTS_NAME, metadata={"format": "pt"})
        (making / CONFIG_NAME).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        (making / "breeding.json").write_text(json.dumps(record, indent=2) + "\n")
        making.chmod(0o777 & ~_umask())
        making.replace(folder)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror}); choose another place") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)  # gone already when all went well


def _read_config(folder: Path) -> dict[str, Any]:
    """The config, with the kinds of adapter that a genotype cannot hold refused."""
    path = folder / CONFIG_NAME
    try:
        config = json.loads(read_plain(path))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}; --parents wants folders that PEFT's save_pretrained wrote"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({error}); save the adapter again") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"{path}: peft_type is not LORA; only LoRA adapters can breed")
    if not isinstance(config.get("r"), int) or not isinstance(config.get("lora_alpha"), int | float):
        raise UserError(f"{path}: 'r' or 'lora_alpha' is missing or no number; save the adapter again")
    for name in ("rank_pattern", "alpha_pattern"):
        if config.get(name):
            raise UserError(f"{path}: {name} gives modules their own rank or alpha; operators need one for all")
    return config


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS_NAME
    try:
        open_plain(path, MAX_WEIGHTS_BYTES).close()
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"{path} is missing; save the adapter with safetensors (pickles are not read)") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read ({error}); save the adapter again") from error


def _pair_up(folder: Path, tensors: dict[str, Tensor]) -> dict[str, Factors]:
    """Module names with their (A, B), in sorted order, so that the order in the file does not matter."""
    halves: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
    for key, tensor in tensors.items():
        half = next((i for i, suffix in enumerate(_SUFFIXES) if key.endswith(suffix)), None)
        if half is None or not key.startswith(_PREFIX):
            raise UserError(f"{folder / WEIGHTS_NAME}: {key} is no LoRA factor; plain LoRA adapters only")
        halves[half][key[len(_PREFIX) : -len(_SUFFIXES[half])]] = tensor
    lonely = halves[0].keys() ^ halves[1].keys()
    if lonely or not halves[0]:
        what = f"{min(lonely)} has only one of its two factors" if lonely else "there is no LoRA factor"
        raise UserError(f"{folder / WEIGHTS_NAME}: {what}; save the adapter again")
    return {name: (halves[0][name], halves[1][name]) for name in sorted(halves[0])}


def _umask() -> int:
    """The process's umask, which can only be read by setting it: a temporary folder is made for its owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
