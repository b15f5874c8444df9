"""The shape of a base model, read before any weight is: the contents of its config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redqueen.config import EMBEDDED
from redqueen.errors import UserError

EMBEDDED_CONFIG = Path(__file__).parent / "tiny" / "base" / "config.json"


def base_shape(name: str) -> dict[str, Any] | None:
    """Return the model's config.json: embedded, in a folder, or in the local cache of the hub (None: not there yet).

    Raises UserError when ``name`` is no folder of a model and cannot be a name on the hub.
    """
    if name == EMBEDDED:
        return dict(json.loads(EMBEDDED_CONFIG.read_text()))
    folder = Path(name)
    if folder.is_dir():
        path = folder / "config.json"
        if not path.is_file():
            raise UserError(f"model.base {name} is a folder without config.json: give a Hugging Face model folder")
        return _read(path)
    nowhere = UserError(
        f"model.base is {name}, and there is no such folder: give a model folder, a hub name, or embedded"
    )
    if looks_like_path(name):
        raise nowhere
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        raise nowhere from None
    return _read(Path(cached)) if isinstance(cached, str) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise UserError(f"{path} is no JSON object: restore the model folder") from None


def looks_like_path(name: str) -> bool:
    """Tell a path from a hub name (``owner/model``)."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1
