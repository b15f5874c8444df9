"""The base model's files, before any weights are loaded: its shape from config.json, and its identity by checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.config import EMBEDDED
from redqueen.errors import UserError, first_line, how_to_install
from redqueen.files import open_plain, read_plain

EMBEDDED_ID = f"{EMBEDDED}@"
"""Prefix of the name of an embedded base; the version of redqueen that shipped it follows."""

OWN_BASE = "base"
"""The folder next to an adapter of the embedded base that holds that base."""

DEQUANTIZED = {"quant_method": "gguf", "dequantize": True}
"""Options of transformers for a GGUF file: adapters need plain matrices. The file's quantisation error remains."""

MAX_SHARD_BYTES = 256 << 30
PROBE_S = 5.0
"""Seconds that the hub may take to answer whether it has a base (ours)."""


@dataclass(frozen=True)
class BaseIdentity:
    """``name``: a name on the hub, ``embedded@VERSION``, or an absolute path; ``sha256`` of the weights, "" if they are
    not on this machine."""

    name: str
    sha256: str


def identify_base(base: str) -> BaseIdentity:
    """Return the identity of ``model.base``: embedded, a folder, a GGUF file, or a name on the hub."""
    if base == EMBEDDED:
        return BaseIdentity(f"{EMBEDDED_ID}{__version__}", weights_sha256(embedded_folder()))
    if Path(base).is_dir() or is_gguf(base):
        return BaseIdentity(str(Path(base).resolve()), weights_sha256(Path(base)))
    folder = _cached(base)
    return BaseIdentity(base, weights_sha256(folder) if folder else "")


