"""Adapters on disk in PEFT's format: reads and writes ``adapter_config.json`` and ``adapter_model.safetensors``.

Nothing here needs the peft package. Features of PEFT that this engine lacks (another scale rule, other ranks for some
modules, trained biases...) are refused, because running or breeding such an adapter would silently give another model.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from redqueen.adapters.genotype import Factors, Genotype, flattened, is_finite
from redqueen.errors import UserError
from redqueen.files import making_folder, open_plain, read_plain

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
MAX_WEIGHTS_BYTES = 64 << 30
"""Largest adapter that is read."""

PRECISIONS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""Allowed dtypes of stored factors: narrower ones are quantised and need scales, which a PEFT folder does not have."""

BASE_SHA256 = "base_sha256"
"""The metadata entry of the weights with the hash of the base that they were trained on."""

_PREFIX = "base_model.model."
_SUFFIXES = (".lora_A.weight", ".lora_B.weight")

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
    "task_type": (None, "CAUSAL_LM"),
    "lora_bias": (None, False),
    "fan_in_fan_out": (None, False),
    "layer_replication": (None, []),
    "alora_invocation_tokens": (None, []),
    "use_bdlora": (None,),
    "arrow_config": (None,),
    "kasa_config": (None,),
    "monteclora_config": (None,),
    # Other values start from a base whose weights PEFT changed to match.
    "init_lora_weights": (None, True, False, "gaussian", "eva", "orthogonal"),
}
"""Fields of PEFT's configuration and the values under which an adapter is the plain LoRA that this engine runs."""


@dataclass(frozen=True)
class Adapter:
    """An adapter that was read from disk: its folder, the content of ``adapter_config.json``, and its factors.

    ``base_sha256``: the hash of the base's weights, if redqueen exported the adapter; otherwise "".
    """

    folder: Path
    config: dict[str, Any]
    genotype: Genotype
    base_sha256: str = ""


def read_adapter(folder: Path | str) -> Adapter:
    """Read a LoRA adapter with one rank for all modules; all factors get the widest dtype that the file has.

    Raises UserError, naming the file and the remedy, when it is missing, damaged, not finite, or not plain LoRA.
    """
    folder = Path(folder)
    path, config = folder / WEIGHTS_FILE, _read_config(folder / CONFIG_FILE)
    try:
        genotype = Genotype(_pair_up(path, _read_tensors(path)), float(config["lora_alpha"]))
        base_sha256 = _read_base_sha256(path)
    except ValueError as error:
        raise UserError(f"{path}: {error}; save the adapter again") from error
    if genotype.rank != config["r"]:
        raise UserError(
            f"{folder}: {CONFIG_FILE} says rank {config['r']}, the weights have rank {genotype.rank}; save it again"
        )
    if not is_finite(genotype):
        raise UserError(f"{path} holds NaN or infinity: the adapter is broken, choose another")
    return Adapter(folder, config, genotype, base_sha256)


