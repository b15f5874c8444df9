"""Compare a run's students, each and their mean, with the base on the same items, paired by item.

    python experiments/students_above_base.py ANSWERS [--only TEXT]

ANSWERS is the output of ``redqueen evaluate RUN_DIR --out ANSWERS``. Prints, in percentage points, the greedy scores
minus the base's, with 95 % bootstrap intervals over items; items about one function of the suite of programs are
resampled together. ``--only`` selects the items whose names contain the text.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from paired_answers import difference, read

BASE, STUDENT = "base", "student"


def greedy_scores(path: Path, only: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return, by role and name, the greedy score of each item, without items with an answer that the verifier lost."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    rows = read(path)
    lost = {row["question"] for row in rows if row["mode"] == "greedy" and row["lost"]}
    for row in rows:
        if row["mode"] == "greedy" and only in row["question"] and row["question"] not in lost:
            found[row["role"], row["examinee"]][row["question"]] = float(row["correct"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    found = greedy_scores(options.answers, options.only)
    students = {name: scores for (role, name), scores in found.items() if role == STUDENT}
    base = next((scores for (role, _), scores in found.items() if role == BASE), None)
    if base is None or not students or any(scores.keys() != base.keys() for scores in students.values()):
        sys.exit(f"{options.answers} does not have greedy answers of the base and of students to the same items.")
    items = sorted(base)
    print(f"{len(items)} items, base {100 * np.mean([base[i] for i in items]):.1f}")
    together = {item: float(np.mean([scores[item] for scores in students.values()])) for item in items}
    for name, scores in ({"students": together} | students).items():
        print(f"{name}: {difference([scores[i] for i in items], [base[i] for i in items], items)}")


if __name__ == "__main__":
    main()
