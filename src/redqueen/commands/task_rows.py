"""Tasks of a run for other trainers: rows in a file of JSON lines or Parquet, or an environment to install."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redqueen.display import counted
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.errors import UserError, how_to_install
from redqueen.files import making_folder, naming_remedy, writing_whole
from redqueen.records import Task
from redqueen.report.task_list import TaskFilter, find_tasks

COLUMNS = ("kind", "code", "inputs", "outputs", "message", "num_shown")
"""The columns of a row that describe its task: fields of ``redqueen.records.Task``."""
NEEDED = ("kind", "code", "inputs", "outputs")
"""The fields that every task must have."""


def task_rows(tasks: Iterable[Task | Mapping[str, Any]], prompt_format: str = "chat") -> list[dict[str, Any]]:
    """Return rows to train on: ``prompt`` and the columns that ``reward_fn`` reads.

    ``tasks``: from ``Run.tasks()``, or your own. With ``prompt_format`` "chat" a prompt is one user turn, otherwise
    text ("compact" is the embedded base's notation). Raises UserError for an unknown format or kind, for a kind that
    the format does not support, and for a row that is not a task.
    """
    form, rows = format_named(prompt_format), []
    for given in tasks:
        task = task_of_row(vars(given) if isinstance(given, Task) else given)
        text = form.solve(task)
        prompt = [{"role": "user", "content": text}] if form.name == "chat" else text
        columns = {name: getattr(task, name) for name in COLUMNS}
        rows.append({"prompt": prompt} | columns | {"inputs": list(task.inputs), "outputs": list(task.outputs)})
    return rows


def format_named(name: str, argument: str = "prompt_format") -> PromptFormat:
    if name not in FRAMES:
        raise UserError(f"{argument} {name!r} is unknown: choose one of {', '.join(FRAMES)}")
    return PromptFormat(FRAMES[name])


def task_of_row(row: Mapping[str, Any]) -> Task:
    """Return a row as a task. Raises UserError if it lacks a field or its numbers of inputs and outputs differ."""
    known = {field.name for field in fields(Task)}
    plain = {name: value for name, value in row.items() if name in known and value is not None}
    if missing := [name for name in NEEDED if name not in plain]:
        raise UserError(f"a task has no {missing[0]}: give {', '.join(NEEDED)}, as Run.tasks() does")
    for name in ("inputs", "outputs"):
        if isinstance(plain[name], str | bytes | Mapping) or not isinstance(plain[name], Iterable):
            what = "one text, " if isinstance(plain[name], str) else ""  # list() would split it into characters
            raise UserError(f"{name} of a task is {what}{plain[name]!r}: give a list of literals, as Run.tasks() does")
    texts = {name: tuple(map(str, plain[name])) for name in ("inputs", "outputs")}
    if not len(texts["inputs"]) == len(texts["outputs"]) > 0:
        raise UserError(
            f"a task has {len(texts['inputs'])} inputs and {len(texts['outputs'])} outputs: give the same number of "
            "each, at least one"
        )
    return Task(**{"id": "", "teacher": "", "student": "", **plain, **texts})


def write_rows(run_dir: Path, wanted: TaskFilter, prompt_format: str, out: Path) -> str:
    """Write the matching tasks of a run as rows of ``task_rows``; return a sentence about the result.

    TRL's trainers read the file directly. Raises UserError for a file that exists or has another suffix.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise UserError(f"--out {out}: give a file that ends with .jsonl or .parquet")
    if out.exists():
        raise UserError(f"--out {out} exists already: choose another file")
    rows = _rows_of_run(run_dir, wanted, prompt_format)
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise UserError(f"--out {out} needs the package pyarrow: {how_to_install('parquet')}, or write .jsonl")
    with naming_remedy(f"--out {out} cannot be written"), writing_whole(out) as file:
        if out.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        else:
            file.write(_lines(rows).encode())
    return f"{counted(len(rows), 'task')} in {out}"


def write_environment(run_dir: Path, wanted: TaskFilter, prompt_format: str, out: Path) -> str:
    """Write an installable package of the tasks for ``verifiers``; return a sentence about the result.

    It contains the rows, and a taskset that computes rewards with ``redqueen.reward_fn``. Raises UserError when the
    folder exists or its name is not valid for a package.
    """
    module = re.sub(r"[^a-z0-9]+", "_", out.name.lower()).strip("_")
    if not module.isidentifier():
        raise UserError(f"--as-environment {out}: the folder's name names a package, so it must begin with a letter")
    rows = _rows_of_run(run_dir, wanted, prompt_format)
    taskset = Path(__file__).with_name("taskset.py.in").read_text(encoding="utf-8")
    name = module.replace("_", "-")
    project = (
        f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n[project]\nname = "{name}"\n'
        'version = "0.1.0"\ndescription = "Tasks of a run of redqueen, graded by its sandbox."\n'
        'requires-python = ">=3.11"\ndependencies = ["redqueen", "verifiers>=0.4", "httpx"]\n\n'
        f'[tool.hatch.build.targets.wheel]\npackages = ["{module}"]\n'
    )
    if out.exists():
        raise UserError(f"--as-environment {out} exists already: choose a new folder")
    with naming_remedy(f"--as-environment {out} cannot be made"), making_folder(out) as temporary:
        (temporary / module).mkdir()
        (temporary / "pyproject.toml").write_text(project, encoding="utf-8")
        (temporary / module / "tasks.jsonl").write_text(_lines(rows), encoding="utf-8")
        text = taskset.replace("PROMPT_FORMAT", repr(prompt_format))
        (temporary / module / "__init__.py").write_text(text, encoding="utf-8")
    return f"{counted(len(rows), 'task')} in {out}: pip install {out}, then the taskset {name} of verifiers"


def _rows_of_run(run_dir: Path, wanted: TaskFilter, prompt_format: str) -> list[dict[str, Any]]:
    format_named(prompt_format, "--prompts")
    limit = wanted.limit
    found = find_tasks(run_dir, replace(wanted, limit=limit + (limit > 0)))
    if 0 < limit < len(found):
        print(f"more tasks match than the newest {limit} written here: --limit 0 writes all", file=sys.stderr)
    rows = task_rows(found[: limit or None], prompt_format)
    if not rows:
        raise UserError(f"no task of {run_dir} matches the filter: `redqueen tasks {run_dir}` lists all tasks")
    return rows


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
