"""The command line. Each command imports its modules when it is called, so --help does not load torch."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from redqueen import __version__
from redqueen.commands.ending import run_to_exit
from redqueen.errors import UserError

app = typer.Typer(
    name="redqueen",
    help="Population-based asymmetric self-play for post-training language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RunDir = Annotated[Path, typer.Argument(help="A run directory, as `redqueen train` made it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Kind = Annotated[str, typer.Option(help="Only tasks of this kind.")]
MinSolved = Annotated[float | None, typer.Option(help="Minimum share of right attempts, 0 to 1.")]
MaxSolved = Annotated[float | None, typer.Option(help="Maximum share of right attempts, 0 to 1.")]
TrustHooks = Annotated[
    bool, typer.Option("--trust-hooks", help="Import, and so execute, the hook that the run folder's config names.")
]
AllowWeak = Annotated[bool, typer.Option("--allow-weak", help="Run even without a system-call filter.")]
Cluster = Annotated[str | None, typer.Option("--cluster", help="A Ray cluster for the shards: HOST:PORT, or auto.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="section.field=value; may be repeated."),
]


def main() -> None:
    """Run the command line; a user's mistake is one sentence on standard error and exit code 2."""
    run_to_exit(lambda: app(args=_repeat_flags(sys.argv[1:])))


def _repeat_flags(arguments: list[str]) -> list[str]:
    """Accept `--parents A B` for `--parents A --parents B`, and the same for --fitness (in `breed` alone)."""
    if arguments[:1] != ["breed"]:
        return arguments
    result: list[str] = []
    flag = ""
    for argument in arguments:
        if argument.startswith("--"):
            flag = argument if argument in ("--parents", "--fitness") else ""
            result += [] if flag else [argument]
        else:
            result += [flag, argument] if flag else [argument]
    return result


def _show_version(asked: bool) -> None:
    if asked:
        print(f"redqueen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Population-based asymmetric self-play for post-training language models."""


@app.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="A TOML file or a preset; without: list presets.")] = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Folder to make; default runs/NAME-SEED.")] = None,
    set_: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved plan and stop.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Like --dry-run, with the time that the run would take, measured.")
    ] = False,
    cluster: Cluster = None,
) -> None:
    """Train a population from a config to a report."""
    from redqueen.commands import train as command

    command.train(config, run_dir, set_ or [], dry_run, cluster, measure)


@app.command("presets")
def presets_() -> None:
    """List the presets, each with one line."""
    from redqueen.commands.train import print_presets

    print_presets()


@app.command()
def docs(
    page: Annotated[str, typer.Argument(help="A page, or words of its title; default: list all.")] = "",
) -> None:
    """List the pages of the documentation of this version, or print one, in Markdown."""
    from redqueen.config.load import did_you_mean, shipped

    folder = shipped("docs", "docs")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    names = dict.fromkeys(["real-models", "own-domain", "runs", *texts])
    lines = {name: f"{name:13} {texts[name].splitlines()[0].removeprefix('# ')}" for name in names}
    words = page.lower().replace("-", " ").replace("_", " ").split()
    found = [page] if page in texts else [name for name in names if all(word in lines[name].lower() for word in words)]
    if page and len(found) != 1:
        meant = did_you_mean(page, list(texts))
        raise UserError(f"there is no page {page}{meant}: choose one of {', '.join(found or names)}")
    print(texts[found[0]] if page else "\n".join(lines.values()))
    if not page:
        print(f"print one with: redqueen docs NAME; the files are in {folder}", file=sys.stderr)


@app.command()
def init(
    preset: Annotated[str, typer.Argument(help="The preset that gives the values; default: none.")] = "",
) -> None:
    """Print a config with every field explained: `redqueen init smoke > my.toml`."""
    from redqueen.commands.init import config_text

    print(config_text(preset), end="")


@app.command()
def resume(
    run_dir: RunDir,
    trust_hooks: TrustHooks = False,
    allow_weak: AllowWeak = False,
    set_: Overrides = None,
    cluster: Cluster = None,
) -> None:
    """Continue a run from its newest checkpoint, also beyond its end: --set run.num_steps=400."""
    from redqueen.commands import train as command

    command.resume(run_dir, trust_hooks, allow_weak, set_ or [], cluster)


