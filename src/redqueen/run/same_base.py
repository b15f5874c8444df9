"""Adapters belong to the weights they were trained on: a checkpoint names them, and is refused on others.

Only the embedded base is named: it changes with the package, under one name. Other bases are files and names of the
user's own, and to read tens of gigabytes for every checkpoint would cost more than it tells.
"""

from __future__ import annotations

from pathlib import Path

from redqueen.config import EMBEDDED
from redqueen.errors import UserError
from redqueen.policy.base_shape import embedded_folder, weights_sha256
from redqueen.run.checkpoint import Checkpoint

BASE = "embedded_base"
"""In a checkpoint's state: the SHA-256 of the embedded base's weights."""


def named_base(base: str) -> dict[str, str]:
    """Return what a checkpoint says of ``model.base``."""
    return {BASE: weights_sha256(embedded_folder())} if base == EMBEDDED else {}


def refuse_other_base(checkpoint: Checkpoint, base: str, folder: Path) -> None:
    """Raise UserError when the run in ``folder`` was played on an embedded base that this package does not have."""
    if base == EMBEDDED and checkpoint.state.get(BASE) != weights_sha256(embedded_folder()):
        raise UserError(
            f"{folder} was played on another embedded base than this version of redqueen has, and its adapters mean "
            "nothing on this one: use the version that played it; journal, report and dashboard are read as ever"
        )
