"""Runs an experiment: keeps finished runs, resumes interrupted ones and starts the others, optionally in parallel."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean
from typing import Any

from redqueen.config import EMBEDDED, Config, RunConfig, parse_config, parse_recorded
from redqueen.display import duration
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, Planned
from redqueen.files import naming_remedy, read_plain
from redqueen.fitting import fit_to_base
from redqueen.journal import Journal, read
from redqueen.report.pages import write_report
from redqueen.run.continuation import has_ended, spent_so_far
from redqueen.run.interruption import ask_to_stop
from redqueen.run.progress import SECONDS_BETWEEN_LINES
from redqueen.run.store import CONFIG, JOURNAL, REPORT

LOGS = "logs"
"""Folder for the output of parallel runs."""

SECONDS_FOR_A_SIGNAL = 5.0
"""How long a run's process waits for its own signal after its experiment has been stopped."""

IGNORED = ("num_threads", "num_lanes")
"""Fields of ``run`` that may differ when an experiment continues on another machine or with other ``jobs``."""

_stopping: Connection[Any, Any] | None = None
"""In the process of a parallel run: a pipe that the experiment closes when it is stopped."""


@dataclass(frozen=True)
class Finished:
    """A run that reached its end: its folder and its total seconds, evaluation included."""

    planned: Planned
    folder: Path
    seconds: float


def finished_runs(plan: Experiment, folder: Path) -> list[Finished]:
    """Return the finished runs in the order of the plan: those that reached their end and wrote their report."""
    found = []
    for planned in plan.runs:
        path = folder / planned.folder
        if all((path / name).is_file() for name in (REPORT, JOURNAL, CONFIG)):
            config = _read_config(path / CONFIG)
            with Journal.open(path / JOURNAL, read_only=True) as journal:
                if has_ended(journal, RunConfig.model_validate(config["run"])):
                    timings = read.timing_series(journal)
                    seconds = sum(value or 0.0 for series in timings.values() for _, value in series)
                    found.append(Finished(planned, path, seconds))
    return found


def check_settings(plan: Experiment, folder: Path) -> None:
    """Raise UserError when an existing run was made with settings that differ from the plan's."""
    for planned in plan.runs:
        path = folder / planned.folder / CONFIG
        if path.is_file():
            _same_settings(planned, path)


def run_all(
    plan: Experiment, folder: Path, jobs: int, report: Callable[[str], None], after_each: Callable[[], object]
) -> None:
    """Run the unfinished runs. ``report`` gets lines of text; ``after_each`` is called after each run.

    ``folder`` contains a folder for each run. Raises UserError, before anything is started, when an existing run has
    other settings.
    """
    check_settings(plan, folder)
    done = {finished.planned.folder for finished in finished_runs(plan, folder)}
    todo = [planned for planned in plan.runs if planned.folder not in done]
    if done:
        report(f"{len(done)} of {len(plan.runs)} runs are finished already")
    with naming_remedy(f"--out {folder} cannot be made a folder", "name another"):
        folder.mkdir(parents=True, exist_ok=True)
    if jobs == 1:
        for at, planned in enumerate(todo):
            position = f"run {len(done) + at + 1} of {len(plan.runs)}"
            report(f"{position}: {planned.arm}, seed {planned.seed}{_left(plan, folder, 1)}")
            run_one(with_limit(plan, planned, folder).model_dump(mode="json"), folder / planned.folder)
            after_each()
    elif todo:
        _run_in_parallel(plan, todo, folder, jobs, report, after_each)


def run_one(config: dict[str, Any], folder: Path) -> None:
    """Start or resume one run, and write its report.

    Raises KeyboardInterrupt when the run was stopped, so that the experiment stops too.
    """
    from redqueen.run.lifecycle import resume, start

    if (folder / CONFIG).is_file():
        # Its config is the plan's, field by field (check_settings), and the plan is the user's own file.
        ended = resume(folder, trust_hooks=True, allow_weak=config["verify"]["allow_weak"])
    else:
        ended = start(parse_config(config, str(folder)), folder)
    if not ended:
        raise KeyboardInterrupt
    write_report([folder], folder / REPORT)


