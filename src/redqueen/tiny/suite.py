"""The generated half of the frozen suite: programs of unseen seeds in five difficulty strata, never trained on."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from redqueen.tiny.generator import LEVELS
from redqueen.tiny.problems import skeleton, write_problem

SUITE_SEED = "frozen suite/1"
PROGRAMS_PER_LEVEL = 60


def write_suite(path: Path, programs_per_level: int = PROGRAMS_PER_LEVEL) -> int:
    """Write the suite as JSON lines (same fields as the hand-written one); return the number of programs."""
    rng = Random(SUITE_SEED)
    seen: set[str] = set()
    lines = []
    for level in LEVELS:
        count = 0
        while count < programs_per_level:
            problem = write_problem(rng, level)
            if problem is None or skeleton(problem.code) in seen:
                continue
            seen.add(skeleton(problem.code))
            count += 1
            record = {
                "id": f"generated/{level}-{count:03d}",
                "level": level,
                "tags": ["generated"],
                "code": problem.code + "\n",
                "input": problem.inputs[0],
                "output": problem.runs[0].result,
                "io_inputs": list(problem.inputs),
                "io_outputs": [run.result for run in problem.runs],
                "message": problem.message,
            }
            lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return len(lines)


def held_out_skeletons(folder: Path) -> frozenset[str]:
    """Return the skeletons of every program in the suite files of ``folder``: what training must not use."""
    return frozenset(
        skeleton(json.loads(line)["code"])
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
        if line.strip()
    )
