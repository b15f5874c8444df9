"""An experiment's tables: ``results.csv`` (a row a run), curves, scores and counts as CSV too, and ``report.md``."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from redqueen.display import NOTHING, literal, markdown_table, number
from redqueen.domains.registry import in_order
from redqueen.errors import UserError
from redqueen.experiment.claims import FEWEST_SEEDS, MOST_P, Results, verdicts
from redqueen.experiment.figures import write_figures
from redqueen.experiment.measures import measure_run, rarefied
from redqueen.experiment.plan import Experiment
from redqueen.experiment.recorded import (
    COUNTS,
    CURVES,
    FITNESS,
    RESULTS,
    RUN_COLUMNS,
    THINGS,
    Measured,
    fingerprint,
    how_chosen,
    recorded_runs,
)
from redqueen.experiment.runner import Finished, finished_runs
from redqueen.files import write_whole
from redqueen.journal import Journal, read
from redqueen.journal.records import ALL, BASE, STUDENTS
from redqueen.run.store import JOURNAL
from redqueen.statistics import Interval, difference, mean_interval

REPORT = "report.md"

_SCORES = ("mean", "worst", "best", "change", "product", "above_control")

_STRUCTURE = ("ast_depth", "cyclomatic", "lines", "variables", "halstead_volume")

SHOWN = (
    *(f"fitness/{mode}/{what}" for mode in ("greedy", "sampled") for what in _SCORES),
    *(f"curriculum/{what}/{of}" for what in _STRUCTURE for of in ("end", "change")),
    "curriculum/coverage/end",
    "curriculum/new_program_frac/end",
    "semantic/coverage/end",
    "semantic/coverage_rarefied",
    "semantic/operations/end",
    "semantic/operations_rarefied",
    "semantic/io_classes/end",
    "semantic/io_classes_rarefied",
    "semantic/new_frac/end",
    "semantic/novelty/end",
    "solve/rate/end",
    "solve/rate/change",
    "solve/oscillation",
    "solve/oscillation_beyond_chance",
    "propose/entropy/end",
    "propose/entropy/left_frac",
    "solve/entropy/end",
    "propose/valid_frac/end",
    "propose/tokens_mean/end",
    "solve/tokens_mean/end",
    "reward/teacher_mean/end",
    "reward/student_mean/end",
    "specialisation/payoff_variance",
    "match/preference/end",
    "evolve/seconds_per_birth",
    "steps",
    "tasks",
    "tokens",
    "seconds_per_step",
)
"""Measures in the report, in this order; ``results.csv`` has all."""

SHOWN_BY_RUN = (
    "fitness/greedy/mean",
    "fitness/greedy/worst",
    "fitness/sampled/mean",
    "fitness/greedy/product",
    "fitness/sampled/product",
    "solve/rate/end",
    "solve/rate/change",
    "curriculum/lines/end",
    "curriculum/lines/change",
    "propose/valid_frac/end",
    "propose/entropy/left_frac",
    "semantic/operations_rarefied",
)
"""Measures in the report's table with a row a run: those that some run has."""

SCORE_COLUMNS = tuple(
    ["individual", "suite", "stratum", "kind", "mode", "num_items", "mean_frac", "low_frac", "high_frac"]
)
"""Columns of the journal's evaluations in ``fitness.csv``."""


def write_tables(plan: Experiment, runs: Path, out: Path, add: bool = False, figures: bool = False) -> Path:
    """Write the tables of all runs under ``runs`` that are finished into ``out``; return the report's path.

    With ``add`` the runs that stand in ``out`` already stay as they are, wherever they were played; with ``figures``
    curves and scores are drawn beside the tables.
    Raises UserError when none is finished, when ``out`` cannot be written, or holds what cannot be added to.
    """
    measured = {run.planned.folder: run for run in (recorded_runs(plan, out) if add else [])}
    for finished in finished_runs(plan, runs):
        if finished.planned.folder not in measured:
            measured[finished.planned.folder] = measure(finished)
    if not measured:
        raise UserError(f"{runs} holds no finished run of the experiment {plan.name!r}: play it first")
    ordered = [measured[planned.folder] for planned in plan.runs if planned.folder in measured]
    numbers = all_numbers(ordered)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / CURVES, _csv(curve_rows(ordered)))
        write_whole(out / FITNESS, _csv(fitness_rows(ordered)))
        write_whole(out / COUNTS, _csv(count_rows(ordered)))
        write_whole(out / RESULTS, _csv(results_rows(ordered, numbers)))
        write_whole(out / REPORT, report_text(plan, ordered, numbers))
    except OSError as error:
        raise UserError(f"cannot write the tables to {out} ({error.strerror}): choose another folder") from None
    if figures:
        write_figures(ordered, plan.reference, out)
    return out / REPORT


