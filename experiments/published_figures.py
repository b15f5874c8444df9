"""Compute every published score and difference, with its 95 % interval, from the tables in ``tables/``.

    python experiments/published_figures.py

Prints one line per figure: name, value and interval in percentage points, and the pages that state it in addition to
``RESULTS.md`` or ``LOG.md``. A test compares the pages with these figures and rejects any other interval on them.

Sources, in ``experiments/tables/``:

- ``rounds.csv``, ``members.csv``, ``long_rounds.csv``, ``balanced.csv``: scores of every run of the plans
  ``rounds.toml``, ``members.toml`` and ``lasting-rounds.toml``, and of P2, as shares, with the bootstrap interval over
  items from the run's journal. Between arms, the interval is Welch's t over seeds with degrees of freedom rounded down,
  and p is from the exact permutation test (``redqueen.statistics``).
- ``members_pass8.csv``: right samples of eight per item, as in ``qwen_coder.csv``, of P4's products and their base.
- ``genes.csv``: attempts, right attempts and solved tasks of each run of ``genes.toml``, counted in its journal.
- ``base_temperatures.csv``: the untrained embedded base, sampled at four temperatures, in points.
- ``smollm2_claims.csv``: twelve runs on SmolLM2, judged by ``paper_claims/claims.py``, in the measure's own unit.
- ``qwen_coder.csv``: the number of right samples per item, one digit each (g: 16), for Qwen2.5-Coder-0.5B and
  the products of its runs, as `redqueen evaluate` graded them.
- ``recorded.csv``: single runs whose journals are not kept, as `redqueen report`, `redqueen evaluate`,
  ``experiments/paired_answers.py`` or ``experiments/breadth_of_answers.py`` printed them, in points.
"""

from __future__ import annotations

import csv
import runpy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np

from redqueen.evaluate.external import EVALUATION_SEED
from redqueen.statistics import bootstrap_mean, difference, mean_interval

TABLES = Path(__file__).parent / "tables"
README, FAQ = "README.md", "docs/faq.md"
RESULTS, LOG = "experiments/RESULTS.md", "experiments/LOG.md"
PRODUCT = "product"


@dataclass(frozen=True)
class Figure:
    """A value with its interval in points, the pages that state it, and the number of printed ``digits``."""

    name: str
    value: float
    low: float
    high: float
    pages: tuple[str, ...] = ()
    digits: int = 1
    p: float | None = None

    @property
    def text(self) -> str:
        """The value and its interval as a page states them, without the closing bracket."""
        value, low, high = (_rounded(x, self.digits) for x in (self.value, self.low, self.high))
        return f"{value} ({low} to {high}"


