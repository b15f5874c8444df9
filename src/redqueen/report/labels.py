"""What runs are called where several stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def labels_of(run_dirs: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, with as many names above as tell runs of one name apart.

    One folder that is given twice has the same label twice.
    """
    paths = [path.resolve() for path in run_dirs]
    return [_label(path, set(paths) - {path}) for path in paths]


def _label(path: Path, others: set[Path]) -> str:
    depth = 1
    while any(path.parts[-depth:] == other.parts[-depth:] for other in others):
        depth += 1
    return str(Path(*path.parts[-depth:]))
