"""The base of an adapter in a folder: where it is on this machine, and the hash that identifies it."""

from __future__ import annotations

import os
from pathlib import Path

from redqueen.adapters.base_shape import EMBEDDED_ID, OWN_BASE, embedded_folder, is_gguf, weights_sha256
from redqueen.adapters.peft import CONFIG_FILE, Adapter
from redqueen.config import EMBEDDED
from redqueen.errors import UserError


def base_name(adapter: Adapter) -> str:
    """Return the name of the base as the adapter's config gives it, "" if it gives none."""
    return str(adapter.config.get("base_model_name_or_path") or "")


def base_of(adapter: Adapter) -> str:
    """Return ``model.base`` for an adapter: the base in its folder, the embedded base, a path or a hub name.

    Raises UserError when it names no base, or an embedded base that is not the one of this version.
    """
    if (adapter.folder / OWN_BASE).is_dir():
        return str(adapter.folder / OWN_BASE)
    if adapter.base_sha256 == weights_sha256(embedded_folder()):
        return EMBEDDED
    name = base_name(adapter)
    if not name:
        raise UserError(
            f"{adapter.folder} does not name the base it was trained on: write base_model_name_or_path into its "
            f"{CONFIG_FILE}"
        )
    if name.startswith(EMBEDDED_ID):
        if adapter.base_sha256:
            raise UserError(
                f"{adapter.folder} was trained on {name}, whose weights differ from those of this version: "
                f"install that version, or put its base into the adapter's folder as {adapter.folder / OWN_BASE}"
            )
        return EMBEDDED
    return name


def base_sha256(adapter: Adapter) -> str:
    """Return the SHA-256 of the base weights that an adapter was trained on; "" when it is not known."""
    if adapter.base_sha256:
        return adapter.base_sha256
    # The name is from a file and can have any length: os.path returns False where Path raises.
    bases = [adapter.folder / OWN_BASE, *([Path(base_name(adapter))] if base_name(adapter) else [])]
    return next((weights_sha256(base) for base in bases if os.path.isdir(base) or is_gguf(str(base))), "")


def same_base(one: Adapter, other: Adapter) -> bool:
    """Return whether two adapters have the same base: by the hash of its weights if known, else by its name."""
    first, second = base_sha256(one), base_sha256(other)
    return first == second if first and second else base_name(one) == base_name(other)