def _rounded(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def figures() -> list[Figure]:
    """Return every published figure."""
    return [
        *_arms(),
        *_within_eight(),
        *_genes(),
        *_long(),
        *_temperatures(),
        *_recorded(),
        *_over_seeds(),
        *_claims(),
        *_qwen(),
    ]


def product_means(arm: str, seeds: Sequence[int] | None = None, table: str = "rounds.csv") -> list[float]:
    """Return each seed's mean of the product's greedy and sampled score in an arm, in points."""
    scores: dict[int, list[float]] = {}
    for row in rows(table):
        if row["arm"] == arm and row["who"] == PRODUCT:
            scores.setdefault(int(row["seed"]), []).append(100 * float(row["mean"]))
    return [sum(own) / len(own) for seed, own in sorted(scores.items()) if seeds is None or seed in seeds]


def _between(
    plan: str,
    arm: str,
    other: str,
    table: str,
    pages: tuple[str, ...] = (),
    digits: int = 1,
    measure: str = "mean of greedy and sampled",
) -> Figure:
    """Return the difference between two arms of a plan, over the seeds of ``other``, which has the fewer."""
    second = product_means(other, table=table)
    found = difference(product_means(arm, range(len(second)), table), second)
    name = f"{plan}: {arm} less {other}, {measure}"
    return Figure(name, found.estimate, *found.interval, pages, digits, found.p)


def _arms() -> Iterator[Figure]:
    """Yield the comparisons of arms in ``rounds.toml``, ``members.toml`` and its variants (P4 to P4d), and P2."""
    population = "4T+4S"
    for arm, other, pages, digits in (
        (population, "1T+1S equal work", (README, FAQ), 1),
        (population, "1T+1S", (FAQ,), 1),
        (population, "no evolution", (README, FAQ), 1),
        (population, "copy_parent", (README, FAQ), 1),
        ("no evolution", "frozen teachers", (README,), 1),
        (population, "frozen teachers", (README,), 1),
        (population, "1T+1S held", (FAQ,), 2),
    ):
        yield _between("16 steps", arm, other, "rounds.csv", pages, digits)
    yield _between("36 steps", population, "1T+1S equal total", "members.csv", (README, FAQ))
    yield _between("36 steps", population, "rejection sampling", "members.csv", (FAQ,))
    yield _between("24 steps, puzzles", population, "1T+1S equal total", "members_logic.csv", (README, FAQ))
    yield _between(
        "24 steps, SmolLM2", "2T+2S", "1T+1S equal total", "members_smollm2.csv", (README, FAQ), measure="greedy"
    )
    for arm, other in combinations(("balanced answers", "as many, drawn", "all answers"), 2):
        yield _between("P2", arm, other, "balanced.csv")


def _within_eight() -> Iterator[Figure]:
    """Yield P4's pass@8 between arms, over seeds; pass@1 and pass@8 of the mean product less the base, over items."""
    shares: dict[str, list[np.ndarray]] = {}
    for row in rows("members_pass8.csv"):
        shares.setdefault(row["who"], []).append(_right_frac(row))
    one = {who: np.array(own) for who, own in shares.items()}  # (products, items)
    any_ = {who: own > 0 for who, own in one.items()}
    [population, other] = [list(100 * any_[arm].mean(axis=1)) for arm in ("4T+4S", "1T+1S equal total")]
    found = difference(population, other)
    yield Figure("36 steps: pass@8, 4T+4S less 1T+1S equal total", found.estimate, *found.interval, p=found.p)
    for k, right in ((1, one), (8, any_)):
        less = 100 * (right["4T+4S"].mean(axis=0) - right["base"][0])
        yield _over_items(f"36 steps: pass@{k}, mean of the products of 4T+4S less base", less, ())


def _genes() -> Iterator[Figure]:
    """Yield the relative change of the share of right attempts, in %, paired by seed: P1b."""
    arms: dict[str, list[float]] = {}
    for row in rows("genes.csv"):
        arms.setdefault(row["arm"], []).append(int(row["right"]) / int(row["attempts"]))
    gene = "temperature as a gene"
    for arm, other in ((gene, "temperature 0.7"), (gene, "temperature 0.5"), ("temperature 0.5", "temperature 0.7")):
        gains = [100 * (a / b - 1) for a, b in zip(arms[arm], arms[other], strict=True)]
        yield Figure(f"P1b: right answers, {arm} against {other}", fmean(gains), *mean_interval(gains))


def _long() -> Iterator[Figure]:
    """Yield product and control scores of the runs of 500 steps; no interval of other evaluations is published."""
    for row in rows("long_rounds.csv"):
        if row["who"] == PRODUCT or (row["who"] == "control" and row["arm"] == "4T+4S"):
            pages = (README,) if row["arm"] == "4T+4S" and row["who"] == PRODUCT else ()
            name = f"500 steps: {row['arm']} seed {row['seed']}, {row['who']}, {row['mode']}"
            bounds = [100 * float(row[key]) for key in ("mean", "low", "high")]
            yield Figure(name, *bounds, pages)


def _temperatures() -> Iterator[Figure]:
    for row in rows("base_temperatures.csv"):
        bounds = [float(row[key]) for key in ("value", "low", "high")]
        pages = (README,) if row["suite"] == "maths" and row["temperature"] == "0.6" else ()
        yield Figure(f"untrained base, {row['suite']}, temperature {row['temperature']}", *bounds, pages)


def _recorded() -> Iterator[Figure]:
    fresh = ("500 steps, fresh exercises", "product of 4T+4S less base")
    less = "product less base"
    in_readme = {
        ("make run seed 0", PRODUCT),
        ("make run seed 0", less),
        ("make run seed 1", less),
        fresh,
    }
    for row in rows("recorded.csv"):
        bounds = [float(row[key]) for key in ("value", "low", "high")]
        pages = (README,) if (row["run"], row["who"]) in in_readme else ()
        yield Figure(f"{row['run']}: {row['who']}, {row['mode']}", *bounds, pages)


def _over_seeds() -> Iterator[Figure]:
    gains = [
        float(row["value"])
        for row in rows("recorded.csv")
        if row["run"] in [f"SmolLM2, seed {seed}" for seed in range(3)]
    ]
    yield Figure("SmolLM2: students less base, over three seeds", sum(gains) / 3, *mean_interval(gains))


def _qwen() -> Iterator[Figure]:
    """Yield the scores of Qwen2.5-Coder-0.5B, and its products' gains, paired over items and over seeds."""
    shares: dict[tuple[str, str, str], dict[str, np.ndarray]] = {}
    for row in rows("qwen_coder.csv"):
        shares.setdefault((row["suite"], row["style"], row["temperature"]), {})[row["who"]] = 100 * _right_frac(row)
    for (suite, style, temperature), found in shares.items():
        name = f"Qwen2.5-Coder-0.5B, {suite}, {style}, temperature {temperature}"
        gains = []
        for who, own in found.items():
            if who == "base" or temperature != "0":
                in_readme = (suite, style, temperature) == ("cruxeval-o", "fewshot", "0")
                yield _over_items(f"{name}: {who}", own, (README,) if in_readme else ())
            else:
                gain = _over_items(f"{name}: {who} less base", own - found["base"], ())
                gains += [gain.value] if who.startswith("distilled") else []
                yield gain
        if "unverified seed 0" in found:
            less = found["distilled seed 0"] - found["unverified seed 0"]
            yield _over_items(f"{name}: distilled less as many unverified answers, seed 0", less, (README,))
        if gains:
            pages = (README,) if suite in ("cruxeval-o", "cruxeval-i", "gsm8k") else ()
            yield Figure(f"{name}: distilled less base, over three seeds", fmean(gains), *mean_interval(gains), pages)


def _right_frac(row: dict[str, str]) -> np.ndarray:
    """Return the share of right samples by item, from the digits of a row."""
    return np.array([int(digit, 17) for digit in row["right"]]) / int(row["samples"])


def _over_items(name: str, values: np.ndarray, pages: tuple[str, ...]) -> Figure:
    return Figure(name, values.mean(), *bootstrap_mean(values, np.random.default_rng(EVALUATION_SEED)), pages)


def _claims() -> Iterator[Figure]:
    judge = runpy.run_path(str(TABLES.parent / "paper_claims" / "claims.py"))["judge"]
    for arm, measure, target, digits in (
        ("4T+4S", "curriculum/ast_depth/change", 0.0, 2),
        ("single", "solve/rate/end", 0.9, 2),
        ("4T+4S", "semantic/operations_rarefied", "single", 1),
        ("4T+4S", "semantic/io_classes_rarefied", "single", 1),
        ("single", "propose/entropy/left_frac", "gone", 2),
        ("4T+4S", "propose/entropy/left_frac", 0.1, 2),
    ):
        found = judge(arm, measure, target)
        yield Figure(f"SmolLM2 by the paper's rules: {measure}, {found.text}", found.value, *found.interval, (), digits)


def main() -> None:
    for figure in figures():
        p = "" if figure.p is None else f", p = {figure.p:.3f}"
        print(f"{figure.name}: {figure.text}{p})  {', '.join(figure.pages)}")


if __name__ == "__main__":
    main()
