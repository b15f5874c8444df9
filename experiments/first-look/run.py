"""A first look: the single agent against 4T+4S, two seeds each, at equal compute per adapter.

    .venv/bin/python experiments/first-look/run.py            # about half an hour on two cores; resumes where it was
    .venv/bin/python experiments/first-look/run.py --steps 4  # a miniature

Writes each run under ``runs/first-look/``, and here ``curves.csv`` (every metric of every step), ``fitness.csv``
(external fitness with intervals) and ``report.md`` (the runs side by side).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from redqueen.config import load_config
from redqueen.journal import Journal, read
from redqueen.report.html import write_report
from redqueen.report.markdown import write_markdown
from redqueen.run import REPORT, resume, start
from redqueen.store import JOURNAL

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ARMS = {"single": "single.toml", "4T+4S": "population.toml"}
SEEDS = (0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="steps of each run")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "first-look", help="where the run folders go")
    parser.add_argument("--out", type=Path, default=HERE, help="where the tables go")
    options = parser.parse_args()
    folders = []
    for seed in SEEDS:
        for arm, file in ARMS.items():
            folders.append(play(arm, file, seed, options.steps, options.runs))
            write_tables(folders, options.out)
    write_report(folders, options.runs / "report.html")
    write_markdown(folders, options.out / "report.md")


def play(arm: str, file: str, seed: int, num_steps: int, runs: Path) -> Path:
    """Play one run to its end, or what is left of it; the compute of one adapter is the same in both arms."""
    folder = runs / f"{arm}-seed{seed}"
    if not (folder / REPORT).exists():
        if (folder / JOURNAL).exists():
            resume(folder)
        else:
            settings = [
                f'run.name="{arm} seed {seed}"',
                f"run.rng_seed={seed}",
                f"run.num_steps={num_steps}",
                "propose.num_code_o=4",
                "propose.num_code_i=4",
                "propose.num_code_f=4",
            ]
            start(load_config(ROOT / "configs" / file, settings), folder)
    return folder


def write_tables(folders: list[Path], out: Path) -> None:
    """Write every metric of every step, and every score on the suite, of all runs as two CSV files."""
    with (out / "curves.csv").open("w", newline="") as curves, (out / "fitness.csv").open("w", newline="") as fitness:
        curve_writer, fitness_writer = csv.writer(curves), csv.writer(fitness)
        curve_writer.writerow(["run", "step", "metric", "value"])
        head = ["individual", "suite", "stratum", "kind", "mode", "num_items", "mean_frac", "low_frac", "high_frac"]
        fitness_writer.writerow(["run", "step", *head])
        for folder in folders:
            with Journal.open(folder / JOURNAL, read_only=True) as journal:
                for name, series in read.metric_series(journal).items():
                    for step, value in series:
                        curve_writer.writerow([folder.name, step, name, "" if value is None else f"{value:.6g}"])
                for row in read.evaluations(journal):
                    numbers = [row[k] if isinstance(row[k], (str, int)) else f"{row[k]:.4f}" for k in head]
                    fitness_writer.writerow([folder.name, row["step"], *numbers])


if __name__ == "__main__":
    main()
