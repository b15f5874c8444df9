"""Adapters on disk as PEFT keeps them: ``adapter_config.json`` and ``adapter_model.safetensors``, both ways.

Nothing here needs the peft package. What PEFT can do and this engine cannot (another scale rule, other ranks for some
modules, trained biases...) is refused, because loading such an adapter would silently give another model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from redqueen.errors import UserError
from redqueen.files import open_plain, read_plain
from redqueen.policy.bank import AdapterBank, find_targets
from redqueen.population.genotype import Genotype

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
MAX_WEIGHTS_BYTES = 64 << 30
"""Largest adapter that is read."""

_PREFIX = "base_model.model."

_REFUSED: dict[str, tuple[object, ...]] = {
    "use_rslora": (None, False),
    "use_dora": (None, False),
    "use_qalora": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "modules_to_save": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
    "bias": (None, "none"),
    "lora_bias": (None, False),
    "fan_in_fan_out": (None, False),
    "layer_replication": (None, []),
    # These start from a base whose weights were changed to match; only "True", "False" and "gaussian" leave it alone.
    "init_lora_weights": (None, True, False, "gaussian", "eva", "orthogonal"),
}
"""Fields of PEFT's configuration and the values under which an adapter is the plain LoRA that this engine runs."""


def export_peft(bank: AdapterBank, slot: int, folder: Path | str, base_model_name: str) -> None:
    """Write a member as a PEFT LoRA adapter into ``folder`` (made if need be; files there are replaced).

    ``base_model_name`` is what PEFT will look for as the base: a name on the hub or a path.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    genotype = bank.genotype(slot)
    tensors: dict[str, Tensor] = {}
    for name, (a, b) in genotype.factors.items():
        tensors[f"{_PREFIX}{name}.lora_A.weight"] = a.contiguous()
        tensors[f"{_PREFIX}{name}.lora_B.weight"] = b.contiguous()
    config = {
        "base_model_name_or_path": base_model_name,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(genotype.alpha) if genotype.alpha.is_integer() else genotype.alpha,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": genotype.rank,
        "target_modules": _shortest_targets(bank),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def import_peft(folder: Path | str) -> Genotype:
    """Read a PEFT LoRA adapter as a genotype in fp32.

    Raises UserError, naming the file and the remedy, when it is missing, damaged, or more than plain LoRA of one rank.
    """
    folder = Path(folder)
    config = _read_config(folder / CONFIG_FILE)
    path = folder / WEIGHTS_FILE
    try:
        open_plain(path, MAX_WEIGHTS_BYTES).close()
        tensors = load_file(path)
    except FileNotFoundError:
        raise UserError(
            f"{path} is missing; save the adapter with PEFT's save_pretrained (safetensors, not .bin)"
        ) from None
    except SafetensorError as error:
        raise UserError(f"{path} cannot be read ({error}); save the adapter again") from None
    found: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, part = key.removeprefix(_PREFIX).rpartition(".lora_")
        if not key.startswith(_PREFIX) or part not in ("A.weight", "B.weight"):
            raise UserError(
                f"{path} holds {key!r}, which is no LoRA factor of a linear layer; only those are supported"
            )
        found.setdefault(name, {})[part[0]] = tensor.to(torch.float32)
    if not found or any(set(pair) != {"A", "B"} for pair in found.values()):
        raise UserError(f"{path} does not hold both factors of every module; save the adapter again")
    rank = config["r"]
    for name, pair in found.items():
        if pair["A"].shape[0] != rank or pair["B"].shape[1] != rank:
            raise UserError(
                f"{path}: {name} has not the rank r = {rank} of {CONFIG_FILE}; one rank for all is supported"
            )
    return Genotype({name: (pair["A"], pair["B"]) for name, pair in found.items()}, float(config["lora_alpha"]))


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(read_plain(path))
    except FileNotFoundError:
        raise UserError(f"{path} is missing; name the folder that PEFT's save_pretrained wrote") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON ({error}); save the adapter again") from None
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"{path}: peft_type must be LORA; other kinds of adapters are not supported")
    if not isinstance(config.get("r"), int) or not isinstance(config.get("lora_alpha"), int | float):
        raise UserError(f"{path} lacks r or lora_alpha; save the adapter again")
    for field, accepted in _REFUSED.items():
        if config.get(field) not in accepted:
            raise UserError(
                f"{path}: {field} = {config[field]!r} is not supported; "
                "train or convert the adapter as plain LoRA (one rank and alpha for all modules, no bias, no rslora)"
            )
    return config


def _shortest_targets(bank: AdapterBank) -> list[str]:
    """Name the adapted modules by their last part where that means exactly them, and in full otherwise."""
    endings = sorted({name.rpartition(".")[2] for name in bank.names})
    meant: Sequence[str] = tuple(find_targets(bank.base.model, endings))
    return endings if set(meant) == set(bank.names) else list(bank.names)
