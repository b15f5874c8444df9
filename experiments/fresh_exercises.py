"""Draw new exercises of mathematics, to evaluate runs whose configs were chosen by scores on the frozen suite.

    python -m experiments.fresh_exercises RUN_DIR... --out fresh.jsonl
    redqueen evaluate FOLDER --suite maths --data fresh.jsonl

They are drawn like the frozen suite, from the share that the base was not trained on, with another seed, and are
neither in the suite nor among the tasks of these runs (compared by normal form, so independent of wording and order).
Only levels 2 and 3: the suite has nearly all exercises of level 1. Word problems are few too, so fewer than ``--num``
may be found in ``TRIES`` draws per exercise; the numbers are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path
from random import Random

from recipes.embedded_base.exercises import LEVELS, draw
from recipes.embedded_base.suites import unseen
from recipes.embedded_base.word_problems import draw_words
from redqueen.domains.maths.kinds import load_suite
from redqueen.domains.maths.language import normal_form
from redqueen.domains.maths.prompts_compact import FORMAL, WORD
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.run.store import JOURNAL

TRIES = 20


def posed(run_dir: Path) -> set[str]:
    """Return the normal forms of a run's tasks. Raises UserError when the run does not exist."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        rows = journal.tuples("SELECT DISTINCT code FROM task WHERE kind IN (?, ?)", (FORMAL, WORD))
    return {normal_form(code) for (code,) in rows}


def fresh_exercises(number: int, rng_seed: int, known: set[str]) -> list[dict[str, object]]:
    """Draw up to ``number`` exercises of each kind and level as lines for ``--data``, with distinct forms not in
    ``known``."""
    rng, seen = Random(f"maths/fresh/{rng_seed}"), set(known)
    lines: list[dict[str, object]] = []
    for level, author in product(LEVELS[1:], (draw, draw_words)):
        drawn = (author(rng, level, held_out=True) for _ in range(TRIES * number))
        for exercise in islice(unseen(drawn, seen), number):
            kind, name = WORD if exercise.text else FORMAL, f"fresh/{level}-{len(lines) + 1:04d}"
            fields = {"code": exercise.code, "message": exercise.text, "outputs": [exercise.answer]}
            lines.append({"id": name, "kind": kind, **fields})
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN_DIR", help="leave out the tasks of these runs")
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--num", type=int, default=1000, help="exercises of each kind and level (1000)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (1)")
    chosen = parser.parse_args(arguments)
    if chosen.out.exists():
        raise UserError(f"{chosen.out} exists already: give another --out, or delete it")
    if chosen.num < 1:
        raise UserError(f"--num {chosen.num}: give a number of at least 1")
    known = {normal_form(item.task.code) for item in load_suite()}.union(*map(posed, chosen.runs))
    lines = fresh_exercises(chosen.num, chosen.seed, known)
    chosen.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    counts = Counter(f"level {str(line['id'])[6]} {line['kind']}" for line in lines)
    print(*(f"{name}: {count}" for name, count in sorted(counts.items())), sep="\n")
    print(f"{len(lines)} exercises, none among the {len(known)} of the suite and the runs: {chosen.out}")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
