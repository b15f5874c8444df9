"""A run directory: start it, resume it, evaluate and checkpoint along the way, end with the report."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from redqueen.check_up import check_up
from redqueen.checkpoint import Checkpoint, remove_after
from redqueen.config import Config, RunConfig, parse_config
from redqueen.engine import Engine, open_engine
from redqueen.errors import UserError
from redqueen.evaluate.external import Examiner, base_records, student_records
from redqueen.evaluate.fitness_suite import Score
from redqueen.evolve.fitness import internal_fitness
from redqueen.files import flush_to_disk, read_plain, write_whole
from redqueen.journal import (
    AttemptRecord,
    CandidateRecord,
    Journal,
    MatchRecord,
    RunRecord,
    StepWriter,
    TaskRecord,
    read,
)
from redqueen.journal.opening import BESIDE
from redqueen.loop import StepReport, play_step
from redqueen.nouns import Rejection, Task
from redqueen.propose.buffer import behaviour_key
from redqueen.propose.seeding import grow_seed_buffer
from redqueen.report.health import warnings
from redqueen.report.html import write_report
from redqueen.report.terminal import LineProgress, LiveProgress, open_progress
from redqueen.state import State, found, state_from_plain, state_to_plain
from redqueen.stopping import Stopped, StopWish, watching_for_stops
from redqueen.store import CHECKPOINTS, JOURNAL, LOCK, RunLock
from redqueen.summary import step_metrics
from redqueen.timing import Clock
from redqueen.trackers import Tracker, finite_only, open_tracker, require_tracker
from redqueen.verify.measures import measure

CONFIG = "config.json"
REPORT = "report.html"


Progress = LineProgress | LiveProgress


@dataclass
class Session:
    """One process at work on one run directory."""

    folder: Path
    engine: Engine
    journal: Journal
    progress: Progress
    tracker: Tracker
    wish: StopWish
    base_scores: list[Score] | None = None
    """The base's score item by item; a resumed process has to score it again."""

    def clock(self, step: int) -> Clock:
        """Return a clock for one step that tells the screen which phase runs, and stops there when asked to."""

        def enter(phase: str) -> None:
            self.wish.enter(phase)
            self.progress.phase(step, phase)

        return Clock(enter)

    @property
    def config(self) -> Config:
        """The run's resolved config."""
        return self.engine.config


@dataclass(frozen=True)
class Spent:
    """What a run has cost so far: tokens sampled by its members, and seconds of its steps (evaluation apart)."""

    tokens: int
    seconds: float

    def plus(self, report: StepReport) -> Spent:
        """Return what has been spent after one more step."""
        proposed = sum(len(p.completion.tokens) for p in report.proposals)
        answered = sum(o.attempt.num_tokens for a in report.answered for o in a.outcomes)
        return Spent(self.tokens + proposed + answered, self.seconds + sum(report.seconds.values()))


def is_over(run: RunConfig, state: State, spent: Spent) -> bool:
    """Tell whether the run has reached its last step, or a limit of tokens or seconds.

    A limit waits for a step without a birth, since a child would be judged before it has learned anything.
    """
    newborn = state.step > 0 and any(i.born_step == state.step for i in state.individuals)
    over = 0 < run.max_tokens <= spent.tokens or 0 < run.max_seconds <= spent.seconds
    return state.step >= run.num_steps or (over and not newborn)


def start(config: Config, folder: Path) -> Path:
    """Play a new run in ``folder`` to its end and return the report's path.

    Raises UserError, with nothing written, when the folder exists or the engine cannot be built. The first Ctrl-C (or
    SIGTERM) ends the run after the phase with a checkpoint, a second one at once: both raise KeyboardInterrupt.
    """
    if folder.exists():
        raise UserError(f"{folder} exists already: choose another --run-dir, or go on with `redqueen resume {folder}`")
    require_tracker(config)
    with open_engine(config) as engine:
        _make_folder(folder, config)
        with RunLock(folder):
            return _play_anew(folder, engine)


