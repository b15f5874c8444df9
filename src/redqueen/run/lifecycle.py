"""The life of a run: start or resume it, run its steps, evaluate and save checkpoints."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from redqueen import __version__
from redqueen.adapters.base import settle_precision
from redqueen.cluster.sharded import adapters_here
from redqueen.config import Config
from redqueen.domains.registry import domain_of
from redqueen.engine import Engine, LoadAdapters, open_engine
from redqueen.errors import command
from redqueen.evaluate.external import Examiner, gain_records, member_records, scored_students, student_records
from redqueen.evaluate.fitness_suite import Score
from redqueen.journal import CandidateRecord, Journal, RunRecord
from redqueen.journal.schema import BASE, CONTROL, EvaluationRecord
from redqueen.learn.distillation import Distilled
from redqueen.loop import run_step
from redqueen.run.checkpoint import (
    MILESTONE_STEPS,
    Checkpoint,
    named_base,
    naming_the_checkpoint,
    open_checkpoint,
    remove_after,
    restore_replaced,
)
from redqueen.run.cold_start import (
    add_own_tasks,
    check_cold_start,
    check_prompts,
    grow_seed_buffer,
    own_tasks,
    place_founders,
)
from redqueen.run.continuation import (
    Spent,
    is_limit_spent,
    is_nothing_valid,
    is_over,
    keep_lengths,
    lacks_final_scores,
    lengthened,
    rate_change,
    record_lengths,
    refuse_older,
    remaining_work,
    spent_so_far,
    write_lengths,
)
from redqueen.run.duration import report_duration
from redqueen.run.interruption import Reporter, Stopped, catching_signals
from redqueen.run.product import choose_product, distill_product, probe_tasks
from redqueen.run.progress import RunProgress, Schedule
from redqueen.run.record import record_health, record_ratings, record_step
from redqueen.run.status import StatusFile
from redqueen.run.store import (
    CHECKPOINTS,
    JOURNAL,
    RunLock,
    load_run_config,
    make_run_folder,
    refuse_existing,
    refuse_links,
    remove_journal,
    trusted_config,
)
from redqueen.run.trackers import Tracker, open_tracker, require_tracker
from redqueen.state import State, initial_state, state_to_plain
from redqueen.timing import Clock

NUM_CHECKPOINTS_KEPT = 2
"""Newest checkpoints kept. Ours: one to fall back on when the newest is damaged."""


@dataclass
class Session:
    """The objects of a process that works on one run directory."""

    folder: Path
    engine: Engine
    journal: Journal
    reporter: Reporter
    tracker: Tracker
    base_scores: list[Score] | None = None
    control_scores: list[Score] | None = None
    """Scores of the base and of the control; a resumed process computes them again."""
    evaluation_owed: bool = False
    """Whether the evaluation of the last step was interrupted; it then runs before the next step."""
    distilled: Distilled | None = None
    """The product's distillation if the evaluation was interrupted after it; the adapter is in its slot."""

    @property
    def progress(self) -> RunProgress:
        return self.reporter.progress

    def clock(self, step: int) -> Clock:
        """Return a clock for one step; at each phase it updates the display and raises Stopped if requested."""
        return Clock(partial(self.reporter.enter, step), self.reporter.part)


def start(config: Config, folder: Path, load: LoadAdapters | None = None) -> bool:
    """Start a new run in ``folder``; return whether it reached its end (False: it was stopped and can be resumed).

    ``load``: see ``open_engine``. The first Ctrl-C (or SIGTERM) stops the run between two batches with a
    checkpoint; a second one raises KeyboardInterrupt at once. Raises UserError, with nothing written, when the folder
    exists, the engine cannot be built or the base has too few positions for the prompts.
    """
    refuse_existing(folder)
    require_tracker(config)
    config, asked = settle_precision(config), config.model.precision
    with _reporting(config) as reporter, open_engine(config, load or adapters_here(reporter), reporter) as engine:
        check_prompts(engine.config, engine.tokenizer, engine.limits)
        own_tasks(config)
        place_founders(engine)
        make_run_folder(folder, config)
        with RunLock(folder):
            reporter.progress.say(
                f"the run directory is {folder}; Ctrl-C stops the run, and `{command('resume', folder)}` continues it"
            )
            if asked == "auto" and config.model.precision == "fp32":
                reporter.progress.say("matrix products in float32: this processor does not multiply bfloat16 faster")
            return _run_from_start(folder, engine, reporter)


