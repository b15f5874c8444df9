"""Grading mathematics: the same text, or the same value by math-verify, which reads models' texts in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from redqueen.domains.maths.answer_form import bare_number, comparable, final_answer, plain_form
from redqueen.domains.maths.answers import plain_number, same_value
from redqueen.errors import UserError, how_to_install
from redqueen.nouns import Grade
from redqueen.verify import Verifier
from redqueen.verify.guard import VERDICT, guarded_jobs
from redqueen.verify.pool import Jobs
from redqueen.verify.programs import Rules

DEADLINE_S = 10.0
"""CPU time of the longest comparison of one answer; then it counts as wrong (ours)."""
MEMORY_BYTES = 1 << 30
"""Address space of one comparison beyond the warm interpreter, bytes (ours)."""
MAX_ANSWER_CHARS = 2_000
"""A longer answer is not parsed (ours); no gold answer of the suites is a tenth as long."""


class MathsJudge:
    """Grades answers to problems in mathematics, ``workers`` at a time. Use it as a context manager.

    Raises UserError when math-verify is not installed, or no sandbox can be had (``allow_weak``: see ``Verifier``).
    """

    def __init__(self, workers: int = 2, allow_weak: bool = False, deadline_s: float = DEADLINE_S) -> None:
        if find_spec("math_verify") is None:
            raise UserError(f"answers in mathematics are compared by math-verify: {how_to_install('maths')}")
        self.deadline_s = deadline_s
        self.verifier = Verifier(workers, allow_weak=allow_weak)

    def __enter__(self) -> MathsJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.verifier.close()

    def grade(self, pairs: Sequence[tuple[str, str]]) -> list[Grade]:
        """Grade pairs (gold, answer), in order. Equal pairs are compared once."""
        distinct = list(dict.fromkeys(pairs))
        graded = self.verifier.drive(self._guarded_grade(*pair, self.verifier.rules) for pair in distinct)
        grades = dict(zip(distinct, graded, strict=True))
        return [grades[pair] for pair in pairs]

    def _guarded_grade(self, gold: str, answer: str, rules: Rules) -> Jobs[Grade]:
        return guarded_jobs("maths", self._grade(gold, answer, rules), lambda detail: Grade(False, VERDICT, detail))

    def _grade(self, gold: str, answer: str, rules: Rules) -> Jobs[Grade]:
        given = final_answer(answer)
        if not given:
            return Grade(False, "unparsable", "no answer")
        if given == gold:
            return Grade(True, "ok")
        if len(given) > MAX_ANSWER_CHARS:
            return Grade(False, "too-large", f"longer than {MAX_ANSWER_CHARS} characters")
        number = plain_number(plain_form(gold))
        sides = comparable(gold if number is None else plain_form(gold), given)
        if sides is None:
            return Grade(False, "ok", "no value, or not only one")
        if plain_form(sides[0]) == plain_form(sides[1]):
            return Grade(True, "ok")
        if number is not None and number == bare_number(sides[1]):  # with a unit, whichever words math-verify knows
            return Grade(True, "ok")
        return (yield from same_value(*sides, rules, round(1000 * self.deadline_s), MEMORY_BYTES))
