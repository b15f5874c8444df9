"""What is measured of a run: curves over its steps, and one number a run, computed from its journal.

The mathematics is pure functions; ``measure_run`` applies them to a run's folder. A number named ``NAME/end`` is the
mean of the curve over the last tenth of the steps, ``NAME/change`` is that less the mean over the first tenth, and
``NAME/left_frac`` is their quotient.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, sqrt
from pathlib import Path
from statistics import fmean, pstdev, variance
from typing import TypeVar

import numpy as np

from redqueen.config import MatchConfig
from redqueen.domains.code.normalise import normalise
from redqueen.experiment.program_traces import Posed, Trace, trace_once
from redqueen.journal import Journal, read
from redqueen.journal.read import Series
from redqueen.journal.records import ALL, BASE, CONTROL, NO_MEMBERS, PRODUCT
from redqueen.journal.values import json_of
from redqueen.journal.write import Row
from redqueen.match.pairing import preference
from redqueen.match.rating import GaussianRating
from redqueen.nouns import Rating
from redqueen.propose.curriculum import STRUCTURE
from redqueen.report.stretches import ends
from redqueen.run.store import JOURNAL

Item = TypeVar("Item")

FROM_METRICS = (
    "solve/rate",
    "solve/entropy",
    "solve/tokens_mean",
    "solve/thought_frac",
    "propose/entropy",
    "propose/tokens_mean",
    "propose/valid_frac",
    "reward/teacher_mean",
    "reward/student_mean",
)
"""Curves that the journal has as metrics."""

COLUMNS = {**STRUCTURE, "curriculum/halstead_volume": "halstead_volume"}
"""Curves of the structure of valid tasks' programs (means over a step), and the column of the task table."""


@dataclass(frozen=True)
class RunMeasures:
    """One run. ``curves``: by name, over its steps; ``numbers``: by name, one for the run.

    How many of the ``num_traced`` tasks showed each distinct signature (``behaviours``: these add up to all), each
    operation and each io class (see ``tracing``); the counts alone, in no order that matters.
    """

    curves: dict[str, Series]
    numbers: dict[str, float]
    num_traced: int
    behaviours: tuple[int, ...]
    operations: tuple[int, ...]
    io_classes: tuple[int, ...]


