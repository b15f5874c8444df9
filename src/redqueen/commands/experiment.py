"""``redqueen experiment``: run the unfinished runs of an experiment and update its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from redqueen.display import counted, visible
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, Planned, load_experiment
from redqueen.experiment.runner import check_settings, finished_runs, fitted, run_all
from redqueen.run.dry_run import refuse_what_cannot_start

RUNS = Path("runs")


def run_experiment(
    file: Path, out: Path | None, tables: Path | None, jobs: int, dry_run: bool, tables_only: bool
) -> None:
    """Read ``file``, do its runs under ``out`` (default ``runs/NAME``), write tables to ``tables`` (default ``out``).

    Prints the report when all runs are finished. Raises UserError for a bad file, before any run starts.
    """
    if jobs < 1:
        raise UserError(f"--jobs {jobs} is not valid: give the number of parallel runs, 1 or more")
    plan = load_experiment(file)
    folder = out or RUNS / plan.name
    done = {one.planned.folder for one in finished_runs(plan, folder)}
    if dry_run:
        print(plan_text(plan, folder), flush=True)
    if not tables_only:
        _refuse_what_cannot_start(file, [run for run in plan.runs if run.folder not in done])
    if dry_run:
        return
    from redqueen.experiment.tables import write_tables

    if tables_only:
        check_settings(plan, folder)
    else:
        run_all(plan, folder, jobs, _say, lambda: write_tables(plan, folder, tables or folder))
    print(visible(write_tables(plan, folder, tables or folder)), flush=True)


def _refuse_what_cannot_start(file: Path, runs: Sequence[Planned]) -> None:
    """Raise UserError now for an arm of ``runs`` that could not start, not after hours of other runs."""
    for run in {run.arm: run for run in reversed(runs)}.values():
        try:
            refuse_what_cannot_start(fitted(run.config))
        except UserError as error:
            raise UserError(f"{file}, arm {run.arm!r}: {error}") from None


def plan_text(plan: Experiment, folder: Path) -> str:
    """Return the plan of the experiment, one line per run, with its state: finished or to do."""
    done = {one.planned.folder for one in finished_runs(plan, folder)}
    width = max(len(run.folder) for run in plan.runs)
    lines = [f"{plan.name}: {counted(len(plan.runs), 'run')} in {folder}, compared with {plan.reference}"]
    for run in plan.runs:
        config, reference = run.config, plan.reference_of(run)
        length = counted(plan.steps, "step")
        if reference is not None:
            length = f"as many tokens as {reference.folder}, at most {counted(config.run.num_steps, 'step')}"
        state = "finished" if run.folder in done else "to do"
        hours = f", about {plan.gpu_hours(run):,.1f} GPU hours" if plan.gpu_hours_per_text else ""
        lines.append(f"  {run.folder:<{width}}  {config.population.arm:<7}  {length}{hours}  ({state})")
    if plan.gpu_hours_per_text:
        lines.append(f"in all about {sum(map(plan.gpu_hours, plan.runs)):,.0f} GPU hours")
    return "\n".join(lines)


def _say(text: str) -> None:
    print(visible(text, one_line=True), flush=True)
