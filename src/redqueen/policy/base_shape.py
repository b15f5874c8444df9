"""The shape of a base model, read before any weight is: the contents of its config.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from redqueen.config import EMBEDDED
from redqueen.errors import UserError


def embedded_folder() -> Path:
    """Return the folder of the shipped weights and tokenizer (Hugging Face format)."""
    return Path(__file__).parent.parent / "tiny" / "base"


def base_shape(name: str) -> dict[str, Any] | None:
    """Return the model's config.json: embedded, in a folder, or in the local cache of the hub (None: not there yet).

    Raises UserError when ``name`` is no folder of a model and cannot be a name on the hub, and when the model was made
    for something else than to continue a text.
    """
    folder = embedded_folder() if name == EMBEDDED else Path(name)
    if folder.is_dir():
        path = folder / "config.json"
        if not path.is_file():
            raise UserError(f"model.base {name} is a folder without config.json: give a Hugging Face model folder")
        return _causal(name, _read(path))
    refuse_missing_folder(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        raise _no_folder(name) from None
    return _causal(name, _read(Path(cached))) if isinstance(cached, str) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise UserError(f"{path} is no JSON object: restore the model folder") from None


def refuse_missing_folder(name: str) -> None:
    """Raise UserError for a name that is a path and no hub name (``owner/model``), when no folder is there."""
    if Path(name).is_file():
        what = "a GGUF file, whose weights are packed for inference" if name.lower().endswith(".gguf") else "a file"
        raise UserError(
            f"model.base {name} is {what}: give the Hugging Face folder that it was made from (config.json, "
            "safetensors, tokenizer), or its name on the hub"
        )
    if (name.startswith((".", "/", "~")) or name.count("/") > 1) and not Path(name).is_dir():
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
    return UserError(f"model.base is {name}, and there is no such folder: give a model folder, a hub name, or embedded")
