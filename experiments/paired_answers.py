"""How much one evaluation's answers are above another's on the same items, paired item by item.

    python experiments/paired_answers.py ANSWERS OTHER_ANSWERS

Both are files that ``redqueen evaluate base --out FILE`` wrote, with as many samples. Prints, in points of a hundred,
how far ANSWERS lies above OTHER_ANSWERS greedily, at one sample (pass@1) and at all k of them (pass@k), each with the
95 % bootstrap interval over items.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from redqueen.statistics import bootstrap_difference


def scores(path: Path) -> tuple[dict[str, list[float]], int]:
    """Return for each item its greedy score, its mean over samples and its best one, and the number of samples."""
    greedy: dict[str, float] = {}
    sampled: dict[str, list[float]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["mode"] == "greedy":
            greedy[row["question"]] = float(row["correct"])
        else:
            sampled[row["question"]].append(float(row["correct"]))
    numbers = {len(values) for values in sampled.values()}
    if len(numbers) != 1 or greedy.keys() != sampled.keys():
        sys.exit(f"{path} does not hold a greedy answer and as many samples for each item of one examinee.")
    return {item: [greedy[item], float(np.mean(sampled[item])), max(sampled[item])] for item in greedy}, numbers.pop()


def difference(first: Sequence[float], second: Sequence[float]) -> str:
    """Say how far the mean of one is above the other's, paired, in points, with the bootstrap interval over items."""
    found = bootstrap_difference(first, second, np.random.default_rng(0))
    above = float(np.mean(first)) - float(np.mean(second))
    return f"{100 * above:+.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("other", type=Path)
    options = parser.parse_args()
    (one, num_samples), (other, num_others) = scores(options.answers), scores(options.other)
    if one.keys() != other.keys() or num_samples != num_others:
        sys.exit(f"{options.answers} and {options.other} hold other items, or other numbers of samples.")
    items = sorted(one)
    for i, name in enumerate(("greedy", "pass@1", f"pass@{num_samples}")):
        first, second = [one[item][i] for item in items], [other[item][i] for item in items]
        print(f"{name}: {difference(first, second)}")


if __name__ == "__main__":
    main()
