"""The list of runs: a line for each, whatever state it is in."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from redqueen.config import RunConfig
from redqueen.dashboard.find import RunDir, is_running, written_s_ago
from redqueen.dashboard.pages import open_journal
from redqueen.dashboard.starting import doing
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.connection import Patience
from redqueen.journal.opening import BESIDE
from redqueen.journal.values import LARGEST_INTEGER, naming_contradictions
from redqueen.report.fitness import Score, Verdict, verdict_of
from redqueen.run.continuation import LENGTHS
from redqueen.run.ending import Spent, is_nothing_valid, is_over, spent_so_far
from redqueen.run.now import read_now
from redqueen.run.store import JOURNAL

LAST_STEPS = 10
"""The overview's shares are means over this many last steps."""

OVERVIEW_QUERY_S, OVERVIEW_RUN_S, OVERVIEW_S = 2.0, 3.0, 20.0
"""How long the list of runs waits: for one answer, for one run, and for all of them."""


@dataclass(frozen=True)
class Overview:
    """One run in the list: ``error`` says why it cannot be read, and then the rest is empty."""

    run: RunDir
    status: str
    written_s_ago: float | None
    error: str = ""
    name: str = ""
    arm: str = ""
    rng_seed: int = 0
    last_step: int | None = None
    num_steps: int | None = None
    solve_frac: float | None = None
    valid_frac: float | None = None
    change: Score | None = None
    mode: str = ""
    num_tasks: int = 0
    doing: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """What the change of external fitness says, None without one."""
        return None if self.change is None else verdict_of(self.change)


def status_of(path: Path, journal: Journal, config: object, last_step: int | None) -> str:
    """Return ``running``, ``finished`` (at its last step, or at its limit of tokens or seconds) or ``stopped``.

    A finished run that never had a valid task is ``nothing learned`` instead.

    A report tells nothing: one may be made at any time, and of a run that goes on its earlier one is still there.
    """
    if is_running(path):
        return "running"
    if last_step is None or not _is_over(journal, config, last_step):
        return "stopped"
    return "nothing learned" if is_nothing_valid(journal) else "finished"


def _is_over(journal: Journal, config: object, last_step: int) -> bool:
    section = config.get("run") if isinstance(config, dict) else None
    lengths = {name: section[name] for name in LENGTHS if name in section} if isinstance(section, dict) else None
    try:
        run = RunConfig.model_validate(lengths)
    except ValidationError:
        return False
    limited = run.max_tokens or run.max_seconds  # what was spent is a sum over all attempts
    spent = spent_so_far(journal) if limited else Spent(0, 0.0)
    newborns = bool(journal.query("SELECT 1 FROM birth WHERE step = ? LIMIT 1", (last_step,)))
    return is_over(run, last_step, spent, newborns)


class Listing:
    """The list of runs. A journal that cannot be read becomes a line that says why, and hides no other.

    A run that was too slow or damaged is not read again until its file changes; once the list has taken ``OVERVIEW_S``,
    the remaining runs are named without being read, and are read at a later request.
    """

    def __init__(self) -> None:
        self._failed: dict[str, tuple[tuple[int, ...], str]] = {}

    def read(self, runs: Iterable[RunDir]) -> list[Overview]:
        """Return a line for each run."""
        began_s = time.monotonic()
        lines = []
        for run in runs:
            ago, mark = written_s_ago(run.path), _mark(run)
            failed = self._failed.get(run.id)
            if failed is not None and failed[0] == mark:
                lines.append(Overview(run, "unreadable", ago, error=failed[1]))
            elif time.monotonic() - began_s > OVERVIEW_S:
                lines.append(Overview(run, "unreadable", ago, error="Not read yet: others took long. Load this again."))
            else:
                lines.append(self._line(run, ago, mark))
        return lines

    def _line(self, run: RunDir, ago: float | None, mark: tuple[int, ...]) -> Overview:
        try:
            patience = Patience(OVERVIEW_QUERY_S, OVERVIEW_RUN_S)
            with naming_contradictions(run.path), open_journal(run, patience) as journal:
                line = _overview(run, journal, ago)
        except UserError as error:
            self._failed[run.id] = (mark, str(error))
            return Overview(run, "unreadable", ago, error=str(error))
        self._failed.pop(run.id, None)
        return line


def _mark(run: RunDir) -> tuple[int, ...]:
    """Return a value that changes when the journal or its companion files change."""
    marks: list[int] = []
    for ending in ("", *BESIDE):
        try:
            found = (run.path / f"{JOURNAL}{ending}").lstat()
            marks += [found.st_ino, found.st_size, found.st_mtime_ns]
        except OSError:
            marks.append(-1)
    return (*marks, is_running(run.path))


def _overview(run: RunDir, journal: Journal, ago: float | None) -> Overview:
    record, last = read.run_record(journal), read.last_step(journal)
    num_steps = num_steps_of(record.config)
    changes = journal.query(
        "SELECT mean_frac, low_frac, high_frac, mode FROM evaluation WHERE individual IN ('change', 'gain') "
        "AND stratum = 'all' AND kind = 'all' AND step = (SELECT max(step) FROM evaluation) "
        "ORDER BY individual DESC, mode DESC LIMIT 1"
    )
    known = [row for row in changes if None not in row.values()]
    change = Score(known[0]["mean_frac"], known[0]["low_frac"], known[0]["high_frac"]) if known else None
    return Overview(
        run=run,
        status=status_of(run.path, journal, record.config, last),
        written_s_ago=ago,
        name=record.name,
        arm=record.arm,
        rng_seed=record.rng_seed,
        last_step=last,
        num_steps=num_steps,
        solve_frac=_last_mean(journal, "solve/rate", last),
        valid_frac=_last_mean(journal, "propose/valid_frac", last),
        change=change,
        mode=changes[0]["mode"] if change is not None else "",
        num_tasks=journal.query("SELECT coalesce(max(seq), 0) AS num FROM task")[0]["num"],
        doing=doing(read_now(run.path)) if is_running(run.path) else "",
    )


def num_steps_of(config: object) -> int | None:
    """Return how many steps a run's config asks for, None when it does not say so."""
    section = config.get("run") if isinstance(config, dict) else None
    value = section.get("num_steps") if isinstance(section, dict) else None
    return value if isinstance(value, int) and 0 < value <= LARGEST_INTEGER else None


def _last_mean(journal: Journal, name: str, last: int | None) -> float | None:
    rows = journal.query(
        "SELECT avg(value) AS mean FROM metric WHERE step > ? AND name = ?", ((last or 0) - LAST_STEPS, name)
    )
    value: float | None = rows[0]["mean"]
    return value
