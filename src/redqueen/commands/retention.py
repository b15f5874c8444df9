"""`redqueen retention`: play the seeds, show progress, write the findings; a stopped experiment is continued."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from redqueen.config import EMBEDDED
from redqueen.display import duration
from redqueen.engine import open_engine
from redqueen.errors import UserError
from redqueen.experiment.retention.findings import analyse
from redqueen.experiment.retention.lineup import lineup
from redqueen.experiment.retention.outputs import write_outputs
from redqueen.experiment.retention.settings import FULL, QUICK, RetentionSettings, engine_config
from redqueen.experiment.retention.tasks import TaskSource
from redqueen.experiment.retention.trial import PARENTS, SCORES, Bench, play_trial, work_of_step
from redqueen.policy.base_identity import identify_base
from redqueen.run.activity import showing
from redqueen.run.store import RunLock

PLAN = "plan.json"


def measure_retention(out: Path, num_seeds: int, quick: bool, num_threads: int, say: Callable[[str], None]) -> Path:
    """Play ``num_seeds`` trials in ``out``, write curves.csv, retention.json and report.md, return the report's path.

    A folder with an unfinished experiment is continued; seeds may be added. ``say`` gets a line a step. Raises
    UserError, with nothing written, when ``num_seeds`` is below 1, when the folder holds something else, or when it
    was begun with other settings or another base.
    """
    if num_seeds < 1:
        raise UserError(f"--seeds {num_seeds} is too few: give at least 1, and 3 for a verdict")
    if num_threads < 0:
        raise UserError(f"--threads {num_threads} is below 0: give a number of threads, or 0 for all cores")
    settings = QUICK if quick else FULL
    base_sha256 = identify_base(EMBEDDED).sha256
    _check_folder(out, settings, base_sha256)
    entries = lineup()
    config = engine_config(settings, len(PARENTS) + len(entries), num_threads)
    with showing("measuring retention") as activity, open_engine(config, report=activity) as engine:
        _claim(out, settings, base_sha256)
        with RunLock(out):
            source = TaskSource(engine, settings.kinds, settings.levels, settings.num_held_out)
            bench = Bench(engine, source, entries, settings)
            progress = Progress(bench, [out / f"seed-{seed}" for seed in range(num_seeds)], say)
            trials = [
                play_trial(bench, seed, folder, progress.teller(seed)) for seed, folder in enumerate(progress.folders)
            ]
            programs = [task.id.rsplit("/", 1)[0] for task in source.held_out]
            findings = analyse(trials, entries, programs)
            command = f"redqueen retention --seeds {num_seeds}{' --quick' if quick else ''}"
            return write_outputs(out, trials, entries, findings, settings, base_sha256, command)


class Progress:
    """Says after every step what was done and how long the rest will take, from the pace of this process."""

    def __init__(self, bench: Bench, folders: list[Path], say: Callable[[str], None]) -> None:
        self.folders, self._say, self._began = folders, say, time.monotonic()
        self._work = [work_of_step(bench.settings, len(bench.entries), step) for step in range(1, bench.num_steps + 1)]
        self._played = [(folder / SCORES).is_file() for folder in folders]
        self._done = 0

    def teller(self, seed: int) -> Callable[[int, str], None]:
        """Return what one seed's trial calls after each of its steps."""

        def tell(step: int, words: str) -> None:
            self._done += self._work[step - 1]
            self._played[seed] = step == len(self._work)
            others = self._played[seed + 1 :].count(False)
            left = sum(self._work[step:]) + others * sum(self._work)
            left_s = left * (time.monotonic() - self._began) / self._done
            self._say(f"seed {seed + 1}/{len(self.folders)}: {words}, {duration(left_s)} left")

        return tell


def _plan(settings: RetentionSettings, base_sha256: str) -> dict[str, object]:
    return json.loads(json.dumps({"base_sha256": base_sha256, "settings": asdict(settings)}))


def _check_folder(out: Path, settings: RetentionSettings, base_sha256: str) -> None:
    if not out.exists():
        return
    if not (out / PLAN).is_file():
        if out.is_dir() and not any(out.iterdir()):
            return
        raise UserError(f"--out {out} exists and holds no retention experiment: choose a folder to be made")
    try:
        begun = json.loads((out / PLAN).read_text())
    except ValueError:
        raise UserError(f"{out / PLAN} is damaged: choose another --out") from None
    if begun != _plan(settings, base_sha256):
        raise UserError(
            f"--out {out} was begun with other settings or another base: choose another folder, or give --quick as then"
        )


def _claim(out: Path, settings: RetentionSettings, base_sha256: str) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / PLAN).write_text(json.dumps(_plan(settings, base_sha256), indent=1) + "\n")
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error.strerror}): choose another place") from None
