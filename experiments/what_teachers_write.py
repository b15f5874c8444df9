"""Show, for each fifth of a run, how diverse the teachers' tasks are.

    python experiments/what_teachers_write.py RUN_DIR...
    python experiments/what_teachers_write.py RUN_DIR... --suite cruxeval-o --data cruxeval.jsonl.gz

Columns, for each range of steps: number of tasks; share solved by all attempts and by none; classes per task (1: no two
alike), number of classes, and share of the three largest. For programs also the share with only integer inputs, without
any construct that defines a class (loop, branch, comprehension, subscript...), and that read no argument. A run
with several domains gets one table for programs and one for other tasks. ``--suite`` counts the tasks whose program
equals an item's up to names and layout, to show whether a run trained on items that it is evaluated on.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from redqueen.domains.registry import kind_of
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.records import Task
from redqueen.run.store import JOURNAL

NUM_PARTS = 5
LARGEST = 3


class TaskRow(NamedTuple):
    """Columns of a task in the journal."""

    step: int
    code: str
    behaviour_class: str
    num_correct: int
    num_attempts: int


def reads_nothing(code: str) -> bool:
    """Return whether a program's last function ``f`` reads none of its parameters."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "f"]
    if not functions:
        return False
    parameters = {node.arg for node in ast.walk(functions[-1].args) if isinstance(node, ast.arg)}
    read = {
        node.id for node in ast.walk(functions[-1]) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return not parameters & read


def only_integers(name: str) -> bool:
    """Return whether all inputs of a class of programs are integers."""
    return set(name.split(" ")[1].split("->")[0].split(",")) == {"int"}


def largest(tasks: Sequence[TaskRow]) -> float:
    """Return the share of the tasks that belong to the ``LARGEST`` largest classes."""
    counts = Counter(task.behaviour_class for task in tasks)
    return sum(count for _, count in counts.most_common(LARGEST)) / len(tasks)


Column = Callable[[Sequence[TaskRow]], str]

OF_PROGRAMS: dict[str, Column] = {
    "only integers": lambda tasks: f"{fmean(only_integers(task.behaviour_class) for task in tasks):.0%}",
    "plain": lambda tasks: f"{fmean(task.behaviour_class.endswith(' plain') for task in tasks):.0%}",
    "read nothing": lambda tasks: f"{fmean(reads_nothing(task.code) for task in tasks):.0%}",
}
OF_ALL: dict[str, Column] = {
    "all solved": lambda tasks: f"{fmean(task.num_correct == task.num_attempts for task in tasks):.0%}",
    "none solved": lambda tasks: f"{fmean(task.num_correct == 0 for task in tasks):.0%}",
    "classes per task": lambda tasks: f"{len({task.behaviour_class for task in tasks}) / len(tasks):.2f}",
    "classes": lambda tasks: f"{len({task.behaviour_class for task in tasks})}",
    "largest three": lambda tasks: f"{largest(tasks):.0%}",
}


def table(tasks: Sequence[TaskRow], last: int, columns: dict[str, Column]) -> list[str]:
    """Return the lines of a table of tasks of a run with ``last`` steps."""
    lines = [f"{'steps':10}{'tasks':>6}" + "".join(f"  {name}" for name in columns)]
    for part in range(NUM_PARTS):
        low, high = part * last // NUM_PARTS, (part + 1) * last // NUM_PARTS
        own = [task for task in tasks if low < task.step <= high]
        if own:
            cells = "".join(f"  {column(own):>{len(name)}}" for name, column in columns.items())
            lines.append(f"{f'{low + 1} to {high}':10}{len(own):>6}{cells}")
    return lines


def tables(run_dir: Path) -> list[str]:
    """Return the lines of a run's tables."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        rows = journal.tuples(
            f"SELECT {', '.join(TaskRow._fields)} FROM task WHERE step > 0 AND num_attempts > 0 ORDER BY seq"
        )
    tasks = [TaskRow(*row) for row in rows]
    programs = [task for task in tasks if "->" in task.behaviour_class]
    others = [task for task in tasks if "->" not in task.behaviour_class]
    last = max((task.step for task in tasks), default=0)
    lines = table(programs, last, OF_PROGRAMS | OF_ALL) if programs else []
    lines += table(others, last, OF_ALL) if others else []
    return lines or ["no task has an attempt yet"]


def overlap(run_dir: Path, suite: str, data: Path | None) -> str:
    """Return in words how many tasks of a run have the normal form of an item of ``suite``."""
    from thicket import items_of_benchmark  # imports torch

    items = items_of_benchmark(suite, data, None)
    forms = Counter(kind_of(item.task).normal_form(item.task) for item in items)
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        rows = journal.tuples("SELECT kind, code FROM task WHERE step > 0")
    tasks = [Task("", "", "", kind, code, (), ()) for kind, code in rows]
    met = Counter(form for task in tasks if (form := kind_of(task).normal_form(task)) in forms)
    num_items = sum(forms[form] for form in met)
    return f"{met.total()} of {len(tasks)} tasks have a program of {num_items} of {len(items)} items of {suite}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN_DIR")
    parser.add_argument("--suite", help="a benchmark of tasks: count programs that are those of an item")
    parser.add_argument("--data", type=Path, metavar="FILE")
    options = parser.parse_args()
    for run_dir in options.runs:
        try:
            met = [overlap(run_dir, options.suite, options.data)] if options.suite else []
            print(run_dir.name, *tables(run_dir), *met, sep="\n")
        except UserError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
