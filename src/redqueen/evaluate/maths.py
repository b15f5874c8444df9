"""Grading mathematics: the same text, or the same value by math-verify, which runs in a process of its own."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from redqueen.domains.maths.answer_form import comparable, final_answer, plain_form
from redqueen.errors import UserError, how_to_install
from redqueen.nouns import Grade
from redqueen.verify.guard import VERDICT, guarded

DEADLINE_S = 10.0
"""Longest comparison of one answer; then it counts as wrong (ours)."""
MAX_ANSWER_CHARS = 2_000
"""A longer answer is not parsed (ours); no gold answer of the suites is a tenth as long."""
_START_S = 120.0


class MathsJudge:
    """Grades answers to problems in mathematics. Use it as a context manager; the process starts when it is needed.

    Raises UserError when math-verify is not installed.
    """

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        if find_spec("math_verify") is None:
            raise UserError(f"answers in mathematics are compared by math-verify: {how_to_install('maths')}")
        self.deadline_s = deadline_s
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> MathsJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def grade(self, pairs: Sequence[tuple[str, str]]) -> list[Grade]:
        """Grade pairs (gold, answer), in order. Equal pairs are compared once."""
        grades = {pair: self._guarded_grade(*pair) for pair in dict.fromkeys(pairs)}
        return [grades[pair] for pair in pairs]

    def _guarded_grade(self, gold: str, answer: str) -> Grade:
        return guarded("maths", lambda: self._grade(gold, answer), lambda detail: Grade(False, VERDICT, detail))

    def _grade(self, gold: str, answer: str) -> Grade:
        given = final_answer(answer)
        if not given:
            return Grade(False, "unparsable", "no answer")
        if given == gold:
            return Grade(True, "ok")
        if len(given) > MAX_ANSWER_CHARS:
            return Grade(False, "too-large", f"longer than {MAX_ANSWER_CHARS} characters")
        sides = comparable(gold, given)
        if sides is None:
            return Grade(False, "ok", "no value, or not only one")
        if plain_form(sides[0]) == plain_form(sides[1]):
            return Grade(True, "ok")
        return self._ask(*sides)

    def _ask(self, gold: str, answer: str) -> Grade:
        try:
            process = self._process or self._start()
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps([gold, answer]) + "\n")
            process.stdin.flush()
            in_time = bool(select.select([process.stdout], [], [], self.deadline_s)[0])
            said = process.stdout.readline() if in_time else ""
        except OSError:
            in_time, said = True, ""
        if said not in ("true\n", "false\n"):
            self._end()
            return Grade(False, "memory" if in_time else "timeout", "the comparison died" if in_time else "too long")
        return Grade(said == "true\n", "ok")

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "redqueen.evaluate.maths_worker"]
        self._process = process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout
        ready, _, _ = select.select([process.stdout], [], [], _START_S)
        if not ready or process.stdout.readline() != "ready\n":
            self._end()
            raise UserError(f"math-verify does not start here; reinstall it: {how_to_install('maths')}")
        return process

    def _end(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None
