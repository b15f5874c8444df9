"""Grading mathematics: the same text, or the same value by math-verify, which reads models' texts in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.domains.maths.answers import grade_value
from redqueen.records import Grade
from redqueen_sandbox import Sandbox
from redqueen_sandbox.guard import VERDICT, guarded_jobs
from redqueen_sandbox.pool import Jobs

DEADLINE_S = 10.0
"""CPU time of the longest comparison of one answer; then it counts as wrong (ours)."""
MEMORY_BYTES = 1 << 30
"""Address space of one comparison beyond the warm interpreter, bytes (ours)."""
MAX_ANSWER_CHARS = 2_000
"""A longer answer is not parsed (ours); no gold answer of the suites is a tenth as long."""


class MathsJudge(Sandbox):
    """Grades answers to problems in mathematics, ``workers`` at a time."""

    def __init__(self, workers: int = 2, allow_weak: bool = False, deadline_s: float = DEADLINE_S) -> None:
        super().__init__(workers, allow_weak=allow_weak)
        self.deadline_s = deadline_s

    def grade(self, pairs: Sequence[tuple[str, str]]) -> list[Grade]:
        """Grade pairs (gold, answer), in order."""
        return self.drive(self._guarded_grade(*pair) for pair in pairs)

    def _guarded_grade(self, gold: str, answer: str) -> Jobs[Grade]:
        cpu_ms = round(1000 * self.deadline_s)
        jobs = grade_value(gold, answer, self.rules, True, MAX_ANSWER_CHARS, cpu_ms, MEMORY_BYTES)
        return guarded_jobs("maths", jobs, lambda detail: Grade(False, VERDICT, detail))
