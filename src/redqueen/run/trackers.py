"""Experiment trackers: a step's metrics sent to tensorboard, wandb or trackio, all optional, behind ``run.tracker``.

The journal is the record; a tracker holds a copy, for users who already work with one. Each is a package of its own
(``pip install wandb``). The id under which a tracker knows the run is kept in the checkpoints, so that a
resumed run continues it.
"""

from __future__ import annotations

import importlib.util
import math
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redqueen.config import Config
from redqueen.errors import UserError, how_to_install

PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb", "trackio": "trackio"}
"""The package behind each value of ``run.tracker``; the extra of the same name installs it."""

PROJECT = "redqueen"


class Tracker(Protocol):
    """Where metrics go. ``id`` is what the tracker calls the run; "" when there is none."""

    @property
    def id(self) -> str: ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics of one step."""
        ...


@dataclass(frozen=True)
class NoTracker:
    """Sends nothing anywhere."""

    id: str = ""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class TensorboardTracker:
    """Writes event files into the run directory's folder ``tensorboard``."""

    id: str
    writer: Any

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one scalar for each metric and put them on the disk."""
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()


@dataclass(frozen=True)
class RunTracker:
    """A run of wandb or trackio: both take ``log(values, step=...)``."""

    id: str
    run: Any

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics as one record."""
        self.run.log(dict(metrics), step=step)


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
def open_tracker(config: Config, folder: Path, known_id: str, after_step: int) -> Iterator[Tracker]:
    """Open the run's tracker; ``known_id`` is the one of the checkpoint ("" for a new run), finished up to
    ``after_step``.

    tensorboard drops what it received after that step. wandb and trackio keep what they were sent, so a step
    that runs again may appear twice or be ignored; its numbers are the same.
    """
    require_tracker(config)
    match config.run.tracker:
        case "tensorboard":
            from tensorboardX import SummaryWriter

            # A file's name has the second it was begun in: without a suffix, a quick resume would write over the last.
            logs, suffix = str(folder / "tensorboard"), f".{uuid.uuid4().hex[:8]}"
            with SummaryWriter(logs, purge_step=after_step + 1, filename_suffix=suffix) as writer:
                yield TensorboardTracker("tensorboard", writer)
        case "wandb":
            import wandb

            run_id = known_id or uuid.uuid4().hex[:12]
            with wandb.init(
                project=PROJECT,
                name=config.run.name,
                id=run_id,
                resume="allow",
                dir=str(folder),
                config=config.model_dump(mode="json"),
            ) as run:
                yield RunTracker(run_id, run)
        case "trackio":
            import trackio

            run_name = known_id or f"{config.run.name}-{uuid.uuid4().hex[:8]}"
            opened = trackio.init(
                project=PROJECT, name=run_name, resume="allow", config=config.model_dump(mode="json"), embed=False
            )
            try:
                yield RunTracker(run_name, opened)
            finally:
                trackio.finish()
        case _:
            yield NoTracker()


def finite_only(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Leave out what is not defined: trackers draw it as a gap anyway."""
    return {name: value for name, value in metrics.items() if value is not None and math.isfinite(value)}