@app.command()
def report(
    run_dirs: Annotated[list[Path], typer.Argument(help="One run directory, or several to compare.")],
    out: Annotated[Path | None, typer.Option("--out", help="File to write; default: report.html in the first.")] = None,
    format_: Annotated[str, typer.Option("--format", help="Format of the table: csv or parquet.")] = "",
    table: Annotated[str, typer.Option("--table", help="Write this table instead, e.g. task.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write the report of one or several runs, or export one table of their journals."""
    from redqueen.commands import report as command

    command.report(run_dirs, out, format_, table, as_json)


@app.command()
def experiment(
    file: Annotated[Path, typer.Argument(help="A TOML file of arms and seeds, or smoke, an included experiment.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the runs; default runs/NAME.")] = None,
    tables: Annotated[Path | None, typer.Option("--tables", help="Folder of the tables; default: --out.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs in parallel.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would run and stop.")] = False,
    tables_only: Annotated[bool, typer.Option("--tables-only", help="Write the tables of the finished runs.")] = False,
) -> None:
    """Run every arm with every seed, resuming interrupted runs, and compare the arms over seeds."""
    from redqueen.commands.experiment import run_experiment

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it waits for its runs to end
    try:
        run_experiment(file, out, tables, jobs, dry_run, tables_only)
    except KeyboardInterrupt:
        print("\nstopped; the same command continues it", file=sys.stderr)
        sys.exit(130)


@app.command()
def diff(first: RunDir, second: RunDir, as_json: AsJson = False) -> None:
    """Compare the journals of two runs, except times: print "equal" or the first row that differs."""
    from redqueen.commands import report as command

    command.diff(first, second, as_json)


@app.command()
def tasks(
    run_dir: RunDir,
    kind: Kind = "",
    step: Annotated[int | None, typer.Option(help="Only tasks of this step.")] = None,
    teacher: Annotated[str, typer.Option(help="Only tasks of this teacher.")] = "",
    student: Annotated[str, typer.Option(help="Only tasks for this student.")] = "",
    min_solved: MinSolved = None,
    max_solved: MaxSolved = None,
    min_depth: Annotated[int | None, typer.Option(help="Minimum depth of the program's syntax tree.")] = None,
    contains: Annotated[
        str, typer.Option(help="Only tasks with this text in program, message, inputs or outputs; case-insensitive.")
    ] = "",
    limit: Annotated[int, typer.Option(help="Take this many, newest first; 0: all.")] = 20,
    prompts: Annotated[str, typer.Option("--prompts", help="With --out: the prompts' format.")] = "chat",
    out: Annotated[Path | None, typer.Option("--out", help="Write a dataset: FILE.jsonl or FILE.parquet.")] = None,
    as_environment: Annotated[
        Path | None, typer.Option("--as-environment", help="Write them as a package for verifiers: a folder to make.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks of a run, newest first, or write them for another trainer."""
    from redqueen.commands.tasks import list_tasks
    from redqueen.report.task_list import TaskFilter

    wanted = TaskFilter(kind, step, teacher, student, min_solved, max_solved, min_depth, contains, limit)
    if out is None and as_environment is None:
        list_tasks(run_dir, wanted, as_json)
        return
    from redqueen.commands.task_rows import write_environment, write_rows

    if out is not None:
        print(write_rows(run_dir, wanted, prompts, out))
    if as_environment is not None:
        print(write_environment(run_dir, wanted, prompts, as_environment))


@app.command()
def replay(
    run_dir: RunDir,
    task: Annotated[str, typer.Option("--task", help="The task's id, as `redqueen tasks` shows it.")],
    judge: Annotated[bool, typer.Option("--judge", help="Grade everything again in the sandbox, and compare.")] = False,
    allow_weak: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Show one task: program, inputs, outputs, the teacher's text, every attempt with its verdict."""
    from redqueen.commands.tasks import show_task

    show_task(run_dir, task, judge, as_json, allow_weak)


@app.command()
def export(
    run_dir: RunDir,
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    member: Annotated[
        str,
        typer.Option(
            "--member",
            help="A member of the newest checkpoint, e.g. S1, or merged: the students' mean; default: the product.",
        ),
    ] = "",
    merge: Annotated[bool, typer.Option("--merge", help="Write a whole model, the adapter merged into it.")] = False,
    base_name: Annotated[str, typer.Option(help="Name on the hub of a base that the run loaded from a folder.")] = "",
) -> None:
    """Write the run's product, or a member, with its model card: a PEFT folder, or merged into the base."""
    from redqueen.commands.export import export_member

    print(export_member(run_dir, member, out, merge, base_name))
    print(f"how to load and prompt it{' (pip install peft)' * (not merge)}: {out / 'README.md'}", file=sys.stderr)


@app.command()
def dashboard(
    runs_dir: Annotated[Path, typer.Argument(help="A folder of run directories, or one run directory.")],
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0: any free port.")] = 8470,
) -> None:
    """Serve live pages of the runs in a folder, on this machine only, until Ctrl-C."""
    from redqueen.report.serve import serve

    serve(runs_dir, port)


@app.command()
def doctor(
    as_json: AsJson = False,
    copy: Annotated[bool, typer.Option("--copy", help="Print one block to paste into a bug report.")] = False,
) -> None:
    """Show what this machine offers: versions, extras, CUDA, the sandbox; sample and learn one token."""
    from redqueen.commands.doctor import doctor as command

    command(as_json, copy)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help='JSON lines {"id", "code", "input"}.')],
    workers: Annotated[int, typer.Option(help="Programs at a time.")] = 2,
    cpu_ms: Annotated[int, typer.Option(help="CPU limit of a program, in milliseconds.")] = 100,
    seeds: Annotated[int, typer.Option(help="Number of hash seeds; the outputs must agree.")] = 8,
    allow_weak: AllowWeak = False,
) -> None:
    """Run untrusted programs in the sandbox: one JSON line with verdict and output for each, in order."""
    from redqueen.commands.verify import verify_file

    verify_file(file, sys.stdout, workers, cpu_ms, seeds, allow_weak)


@app.command()
def grade(
    file: Annotated[Path, typer.Argument(help='JSON lines {"id", "kind", "code", "input", "output", "answer"}.')],
) -> None:
    """Grade a file of tasks with answers: one JSON line with the verdict for each, in order."""
    from redqueen.evaluate.given_answers import grade_lines

    for line in grade_lines(file):
        print(json.dumps(line))


@app.command()
def domains(as_json: AsJson = False) -> None:
    """List the domains of tasks with their source, kinds, prompt formats and frozen items."""
    from redqueen.commands.domains import domain_rows, domains_table

    print(json.dumps(domain_rows()) if as_json else domains_table())


@app.command()
def validate(
    domain: Annotated[str, typer.Argument(help="A domain as in propose.domains: code, module:NAME, 'gym:*'.")],
    tasks_: Annotated[int, typer.Option("--tasks", help="Tasks of each kind.")] = 12,
    allow_weak: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Check a domain: its grader accepts right answers, rejects trivial and hostile ones, and is deterministic."""
    from redqueen.commands.validate import validate as command

    if not command(domain, tasks_, as_json, allow_weak):
        sys.exit(1)


@app.command()
def operators(as_json: AsJson = False) -> None:
    """List the evolutionary operators with their formulas and sources."""
    from redqueen.commands.breed import operator_rows, operators_table

    print(json.dumps(operator_rows()) if as_json else operators_table())


@app.command()
def breed(
    operator: Annotated[str, typer.Option(help="An id from `redqueen operators`, or your own as module:NAME.")],
    parents: Annotated[list[Path], typer.Option(help="PEFT folders: repeat the flag for two parents.")],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    fitness: Annotated[list[float] | None, typer.Option(help="One number per parent; repeat the flag.")] = None,
) -> None:
    """Breed a child from PEFT folders; prints one JSON object."""
    from redqueen.commands.breed import breed_folders

    print(json.dumps(breed_folders(operator, parents, seed, fitness, out)))


@app.command()
def evaluate(
    target: Annotated[
        str,
        typer.Argument(help="A run directory, a PEFT or model folder, or the word base. Not needed with --answers."),
    ] = "",
    suite: Annotated[
        str,
        typer.Option(help="mini, maths, logic, humaneval... (an unknown one lists all); paper: ten benchmarks."),
    ] = "",
    data: Annotated[Path | None, typer.Option(help="The items as a file; default: the hub, or the package.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first items.")] = None,
    samples: Annotated[int, typer.Option(help="Answers per item for pass@k, in addition to the greedy one.")] = 0,
    temperature: Annotated[float, typer.Option(help="Temperature of these samples.")] = 0.8,
    out: Annotated[
        Path | None, typer.Option(help="File for the answers, JSON lines; default: inside a run, else none.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help='Grade these, JSON lines {"id", "answer"}; no model.')] = None,
    style: Annotated[
        Literal["auto", "plain", "fewshot", "run"],
        typer.Option(help="A plain chat request, examples to continue, the run's prompt format; auto: by suite."),
    ] = "auto",
    set_: Overrides = None,
) -> None:
    """Score members on a benchmark, or grade given answers to it; prints one JSON object."""
    if answers is not None:
        from redqueen.evaluate.given_answers import grade_file, refuse_useless

        refuse_useless({target: target, "--out": out, "--samples": samples, "--set": set_})
        print(json.dumps(grade_file(suite, data, limit, answers), indent=2))
        return
    from redqueen.commands.evaluate import evaluate_all

    evaluate_all(target, suite, data, limit, samples, temperature, out, set_ or [], style)