def with_limit(plan: Experiment, planned: Planned, folder: Path) -> Config:
    """Return the config with which a run starts: fitted to its base and, for a matched run, with the limit that its
    finished reference run determines."""
    reference, config = plan.reference_of(planned), fitted(planned.config)
    if reference is None:
        return config
    with Journal.open(folder / reference.folder / JOURNAL, read_only=True) as journal:
        limit = {"max_tokens": spent_so_far(journal).tokens}
    return config.model_copy(update={"run": config.run.model_copy(update=limit)})


def fitted(config: Config) -> Config:
    """Return the config fitted to its base, as ``redqueen train`` does.

    With the embedded base it is not changed: only a config that sets nothing would be fitted, which could apply to some
    arms and not to others.
    """
    return config if config.model.base == EMBEDDED else fit_to_base(config).config


def seconds_left(
    finished: Sequence[tuple[str, float]], todo: Sequence[tuple[str, float]], jobs: int = 1
) -> float | None:
    """Estimate the seconds left: ``finished`` are pairs of an arm and a run's seconds, ``todo`` the other runs' arms
    and the shares of their steps that are left.

    An arm without a finished run is assumed to take as long as the mean of the others. None without any finished run.
    """
    if not finished:
        return None
    by_arm: dict[str, list[float]] = {}
    for arm, seconds in finished:
        by_arm.setdefault(arm, []).append(seconds)
    means = {arm: fmean(values) for arm, values in by_arm.items()}
    unknown = fmean(means.values())
    return sum(means.get(arm, unknown) * share for arm, share in todo) / min(jobs, max(1, len(todo)))


def _left(plan: Experiment, folder: Path, jobs: int) -> str:
    """Return the expected time left as text; "" without a finished run."""
    finished = finished_runs(plan, folder)
    done = {one.planned.folder for one in finished}
    todo = [
        (run.arm, 1 - _last_step(folder, run) / run.config.run.num_steps) for run in plan.runs if run.folder not in done
    ]
    left = seconds_left([(one.planned.arm, one.seconds) for one in finished], todo, jobs)
    return "" if left is None or not todo else f"; about {duration(left)} left for all"


def _run_in_parallel(
    plan: Experiment,
    todo: Sequence[Planned],
    folder: Path,
    jobs: int,
    report: Callable[[str], None],
    after_each: Callable[[], object],
) -> None:
    """Execute up to ``jobs`` runs at a time, each in its own process with a log file.

    A failed run is reported at once; its error is raised when the runs in progress have ended.
    """
    (folder / LOGS).mkdir(exist_ok=True)
    num_threads = max(1, (os.cpu_count() or 1) // jobs)
    waiting, running, num_done = list(todo), dict[Future[None], Planned](), len(plan.runs) - len(todo)
    failed: UserError | None = None
    forking = get_context("forkserver")
    forking.set_forkserver_preload(["redqueen.run.lifecycle"])  # one process imports torch for all runs
    stopping, stop = forking.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        jobs, forking, initializer=_follow_experiment, initargs=(stopping,), max_tasks_per_child=1
    )
    try:
        while running or (waiting and not failed):
            unfinished = {run.folder for run in (*waiting, *running.values())}
            held = [run for run in waiting if (one := plan.reference_of(run)) and one.folder in unfinished]
            ready = [] if failed else [run for run in waiting if run not in held]
            for planned in ready[: jobs - len(running)]:
                waiting.remove(planned)
                config = with_limit(plan, planned, folder).model_dump(mode="json")
                config["run"]["num_threads"] = config["run"]["num_threads"] or num_threads
                log = folder / LOGS / f"{planned.folder}.log"
                running[pool.submit(_run_with_log, config, folder / planned.folder, log)] = planned
                report(f"started: {planned.arm}, seed {planned.seed} (see {log})")
            ended = wait(running, SECONDS_BETWEEN_LINES, FIRST_COMPLETED).done
            if not ended:
                report(f"{_progress_line(folder, running.values())}{_left(plan, folder, jobs)}")
            for future in ended:
                planned = running.pop(future)
                error = future.exception()
                if isinstance(error, UserError):
                    failed = failed or error
                    report(f"failed: {planned.folder} ({error}); no further run starts, runs in progress continue")
                    continue
                future.result()
                num_done += 1
                report(f"finished {num_done} of {len(plan.runs)}: {planned.folder}{_left(plan, folder, jobs)}")
                after_each()
        if failed:
            raise failed
    except BrokenProcessPool:
        raise UserError(
            f"a run's process was killed (perhaps out of memory: try fewer --jobs); its log is in "
            f"{folder / LOGS}, and the same command resumes it"
        ) from None
    finally:
        stop.close()  # unlike setting a multiprocessing event, this cannot block on processes that have ended
        pool.shutdown(cancel_futures=True)
        stopping.close()