def measure(finished: Finished) -> Measured:
    """Measure a finished run and read its scores."""
    with Journal.open(finished.folder / JOURNAL, read_only=True) as journal:
        rows = read.evaluations(journal)
    scores = [(row["step"], *(row[name] for name in SCORE_COLUMNS)) for row in rows]
    cells = tuple(tuple(_cell(v) if isinstance(v, float | None) else str(v) for v in score) for score in scores)
    return Measured(finished.planned, measure_run(finished.folder), cells)


def all_numbers(measured: Sequence[Measured]) -> list[dict[str, float]]:
    """Return every run's numbers, with coverage at equal numbers of tasks too: as many as the smallest run has."""
    num_drawn = min(run.measures.num_traced for run in measured)
    numbers = []
    for run in measured:
        found = run.measures
        equal = {
            "semantic/coverage_rarefied": rarefied(found.behaviours, found.num_traced, num_drawn),
            "semantic/operations_rarefied": rarefied(found.operations, found.num_traced, num_drawn),
            "semantic/io_classes_rarefied": rarefied(found.io_classes, found.num_traced, num_drawn),
            "semantic/rarefied_to": float(num_drawn),
        }
        numbers.append(found.numbers | equal)
    return numbers


def by_arm(measured: Sequence[Measured], numbers: Sequence[Mapping[str, float]]) -> Results:
    """Return the ``numbers`` of all runs by arm and measure, in the order of the runs."""
    results: dict[str, dict[str, list[float]]] = {}
    for run, found in zip(measured, numbers, strict=True):
        arm = results.setdefault(run.planned.arm, {})
        for name, value in found.items():
            arm.setdefault(name, []).append(value)
    return results


def results_rows(measured: Sequence[Measured], numbers: Sequence[Mapping[str, float]]) -> list[list[str]]:
    """Return a row for each run: arm, seed, how it was matched, its settings, how its product is chosen, every number
    (empty: not defined)."""
    names = sorted({name for found in numbers for name in found})
    rows = [[*RUN_COLUMNS, *names]]
    for run, found in zip(measured, numbers, strict=True):
        planned = run.planned
        head = [planned.arm, str(planned.seed), planned.match, fingerprint(planned), how_chosen(planned)]
        rows.append([*head, *(_exact(found.get(name)) for name in names)])
    return rows


def curve_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """Return every curve of every run: arm, seed, step, measure, value (empty: not defined in this step)."""
    rows = [["arm", "seed", "step", "measure", "value"]]
    for run in measured:
        for name, curve in sorted(run.measures.curves.items()):
            rows += [[*_run_cells(run), str(step), name, _cell(value)] for step, value in curve]
    return rows


def fitness_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """Return every score on the suite with its 95 % interval over the items."""
    head = ["arm", "seed", "step", *SCORE_COLUMNS]
    return [head, *([*_run_cells(run), *score] for run in measured for score in run.scores)]


def count_rows(measured: Sequence[Measured]) -> list[list[str]]:
    """Return how often things occurred: ``num_things`` of these ``things`` in ``num_tasks`` of the run's tasks each."""
    rows = [["arm", "seed", "things", "num_tasks", "num_things"]]
    for run in measured:
        for name in THINGS:
            counts = sorted(Counter(getattr(run.measures, name)).items())
            rows += [[*_run_cells(run), name, str(n), str(num)] for n, num in counts]
    return rows


