"""Finding the runs in a folder, and whether somebody is writing to them."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redqueen.run.store import JOURNAL, LOCK

MAX_DEPTH = 3
"""Runs are looked for this many folders down."""

FRESH_S = 120.0
"""Where the system cannot be asked who holds the lock: a journal younger than this counts as being written."""

FLOCK = "hhqqi4x"
"""Linux's ``struct flock`` on 64 bits: type, whence, start, length, pid."""


@dataclass(frozen=True)
class RunDir:
    """A run directory. ``id`` names it in addresses, ``label`` on the page: its path below the folder of runs."""

    id: str
    label: str
    path: Path


def find_runs(root: Path) -> dict[str, RunDir]:
    """Return the runs in ``root`` by id, in the order of their names; ``root`` itself when it is a run."""
    found = [RunDir("~".join(parts), "/".join(parts), path) for parts, path in _walk(root.resolve(), (), 0)]
    return {run.id: run for run in sorted(found, key=lambda run: run.label)}


def _walk(folder: Path, parts: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Path]]:
    if (folder / JOURNAL).is_file():
        yield parts or (folder.name or "run",), folder
        return
    if depth == MAX_DEPTH:
        return
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return  # a folder that may not be read holds nothing to show
    for name in names:
        if name.isprintable() and "~" not in name:  # what an address can carry and take apart again
            yield from _walk(folder / name, (*parts, name), depth + 1)


def written_s_ago(run_dir: Path) -> float | None:
    """Return the seconds since the journal or its log was last written to, None when it is gone."""
    times = []
    for name in (JOURNAL, f"{JOURNAL}-wal"):
        try:
            times.append((run_dir / name).stat().st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(times)) if times else None


def is_running(run_dir: Path) -> bool:
    """Tell whether a process holds the run's lock. Asking takes no lock, so it is in nobody's way."""
    if not sys.platform.startswith("linux"):
        ago = written_s_ago(run_dir)
        return ago is not None and ago < FRESH_S
    try:
        descriptor = os.open(run_dir / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        held = struct.unpack(FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(held[0] != fcntl.F_UNLCK)