def measure_run(folder: Path) -> RunMeasures:
    """Measure a finished run. Traces its tasks in the sandbox the first time, and keeps the traces in its folder."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        steps = [row["step"] for row in journal.query("SELECT step FROM step WHERE step > 0 ORDER BY step")]
        tasks = journal.query("SELECT * FROM task ORDER BY seq")
        metrics, timings = read.metric_series(journal), read.timing_series(journal)
        evaluations, scores = read.evaluations(journal), pair_scores(journal)
        num_births = len(read.births(journal))
        tokens, seconds = read.tokens_sampled(journal), read.step_seconds(journal)
        config, ratings = read.run_record(journal).config, read.ratings(journal)
        roles = {member["id"]: member["role"] for member in read.individuals(journal)}
        verify = config.get("verify", {})
        allow_weak = isinstance(verify, dict) and bool(verify.get("allow_weak", False))
    traces = trace_once(folder, [t["id"] for t in tasks], [Posed(t["code"], _inputs(t)) for t in tasks], allow_weak)
    seen = [(task["step"], found) for task, found in zip(tasks, traces, strict=True) if found is not None]
    curves = {name: metrics[name] for name in FROM_METRICS if name in metrics}
    curves |= structure_curves(steps, tasks) | semantic_curves(steps, seen)
    curves |= preference_curve(steps, ratings, roles, MatchConfig.model_validate(config.get("match", {})))
    numbers = {"steps": float(len(steps)), "tasks": float(len(tasks)), "tokens": float(tokens), "seconds": seconds}
    numbers |= {"seconds_per_step": seconds / len(steps)} if steps else {}
    numbers |= {"semantic/untraced_frac": 1 - len(seen) / len(tasks)} if tasks else {}
    numbers |= {name: value for curve in curves for name, value in _ends(curve, curves[curve], steps).items()}
    numbers |= oscillation(curves.get("solve/rate", []), task_rates(tasks))
    numbers |= fitness_numbers(evaluations)
    between = payoff_variance(scores)
    numbers |= {} if between is None else {"specialisation/payoff_variance": between}
    breeding = sum(value or 0.0 for _, value in timings.get("evolve", []))
    numbers |= {"evolve/seconds_per_birth": breeding / num_births} if num_births else {}
    behaviours = Counter((found.operations, found.io) for _, found in seen)
    operations = Counter(operation for _, found in seen for operation in found.operations)
    io_classes = Counter(io_class for _, found in seen for io_class in found.io)
    counts = (tuple(counter.values()) for counter in (behaviours, operations, io_classes))
    return RunMeasures(curves, numbers, len(seen), *counts)


# Curves ------------------------------------------------------------------------------------------------------------


def structure_curves(steps: Sequence[int], tasks: Sequence[Row]) -> dict[str, Series]:
    """Return the mean structure of each step's programs, the coverage by inputs and outputs, and new programs.

    ``curriculum/coverage`` counts distinct pairs of inputs and outputs so far; ``curriculum/new_program_frac`` is the
    share of a step's tasks whose program, up to names and layout, stood in no task before it.
    """
    by_step = _by_step(steps, [(t["step"], t) for t in tasks])
    curves: dict[str, Series] = {}
    for name, column in COLUMNS.items():
        values = [[float(t[column]) for t in by_step[step] if t[column] is not None] for step in steps]
        curves[name] = [(step, fmean(v) if v else None) for step, v in zip(steps, values, strict=True)]
    behaviours = [[t["behaviour"] for t in by_step[step]] for step in steps]
    programs = [[normalise(t["code"]) for t in by_step[step]] for step in steps]
    curves["curriculum/coverage"] = list(zip(steps, distinct_so_far(behaviours), strict=True))
    curves["curriculum/new_program_frac"] = list(zip(steps, new_fracs(programs), strict=True))
    return curves


def semantic_curves(steps: Sequence[int], traces: Sequence[tuple[int, Trace]]) -> dict[str, Series]:
    """Return coverage and novelty by what tasks do. ``traces`` are pairs of a step and a task's trace, in order.

    ``semantic/coverage``: distinct signatures (sets of operations with types, and of io classes) so far;
    ``semantic/operations`` and ``semantic/io_classes``: distinct single operations and io classes so far;
    ``semantic/new_frac``: share of a step's tasks whose signature stood in no task before; ``semantic/novelty``: mean
    distance to the nearest task of all earlier steps.
    """
    by_step = _by_step(steps, traces)
    signatures = [[(t.operations, t.io) for t in by_step[step]] for step in steps]
    features = [[frozenset((*t.operations, *t.io)) for t in by_step[step]] for step in steps]
    operations = [[item for t in by_step[step] for item in t.operations] for step in steps]
    io_classes = [[item for t in by_step[step] for item in t.io] for step in steps]
    distances = nearest_distances(features)
    return {
        "semantic/coverage": list(zip(steps, distinct_so_far(signatures), strict=True)),
        "semantic/operations": list(zip(steps, distinct_so_far(operations), strict=True)),
        "semantic/io_classes": list(zip(steps, distinct_so_far(io_classes), strict=True)),
        "semantic/new_frac": list(zip(steps, new_fracs(signatures), strict=True)),
        "semantic/novelty": [(s, fmean(d) if d else None) for s, d in zip(steps, distances, strict=True)],
    }


def preference_curve(
    steps: Sequence[int], ratings: Sequence[Row], roles: Mapping[str, str], match: MatchConfig
) -> dict[str, Series]:
    """Return ``match/preference``: how much the ratings before each step would let pfsp prefer some (``preference``).

    Whatever the rule of the run is; nothing for an adapter that plays both roles.
    """
    sides: dict[tuple[int, str], list[Rating]] = defaultdict(list)
    for row in ratings:
        sides[row["step"], roles[row["individual"]]].append(Rating(row["mu"], row["sigma"]))
    met = [(step, sides[step - 1, "teacher"], sides[step - 1, "student"]) for step in steps]
    curve = [(step, preference(t, s, match, GaussianRating(match)) if t and s else None) for step, t, s in met]
    return {"match/preference": curve} if any(value is not None for _, value in curve) else {}


def distinct_so_far(keys_by_step: Sequence[Sequence[Hashable]]) -> list[float]:
    """Return how many different keys there were up to and with each step."""
    seen: set[Hashable] = set()
    counts = []
    for keys in keys_by_step:
        seen.update(keys)
        counts.append(float(len(seen)))
    return counts


def new_fracs(keys_by_step: Sequence[Sequence[Hashable]]) -> list[float | None]:
    """Return, step by step, the share of keys that stood nowhere before, nor earlier in the step; None without keys."""
    seen: set[Hashable] = set()
    fracs: list[float | None] = []
    for keys in keys_by_step:
        before = len(seen)
        seen.update(keys)
        fracs.append((len(seen) - before) / len(keys) if keys else None)
    return fracs


def nearest_distances(sets_by_step: Sequence[Sequence[frozenset[str]]]) -> list[list[float]]:
    """Return each set's Jaccard distance, 1 - |a & b| / |a | b|, to the nearest set of all earlier steps (0 to 1).

    Sets for which there is nothing earlier are left out. Two empty sets are at distance 0.
    """
    vocabulary = {item: at for at, item in enumerate(sorted({i for step in sets_by_step for s in step for i in s}))}
    num_sets = sum(map(len, sets_by_step))
    earlier = np.zeros((num_sets, len(vocabulary)), dtype=np.float32)
    sizes = np.zeros(num_sets, dtype=np.float32)
    distances: list[list[float]] = []
    filled = 0
    for sets in sets_by_step:
        rows = np.zeros((len(sets), len(vocabulary)), dtype=np.float32)
        for at, one in enumerate(sets):
            rows[at, [vocabulary[item] for item in one]] = 1.0
        own_sizes = rows.sum(axis=1)
        if filled and len(sets):
            common = rows @ earlier[:filled].T
            union = own_sizes[:, None] + sizes[None, :filled] - common
            likeness = np.divide(common, union, out=np.ones_like(common), where=union > 0)
            distances.append([float(1.0 - value) for value in likeness.max(axis=1)])
        else:
            distances.append([])
        earlier[filled : filled + len(sets)], sizes[filled : filled + len(sets)] = rows, own_sizes
        filled += len(sets)
    return distances


# One number a run --------------------------------------------------------------------------------------------------


def rarefied(counts: Sequence[int], num_tasks: int, num_drawn: int) -> float:
    """Return how many different things are to be expected in ``num_drawn`` of ``num_tasks`` tasks.

    Thing i occurs in ``counts[i]`` of the tasks, which are drawn without replacement.
    E = sum_i (1 - C(N - N_i, n) / C(N, n)): Hurlbert (1971) where each task has one thing, sample-based rarefaction
    (Colwell, Mao & Chang 2004) where it has several. It makes runs with different numbers of tasks comparable. Raises
    ValueError when n is larger than N.
    """
    if not 0 <= num_drawn <= num_tasks:
        raise ValueError(f"cannot draw {num_drawn} of {num_tasks} tasks")

    def seen_frac(count: int) -> float:
        rest = num_tasks - count
        return 1.0 - (exp(_log_choose(rest, num_drawn) - _log_choose(num_tasks, num_drawn)) if num_drawn <= rest else 0)

    return fsum(map(seen_frac, counts))  # exact, so that the order of the counts leaves no trace


def task_rates(tasks: Sequence[Row]) -> dict[int, list[float]]:
    """Return the solve rates of each step's judged tasks."""
    rates: dict[int, list[float]] = defaultdict(list)
    for task in tasks:
        if task["num_attempts"]:
            rates[task["step"]].append(task["num_correct"] / task["num_attempts"])
    return dict(rates)


