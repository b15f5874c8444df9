"""Test the paper's claims about diversity and collapse with three seeds of four arms on SmolLM2-135M.

    python experiments/paper_claims/claims.py

Reads ``experiments/tables/smollm2_claims.csv``: twelve runs of 40 steps by ``experiments/smollm2-claims.toml``,
measured by the code at commit 52e3c47. ``NAME/end`` is the mean over the last tenth of the steps, ``NAME/change`` that
minus the mean over the first tenth, ``left_frac`` their quotient; ``rarefied`` is the expected number of distinct
values among 275 tasks, the number of tasks of the smallest run.

A statement is *supported* when its whole 95 % interval over seeds agrees with it (Student's t; between arms Welch's,
and p <= 0.05 by the exact permutation test), *contradicted* when the whole interval disagrees, else *undecided*.
Three seeds against three cannot reach p = 0.05, so no difference between arms can be supported. The bounds are ours.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from redqueen.statistics import Interval, difference, mean_interval

TABLE = Path(__file__).parents[1] / "tables" / "smollm2_claims.csv"
SINGLE, POPULATION = "single", "4T+4S"
STRUCTURE = tuple(f"curriculum/{name}" for name in ("ast_depth", "cyclomatic", "lines", "variables"))
STALLED_FRAC = 0.05
"""A structural measure that grows by less than this share of its value at the end has stalled."""

CLAIMS = {
    "1 The single agent's tasks fall or stall in structure, the population's rise": (
        *((SINGLE, f"{name}/change", "stalls") for name in STRUCTURE),
        *((POPULATION, f"{name}/change", 0.0) for name in STRUCTURE),
        *((POPULATION, f"{name}/change", SINGLE) for name in STRUCTURE),
    ),
    "2 The single agent's solve rate climbs towards 1, the population's oscillates": (
        (SINGLE, "solve/rate/change", 0.0),
        (SINGLE, "solve/rate/end", 0.9),
        (POPULATION, "solve/oscillation_beyond_chance", SINGLE),
    ),
    "3 The covered problem space keeps expanding, and further than the single agent's": (
        (POPULATION, "semantic/new_frac/end", 0.2),
        (POPULATION, "semantic/operations_rarefied", SINGLE),
        (POPULATION, "semantic/io_classes_rarefied", SINGLE),
    ),
    "4 The single agent's entropy goes to about 0, the teachers' does not": (
        (SINGLE, "propose/entropy/left_frac", "gone"),
        (POPULATION, "propose/entropy/left_frac", 0.1),
    ),
}
"""Arm, measure, and target: the number or arm it should exceed; ``stalls``: below the stall bound; ``gone``: below 0.1.
"""


@dataclass(frozen=True)
class Statement:
    """``text`` with its numbers; ``value`` and ``interval`` in the measure's own unit."""

    text: str
    value: float
    interval: Interval
    word: str


def values(arm: str, measure: str) -> list[float]:
    """Return one number per seed."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [float(row[measure]) for row in csv.DictReader(file) if row["arm"] == arm]


def judge(arm: str, measure: str, target: str | float) -> Statement:
    """Test one statement of ``CLAIMS``."""
    own = values(arm, measure)
    if target in ("stalls", "gone"):
        end = values(arm, measure.replace("/change", "/end"))
        bound = 0.1 if target == "gone" else STALLED_FRAC * abs(fmean(end))
        interval = mean_interval(own)
        word = "supported" if interval.high < bound else "contradicted" if interval.low >= bound else "undecided"
        return Statement(f"{arm} below {bound:.3g}", fmean(own), interval, word)
    if isinstance(target, str):
        found = difference(own, values(target, measure))
        supported = found.interval.low > 0 and found.p <= 0.05
        word = "supported" if supported else "contradicted" if found.interval.high <= 0 else "undecided"
        return Statement(f"{arm} above {target}", found.estimate, found.interval, word)
    interval = mean_interval(own)
    word = "supported" if interval.low > target else "contradicted" if interval.high <= target else "undecided"
    return Statement(f"{arm} above {target:g}", fmean(own), interval, word)


def verdict(claim: str) -> str:
    """Return the verdict on a claim: contradicted if one statement is, supported if all are, else undecided."""
    words = {judge(*about).word for about in CLAIMS[claim]}
    return "contradicted" if "contradicted" in words else "supported" if words == {"supported"} else "undecided"


def main() -> None:
    for claim, statements in CLAIMS.items():
        print(f"{claim}: {verdict(claim)}")
        for about in statements:
            one = judge(*about)
            low, high = one.interval
            print(f"  {about[1]}: {one.text}: {one.value:.3g} ({low:.3g} to {high:.3g}): {one.word}")


if __name__ == "__main__":
    main()