def resume(
    folder: Path,
    trust_hooks: bool = False,
    allow_weak: bool = False,
    load: LoadAdapters | None = None,
    overrides: Sequence[str] = (),
) -> bool:
    """Continue the run in ``folder`` from its newest valid checkpoint; return whether it reached its end.

    A run that was killed before its first checkpoint starts over. Damaged checkpoints are skipped with a message. The
    folder is untrusted: hooks that its config names are refused without ``trust_hooks``, its config can weaken the
    sandbox only with ``allow_weak``, and links in it are refused. ``overrides`` such as ``run.num_steps=400`` extend a
    run beyond its end, see ``run/continuation.py``.
    """
    refuse_links(folder)
    before = load_run_config(folder, to_resume=True)
    asked = lengthened(before, overrides)
    config = trusted_config(asked, folder, trust_hooks, allow_weak)
    require_tracker(config)
    with (
        RunLock(folder),
        _reporting(config) as reporter,
        open_engine(config, load or adapters_here(reporter), reporter) as engine,
    ):
        checkpoints = folder / CHECKPOINTS
        restore_replaced(checkpoints)
        found = open_checkpoint(checkpoints, config) if checkpoints.is_dir() else None
        if found is None:
            place_founders(engine)
            remove_journal(folder)
            if overrides:
                write_lengths(folder, asked, 0, has_new_members=False)
            return _run_from_start(folder, engine, reporter, "there is no checkpoint yet: starting over")
        checkpoint, state = found
        with naming_the_checkpoint(checkpoint, checkpoints):
            engine.store.load_state(checkpoint.tensors)
        with Journal.open(folder / JOURNAL) as journal:
            refuse_older(journal, checkpoint.step)
            if overrides:
                write_lengths(folder, asked, state.step, state.has_new_members)
            tracker = str(checkpoint.state.get("tracker", ""))
            with _session(folder, engine, journal, reporter, tracker, state.step) as session:
                for sentence in checkpoint.skipped:
                    session.progress.say(f"{sentence} Resuming from the checkpoint of step {checkpoint.step}.")
                if changed := rate_change(before, asked, state.step):
                    session.progress.say(changed)
                keep_lengths(journal, checkpoint.step)
                journal.truncate_after(checkpoint.step)
                remove_after(checkpoints, checkpoint.step)
                record_lengths(journal, config, checkpoint.step)
                journal.add_session(time.time(), checkpoint.step)
                session.evaluation_owed = bool(checkpoint.state.get("evaluation_owed"))
                if found_distilled := checkpoint.state.get("distilled"):
                    session.distilled = Distilled(**found_distilled)
                spent = spent_so_far(journal)
                if not _is_over(config, state, spent):
                    session.reporter.part("measuring the speed")
                    report_duration(session.progress, state, engine, spent)
                    engine.store.load_state(checkpoint.tensors)
                return _make_up_evaluation(session, state) and _run_steps(session, state)


@contextmanager
def _reporting(config: Config) -> Iterator[Reporter]:
    """Show the progress of a run, beginning with the loading of the base."""
    schedule = Schedule(config.run.num_steps, config.evaluate.every_steps, config.num_scored_students)
    with RunProgress(schedule) as progress:
        reporter = Reporter(progress)
        reporter.enter(0, "load")
        yield reporter