def resume(folder: Path, trust_hooks: bool = False, allow_weak: bool = False) -> Path:
    """Go on with the run in ``folder`` from its newest good checkpoint, to its end; return the report's path.

    A run that was killed before its first checkpoint starts over. Damaged checkpoints are passed over and named. The
    folder may be a stranger's: without ``trust_hooks`` a hook that its config names is refused and not imported,
    without ``allow_weak`` its word is not enough to do without a sandbox, and links in it are refused.
    """
    refuse_links(folder)
    config = trusted_config(load_run_config(folder), folder, trust_hooks, allow_weak)
    require_tracker(config)
    with RunLock(folder), open_engine(config) as engine:
        checkpoints = folder / CHECKPOINTS
        checkpoint = Checkpoint.latest_valid(checkpoints) if checkpoints.is_dir() else None
        if checkpoint is None:
            _remove_journal(folder)
            return _play_anew(folder, engine, "there is no checkpoint yet: starting over")
        state = _load_checkpoint(checkpoint, engine, checkpoints)
        with (
            Journal.open(folder / JOURNAL) as journal,
            _session(folder, engine, journal, str(checkpoint.state.get("tracker", "")), state.step) as session,
        ):
            for sentence in checkpoint.skipped:
                session.progress.say(f"{sentence} Going on from the checkpoint of step {checkpoint.step}.")
            journal.truncate_after(checkpoint.step)
            remove_after(checkpoints, checkpoint.step)
            journal.add_session(time.time(), checkpoint.step)
            return _play(session, state)


def _play_anew(folder: Path, engine: Engine, remark: str = "") -> Path:
    """Play a run from its beginning in a folder that holds its config and no journal."""
    with (
        Journal.create(folder / JOURNAL, _run_record(engine.config)) as journal,
        _session(folder, engine, journal) as session,
    ):
        if remark:
            session.progress.say(remark)
        journal.add_session(time.time(), None)
        try:
            state = _begin(session)
        except Stopped:
            raise KeyboardInterrupt from None
        return _play(session, state)


def _load_checkpoint(checkpoint: Checkpoint, engine: Engine, place: Path) -> State:
    """Put a checkpoint's tensors where they belong and return its state."""
    try:
        state = state_from_plain(checkpoint.state["state"])
        factors = checkpoint.tensors["factors"]
        if factors.shape != engine.bank.flat.shape:
            raise UserError(
                f"The checkpoint of step {checkpoint.step} in {place} holds other adapters than {CONFIG} asks for: "
                f"restore the {CONFIG} that the run began with"
            )
        engine.bank.flat.copy_(factors)
        learner = {k.removeprefix("learner."): v for k, v in checkpoint.tensors.items() if k.startswith("learner.")}
        engine.learner.load_state(learner)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(
            f"The checkpoint of step {checkpoint.step} in {place} was written by another version of redqueen "
            f"(it lacks or does not know {error}); resume with the version that wrote it (the table `run` names it)."
        ) from None
    return state


def load_run_config(folder: Path) -> Config:
    """Read the resolved config of a run directory. Raises UserError when it is none."""
    path = folder / CONFIG
    try:
        if not os.path.isdir(folder):
            raise FileNotFoundError
        return parse_config(json.loads(read_plain(path)), str(path))
    except FileNotFoundError:
        raise UserError(
            f"{folder} is no run directory (it has no {CONFIG}): give the folder that `redqueen train` made"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}): restore it from a copy") from None


def trusted_config(config: Config, folder: Path, trust_hooks: bool, allow_weak: bool) -> Config:
    """Return a run folder's config with what only the user may allow as the user said.

    Raises UserError when it names a hook and ``trust_hooks`` is false: to import it would run code.
    """
    hook = config.propose.policy_hook
    if hook and not trust_hooks:
        raise UserError(
            f"{folder / CONFIG} names the hook {hook!r}, whose import runs code: if you trust it, go on with "
            f"`redqueen resume {folder} --trust-hooks`"
        )
    weak = config.verify.allow_weak and allow_weak
    return config.model_copy(update={"verify": config.verify.model_copy(update={"allow_weak": weak})})