def _run_cells(run: Measured) -> tuple[str, str]:
    return run.planned.arm, str(run.planned.seed)


# The report --------------------------------------------------------------------------------------------------------


def report_text(plan: Experiment, measured: Sequence[Measured], numbers: Sequence[Mapping[str, float]]) -> str:
    """Return the report as markdown: the runs, every arm, differences from the reference, verdicts."""
    results = by_arm(measured, numbers)
    num_drawn = numbers[0]["semantic/rarefied_to"]
    others = [arm for arm in plan.arms if arm in results and arm != plan.reference]
    parts = [
        f"# {literal(plan.name)}",
        f"{len(measured)} of {len(plan.runs)} runs are finished. A run is one observation: all intervals are 95 % "
        f"Student's t intervals over seeds (of differences Welch's), which assume that runs scatter about normally. "
        f"{_caution(results)}",
        _table(
            ["arm", "seeds", "held equal", "steps", "tokens sampled", "seconds of steps"], _arm_cells(plan, measured)
        ),
        "## Every arm",
        "`end` is the mean over the last tenth of a run's steps (rounded down), `change` that less the mean over the "
        "first tenth, `left_frac` their quotient. `semantic` measures look at what programs do on their inputs "
        "(operations with the types of their results on the path taken, classes of inputs and outputs), not at their "
        f"text; `rarefied` is what is to be expected among {number(num_drawn)} tasks, as many as the run with the "
        "fewest has. `best` is selected on the items it is reported for. What each measure is: "
        "`src/redqueen/experiment/measures.py`.",
        _table(["measure", *(arm for arm in plan.arms if arm in results)], _mean_cells(plan, results)),
    ]
    parts += [
        "## Parts of the suite",
        "Greedily, the bare base and the mean of each arm's students after the last step, by the kind of the item and "
        f"by where its function comes from. Finer parts, and sampled ones: `{FITNESS}`.",
        _table(*_part_cells(plan, measured)),
    ]
    parts += ["## Every run", _table(*_run_rows(plan, measured, numbers))]
    if plan.reference in results:
        for arm in others:
            head = ["measure", "difference", "95 % interval", "Hedges' g", "p", "least p possible"]
            parts += [
                f"## {literal(arm)} less {literal(plan.reference)}",
                _table(head, _difference_cells(results, arm, plan.reference)),
            ]
        parts.append(
            "p: exact permutation test of the difference of means, two-sided. The smallest value it can give is "
            "1 / C(n1 + n2, n1), twice that for equal numbers of runs. Nothing is corrected for the number of "
            "measures: of twenty true nulls one is expected below 0.05."
        )
    parts += ["## Verdicts", *_verdict_parts(results)]
    return "\n\n".join(parts) + "\n"


def _caution(results: Results) -> str:
    fewest = min(len(next(iter(numbers.values()))) for numbers in results.values())
    if fewest >= 5:
        return "No interval stands where the runs do not differ."
    return (
        f"The arm with the fewest has {fewest}: so few give wide intervals and tell little. No interval stands beside "
        "one run, nor where the runs do not differ."
    )


def _arm_cells(plan: Experiment, measured: Sequence[Measured]) -> list[list[str]]:
    rows = []
    for arm in plan.arms:
        runs = [run for run in measured if run.planned.arm == arm]
        if runs:
            held = {"per_adapter": "steps, work per adapter", "tokens": "tokens", "wall_clock": "wall-clock"}
            seeds = ", ".join(str(run.planned.seed) for run in runs)
            spent = [_spread([run.measures.numbers[name] for run in runs]) for name in ("steps", "tokens", "seconds")]
            rows.append([arm, seeds, held[runs[0].planned.match], *spent])
    return rows


def _run_rows(
    plan: Experiment, measured: Sequence[Measured], numbers: Sequence[Mapping[str, float]]
) -> tuple[list[str], list[list[str]]]:
    """The head, and a row a run, arm by arm."""
    names = [name for name in SHOWN_BY_RUN if any(name in found for found in numbers)]
    pairs = sorted(zip(measured, numbers, strict=True), key=lambda pair: plan.arms.index(pair[0].planned.arm))
    rows = [[*_run_cells(run), *(number(found.get(name)) for name in names)] for run, found in pairs]
    return ["arm", "seed", *names], rows


