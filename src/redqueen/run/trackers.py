"""Experiment trackers: a step's metrics sent to tensorboard, wandb or trackio, all optional, behind ``run.tracker``.

The journal is the record; a tracker holds a copy, for users who already work with one. Each is a package of its own
(``pip install wandb``). The id under which a tracker knows the run is kept in the checkpoints, so that a
resumed run continues it.
"""

from __future__ import annotations

import importlib.util
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redqueen.config import Config
from redqueen.errors import UserError, how_to_install

PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb", "trackio": "trackio"}
"""The package behind each value of ``run.tracker``; the extra of the same name installs it."""

PROJECT = "redqueen"


Send = Callable[[int, dict[str, float]], object]
"""Sends the metrics of one step."""


@dataclass
class Tracker:
    """Where metrics go; its errors do not end the run: ``say`` is told, once for each thing that fails.

    ``id`` is what the tracker calls the run ("": there is none).
    """

    name: str
    say: Callable[[str], None]
    id: str = ""
    send: Send = lambda step, metrics: None
    failed: set[str] = field(default_factory=set)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics of one step."""
        with self.attempt("take the metrics of a step"):
            self.send(step, dict(metrics))

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Say where the enclosed call of the tracker fails."""
        try:
            yield
        except Exception as error:  # its client raises whatever a server or a network leads to
            if what not in self.failed:
                why = f"{type(error).__name__}: {error}"
                self.say(f"run.tracker {self.name} could not {what} ({why:.300}); the journal has every metric.")
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
    config: Config, folder: Path, known_id: str, after_step: int, say: Callable[[str], None]
) -> Iterator[Tracker]:
    """Open the run's tracker; ``known_id`` is the one of the checkpoint ("" for a new run), finished up to
    ``after_step``.

    Raises UserError when its package is not installed; ``say`` is told of every other error.
    """
    require_tracker(config)
    tracker, opened = Tracker(config.run.tracker, say, known_id), ExitStack()
    with tracker.attempt("be opened"):
        tracker.id, tracker.send = opened.enter_context(_open(config, folder, known_id, after_step))
    try:
        yield tracker
    finally:
        with tracker.attempt("be closed"):
            opened.close()


@contextmanager
def _open(config: Config, folder: Path, known_id: str, after_step: int) -> Iterator[tuple[str, Send]]:
    """Yield the id of the tracker's run and what sends to it.

    tensorboard drops what it received after that step. wandb and trackio keep what they were sent, so a step
    that runs again may appear twice or be ignored; its numbers are the same.
    """
    name, told = config.run.name, config.model_dump(mode="json")
    match config.run.tracker:
        case "tensorboard":
            from tensorboardX import SummaryWriter

            # A file's name has the second it was begun in: without a suffix, a quick resume would write over the last.
            logs, suffix = str(folder / "tensorboard"), f".{uuid.uuid4().hex[:8]}"
            with SummaryWriter(logs, purge_step=after_step + 1, filename_suffix=suffix) as writer:

                def write(step: int, metrics: dict[str, float]) -> None:
                    for metric, value in metrics.items():
                        writer.add_scalar(metric, value, step)
                    writer.flush()

                yield "tensorboard", write
        case "wandb":
            import wandb

            run_id = known_id or uuid.uuid4().hex[:12]
            with wandb.init(project=PROJECT, name=name, id=run_id, resume="allow", dir=str(folder), config=told) as run:
                yield run_id, lambda step, metrics: run.log(metrics, step=step)
        case "trackio":
            import trackio

            run_name = known_id or f"{name}-{uuid.uuid4().hex[:8]}"
            opened = trackio.init(project=PROJECT, name=run_name, resume="allow", config=told, embed=False)
            try:
                yield run_name, lambda step, metrics: opened.log(metrics, step=step)
            finally:
                trackio.finish()
        case _:
            yield known_id, lambda step, metrics: None


def finite_only(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """Leave out what is not defined: trackers draw it as a gap anyway."""
    return {name: value for name, value in metrics.items() if value is not None and math.isfinite(value)}
