"""An experiment's tables: ``scores.csv``, and ``report.md`` with the arms' means and differences from the reference."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from redqueen.display import NOTHING, literal, markdown_table, number
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, Planned
from redqueen.experiment.runner import Finished, finished_runs
from redqueen.files import naming_remedy, write_whole
from redqueen.journal import Journal, read
from redqueen.journal.schema import ALL, BASE, CONTROL, PRODUCT, STUDENTS
from redqueen.report.series import ends
from redqueen.run.store import JOURNAL
from redqueen.statistics import Interval, difference, mean_interval

SCORES, REPORT = "scores.csv", "report.md"

COLUMNS = ("arm", "seed", "step", "who", "mode", "num_items", "mean", "low", "high")
"""Columns of ``scores.csv``: mean score over items, with the journal's bootstrap interval over items."""

WHO = (PRODUCT, STUDENTS, CONTROL, BASE)
MODES = ("greedy", "sampled")
ENDS = ("propose/valid_frac", "solve/rate", "reward/teacher_mean", "reward/student_mean")
"""Metrics that the report shows as means over the last tenth of the steps."""


@dataclass(frozen=True)
class Measured:
    """A finished run: its rows of ``scores.csv`` from ``step`` on, and its numbers by name."""

    planned: Planned
    scores: tuple[tuple[str, ...], ...]
    numbers: Mapping[str, float]


Results = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Numbers by arm, measure and seed."""


def write_tables(plan: Experiment, runs: Path, out: Path) -> str:
    """Write the tables of the finished runs under ``runs`` into ``out`` and return the report.

    Raises UserError when none is finished or ``out`` cannot be written.
    """
    measured = [measure(finished) for finished in finished_runs(plan, runs)]
    if not measured:
        raise UserError(f"{runs} holds no finished run of the experiment {plan.name!r}: run it first")
    report = report_text(plan, measured)
    rows = [COLUMNS, *((one.planned.arm, str(one.planned.seed), *row) for one in measured for row in one.scores)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with naming_remedy(f"the tables cannot be written to {out}", "choose another folder"):
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / SCORES, text.getvalue())
        write_whole(out / REPORT, report)
    return report


def measure(finished: Finished) -> Measured:
    """Read a finished run's scores and numbers from its journal."""
    with Journal.open(finished.folder / JOURNAL, read_only=True) as journal:
        evaluations, metrics = read.evaluations(journal), read.metric_series(journal)
        num_steps = read.last_step(journal) or 0
        tokens, seconds = read.tokens_sampled(journal), read.step_seconds(journal)
    scores, numbers = [], {"steps": float(num_steps), "tokens": float(tokens), "seconds": seconds}
    for row in evaluations:
        if row["individual"] not in WHO or (row["stratum"], row["kind"]) != (ALL, ALL) or row["mean_frac"] is None:
            continue
        shares = [f"{row[name]:.6g}" for name in ("mean_frac", "low_frac", "high_frac")]
        scores.append((*(str(row[name]) for name in ("step", "individual", "mode", "num_items")), *shares))
        numbers[f"{row['individual']}/{row['mode']}"] = row["mean_frac"]  # the last evaluation counts
    for who in WHO:
        both = [numbers[f"{who}/{mode}"] for mode in MODES if f"{who}/{mode}" in numbers]
        numbers |= {f"{who}/mean of both": fmean(both)} if len(both) == len(MODES) else {}
    last = {name: ends(metrics[name], num_steps)["last"] for name in ENDS if name in metrics}
    return Measured(finished.planned, tuple(scores), numbers | {k: v for k, v in last.items() if v is not None})


def report_text(plan: Experiment, measured: Sequence[Measured]) -> str:
    """Return the report as markdown: the arms, their means, and their differences from the reference."""
    results = by_arm(measured)
    arms = [arm for arm in plan.arms if arm in results]
    names = list(dict.fromkeys(name for one in measured for name in one.numbers))
    means = [[name, *(_mean(list(results[arm].get(name, {}).values())) for arm in arms)] for name in names]
    parts = [
        f"# {literal(plan.name)}",
        f"{len(measured)} of {len(plan.runs)} runs are finished. A run is one observation: intervals are 95 % "
        "Student's t over seeds. There is no interval for one run, nor where the runs do not differ. Metrics are "
        "means over the last tenth of the steps.",
        _table(["arm", "seeds", "held equal"], [_arm(plan, measured, arm) for arm in arms]),
        "## Means",
        _table(["measure", *arms], means),
    ]
    for arm in (arm for arm in arms if arm != plan.reference and plan.reference in results):
        head = ["measure", "difference (Welch)", "paired over common seeds", "p", "least p possible"]
        rows = [
            [name, *_difference(results[arm][name], results[plan.reference][name])]
            for name in names
            if name in results[arm] and name in results[plan.reference]
        ]
        parts += [f"## {literal(arm)} less {literal(plan.reference)}", _table(head, rows)]
    parts.append(
        "Welch's degrees of freedom are rounded down. p: exact permutation test of the difference of means, two-sided; "
        "nothing is corrected for the number of measures."
    )
    return "\n\n".join(parts) + "\n"


def by_arm(measured: Sequence[Measured]) -> Results:
    """Return the numbers of all runs by arm, measure and seed."""
    results: dict[str, dict[str, dict[int, float]]] = {}
    for one in measured:
        for name, value in one.numbers.items():
            results.setdefault(one.planned.arm, {}).setdefault(name, {})[one.planned.seed] = value
    return results


def _arm(plan: Experiment, measured: Sequence[Measured], arm: str) -> list[str]:
    held = {"per_adapter": "steps, work per adapter", "tokens": "tokens"}
    runs = [one.planned for one in measured if one.planned.arm == arm]
    return [arm, ", ".join(str(run.seed) for run in runs), held[runs[0].match]]


def _mean(values: Sequence[float]) -> str:
    return f"{number(fmean(values))} {_interval(mean_interval(values))}".strip() if values else NOTHING


def _difference(arm: Mapping[int, float], reference: Mapping[int, float]) -> list[str]:
    found = difference(list(arm.values()), list(reference.values()))
    paired = [arm[seed] - reference[seed] for seed in arm if seed in reference]
    welch = f"{number(found.estimate)} {_interval(found.interval)}".strip()
    return [welch, _mean(paired), f"{found.p:.3f}", f"{found.least_p:.3f}"]


def _interval(interval: Interval) -> str:
    return f"({number(interval.low)} to {number(interval.high)})" if interval.known else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table([literal(cell) for cell in head], rows)