def write_adapter(folder: Path | str, config: Mapping[str, Any], genotype: Genotype, base_sha256: str = "") -> None:
    """Write the two files of an adapter into ``folder``, which is created if necessary; existing files are replaced.

    ``base_sha256``, the hash of the base's weights, is stored in the metadata of the adapter's weights.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{_PREFIX}{name}{suffix}": part.contiguous()
        for name, pair in genotype.factors.items()
        for part, suffix in zip(pair, _SUFFIXES, strict=True)
    }
    metadata = {"format": "pt"} | ({BASE_SHA256: base_sha256} if base_sha256 else {})
    save_file(tensors, folder / WEIGHTS_FILE, metadata=metadata)
    _sort_header(folder / WEIGHTS_FILE)
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def _sort_header(weights: Path) -> None:
    """Sort the metadata in the header of a safetensors file: they are written in random order, and files would differ.

    The header is its length in eight bytes, then compact JSON padded with spaces; sorting does not change the length.
    """
    with weights.open("r+b") as file:
        num_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(num_bytes))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        file.seek(8)
        file.write(text.ljust(num_bytes))


def founder_like(adapter: Adapter, fresh: Genotype) -> Genotype:
    """Return the adapter, with exactly its dW, in the shape of ``fresh``, a founder of the run with at least its rank.

    Additional components, and modules that the adapter does not adapt, come from ``fresh``: their part of dW is zero.
    Raises UserError, naming the folder, for a larger rank and for modules that the run does not adapt.
    """
    given = adapter.genotype
    if given.rank > fresh.rank:
        raise UserError(
            f"population.founders: {adapter.folder} has rank {given.rank}, and population.lora_rank is {fresh.rank}: "
            f"set it to {given.rank}"
        )
    factors = {}
    for name, (a, b) in fresh.factors.items():
        if name in given.factors:
            own_a, own_b = given.factors[name]  # (given rank, in), (out, given rank)
            if own_a.shape[1] != a.shape[1] or own_b.shape[0] != b.shape[0]:
                raise UserError(f"population.founders: {adapter.folder}: {name} has another size than in the base")
            a, b = a.clone(), torch.zeros_like(b)
            a[: given.rank] = own_a.to(a)
            b[:, : given.rank] = own_b.to(b) * (given.scale / fresh.scale)
        factors[name] = (a, b)
    if strange := sorted(given.factors.keys() - fresh.factors.keys()):
        raise UserError(
            f"population.founders: {adapter.folder} adapts {strange[0]}, and the run does not: its base, or "
            "population.lora_targets, differs"
        )
    return Genotype(factors, fresh.alpha)


def plain_config(genotype: Genotype, base_model_name: str, targets: Sequence[str]) -> dict[str, Any]:
    """Return PEFT's configuration of a plain LoRA adapter.

    ``base_model_name`` is the base that PEFT will load, a name on the hub or a path; ``targets`` name the adapted
    modules.
    """
    return {
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
        "target_modules": list(targets),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }


def publish_adapter(folder: Path, name: str, genotype: Genotype, base_model_name: str, targets: Sequence[str]) -> Path:
    """Write the adapter ``name`` into its own folder in ``folder``, unless it exists, and return that folder.

    The folder's name ends with a hash of the factors, so two adapters never have the same name.
    """
    digest = hashlib.sha256(flattened(genotype).numpy().tobytes()).hexdigest()[:16]
    published = folder / f"{name}-{digest}"
    if not published.is_dir():
        with making_folder(published) as temporary:
            write_adapter(temporary, plain_config(genotype, base_model_name, targets), genotype)
    return published


def _read_config(path: Path) -> dict[str, Any]:
    """Read the config. Raises UserError, naming the field, when it is not that of a plain LoRA adapter."""
    try:
        config = json.loads(read_plain(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; name a folder that PEFT's save_pretrained wrote") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({error}); save the adapter again") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"{path}: peft_type is not LORA; other kinds of adapters are not supported")
    if not isinstance(config.get("r"), int) or not isinstance(config.get("lora_alpha"), int | float):
        raise UserError(f"{path}: 'r' or 'lora_alpha' is missing or not a number; save the adapter again")
    if config["r"] < 1:
        raise UserError(f"{path}: 'r' is {config['r']}, and a rank is at least 1; save the adapter again")
    if not abs(config["lora_alpha"]) <= sys.float_info.max:  # also catches NaN, and an integer of 400 digits
        raise UserError(f"{path}: 'lora_alpha' is not finite; save the adapter again")
    for field, accepted in _REFUSED.items():
        if config.get(field) not in accepted:
            raise UserError(
                f"{path}: {field} = {config[field]!r} is not supported; "
                "train or convert the adapter as plain LoRA (one rank and alpha for all modules, no bias, no rslora)"
            )
    return config


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        open_plain(path, MAX_WEIGHTS_BYTES).close()
        return load_file(path)
    except FileNotFoundError:
        raise UserError(
            f"{path} is missing; save the adapter with PEFT's save_pretrained (safetensors, not .bin)"
        ) from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read ({error}); save the adapter again") from error


def _read_base_sha256(path: Path) -> str:
    with safe_open(path, "pt") as file:
        found = (file.metadata() or {}).get(BASE_SHA256, "")
    return found if re.fullmatch("[0-9a-f]{64}", found) else ""


def _pair_up(path: Path, tensors: dict[str, Tensor]) -> dict[str, Factors]:
    """Return the modules' (A, B) by name, sorted, so that the order in the file does not matter.

    All get the narrowest dtype to which every dtype in the file can be promoted.
    """
    halves: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
    for key, tensor in tensors.items():
        half = next((i for i, suffix in enumerate(_SUFFIXES) if key.endswith(suffix)), None)
        if half is None or not key.startswith(_PREFIX):
            raise UserError(f"{path}: {key} is not a LoRA factor of a linear layer; plain LoRA adapters only")
        if tensor.dtype not in PRECISIONS:
            raise UserError(
                f"{path}: {key} holds {tensor.dtype}, which is not supported; save it in float32 or float16"
            )
        halves[half][key[len(_PREFIX) : -len(_SUFFIXES[half])]] = tensor
    unpaired = halves[0].keys() ^ halves[1].keys()
    if unpaired or not halves[0]:
        what = f"{min(unpaired)} has only one of its two factors" if unpaired else "there is no LoRA factor"
        raise UserError(f"{path}: {what}; save the adapter again")
    precision = reduce(torch.promote_types, (tensor.dtype for tensor in tensors.values()))
    return {name: (halves[0][name].to(precision), halves[1][name].to(precision)) for name in sorted(halves[0])}
