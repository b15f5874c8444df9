"""Finds the runs in a folder, and whether a process is writing to them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redqueen.locking import is_locked
from redqueen.run.store import JOURNAL

MAX_DEPTH = 3
"""Runs are looked for this many folders down."""

MAX_LOOKED_AT = 100_000
"""Entries of folders that are looked at."""

FRESH_S = 120.0
"""Where the system cannot be asked who holds the lock: a journal younger than this counts as being written."""


@dataclass(frozen=True)
class RunDir:
    """A run directory. ``id`` names it in addresses, ``label`` on the page: its path below the folder of runs."""

    id: str
    label: str
    path: Path


def find_runs(root: Path) -> dict[str, RunDir]:
    """Return the runs in ``root`` by id, in the order of their names; ``root`` itself when it is a run.

    Links are not followed: what lies elsewhere is not in the folder. Of a folder with very many entries only the first
    ``MAX_LOOKED_AT`` are looked at.
    """
    walk = _walk(root.resolve(), (), [MAX_LOOKED_AT])
    found = [RunDir(_id_of(parts), "/".join(parts), path) for parts, path in walk]
    return {run.id: run for run in sorted(found, key=lambda run: run.label)}


def _id_of(parts: tuple[str, ...]) -> str:
    """Join names by "~". One in a name is "~.": no folder that is walked into begins with a dot, so none is meant."""
    return "~".join(part.replace("~", "~.") for part in parts)


def _walk(folder: Path, parts: tuple[str, ...], left: list[int]) -> Iterator[tuple[tuple[str, ...], Path]]:
    if os.path.lexists(folder / JOURNAL):
        yield parts or (folder.name or "run",), folder
        return
    if len(parts) == MAX_DEPTH:
        return
    for name in _folders_in(folder, left):
        if name.isprintable():  # what an address can carry
            yield from _walk(folder / name, (*parts, name), left)


def _folders_in(folder: Path, left: list[int]) -> list[str]:
    """Return the names of the folders in one. ``left``: how many entries may still be looked at, in all."""
    names: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    break
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
    except OSError:
        return []  # a folder that may not be read holds nothing to show
    return names


def written_s_ago(run_dir: Path) -> float | None:
    """Return the seconds since the journal or its log was last written to, None when it is gone."""
    times = []
    for name in (JOURNAL, f"{JOURNAL}-wal"):
        try:
            times.append((run_dir / name).lstat().st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(times)) if times else None


def is_running(run_dir: Path) -> bool:
    """Tell whether a process holds the run's lock. Asking takes no lock, so it blocks no writer."""
    if not sys.platform.startswith("linux"):
        ago = written_s_ago(run_dir)
        return ago is not None and ago < FRESH_S
    return is_locked(run_dir)