def _run_from_start(folder: Path, engine: Engine, reporter: Reporter, remark: str = "") -> bool:
    """Run from step 0 in a folder that has a config and no journal."""
    with (
        Journal.create(folder / JOURNAL, _run_record(engine.config)) as journal,
        _session(folder, engine, journal, reporter) as session,
    ):
        if remark:
            session.progress.say(remark)
        journal.add_session(time.time(), None)
        try:
            state = _begin(session)
        except Stopped:
            return False
        return _run_steps(session, state)


def _run_record(config: Config) -> RunRecord:
    others = {name: version(name) for name in ("torch", "transformers", "numpy", "safetensors")}
    versions = {"redqueen": __version__, **others, "python": platform.python_version()}
    return RunRecord(
        config.run.name, config.population.arm, config.run.rng_seed, config.model_dump(mode="json"), versions
    )


@contextmanager
def _session(
    folder: Path, engine: Engine, journal: Journal, reporter: Reporter, tracker_id: str = "", after_step: int = -1
) -> Iterator[Session]:
    with (
        open_tracker(engine.config, folder, tracker_id, after_step, reporter.progress.say) as tracker,
        catching_signals() as reporter.stop_request,
        StatusFile(folder) as reporter.status,
    ):
        yield Session(folder, engine, journal, reporter, tracker)


def _begin(session: Session) -> State:
    """Write step 0: founders, seed buffer, the base's external fitness, and the first checkpoint."""
    state = initial_state(session.engine.config)
    clock = session.clock(0)
    with clock.phase("propose"):
        state = add_own_tasks(state, session.engine, session.progress.say)
        session.reporter.part("growing the seed buffer")
        state, refused = grow_seed_buffer(state, session.engine)
        session.reporter.part("measuring the speed")
        report_duration(session.progress, state, session.engine)
    with clock.phase("evaluate"):
        session.reporter.part("checking the base")
        check_cold_start(state, session.engine, session.progress.say)
        examiner = Examiner.of(session.engine)
        session.reporter.part("evaluating the base")
        session.base_scores = examiner.base()
        session.reporter.part("evaluating the control")
        control = session.control_scores = examiner.control(session.base_scores)
    with session.journal.step(0) as writer:
        writer.add_individuals(state.individuals)
        record_ratings(writer, state, session.engine)
        writer.add_candidates(CandidateRecord(r.candidate, r.reason, r.detail) for r in refused)
        writer.add_evaluations(member_records(BASE, session.base_scores) + member_records(CONTROL, control))
        writer.add_timings(clock.take())
    session.tracker.log(0, session.journal)
    _save(session, state)
    _report_shard_events(session, 0)
    return state


def _run_steps(session: Session, state: State) -> bool:
    """Run the remaining steps, each in one transaction of the journal. False when it stopped before the end."""
    config = session.engine.config
    rows = session.journal.query("SELECT DISTINCT behaviour, kind FROM task")
    behaviours = {row["behaviour"]: domain_of(row["kind"]).name for row in rows}
    spent = spent_so_far(session.journal)
    saved = state.step
    while not _is_over(config, state, spent):
        before, clock = state, session.clock(state.step + 1)
        try:
            state, report = run_step(state, session.engine, clock, is_last=is_limit_spent(config.run, spent))
        except Stopped:
            break
        with session.journal.step(report.step) as writer:
            metrics = record_step(writer, before, report, behaviours)
            spent = spent.plus(report, metrics)
            last = _is_over(config, state, spent)
            record_ratings(writer, state, session.engine)
            warned = record_health(writer, session.journal, session.engine, before.individuals, state)
            every = config.evaluate.every_steps
            if last or (every > 0 and state.step % every == 0):
                records, figures = _evaluation(session, state, last, clock)
                writer.add_evaluations(records)
                writer.add_metrics(figures)
            writer.add_timings(report.seconds | clock.take())
        remaining = remaining_work(config.run, state.step, spent, state.has_new_members)
        session.progress.finish_step(report.step, metrics, state.individuals, remaining)
        _report_shard_events(session, report.step)
        for warning in warned:
            session.progress.say(f"step {report.step}: {warning}")
        session.tracker.log(report.step, session.journal)
        if last or state.step % config.run.checkpoint_every_steps == 0 or state.step % MILESTONE_STEPS == 0:
            with clock.phase("checkpoint"):
                _save(session, state)
            saved = state.step
            session.journal.add_timings(state.step, clock.take())
        if session.reporter.stop_request.asked:
            break
    if saved < state.step:
        _save(session, state)
    return _is_over(config, state, spent) and not session.evaluation_owed


