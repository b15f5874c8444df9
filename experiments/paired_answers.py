"""Compare the scores of two evaluations on the same items, paired by item.

    python experiments/paired_answers.py ANSWERS OTHER_ANSWERS

Both are files that ``redqueen evaluate base --out FILE`` wrote, with the same number k of samples. Prints, in
percentage points, ANSWERS minus OTHER_ANSWERS for greedy answers, one sample (pass@1) and all samples (pass@k), and how
much more k / 2 samples of each solve than k samples of one (mean of the two). Intervals are 95 % bootstrap intervals
over items; the three items about one function of the suite of programs are resampled together.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redqueen.statistics import bootstrap_mean, pass_at_k


def read(path: Path) -> list[dict[str, Any]]:
    """Return the answers in a file, one row each. Exits if the file is not valid."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        sys.exit(f"{path} is not a file of answers: write one with redqueen evaluate TARGET --out {path}")
    if not rows:
        sys.exit(f"{path} contains no answers.")
    return rows


def scores(path: Path) -> tuple[dict[str, list[float]], int]:
    """Return for each item its greedy score, its mean over samples and its best sample, and the number of samples.

    Items with an answer that the verifier lost are left out, because a lost answer is not graded.
    """
    greedy: dict[str, float] = {}
    sampled: dict[str, list[float]] = defaultdict(list)
    rows = read(path)
    lost = {row["question"] for row in rows if row["lost"]}
    if len(examinees := sorted({row["examinee"] for row in rows})) > 1:
        sys.exit(f"{path} contains answers of {', '.join(examinees)}: evaluate only one of them.")
    for row in rows:
        if row["question"] in lost:
            continue
        if row["mode"] == "greedy":
            greedy[row["question"]] = float(row["correct"])
        else:
            sampled[row["question"]].append(float(row["correct"]))
    numbers = {len(values) for values in sampled.values()}
    if len(numbers) != 1 or greedy.keys() != sampled.keys():
        sys.exit(f"{path} does not have a greedy answer and the same number of samples for each item.")
    return {item: [greedy[item], float(np.mean(sampled[item])), max(sampled[item])] for item in greedy}, numbers.pop()


def function_of(item: str) -> str:
    """Return the cluster of an item: the function that up to three items of the suite ask about."""
    return re.sub(r"/code_[oif]$", "", item)


def difference(first: Sequence[float], second: Sequence[float], items: Sequence[str]) -> str:
    """Return, as text in points, the paired difference of the means on ``items`` with its bootstrap interval.

    Items about one function are not independent and are resampled together.
    """
    clusters = [function_of(item) for item in items]
    found = bootstrap_mean(np.subtract(first, second), np.random.default_rng(0), clusters)
    above = float(np.mean(first)) - float(np.mean(second))
    return f"{100 * above:+.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def together(one: float, other: float, num_samples: int) -> tuple[float, float]:
    """Return the probability that k / 2 samples of each solve an item, and the mean probability for k samples of one.

    ``one`` and ``other`` are their shares of right samples among k each. The first probability is
    1 - (1 - p_1(k / 2)) (1 - p_2(k / 2)), where p(k / 2) is pass@(k / 2).
    """
    right = [round(share * num_samples) for share in (one, other)]
    missed = [1 - pass_at_k(num_samples, count, num_samples // 2) for count in right]
    return 1 - missed[0] * missed[1], float(np.mean([count > 0 for count in right]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("other", type=Path)
    options = parser.parse_args()
    (one, num_samples), (other, num_others) = scores(options.answers), scores(options.other)
    items = sorted(one.keys() & other.keys())
    if not items or num_samples != num_others:
        sys.exit(f"{options.answers} and {options.other} have no common items, or different numbers of samples.")
    if left_out := len(one.keys() | other.keys()) - len(items):
        print(f"{left_out} items are left out: they are only in one file, or an answer to them was lost.")
    for i, name in enumerate(("greedy", "pass@1", f"pass@{num_samples}")):
        first, second = [one[item][i] for item in items], [other[item][i] for item in items]
        print(f"{name}: {difference(first, second, items)}")
    if num_samples % 2 == 0:
        both = [together(one[item][1], other[item][1], num_samples) for item in items]
        print(f"both at {num_samples}: {difference([b[0] for b in both], [b[1] for b in both], items)}")


if __name__ == "__main__":
    main()
