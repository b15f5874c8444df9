"""The generated half of the frozen suite: programs of unseen seeds in five difficulty strata, never trained on.

It has two blocks. Training holds out the first, so its programs are as frequent ones as any. The second was added after
the base was trained. Its programs come from another seed, without any that the corpus had considered. So holding them
out too changes nothing in the corpus, and the recipe still makes the same base.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from random import Random

from redqueen.tiny.corpus import Corpus
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.problems import Problem, skeleton, write_problem
from redqueen.tiny.recipe import Recipe, build_recipe_tokenizer

SUITE_SEED, SECOND_SEED = "frozen suite/1", "frozen suite/2"
PROGRAMS_PER_LEVEL = 60
"""Of each block."""


def write_suite(path: Path, recipe: Recipe, held_out: Set[str], report: Callable[[str], None]) -> int:
    """Write both blocks as JSON lines (same fields as the hand-written suite); return the number of programs.

    ``held_out``: what the recipe's training leaves out. The second block reads the whole corpus again (a core's
    quarter of an hour); ``report`` is told how far it is.
    """
    first = write_block(SUITE_SEED)
    second = write_block(SECOND_SEED, considered_skeletons(recipe, held_out, report), first)
    path.write_text("\n".join([*first, *second]) + "\n")
    return len(first) + len(second)


def write_block(
    seed: str,
    excluded: Set[str] = frozenset(),
    before: Sequence[str] = (),
    programs_per_level: int = PROGRAMS_PER_LEVEL,
) -> list[str]:
    """Return the lines of a block: the first programs of each level from ``seed``, none twice, none ``excluded``.

    ``before`` are the lines of earlier blocks: none of their programs is repeated, and the numbering continues.
    """
    rng = Random(seed)
    earlier = [json.loads(line) for line in before]
    seen = {skeleton(record["code"]) for record in earlier} | excluded
    lines = []
    for level in LEVELS:
        start = sum(record["level"] == level for record in earlier)
        found = 0
        while found < programs_per_level:
            problem = write_problem(rng, level)
            if problem is None or skeleton(problem.code) in seen:
                continue
            seen.add(skeleton(problem.code))
            found += 1
            lines.append(json.dumps(_record(problem, start + found)))
    return lines


def considered_skeletons(recipe: Recipe, held_out: Set[str], report: Callable[[str], None]) -> Set[str]:
    """Return the skeletons of all programs that the recipe's vocabulary and corpus ever asked whether to use."""
    asked = _Asked(held_out)
    tokenizer = build_recipe_tokenizer(recipe, asked)
    corpus = Corpus(
        tokenizer,
        recipe.rng_seed,
        recipe.num_steps,
        recipe.num_rows,
        recipe.row_tokens,
        asked,
        recipe.teaching(),
        recipe.mixture,
    )
    for index in range(recipe.num_steps):
        corpus[index]
        if (index + 1) % 100 == 0:
            report(f"batch {index + 1:,} of {recipe.num_steps:,}: {len(asked.asked):,} programs")
    return asked.asked


class _Asked(Set[str]):
    """A set that remembers what was looked for in it."""

    def __init__(self, members: Set[str]) -> None:
        self.members, self.asked = members, set[str]()

    def __contains__(self, skeleton: object) -> bool:
        self.asked.add(str(skeleton))
        return skeleton in self.members

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


def _record(problem: Problem, number: int) -> dict[str, object]:
    return {
        "id": f"generated/{problem.level}-{number:03d}",
        "level": problem.level,
        "tags": ["generated"],
        "code": problem.code + "\n",
        "input": problem.inputs[0],
        "output": problem.runs[0].result,
        "io_inputs": list(problem.inputs),
        "io_outputs": [run.result for run in problem.runs],
        "message": problem.message,
    }


def held_out_skeletons(folder: Path) -> frozenset[str]:
    """Return the skeletons of every program in the suite files of ``folder``: what training must not use."""
    return frozenset(
        skeleton(json.loads(line)["code"])
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
        if line.strip()
    )
