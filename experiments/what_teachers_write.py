"""What a run's teachers write, in fifths of the run: whether their tasks narrow.

    python experiments/what_teachers_write.py RUN_DIR...

For the tasks of programs of each run, by step: how many; the share whose inputs are integers alone; the share whose
programs have none of the constructs that make a class (no loop, branch, comprehension, subscript...); the share that
every attempt solved, and that none did; and classes for a task (1: no two alike).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean

from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.run.store import JOURNAL

NUM_PARTS = 5
HEAD = "steps    tasks  integers alone  plain  all solved  none solved  classes a task"


def table(run_dir: Path) -> list[str]:
    """Return the lines of a run's table."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        found = journal.tuples(
            "SELECT step, behaviour_class, num_correct, num_attempts FROM task"
            " WHERE step > 0 AND num_attempts > 0 AND behaviour_class LIKE '%->%'"
        )
    if not found:
        return ["no task was played yet"]
    last = max(step for step, *_ in found)
    lines = [HEAD]
    for part in range(NUM_PARTS):
        low, high = part * last // NUM_PARTS, (part + 1) * last // NUM_PARTS
        own = [row for row in found if low < row[0] <= high]
        if own:
            classes = [name for _, name, *_ in own]
            shares = (
                fmean(set(name.split(" ")[1].split("->")[0].split(",")) == {"int"} for name in classes),
                fmean(name.endswith(" plain") for name in classes),
                fmean(right == attempts for *_, right, attempts in own),
                fmean(right == 0 for _, _, right, _ in own),
            )
            said = "{:>14.0%}{:>7.0%}{:>12.0%}{:>13.0%}".format(*shares)
            steps = f"{low + 1} to {high}"
            lines.append(f"{steps:8} {len(own):>5}{said}{len(set(classes)) / len(own):>16.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN_DIR")
    for run_dir in parser.parse_args().runs:
        try:
            print(run_dir.name, *table(run_dir), sep="\n")
        except UserError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