def refuse_links(folder: Path) -> None:
    """Raise UserError when something in a run folder that a run writes to, or deletes in, is a link elsewhere."""
    for name in (CHECKPOINTS, "tensorboard", "wandb", LOCK, CONFIG, REPORT):
        if os.path.islink(folder / name):
            raise UserError(f"{folder / name} is a link, and a run writes there: put the thing itself into {folder}")


def _make_folder(folder: Path, config: Config) -> None:
    """Make the run directory with its config in it: one does not appear without the other."""
    aside = folder.with_name(f".{folder.name}.making-{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        write_whole(aside / CONFIG, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")
        aside.rename(folder)
        flush_to_disk(folder.parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(
            f"--run-dir {folder} cannot be made ({error.strerror}): choose a folder you may write to"
        ) from None


def _remove_journal(folder: Path) -> None:
    """Remove a journal that no checkpoint belongs to, what lies beside it first: a new one must not inherit that."""
    path = folder / JOURNAL
    try:
        for name in (*(f"{JOURNAL}{ending}" for ending in BESIDE), JOURNAL):
            path.with_name(name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be removed ({error.strerror}): make the run directory writable") from None


def _run_record(config: Config) -> RunRecord:
    packages = ("redqueen", "torch", "transformers", "numpy", "safetensors")
    versions = {name: version(name) for name in packages} | {"python": platform.python_version()}
    return RunRecord(
        config.run.name, config.population.arm, config.run.rng_seed, config.model_dump(mode="json"), versions
    )


@contextmanager
def _session(
    folder: Path, engine: Engine, journal: Journal, tracker_id: str = "", after_step: int = -1
) -> Iterator[Session]:
    with (
        open_tracker(engine.config, folder, tracker_id, after_step) as tracker,
        open_progress(engine.config.run.num_steps) as progress,
        watching_for_stops() as wish,
    ):
        yield Session(folder, engine, journal, progress, tracker, wish)


def _begin(session: Session) -> State:
    """Write step 0: the founders, the base's external fitness, the seed buffer, the first checkpoint."""
    state = found(session.config)
    clock = session.clock(0)
    with clock.phase("propose"):
        state, refused = grow_seed_buffer(state, session.engine)
    with clock.phase("evaluate"):
        session.base_scores = Examiner.of(session.engine).base()
    with session.journal.step(0) as writer:
        writer.add_individuals(state.individuals)
        _add_ratings(writer, state, session.config)
        writer.add_candidates(CandidateRecord(r.candidate, r.reason, r.detail) for r in refused)
        writer.add_evaluations(base_records(session.base_scores))
        writer.add_timings(clock.take())
    _save(session, state)
    return state


def _play(session: Session, state: State) -> Path:
    """Play the remaining steps; each is one transaction. Raises KeyboardInterrupt when a stop was asked for."""
    config = session.config
    behaviours = {row["behaviour"] for row in session.journal.query("SELECT DISTINCT behaviour FROM task")}
    spent = Spent(read.tokens_sampled(session.journal), read.step_seconds(session.journal))
    saved = state.step
    while not is_over(config.run, state, spent):
        before, clock = state, session.clock(state.step + 1)
        try:
            state, report = play_step(state, session.engine, clock)
        except Stopped:
            break
        spent = spent.plus(report)
        last = is_over(config.run, state, spent)
        with session.journal.step(report.step) as writer:
            metrics = _record(writer, before, report, behaviours)
            _add_ratings(writer, state, config)
            warned = _check_up(session, writer, before, state)
            if last or _evaluation_due(config, state.step):
                with clock.phase("evaluate"):
                    _evaluate(session, writer, state)
            writer.add_timings(report.seconds | clock.take())
        session.progress.finish_step(report.step, metrics, state.individuals)
        for warning in warned:
            session.progress.say(f"step {report.step}: {warning}")
        session.tracker.log(report.step, finite_only(metrics))
        if _checkpoint_due(config, state.step) or last:
            with clock.phase("checkpoint"):
                _save(session, state)
            saved = state.step
            session.journal.add_timings(state.step, clock.take())
        if session.wish.asked:
            break
    if not is_over(config.run, state, spent):
        if saved < state.step:
            _save(session, state)
        raise KeyboardInterrupt
    path = session.folder / REPORT
    write_report([session.folder], path)
    return path


def _checkpoint_due(config: Config, step: int) -> bool:
    milestone = config.run.milestone_every_steps
    return step % config.run.checkpoint_every_steps == 0 or (milestone > 0 and step % milestone == 0)


def _evaluation_due(config: Config, step: int) -> bool:
    every = config.evaluate.every_steps
    return every > 0 and step % every == 0


def _evaluate(session: Session, writer: StepWriter, state: State) -> None:
    examiner = Examiner.of(session.engine)
    base = session.base_scores = session.base_scores or examiner.base()
    writer.add_evaluations(student_records(state.students, examiner.members(state.students), base, examiner.items))


def _record(writer: StepWriter, before: State, report: StepReport, behaviours: set[str]) -> dict[str, float]:
    """Write one step's records and return its metrics. ``behaviours`` (of all tasks so far) grows."""
    credit = report.credit
    writer.add_individuals(report.newborns)
    writer.add_births(report.births)
    writer.add_hall_entries((e.individual.id, e.member, e.individual.slot) for e in report.admitted)
    writer.add_matches(MatchRecord(g.match, g.num_tasks, g.solve_frac, g.winner) for g in report.games)
    writer.add_candidates(
        CandidateRecord(
            proposal.candidate,
            verdict.reason if isinstance(verdict, Rejection) else "ok",
            verdict.detail if isinstance(verdict, Rejection) else "",
            reward,
            advantage,
            len(proposal.completion.tokens),
        )
        for proposal, verdict, reward, advantage in zip(
            report.proposals, report.judged, credit.proposal_rewards, credit.proposal_advantages, strict=True
        )
    )
    tasks = [verdict for verdict in report.judged if isinstance(verdict, Task)]
    measures = [measure(task.code) for task in tasks]
    records = [
        TaskRecord(task, measured, behaviour_key(task), report.pressures[task.id])
        for task, measured in zip(tasks, measures, strict=True)
    ]
    writer.add_tasks(records)
    writer.add_attempts(
        AttemptRecord(outcome, reward, advantage)
        for answered, rewards, advantages in zip(
            report.answered, credit.attempt_rewards, credit.attempt_advantages, strict=True
        )
        for outcome, reward, advantage in zip(answered.outcomes, rewards, advantages, strict=True)
    )
    behaviours |= {record.behaviour for record in records}
    num_classes = len(before.memory.ever | {pressure.behaviour_class for pressure in report.pressures.values()})
    metrics = step_metrics(report, before.individuals, measures, len(behaviours), num_classes)
    writer.add_metrics(metrics)
    return metrics


def _check_up(session: Session, writer: StepWriter, before: State, state: State) -> list[str]:
    """Write the health of a generation at its end and return its warnings; the step's rows must be written before."""
    every = session.config.evolve.every_steps
    if state.step % every:
        return []
    found = check_up(session.journal, session.engine.bank, before.individuals, state.individuals, state.step, every)
    writer.add_health(found.numbers(), warnings(found))
    return warnings(found)


def _add_ratings(writer: StepWriter, state: State, config: Config) -> None:
    """The single agent plays against itself and has no rating."""
    rated = [i for i in state.individuals if i.role != "both"]
    fitness = internal_fitness(rated, state.scores, state.step, config.evolve)
    writer.add_ratings((i, fitness[i.id]) for i in rated)


def _save(session: Session, state: State) -> None:
    engine = session.engine
    tensors = {"factors": engine.bank.flat}
    tensors |= {f"learner.{name}": tensor for name, tensor in engine.learner.state_dict().items()}
    run = session.config.run
    plain = {"state": state_to_plain(state), "tracker": session.tracker.id}
    place = session.folder / CHECKPOINTS
    Checkpoint.save(place, state.step, tensors, plain, run.num_checkpoints_kept, run.milestone_every_steps)
