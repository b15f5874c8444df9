"""Which base an adapter belongs to: a name that means the same everywhere, and a hash of the weights to compare by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from redqueen import __version__
from redqueen.config import EMBEDDED
from redqueen.files import open_plain
from redqueen.policy.base_shape import embedded_folder

EMBEDDED_ID = f"{EMBEDDED}@"
"""How the name of an embedded base begins; the version of redqueen that shipped it follows."""

OWN_BASE = "base"
"""The folder beside an adapter of the embedded base that holds that base."""

MAX_SHARD_BYTES = 256 << 30


@dataclass(frozen=True)
class BaseIdentity:
    """``name``: a name on the hub, ``embedded@VERSION``, or a folder's whole path; ``sha256`` of the weights, "" if
    these are not on this machine."""

    name: str
    sha256: str


def identify_base(base: str) -> BaseIdentity:
    """Return the identity of ``model.base``: embedded, a folder, or a name on the hub."""
    if base == EMBEDDED:
        return BaseIdentity(f"{EMBEDDED_ID}{__version__}", weights_sha256(embedded_folder()))
    if Path(base).is_dir():
        return BaseIdentity(str(Path(base).resolve()), weights_sha256(Path(base)))
    folder = _cached(base)
    return BaseIdentity(base, weights_sha256(folder) if folder else "")


def weights_sha256(folder: Path) -> str:
    """Return the SHA-256 of a model folder's weights: of the one file, or of all shards' hashes in the order of names.

    "" when the folder holds no safetensors. Raises UserError for a file that is none.
    """
    hashes = [_sha256(path) for path in sorted(folder.glob("*.safetensors"))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else ""


def _sha256(path: Path) -> str:
    with open_plain(path.resolve(), MAX_SHARD_BYTES) as file:  # the hub's cache is made of links
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cached(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None