def oscillation(rate: Series, rates_of_tasks: Mapping[int, Sequence[float]]) -> dict[str, float]:
    """Return how much the solve rate swings about its straight trend, as a standard deviation over steps.

    ``solve/oscillation``: as it is. ``solve/oscillation_beyond_chance``: with the part removed that comes from a
    step's rate being a mean over few tasks (the mean over steps of variance over tasks / number of tasks), which alone
    would make a single agent, with fewer tasks a step, swing more. 0 when chance explains all. Needs three steps.
    """
    values = [value for _, value in rate if value is not None]
    if len(values) < 3:
        return {}
    spread = detrended_variance(values)
    by_chance = [variance(r) / len(r) for r in rates_of_tasks.values() if len(r) > 1]
    beyond = max(0.0, spread - fmean(by_chance)) if by_chance else spread
    return {"solve/oscillation": sqrt(spread), "solve/oscillation_beyond_chance": sqrt(beyond)}


def detrended_variance(values: Sequence[float]) -> float:
    """Return the variance about the least-squares line over equally spaced values (n - 2 degrees of freedom)."""
    at = np.arange(len(values), dtype=np.float64)
    slope, start = np.polyfit(at, np.asarray(values, dtype=np.float64), 1)
    residuals = np.asarray(values) - (start + slope * at)
    return float((residuals**2).sum() / (len(values) - 2))