def _report_shard_events(session: Session, step: int) -> None:
    for event in session.engine.take_events():
        if event.what != "opened":
            session.progress.say(
                f"step {step}: shard {event.shard} {event.what} ({event.node}) {event.detail}".rstrip()
            )


def _is_over(config: Config, state: State, spent: Spent) -> bool:
    return is_over(config.run, state.step, spent, state.has_new_members)


def _evaluation(
    session: Session, state: State, last: bool, clock: Clock
) -> tuple[list[EvaluationRecord], dict[str, float]]:
    """Return records of external fitness and metrics; both are empty, and the evaluation owed, if a stop interrupts it.

    After the last step the product is also made, chosen without the students' scores, and evaluated; the metrics are
    its own. A run that never had a valid task has no product.
    """
    engine, part = session.engine, session.reporter.part
    examiner, product, gain = Examiner.of(engine), None, []
    choosing = last and not is_nothing_valid(session.journal)
    asked = probe_tasks(engine.config, state) if choosing else []
    try:
        if choosing:
            with clock.phase("product"):
                session.distilled = session.distilled or distill_product(engine, state, asked, part)
        with clock.phase("evaluate"):
            if not session.base_scores:
                part("the base")
            base = session.base_scores = session.base_scores or examiner.base()
            part("the students")
            students = scored_students(engine.config, state.students, state.step)
            scores = examiner.members(students)
            if choosing:
                part("the candidates for the product")
                product = choose_product(engine, state, examiner, scores, asked, session.distilled)
            if product is not None:
                if session.control_scores is None:
                    part("the control")
                    session.control_scores = examiner.control(base)
                gain = gain_records(product.scores, [*base, *session.control_scores], examiner.items)
    except Stopped:
        session.evaluation_owed = True
        return [], {}
    distilled, session.distilled, session.evaluation_owed = session.distilled, None, False
    records = student_records(students, scores, base, examiner.items)
    if product is None:
        return records, {}
    untrained = any(i.id == product.name and engine.store.genotype(i.slot).is_zero for i in state.students)
    session.progress.say(f"product: {product.name}" + ", which was never trained: it answers as the base" * untrained)
    return records + product.records + gain, product.metrics(base) | (distilled.metrics() if distilled else {})


def _make_up_evaluation(session: Session, state: State) -> bool:
    """Run the evaluation that is owed, if any, before the next step; False when it was interrupted again."""
    config, journal = session.engine.config, session.journal
    last = _is_over(config, state, spent_so_far(journal))
    if not (session.evaluation_owed or (last and lacks_final_scores(journal, config, state.step))):
        return True
    records, figures = _evaluation(session, state, last, session.clock(state.step))
    if session.evaluation_owed:
        return False
    journal.set_evaluations(state.step, records, figures)
    session.tracker.log(state.step, journal)
    _save(session, state)
    return True


def _save(session: Session, state: State) -> None:
    tensors = session.engine.store.state_dict()
    plain: dict[str, object] = {"state": state_to_plain(state), "tracker": session.tracker.id}
    plain |= named_base(session.engine.config.model.base)
    if session.evaluation_owed:
        plain |= {"evaluation_owed": True, "distilled": session.distilled and asdict(session.distilled)}
    folder = session.folder / CHECKPOINTS
    Checkpoint.save(folder, state.step, tensors, plain, NUM_CHECKPOINTS_KEPT)
