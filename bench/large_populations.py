"""Whole runs of 2 to 1,000 members: seconds of a step by phase, memory, and the cost of bookkeeping.

Each population does real steps of the embedded base in its own process: proposing, verifying, solving, learning, a
generation, a checkpoint. Every teacher proposes in every step. Learning rates are tiny, so that all populations keep
writing similar texts. Prints a table and, as its last line, JSON.

    python bench/large_populations.py [--members 2 8 32 100] [--steps 4] [--folder .]
    python bench/large_populations.py --members 1000 --steps 5
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _shared import print_result, print_table

from redqueen.journal import Journal
from redqueen.run.store import JOURNAL

CONFIG = Path(__file__).parents[1] / "configs" / "population.toml"
PROPOSALS = 2
"""Proposals per teacher and step."""


def settings(num_members: int, options: argparse.Namespace) -> list[str]:
    """Return the settings that differ from the main run."""
    num_teachers = num_members // 2
    values = {
        "run.num_steps": options.steps,
        "run.checkpoint_every_steps": options.steps,
        "population.num_teachers": num_teachers,
        "population.num_students": num_members - num_teachers,
        "propose.num_proposals": f"{{ code_o = {PROPOSALS}, code_i = 0, code_f = 0 }}",
        "solve.num_attempts": options.attempts,
        "learn.learning_rate": 1e-6,
        "evolve.every_steps": options.generation,
        "evaluate.max_items": 4,
    }
    return [f"{name}={value}" for name, value in values.items()]


def play(num_members: int, options: argparse.Namespace, folder: Path) -> tuple[float, float]:
    """Do a run in its own process; return its seconds and its peak memory in MB."""
    sets = [part for one in settings(num_members, options) for part in ("--set", one)]
    command = [sys.executable, "-m", "redqueen", "train", str(CONFIG), "--run-dir", str(folder), *sets]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"the run of {num_members} members failed: {' '.join(command)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def read(folder: Path, num_steps: int) -> dict[str, float]:
    """Return the mean seconds of a step by phase, its sampled tokens (both without step 1), and the journal's MB."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT phase, sum(seconds) AS s FROM timing WHERE step BETWEEN 2 AND ? GROUP BY phase",
                             (num_steps,))  # fmt: skip
        written = [
            journal.query(f"SELECT coalesce(sum(own.num_tokens), 0) AS n FROM {table} WHERE step BETWEEN 2 AND ?",
                          (num_steps,))[0]["n"]
            for table in ("candidate AS own", "attempt AS own JOIN task ON task.seq = own.task")
        ]  # fmt: skip
    tokens = sum(written)
    found = {row["phase"]: row["s"] / (num_steps - 1) for row in rows}
    return found | {"tokens": tokens / (num_steps - 1), "journal_mb": (folder / JOURNAL).stat().st_size / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[2, 8, 32, 100])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--generation", type=int, default=2, help="steps between generations")
    parser.add_argument("--folder", type=Path, help="where the runs are kept; by default a temporary folder")
    options = parser.parse_args()
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for num_members in options.members:
            folder = (options.folder or Path(temporary)) / f"members-{num_members}"
            whole_s, peak_mb = play(num_members, options, folder)
            result[str(num_members)] = read(folder, options.steps) | {"whole_s": whole_s, "peak_mb": peak_mb}
            print(f"{num_members} members: {whole_s:.0f} s, {peak_mb:.0f} MB", flush=True)
    phases = ("match", "propose", "verify", "solve", "learn", "evolve", "checkpoint")
    header = ["members", "tokens a step", *(f"{phase} s" for phase in phases), "peak MB", "journal MB", "whole run s"]
    print_table(
        header,
        [
            [size, round(one["tokens"]), *(one.get(phase, 0.0) for phase in phases), one["peak_mb"], one["journal_mb"],
             one["whole_s"]]
            for size, one in result.items()
        ],
    )  # fmt: skip
    print_result({"members": result, "settings": {"steps": options.steps}})


if __name__ == "__main__":
    main()
