"""Grades answers in mathematics by math-verify, in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redqueen.domains.maths.answers import grade_value
from redqueen.records import Grade
from redqueen_sandbox import Sandbox
from redqueen_sandbox.guard import VERDICT, guarded_jobs

MATHS_DEADLINE_S = 10.0
"""CPU time limit of the comparison of one answer, in seconds; beyond it the answer is wrong (ours)."""
MATHS_MEMORY_BYTES = 1 << 30
"""Address space of one comparison, in bytes, in addition to that of the warm interpreter (ours)."""
MAX_MATHS_CHARS = 2_000
"""A longer answer is not parsed (ours); no gold answer of the suites is a tenth as long."""


class MathsJudge(Sandbox):
    """Grades answers in mathematics: the same text, or the same value by math-verify, which parses models' texts in the
    sandbox."""

    def __init__(self, workers: int = 2, allow_weak: bool = False, deadline_s: float = MATHS_DEADLINE_S) -> None:
        super().__init__(workers, allow_weak=allow_weak)
        self.deadline_s = deadline_s

    def grade(self, pairs: Sequence[tuple[str, str]]) -> list[Grade]:
        """Grade pairs (gold, answer), in order."""
        rules, bounds = self.rules, (MAX_MATHS_CHARS, round(1000 * self.deadline_s), MATHS_MEMORY_BYTES)
        compared = (grade_value(gold, answer, rules, True, *bounds) for gold, answer in pairs)
        return self.drive(guarded_jobs("maths", jobs, partial(Grade, False, VERDICT)) for jobs in compared)