def pair_scores(journal: Journal) -> list[tuple[int, tuple[str, str], float]]:
    """Return step, pair of teacher and student, and solve rate, for every task and student that attempted it."""
    rows = journal.tuples(
        "SELECT t.step, t.teacher, a.student, avg(a.correct) AS frac FROM attempt a JOIN task t ON t.seq = a.task "
        "WHERE NOT a.lost GROUP BY t.seq, a.student ORDER BY t.seq, a.student"
    )
    return [(step, (teacher, student), frac) for step, teacher, student, frac in rows]


def payoff_variance(scores: Sequence[tuple[int, tuple[str, str], float]]) -> float | None:
    """Return the variance of the students' payoff between pairs: how much the pairing matters.

    Scores are taken relative to their step's mean, lest a trend count. Then the one-way random-effects estimate:
    (MS_between - MS_within) / n0 with n0 = (N - sum n_i^2 / N) / (k - 1) for k pairs with n_i tasks, N in all. It is
    unbiased and so may fall below 0. A strong member counts as well as a special affinity. None below two pairs.
    """
    by_step: dict[int, list[float]] = defaultdict(list)
    for step, _, score in scores:
        by_step[step].append(score)
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for step, pair, score in scores:
        groups[pair].append(score - fmean(by_step[step]))
    k, n = len(groups), len(scores)
    if k < 2 or n <= k:
        return None
    grand = fmean(value for values in groups.values() for value in values)
    means = {pair: fmean(values) for pair, values in groups.items()}
    between = sum(len(values) * (means[pair] - grand) ** 2 for pair, values in groups.items()) / (k - 1)
    within = sum((value - means[pair]) ** 2 for pair, values in groups.items() for value in values) / (n - k)
    n0 = (n - sum(len(values) ** 2 for values in groups.values()) / n) / (k - 1)
    return (between - within) / n0


def fitness_numbers(evaluations: Sequence[Row]) -> dict[str, float]:
    """Return external fitness after the last step, by mode: mean, worst and best member, spread over members, change.

    Fractions of the suite. ``best`` is selected on the very items it is reported for; ``spread`` is the standard
    deviation over members (n in the denominator); ``change`` is the mean less the base; ``product`` is the run's one
    adapter, ``above_control`` the same less the base told to think.
    """
    rows = [row for row in evaluations if (row["stratum"], row["kind"]) == (ALL, ALL) and row["mean_frac"] is not None]
    members = [row for row in rows if row["individual"] not in NO_MEMBERS]
    last = max((row["step"] for row in members), default=None)
    numbers: dict[str, float] = {}
    for mode in ("greedy", "sampled"):
        values = [row["mean_frac"] for row in members if row["step"] == last and row["mode"] == mode]
        base = [row["mean_frac"] for row in rows if row["individual"] == BASE and row["mode"] == mode]
        if values:
            numbers[f"fitness/{mode}/mean"] = fmean(values)
            numbers[f"fitness/{mode}/worst"] = min(values)
            numbers[f"fitness/{mode}/best"] = max(values)
            numbers[f"fitness/{mode}/spread"] = pstdev(values)
            numbers |= {f"fitness/{mode}/change": fmean(values) - base[-1]} if base else {}
        product, control = (
            [row["mean_frac"] for row in rows if (row["individual"], row["mode"]) == (name, mode)]
            for name in (PRODUCT, CONTROL)
        )
        if product:
            numbers[f"fitness/{mode}/product"] = product[-1]
            numbers |= {f"fitness/{mode}/above_control": product[-1] - control[-1]} if control else {}
    return numbers


def _ends(name: str, curve: Series, steps: Sequence[int]) -> dict[str, float]:
    """Return the means over the last tenth, and what they are to the first (rounded down: so are the tables kept)."""
    if len(steps) < 2:
        return {}
    first, last = ends(curve, steps[-1], max(1, len(steps) // 10)).values()
    numbers = {} if last is None else {f"{name}/end": last}
    if first is None or last is None:
        return numbers
    numbers[f"{name}/change"] = last - first
    return numbers | ({f"{name}/left_frac": last / first} if name.endswith("/entropy") and first > 0 else {})


def _by_step(steps: Sequence[int], items: Sequence[tuple[int, Item]]) -> dict[int, list[Item]]:
    by_step: dict[int, list[Item]] = {step: [] for step in steps}
    for step, item in items:
        by_step[step].append(item)
    return by_step


def _inputs(task: Row) -> tuple[str, ...]:
    return tuple(json_of(task, "inputs"))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