def _progress_line(folder: Path, running: Iterable[Planned]) -> str:
    """Return a line with the last step of each run."""
    parts = [f"{run.folder} step {_last_step(folder, run)}/{run.config.run.num_steps}" for run in running]
    return f"running {', '.join(parts)}"


def _last_step(folder: Path, planned: Planned) -> int:
    """Return the last step of a run from the journal that its process is writing; 0 before the first."""
    try:
        with Journal.open(folder / planned.folder / JOURNAL, read_only=True) as journal:
            return read.last_step(journal) or 0
    except UserError:
        return 0  # its process has not created the journal yet


def _follow_experiment(stopping: Connection[Any, Any]) -> None:
    """Stop this run's process together with the experiment's.

    The pipe is kept, since a stop may come before the run handles signals. If the experiment's process ends, however it
    was killed, this process ends as by Ctrl-C.
    """
    global _stopping
    _stopping = stopping
    threading.Thread(target=_follow_parent, daemon=True).start()
    threading.Thread(target=_follow_stop, args=(stopping,), daemon=True).start()


def _follow_stop(stopping: Connection[Any, Any]) -> None:
    """Stop this process's run when only the experiment received a signal.

    A terminal sends Ctrl-C to all processes, and a second signal stops at once: so wait until its signal has arrived.
    """
    stopping.poll(None)
    while True:
        time.sleep(SECONDS_FOR_A_SIGNAL)
        ask_to_stop()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)


def _run_with_log(config: dict[str, Any], folder: Path, log: Path) -> None:
    if _stopping is not None and _stopping.poll():
        sys.exit(130)
    with log.open("a", encoding="utf-8") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            run_one(config, folder)
        except KeyboardInterrupt:
            sys.exit(130)


def _read_config(path: Path) -> dict[str, dict[str, Any]]:
    try:
        return parse_recorded(json.loads(read_plain(path)), str(path)).model_dump(mode="json")
    except (OSError, ValueError):
        raise UserError(f"{path} is damaged: restore it, or remove its folder to start that run again") from None


def _same_settings(planned: Planned, path: Path) -> None:
    there = _read_config(path)
    wanted = fitted(planned.config).model_dump(mode="json")
    if planned.config.model.precision == "auto":
        wanted["model"]["precision"] = there["model"]["precision"]  # what "auto" meant when the run began
    limit = "max_tokens" if planned.match == "tokens" else ""
    if limit and there["run"][limit] == wanted["run"][limit]:
        raise UserError(
            f"{path.parent} was run without the limit that matches it by {planned.match} now: choose another --out, "
            "or remove that folder to start the run again"
        )
    for section, fields in wanted.items():
        for name, value in fields.items():
            found = there[section][name]
            if found != value and not (section == "run" and name in (*IGNORED, limit)):
                raise UserError(
                    f"{path.parent} was run with {section}.{name} = {json.dumps(found)}, but the experiment now "
                    f"sets {json.dumps(value)}: choose another --out, or remove that folder to start the run again"
                )