def weights_sha256(model: Path) -> str:
    """Return the SHA-256 of a model's weights: that of a single file, or of the shards' hashes in the order of names.

    ``model`` is a folder or a GGUF file. "" when a folder has no safetensors. Raises UserError for a special file.
    """
    hashes = [_sha256(path) for path in ([model] if is_gguf(str(model)) else sorted(model.glob("*.safetensors")))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else ""


def _sha256(path: Path) -> str:
    with open_plain(path.resolve(), MAX_SHARD_BYTES) as file:  # the hub's cache is made of links
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder_of(name: str) -> Path | None:
    """Return the folder of a base: its own, or the one in the hub's cache (None: not on this machine).

    Raises UserError when ``name`` is not a model folder and cannot be a name on the hub.
    """
    folder = Path(model_source(name))
    return folder if folder.is_dir() else _cached(name)


def _cached(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        raise _no_folder(name) from None
    return Path(found).parent if isinstance(found, str) else None


def embedded_folder() -> Path:
    """Return the folder of the shipped weights and tokenizer (Hugging Face format)."""
    return Path(__file__).parent.parent / "embedded_base"


def is_gguf(name: str) -> bool:
    """Return whether ``model.base`` is a GGUF file."""
    return name.lower().endswith(".gguf") and os.path.isfile(name)  # Path raises for a name that is too long


def model_source(name: str) -> str:
    """Return the folder, GGUF file or hub name that ``model.base`` means. Raises UserError for a missing path."""
    if name == EMBEDDED:
        return str(embedded_folder())
    if not is_gguf(name):
        refuse_missing_folder(name)
    return name


def pretrained(name: str) -> dict[str, Any]:
    """Return the arguments of transformers' ``from_pretrained`` for ``model.base``. A model's own code is never run.

    Without a connection to the hub, its cache on this machine is used. Raises UserError for a missing path, for a name
    that neither hub nor cache has, and for a GGUF file when a package to read it is not installed.
    """
    source = Path(model_source(name))
    if not is_gguf(name):
        found = source if source.is_dir() or hub_has(name) else _cached(name)
        if found is None:
            raise UserError(
                f"model.base {name} is not a folder, is not in the hub's cache on this machine, and the hub cannot be "
                "reached: check the name and the connection, or give its folder (--set model.base=FOLDER)"
            )
        return {"pretrained_model_name_or_path": str(found), "trust_remote_code": False}
    if missing := [package for package in ("gguf", "accelerate") if find_spec(package) is None]:
        raise UserError(f"model.base {name} is a GGUF file, which needs {missing[0]}: {how_to_install('gguf')}")
    return {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name, "trust_remote_code": False}


@lru_cache
def hub_has(name: str) -> bool:
    """Ask the hub once for a model; False if it does not answer within ``PROBE_S`` (its own clients try for a minute).

    Raises UserError when the hub answers that it does not have the model.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=PROBE_S)
    except RepositoryNotFoundError as error:
        if not isinstance(error, GatedRepoError):
            raise UserError(
                f"model.base {name} is neither a folder here nor a model on the hub: check the name, give its folder "
                "(--set model.base=FOLDER), or for a private model log in with `hf auth login`"
            ) from None
    except HfHubHTTPError as error:
        return bool(error.response.status_code < 500)
    except Exception:  # network errors differ between HTTP clients
        return False
    return True


def base_shape(name: str) -> dict[str, Any] | None:
    """Return the model's config.json: embedded, in a folder, or in the local cache of the hub (None: not there yet).

    For a GGUF file it is made from the file's header. Raises UserError when ``name`` is not a model folder and cannot
    be a name on the hub, and when the model is not a causal language model.
    """
    if is_gguf(name):
        return _shape_of_gguf(name)
    if (folder := _folder_of(name)) is None:
        return None
    if (folder / "config.json").is_file():
        return _causal(name, _read(folder / "config.json"))
    if (folder / "adapter_config.json").is_file():
        raise UserError(
            f'model.base {name} is a PEFT adapter: set population.founders = ["{name}"], and model.base to the model '
            "that it was trained on"
        )
    raise UserError(f"model.base {name} is a folder without config.json: give a Hugging Face model folder")


def positions_of(shape: Mapping[str, Any]) -> int:
    """Return the maximum length of prompt + completion: the trained positions, or a sliding window if one is in use.

    A "longrope" base is limited to its original positions: a longer text would switch the rotary frequencies of all
    texts of a batch, so that one member's long text would change another member's samples.
    """
    lengths = {"max_position_embeddings": shape.get("max_position_embeddings") or 1 << 30}
    if shape.get("sliding_window") and shape.get("use_sliding_window", True):
        lengths["sliding_window"] = shape["sliding_window"]
    rope = shape.get("rope_parameters") or shape.get("rope_scaling") or {}
    if isinstance(rope, Mapping) and "longrope" in (rope.get("rope_type"), rope.get("type")):
        name = "original_max_position_embeddings"
        lengths |= {name: first} if (first := rope.get(name) or shape.get(name)) else {}
    for name, length in lengths.items():
        if type(length) is not int or length < 2:
            raise UserError(f"the base's config.json has a {name} that is not a length: restore the model folder")
    return min(lengths.values())


def has_chat_template(name: str) -> bool:
    """Return whether the base's tokenizer has a chat template; for a GGUF file this is assumed (most are chat models).

    Raises as ``base_shape`` does.
    """
    if is_gguf(name):
        return True
    if (folder := _folder_of(name)) is None:
        return False
    config = folder / "tokenizer_config.json"
    return (folder / "chat_template.jinja").is_file() or (config.is_file() and "chat_template" in _read(config))


def _shape_of_gguf(name: str) -> dict[str, Any]:
    from transformers import AutoConfig

    source = pretrained(name)
    try:
        return dict(AutoConfig.from_pretrained(**source).to_dict())
    except Exception as error:  # a damaged file fails in many ways
        why = f"{name} cannot be read as a GGUF model ({first_line(error)})"
        raise UserError(f"{why}: give a model folder or a hub name") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError):
        raise UserError(f"{path} is not a JSON object: restore the model folder") from None


def is_embedded_copy(base: str | Path) -> bool:
    """Return whether a folder's base was made from the embedded one, which its vocabulary shows."""
    files = [embedded_folder() / "tokenizer.json", Path(base) / "tokenizer.json"]
    try:
        ours, theirs = (json.loads(read_plain(file, 1 << 17))["model"] for file in files)  # ours has 15 kB
    except (OSError, UserError, ValueError, KeyError, TypeError, RecursionError):
        return False
    return bool(ours == theirs)


def refuse_missing_folder(name: str) -> None:
    """Raise UserError for a file, and for a path (not a hub name, ``owner/model``) at which there is no folder."""
    if os.path.isfile(name):
        raise UserError(
            f"model.base {name} is a file: give the Hugging Face folder that it was made from (config.json, "
            "safetensors, tokenizer), or its name on the hub"
        )
    is_path = len(name) > 200 or "\0" in name or name[:1] in "./~" or name.count("/") > 1
    if not os.path.isdir(name) and (is_path or name.lower().endswith(".gguf")):
        raise _no_folder(name)


def _causal(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    listed = shape.get("architectures")
    made_for = [str(one) for one in listed] if isinstance(listed, list) else []
    if made_for and not any(re.search("CausalLM|LMHead|ConditionalGeneration", one) for one in made_for):
        raise UserError(
            f"model.base {name} is a {made_for[0]}, which does not continue a text: give a causal language model of "
            "type Llama, Qwen2, Qwen3, Mistral, Gemma (1) or Phi"
        )
    return shape


def _no_folder(name: str) -> UserError:
    what = "file" if name.lower().endswith(".gguf") else "folder"
    return UserError(f"model.base is {name:.99}, and there is no such {what}: give a folder, GGUF file or hub name")
