"""What runs are called where several stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def labels_of(run_dirs: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, with the parent's name where two are equal."""
    paths = [path.resolve() for path in run_dirs]
    names = [path.name for path in paths]
    return [
        name if names.count(name) == 1 else f"{path.parent.name}/{name}"
        for path, name in zip(paths, names, strict=True)
    ]
