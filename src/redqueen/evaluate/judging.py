"""Grading answers to questions of any form: programs in the cage, literals in the judge, mathematics beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

from redqueen.domains.chat import fenced_blocks
from redqueen.domains.registry import grading, kind_of
from redqueen.evaluate.livecode import ContestJudge
from redqueen.evaluate.maths import MathsJudge
from redqueen.evaluate.questions import ContestQuestion, FunctionQuestion, MathsQuestion, Question, TaskQuestion
from redqueen.nouns import Grade
from redqueen.verify import Limits, Verifier
from redqueen.verify.unit_tests import UnitTest, UnitTester, with_code

MAX_PROGRAM_CHARS = 65_536
"""A longer program is not run, as everywhere in the verifier."""

SUITE_LIMITS = Limits(cpu_ms=2_000, accept_cpu_ms=2_000, wall_ms=20_000)
"""Limits of a program of CRUXEval or ``mini``: a benchmark is graded once, so time is no concern (ours)."""


@dataclass(frozen=True)
class JudgeSettings:
    """``workers``: programs at a time. ``allow_weak``: see ``Verifier``."""

    workers: int = 2
    allow_weak: bool = False


class Judge:
    """Grades answers to any questions. Use it as a context manager; each grader starts when it is first needed."""

    def __init__(self, settings: JudgeSettings | None = None) -> None:
        self.settings = settings or JudgeSettings()
        self._open = ExitStack()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def _verifier(self) -> Verifier:
        settings = self.settings
        return self._open.enter_context(Verifier(settings.workers, SUITE_LIMITS, allow_weak=settings.allow_weak))

    @cached_property
    def _tester(self) -> UnitTester:
        return self._open.enter_context(UnitTester(self.settings.workers, allow_weak=self.settings.allow_weak))

    @cached_property
    def _contest(self) -> ContestJudge:
        return self._open.enter_context(ContestJudge(self.settings.workers, self.settings.allow_weak))

    @cached_property
    def _maths(self) -> MathsJudge:
        return self._open.enter_context(MathsJudge(self.settings.workers, self.settings.allow_weak))

    def grade(self, pairs: Sequence[tuple[Question, str | None]]) -> list[Grade]:
        """Grade answers, in order; None is no answer at all. Equal pairs are graded once.

        Raises UserError when a grader that is needed cannot be had.
        """
        grades: dict[tuple[Question, str | None], Grade] = {}
        tasks: list[tuple[TaskQuestion, str]] = []
        tests: list[tuple[FunctionQuestion, str]] = []
        contests: list[tuple[ContestQuestion, str]] = []
        maths: list[tuple[MathsQuestion, str]] = []
        for question, answer in dict.fromkeys(pairs):
            if answer is None:
                grades[question, answer] = Grade(False, "unparsable", "no answer")
                continue
            match question:
                case TaskQuestion():
                    tasks.append((question, answer))
                case MathsQuestion():
                    maths.append((question, answer))
                case _ if len(answer) > MAX_PROGRAM_CHARS:
                    grades[question, answer] = Grade(False, "too-large", "source")
                case FunctionQuestion():
                    tests.append((question, answer))
                case ContestQuestion():
                    contests.append((question, answer))
        if tasks:
            graded = self._verify([(q, bare(a) if kind_of(q.task).is_multiline else a) for q, a in tasks])
            grades.update(zip(tasks, graded, strict=True))
        if tests:
            grades.update(zip(tests, self._tester.grade([solution(q, a) for q, a in tests]), strict=True))
        if contests:
            grades.update(zip(contests, self._contest.grade([(q, bare(a)) for q, a in contests]), strict=True))
        if maths:
            grades.update(zip(maths, self._maths.grade([(q.gold, a) for q, a in maths]), strict=True))
        return [grades[pair] for pair in pairs]

    def _verify(self, pairs: list[tuple[TaskQuestion, str]]) -> list[Grade]:
        verifier = self._verifier
        return verifier.drive(grading(q.grade or kind_of(q.task).grade, q.task, a, verifier.rules) for q, a in pairs)


def bare(answer: str) -> str:
    """Return a program without the Markdown fence around it: the last fenced block, or the answer as it stands."""
    blocks = [body for label, body in fenced_blocks(answer) if label in ("", "python", "python3", "py")]
    return blocks[-1] if blocks else answer


def solution(question: FunctionQuestion, answer: str) -> UnitTest:
    """Return the tests with the answer as their program.

    An answer to a stub may be the rest of it, or a whole program with the function in it; then the stub stands before
    it for what it imports and defines.
    """
    code = bare(answer)
    if question.stub and not re.search(rf"^(?:async def|def|class) +{re.escape(question.test.entry)}\b", code, re.M):
        return with_code(question.test, question.stub + code)
    return with_code(question.test, f"{question.stub}\n{code}" if question.stub else code)
