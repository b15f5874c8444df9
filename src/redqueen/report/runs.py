"""The runs in a folder: their paths, their rows in the list of runs, and their views."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from redqueen.config import RunConfig
from redqueen.display import duration
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.untrusted import TimeLimit, naming_contradictions
from redqueen.locking import is_locked
from redqueen.report.fitness import Score, Verdict, verdict_of
from redqueen.report.view import RunView, read_run
from redqueen.run.continuation import LENGTHS, has_ended, is_nothing_valid
from redqueen.run.progress import PHASE_WORDS
from redqueen.run.status import Status
from redqueen.run.store import JOURNAL

MAX_DEPTH = 3
"""Depth of folders that is searched for runs."""

MAX_ENTRIES = 100_000
"""Maximum number of folder entries that are searched."""

LAST_STEPS = 10
"""The list's shares are means over this many last steps."""

PAGE_QUERY_S, PAGE_RUN_S = 10.0, 30.0
"""Time limits of a page about one run: for one query, and for all."""

LIST_QUERY_S, LIST_RUN_S, LIST_S = 2.0, 3.0, 20.0
"""Time limits of the list of runs: for one query, for one run, and for all runs."""

MAX_KEPT = 6
"""Views of this many runs are kept in memory."""

NOTHING_LEARNED = "nothing learned"


@dataclass(frozen=True)
class RunDir:
    """A run directory. ``id`` names it in addresses, ``label`` on the page: its path below the folder of runs."""

    id: str
    label: str
    path: Path


def find_runs(root: Path) -> dict[str, RunDir]:
    """Return the runs in ``root`` by id, in the order of their names; ``root`` itself when it is a run.

    Symbolic links are not followed. At most ``MAX_ENTRIES`` folder entries are searched. An id joins the names of
    folders with "~", and a "~" in a name becomes "~."; this is unique because names that begin with a dot are skipped.
    """
    walk = _walk(root.resolve(), (), [MAX_ENTRIES])
    found = [RunDir("~".join(part.replace("~", "~.") for part in parts), "/".join(parts), path) for parts, path in walk]
    return {run.id: run for run in sorted(found, key=lambda run: run.label)}


def _walk(folder: Path, parts: tuple[str, ...], left: list[int]) -> Iterator[tuple[tuple[str, ...], Path]]:
    if os.path.lexists(folder / JOURNAL):
        yield parts or (folder.name or "run",), folder
    elif len(parts) < MAX_DEPTH:
        for name in _folders_in(folder, left):
            if name.isprintable():  # so that it can be part of an address
                yield from _walk(folder / name, (*parts, name), left)


def _folders_in(folder: Path, left: list[int]) -> list[str]:
    """Return the names of the folders in ``folder``. ``left``: the number of entries that may still be searched."""
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
        return []  # not readable: nothing to show
    return names


def written_s_ago(run_dir: Path) -> float | None:
    """Return the seconds since the journal or its log was last written to, None when it is gone."""
    times = [at_s for at_s, *_ in _stats(run_dir) if at_s]
    return max(0.0, time.time() - max(times)) if times else None


def _stats(run_dir: Path) -> list[tuple[float, int, int]]:
    """Return time, inode and size of the journal and its companion files; zeros where there is none."""
    found = []
    for ending in ("", "-journal", "-wal"):  # readers change the third companion file
        try:
            one = (run_dir / f"{JOURNAL}{ending}").lstat()
            found.append((one.st_mtime, one.st_ino, one.st_size))
        except OSError:
            found.append((0.0, 0, 0))
    return found


def doing(status: Status | None) -> str:
    """Return a status in words, "" for None."""
    if status is None:
        return ""
    counted = [f"{status.num_done:,} of {status.num_all:,}"] if status.num_all else []
    since = f"for {duration(max(0.0, time.time() - status.since_s))}"
    return ", ".join([f"step {status.step:,}: {PHASE_WORDS.get(status.phase, status.phase)}", *counted, since])


def open_journal(run: RunDir, limit: TimeLimit | None = None) -> Journal:
    """Open a run's journal to read, by default with the time limits of a page; nothing in its folder changes."""
    return Journal.open(run.path / JOURNAL, read_only=True, limit=limit or TimeLimit(PAGE_QUERY_S, PAGE_RUN_S))


