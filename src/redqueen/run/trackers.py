"""Experiment trackers: a step's numbers sent to tensorboard, wandb or trackio, all optional, behind ``run.tracker``.

They get metrics, ratings, evaluations (also of the product), health and, in every tenth step, a table of tasks.

The journal is the record; a tracker holds a copy for users who already work with one. Each is a package of its own
(``pip install wandb``). Checkpoints store the tracker's id of the run, so that a resumed run continues it.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import format_exception_only
from typing import Any

from redqueen.config import Config
from redqueen.config.load import without_folders
from redqueen.display import markdown_table, visible
from redqueen.errors import UserError, how_to_install
from redqueen.journal import Journal

PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb", "trackio": "trackio"}
"""The package for each value of ``run.tracker``; the extra of the same name installs it."""

PROJECT = "redqueen"

Send = Callable[[int, dict[str, float], list[dict[str, str]]], object]
"""Sends the numbers of one step, and rows of a table of tasks (empty: no table)."""

TABLE_EVERY, NUM_TASKS, CELL_CHARS = 10, 16, 400
"""Steps between tables, tasks in one, and characters of a cell (ours)."""


@dataclass
class Tracker:
    """Sends metrics to a tracker. An error does not end the run: ``report`` gets one line for each failing operation.

    ``id`` is the tracker's id of the run ("" without a tracker).
    """

    name: str
    report: Callable[[str], None]
    id: str = ""
    send: Send = lambda step, numbers, tasks: None
    failed: set[str] = field(default_factory=set)

    def log(self, step: int, journal: Journal) -> None:
        """Send the journal's numbers and tasks of a step (0: before the first step)."""
        if self.name != "none":
            with self.attempt("take the numbers of a step"):
                self.send(step, numbers_of(journal, step), tasks_of(journal, step))

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Report an error of the enclosed call of the tracker, once for each ``what``, and continue."""
        try:
            yield
        except (Exception, SystemExit) as error:  # a client may raise anything when a server or the network fails
            if what not in self.failed:
                why = visible("".join(format_exception_only(error)).strip(), 300)  # str(error) itself may raise
                self.report(f"run.tracker {self.name} could not {what} ({why}); the journal has every metric.")
            self.failed.add(what)


def require_tracker(config: Config) -> None:
    """Raise UserError when the package of ``run.tracker`` is not installed."""
    package = PACKAGES.get(config.run.tracker)
    if package is not None and importlib.util.find_spec(package) is None:
        name = config.run.tracker
        raise UserError(
            f"run.tracker is {name}, and the package {package} is not installed: "
            f"{how_to_install(name)}, or set run.tracker = none"
        )


@contextmanager
def open_tracker(
    config: Config, folder: Path, known_id: str, after_step: int, report: Callable[[str], None]
) -> Iterator[Tracker]:
    """Open the run's tracker. ``known_id``: the checkpoint's ("" for a new run); ``after_step``: its last step.

    Raises UserError when the package is not installed; other errors go to ``report``.
    """
    require_tracker(config)
    tracker, opened = Tracker(config.run.tracker, report, known_id), ExitStack()
    with tracker.attempt("be opened"):
        tracker.id, tracker.send = opened.enter_context(_open(config, folder, known_id, after_step))
    try:
        yield tracker
    finally:
        with tracker.attempt("be closed"):
            opened.close()


@contextmanager
def _open(config: Config, folder: Path, known_id: str, after_step: int) -> Iterator[tuple[str, Send]]:
    """Yield the tracker's id of the run and a function that sends to it.

    tensorboard drops numbers of steps after ``after_step``. wandb and trackio keep them, so a step that runs again may
    appear twice or be ignored; its numbers are the same.
    """
    name, data = config.run.name, without_folders(config.model_dump(mode="json"))
    match config.run.tracker:
        case "tensorboard":
            from tensorboardX import SummaryWriter

            # A log file is named by the second of its creation; without a suffix a quick resume would overwrite it.
            logs, suffix = str(folder / "tensorboard"), f".{uuid.uuid4().hex[:8]}"
            with SummaryWriter(logs, purge_step=after_step + 1, filename_suffix=suffix) as writer:

                def write(step: int, numbers: dict[str, float], tasks: list[dict[str, str]]) -> None:
                    for metric, value in numbers.items():
                        writer.add_scalar(metric, value, step)
                    if tasks:
                        rows = [list(row.values()) for row in tasks]
                        writer.add_text("tasks", markdown_table(list(tasks[0]), rows), step)
                    writer.flush()

                yield "tensorboard", write
        case "wandb":
            import wandb

            run_id = known_id or uuid.uuid4().hex[:12]
            with wandb.init(project=PROJECT, name=name, id=run_id, resume="allow", dir=str(folder), config=data) as run:
                yield run_id, lambda step, numbers, tasks: run.log(numbers | _table(tasks, wandb.Table), step=step)
        case "trackio":
            import trackio

            run_name = known_id or f"{name}-{uuid.uuid4().hex[:8]}"
            opened = trackio.init(project=PROJECT, name=run_name, resume="allow", config=data, embed=False)
            try:
                yield (
                    run_name,
                    lambda step, numbers, tasks: opened.log(numbers | _table(tasks, trackio.Table), step=step),
                )
            finally:
                trackio.finish()
        case _:
            yield known_id, lambda step, numbers, tasks: None


def _table(tasks: list[dict[str, str]], make: Callable[..., Any]) -> dict[str, Any]:
    return {"tasks": make(columns=list(tasks[0]), data=[list(row.values()) for row in tasks])} if tasks else {}


def numbers_of(journal: Journal, step: int) -> dict[str, float]:
    """Return the journal's numbers of a step by name, without those that are not defined."""
    found = journal.tuples(
        "SELECT name, value FROM metric WHERE step = ? UNION ALL "
        "SELECT 'rating/' || individual, mu FROM rating WHERE step = ? UNION ALL "
        "SELECT 'evaluation/' || individual || '/' || mode, mean_frac FROM evaluation "
        "WHERE step = ? AND stratum = 'all' AND kind = 'all'",
        (step, step, step),
    )
    for row in journal.query("SELECT * FROM health WHERE step = ?", (step,)):
        found += [(f"health/{name}", value) for name, value in row.items() if name not in ("step", "warnings")]
    return {name: value for name, value in found if value is not None}


def tasks_of(journal: Journal, step: int) -> list[dict[str, str]]:
    """Return some tasks of a step, each with an attempt, as safe texts; empty except every ``TABLE_EVERY`` steps."""
    if step % TABLE_EVERY != 1:
        return []
    rows = journal.query(
        "SELECT t.id, t.kind, t.code, t.message, t.inputs, t.outputs, t.num_correct || ' of ' || t.num_attempts AS "
        "solved, a.student, a.text AS attempt, a.verdict FROM task t LEFT JOIN attempt a ON a.seq = "
        "(SELECT min(seq) FROM attempt WHERE task = t.seq) WHERE t.step = ? ORDER BY t.seq LIMIT ?",
        (step, NUM_TASKS),
    )
    return [{name: visible(str(value or ""), CELL_CHARS) for name, value in row.items()} for row in rows]
