"""``redqueen train`` and ``redqueen resume``: run to the end and write the report, or print how to resume."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redqueen.config import EMBEDDED, load_config
from redqueen.config.load import presets
from redqueen.errors import command

if TYPE_CHECKING:
    from redqueen.engine import LoadAdapters


def train(
    config: Path | None,
    run_dir: Path | None,
    overrides: Sequence[str],
    dry_run: bool,
    cluster: str | None = None,
    measure: bool = False,
) -> None:
    """Start a run in ``run_dir`` (default runs/NAME-SEED); with ``dry_run`` only print its plan.

    ``measure``: print the plan and the estimated duration, measured by sampling a few texts. ``cluster`` is the address
    of a Ray cluster on which the shards of the population run.
    """
    if config is None and not overrides:
        print_presets()
        return
    from redqueen.fitting import fit_to_base
    from redqueen.run.store import refuse_existing

    fitted, load = fit_to_base(load_config(config, overrides), overrides), _load(cluster)
    resolved = fitted.config
    folder = run_dir or Path("runs") / f"{resolved.run.name}-{resolved.run.rng_seed}"
    if not measure:  # a measurement does not use the folder
        refuse_existing(folder)
    if dry_run or measure:
        from redqueen.run.dry_run import plan_text, refuse_what_cannot_start

        print(plan_text(fitted), flush=True)  # also if the base cannot be loaded
        refuse_what_cannot_start(resolved)
        if measure:
            from redqueen.run.duration import measured_duration

            print(f"# {measured_duration(resolved, load)}")
        return
    from redqueen.run.dry_run import memory_lines
    from redqueen.run.lifecycle import start

    memory = [] if resolved.model.base == EMBEDDED else memory_lines(resolved, parts=False)
    for line in (*fitted.reasons, *memory):
        print(line, file=sys.stderr)
    run_and_report(folder, lambda: start(resolved, folder, load))


def print_presets() -> None:
    """Print the presets by name, each with the first sentence of its file."""
    for name, path in presets().items():
        print(f"{name:14} {path.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}")
    print("start one with: redqueen train NAME; print its plan with: redqueen train NAME --dry-run", file=sys.stderr)


def resume(
    run_dir: Path,
    trust_hooks: bool = False,
    allow_weak: bool = False,
    overrides: Sequence[str] = (),
    cluster: str | None = None,
) -> None:
    """Continue a run that was stopped, from its newest checkpoint; ``overrides`` may make it longer."""
    from redqueen.run.lifecycle import resume

    load = _load(cluster)
    run_and_report(run_dir, lambda: resume(run_dir, trust_hooks, allow_weak, load, overrides))


REMEDY = "choose a larger base, or change propose.max_new_tokens, propose.temperature or model.prompt_format"


def _load(cluster: str | None) -> LoadAdapters | None:
    if cluster is None:
        return None
    from redqueen.cluster.sharded import adapters_at

    return adapters_at(cluster)


def run_and_report(folder: Path, run: Callable[[], bool]) -> None:
    """Call ``run``, which returns whether the run reached its end, and write the report.

    Exits with code 1 when none of at least ``FEWEST_TELLING`` proposals was valid, with 130 when the run was stopped
    before its end.
    """
    from redqueen.report.pages import write_page
    from redqueen.report.summary import result_lines
    from redqueen.report.view import read_run
    from redqueen.run.cold_start import FEWEST_TELLING
    from redqueen.run.continuation import NOTHING_VALID, Spent, how_to_go_on
    from redqueen.run.store import REPORT, load_run_config

    try:
        if run():
            view = read_run(folder)
            print(f"report: {write_page([view], folder / REPORT)}")
            if not view.num_tasks:
                print(f"redqueen: {NOTHING_VALID}: {REMEDY}", file=sys.stderr)
                sys.exit(1 if view.num_candidates >= FEWEST_TELLING else 0)
            print("\n".join(result_lines(view)), flush=True)  # before stderr, if both go to one file
            out = "product" + f"-{folder.name}" * Path("product").exists()
            config, spent = load_run_config(folder), Spent(view.tokens, view.step_seconds)
            if config.run.product != "none":
                print(f"next: {command('export', folder, '--out', out)}", file=sys.stderr)
            print(how_to_go_on(folder, config, view.last_step, spent), file=sys.stderr)
            return
    except KeyboardInterrupt:
        pass
    remedy = f"resume it with: {command('resume', folder)}" if folder.exists() else "nothing was written"
    print(f"\nstopped; {remedy}", file=sys.stderr)
    sys.exit(130)