class Library:
    """The runs' views, cached until the journal changes. Safe to use from several threads."""

    def __init__(self) -> None:
        def read(path: Path, label: str, state: object) -> RunView:
            return read_run(path, label, TimeLimit(PAGE_QUERY_S, PAGE_RUN_S))

        self._read = lru_cache(MAX_KEPT)(read)

    def read(self, run: RunDir) -> RunView:
        """Return the view of the run. Raises UserError when it cannot be read or has no step yet."""
        return self._read(run.path, run.label, tuple(_stats(run.path)))


@dataclass(frozen=True)
class Overview:
    """One run in the list. ``error`` is the reason why it cannot be read; the fields after it are then empty."""

    run: RunDir
    status: str
    written_s_ago: float | None
    error: str = ""
    arm: str = ""
    rng_seed: int = 0
    last_step: int | None = None
    num_tasks: int = 0
    solve_frac: float | None = None
    valid_frac: float | None = None
    change: Score | None = None
    mode: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the change of external fitness, None without one."""
        return None if self.change is None else verdict_of(self.change)


class Listing:
    """The list of runs. A journal that cannot be read becomes a row with the reason.

    A run that was too slow or damaged is not read again until its file changes. Once the list has taken ``LIST_S``,
    the remaining runs are listed unread; a later request reads them.
    """

    def __init__(self) -> None:
        self._failed: dict[Path, tuple[object, str]] = {}

    def read(self, runs: Iterable[RunDir]) -> list[Overview]:
        """Return an overview of each run."""
        began_s = time.monotonic()
        overviews = []
        for run in runs:
            state, ago = (_stats(run.path), is_locked(run.path)), written_s_ago(run.path)
            failed = self._failed.get(run.path)
            if failed is not None and failed[0] == state:
                overviews.append(Overview(run, "unreadable", ago, error=failed[1]))
            elif time.monotonic() - began_s > LIST_S:
                overviews.append(Overview(run, "unreadable", ago, error="Not read in time; reload this page."))
            else:
                try:
                    limit = TimeLimit(LIST_QUERY_S, LIST_RUN_S)
                    with naming_contradictions(run.path), open_journal(run, limit) as journal:
                        overviews.append(_overview(run, journal, ago))
                except UserError as error:
                    self._failed[run.path] = (state, str(error))
                    overviews.append(Overview(run, "unreadable", ago, error=str(error)))
        return overviews


def _overview(run: RunDir, journal: Journal, ago: float | None) -> Overview:
    record, last = read.run_record(journal), read.last_step(journal)
    scores = journal.query(
        "SELECT mean_frac, low_frac, high_frac, mode FROM evaluation WHERE individual IN ('change', 'gain') "
        "AND stratum = 'all' AND kind = 'all' AND step = (SELECT max(step) FROM evaluation) "
        "ORDER BY individual DESC, mode DESC LIMIT 1"
    )
    status = status_of(run.path, journal, record.config, last)
    known = [row for row in scores if None not in row.values() and status != NOTHING_LEARNED]
    return Overview(
        run=run,
        status=status,
        written_s_ago=ago,
        arm=record.arm,
        rng_seed=record.rng_seed,
        last_step=last,
        num_tasks=journal.tuples("SELECT coalesce(max(seq), 0) FROM task")[0][0],
        solve_frac=_last_mean(journal, "solve/rate", last),
        valid_frac=_last_mean(journal, "propose/valid_frac", last),
        change=Score(known[0]["mean_frac"], known[0]["low_frac"], known[0]["high_frac"]) if known else None,
        mode=known[0]["mode"] if known else "",
    )


def _last_mean(journal: Journal, name: str, last: int | None) -> float | None:
    rows = journal.tuples("SELECT avg(value) FROM metric WHERE step > ? AND name = ?", ((last or 0) - LAST_STEPS, name))
    value: float | None = rows[0][0]
    return value


def status_of(path: Path, journal: Journal, config: object, last_step: int | None) -> str:
    """Return ``running``, ``finished`` (at its last step, or at its limit of tokens or seconds) or ``stopped``.

    A finished run that never had a valid task is ``nothing learned`` instead.
    """
    if is_locked(path):
        return "running"
    if last_step is None or not _is_over(journal, config):
        return "stopped"
    return NOTHING_LEARNED if is_nothing_valid(journal) else "finished"


def _is_over(journal: Journal, config: object) -> bool:
    section = config.get("run") if isinstance(config, dict) else None
    lengths = {name: section[name] for name in LENGTHS if name in section} if isinstance(section, dict) else None
    try:
        return has_ended(journal, RunConfig.model_validate(lengths))
    except ValidationError:
        return False