def _part_cells(plan: Experiment, measured: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    """A row for the base and for each arm, a column for each kind of item and each stratum that is part of no other."""
    of_base = next((scores for run in measured if (scores := _part_scores(run, BASE))), {})  # the same in every run
    of_arm = {arm: [_part_scores(r, STUDENTS) for r in measured if r.planned.arm == arm] for arm in plan.arms}
    shown = [("the bare base", [of_base]), *((arm, scores) for arm, scores in of_arm.items() if scores)]
    known = {part for _, runs in shown for scores in runs for part in scores}
    parts = in_order(known)
    rows = [[name, *(_mean_cell([s[part] for s in runs if part in s]) for part in parts)] for name, runs in shown]
    return ["", *parts], rows


def _part_scores(run: Measured, individual: str) -> dict[str, float]:
    """Return an individual's greedy scores of its last evaluation, by kind and by stratum that is part of no other."""
    rows = [dict(zip(("step", *SCORE_COLUMNS), score, strict=True)) for score in run.scores]
    own = [row for row in rows if (row["individual"], row["mode"]) == (individual, "greedy") and row["mean_frac"]]
    last = max((int(row["step"]) for row in own), default=0)
    found = {}
    for row in own:
        part = row["kind"] if row["stratum"] == ALL else row["stratum"]
        if int(row["step"]) == last and ALL in (row["stratum"], row["kind"]) and part != ALL and "/" not in part:
            found[part] = float(row["mean_frac"])
    return found


def _mean_cells(plan: Experiment, results: Results) -> list[list[str]]:
    arms = [arm for arm in plan.arms if arm in results]
    rows = []
    for name in SHOWN:
        cells = [_mean_cell(results[arm].get(name, ())) for arm in arms]
        if any(cell != NOTHING for cell in cells):
            rows.append([name, *cells])
    return rows


def _mean_cell(values: Sequence[float]) -> str:
    if not values:
        return NOTHING
    interval = mean_interval(values)
    return f"{number(fmean(values))} {_interval(interval)}" if interval.known else number(fmean(values))


def _difference_cells(results: Results, arm: str, reference: str) -> list[list[str]]:
    rows = []
    for name in SHOWN:
        first, second = results[arm].get(name, ()), results[reference].get(name, ())
        if first and second:
            found = difference(first, second)
            effect = NOTHING if found.effect != found.effect else f"{found.effect:+.2f}"
            p = [f"{found.p:.3f}", f"{found.least_p:.3f}"]
            rows.append([name, number(found.estimate), _interval(found.interval), effect, *p])
    return rows


def _verdict_parts(results: Results) -> list[str]:
    found = verdicts(results)
    rows = [[verdict.id, verdict.claim, verdict.word] for verdict in found]
    detail = [[v.id, part.statement, part.word, part.figure] for v in found for part in v.parts]
    return [
        "Computed by `src/redqueen/experiment/claims.py`. A statement is seen when its whole interval lies where the "
        f"statement says (and p <= {MOST_P} where two arms are compared), not seen when it lies wholly on the other "
        f"side, else undecided; with fewer than {FEWEST_SEEDS} runs of an arm it is undecided, as it is where the runs "
        "do not differ or no program was traced. A claim is not seen when one of its statements is not.",
        _table(["", "claim", "verdict"], rows),
        _table(["", "statement", "verdict", "figure"], detail),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table([literal(cell) for cell in head], rows)


def _interval(interval: Interval) -> str:
    return f"[{number(interval.low)}, {number(interval.high)}]" if interval.known else NOTHING


def _spread(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _exact(value: float | None) -> str:
    """Every digit: what is computed from the tables must equal what was computed from the runs."""
    if value is None:
        return ""
    return str(int(value)) if value.is_integer() else repr(value)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
