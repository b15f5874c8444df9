"""Grading answers to questions of any type. Programs, and mathematics that a library must parse, run in the sandbox."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

from redqueen.domains.code.measures import UNPARSABLE
from redqueen.domains.frames import extract_program
from redqueen.domains.registry import grading, kind_of
from redqueen.evaluate.livecode import ContestJudge
from redqueen.evaluate.maths import MathsJudge
from redqueen.evaluate.questions import ContestQuestion, FunctionQuestion, MathsQuestion, Question, TaskQuestion
from redqueen.records import Grade, Task
from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.unit_tests import UnitTest, UnitTester

bare = extract_program  # the name by which other projects import it
MAX_PROGRAM_CHARS = 65_536
"""Longer programs are not run."""

MAX_CUTS = 20
"""How often an answer that does not parse is cut before the line of its error (ours)."""

_PERCENT = re.compile(r"(?i)\b(?:what|which)(?: is the| was the)?(?: \w+)? percent|percentage [^.?]*\?|as a percent")
_BUILTINS = frozenset(dir(builtins))
_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.Try)

SUITE_LIMITS = Limits(cpu_ms=2_000, accept_cpu_ms=2_000, wall_ms=20_000)
"""Limits for programs of CRUXEval and ``mini`` (ours). They are generous, because a benchmark is graded once."""


class Judge:
    """Grades answers to questions of any type, ``workers`` programs at a time; ``allow_weak``: see ``Sandbox``.

    Use it as a context manager. Each grader starts on first use.
    """

    def __init__(self, workers: int = 2, allow_weak: bool = False) -> None:
        self.workers, self.allow_weak = workers, allow_weak
        self._open = ExitStack()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def _verifier(self) -> Sandbox:
        return self._open.enter_context(Sandbox(self.workers, SUITE_LIMITS, allow_weak=self.allow_weak))

    @cached_property
    def _tester(self) -> UnitTester:
        return self._open.enter_context(UnitTester(self.workers, allow_weak=self.allow_weak))

    @cached_property
    def _contest(self) -> ContestJudge:
        return self._open.enter_context(ContestJudge(self.workers, self.allow_weak))

    @cached_property
    def _maths(self) -> MathsJudge:
        return self._open.enter_context(MathsJudge(self.workers, self.allow_weak))

    def grade(self, pairs: Sequence[tuple[Question, str | None]]) -> list[Grade]:
        """Grade answers, in order; None is a missing answer. Equal pairs are graded once.

        Raises UserError when a required grader cannot start.
        """
        judges: dict[type, Callable[[list[Any]], list[Grade]]] = {
            TaskQuestion: self._verify,
            FunctionQuestion: lambda asked: self._tester.grade([solution(q, a) for q, a in asked]),
            ContestQuestion: lambda asked: self._contest.grade(
                [(q, extract_program(a, "Solution" if q.entry else "")) for q, a in asked]
            ),
            MathsQuestion: lambda asked: self._maths.grade(
                [(q.gold + "\\%" if _PERCENT.search(q.text) and q.gold.isdecimal() else q.gold, a) for q, a in asked]
            ),
        }
        grades = {pair: _early_grade(*pair) for pair in dict.fromkeys(pairs)}
        for kind, judge in judges.items():
            asked = [pair for pair, refused in grades.items() if refused is None and isinstance(pair[0], kind)]
            grades.update(zip(asked, judge(asked) if asked else [], strict=True))
        return [grades[pair] for pair in pairs]  # type: ignore[misc]  # every question is of one of the kinds

    def _verify(self, asked: list[tuple[TaskQuestion, str]]) -> list[Grade]:
        verifier = self._verifier
        return verifier.drive(
            grading(q.grade or kind_of(q.task).grade, q.task, _without_fence(q.task, a), verifier.rules)
            for q, a in asked
        )


def _without_fence(task: Task, answer: str) -> str:
    may_be_fenced = kind_of(task).is_multiline or answer.lstrip()[:1] in ("`", "<", "\ufeff")
    return extract_program(answer).strip("`") if may_be_fenced else answer


def _early_grade(question: Question, answer: str | None) -> Grade | None:
    """Return the grade of an answer that is missing or too long, else None."""
    if answer is None:
        return Grade(False, "unparsable", "no answer")
    is_long = len(answer) > MAX_PROGRAM_CHARS and isinstance(question, FunctionQuestion | ContestQuestion)
    return Grade(False, "too-large", "source") if is_long else None


def solution(question: FunctionQuestion, answer: str) -> UnitTest:
    """Return the tests with the answer as their program.

    An answer to a stub may continue it, or be a whole program with the function; the stub is put before both, because
    it may import or define names. Example calls in the answer are removed (``definitions``).
    """
    code = extract_program(answer, question.test.entry)
    is_whole = re.search(rf"^(?:async def|def|class) +{re.escape(question.test.entry)}\b", code, re.M)
    whole = question.stub + ("\n" if question.stub and is_whole else "") + code
    return replace(question.test, code=definitions(whole, question.test.entry))


def definitions(program: str, entry: str) -> str:
    """Return a program's imports, functions and classes, and the statements that define names which these use.

    Example calls are removed. So are lines at the end that do not parse, together with the statement that they belong
    to: an answer that was cut off within its examples still counts. A text that does not parse after ``MAX_CUTS`` cuts
    is returned unchanged. Source: EvalPlus (``sanitize``).
    """
    lines, end = program.split("\n"), program.count("\n") + 1
    for _ in range(MAX_CUTS):
        try:
            body = ast.parse("\n".join(lines[:end])).body
            break
        except UNPARSABLE as error:
            line = error.lineno if isinstance(error, SyntaxError) else None
            end = max(0, min(end, line or end) - 1)
    else:
        return program
    rest = next((line for line in lines[end:] if line.strip()), "")
    body = body[:-1] if rest[:1].isspace() else body
    kept = {id(one) for one in body if isinstance(one, _DEFINING) or "recursionlimit(" in lines[one.lineno - 1]}
    used = ({entry} | _names(one for one in body if id(one) in kept)) - _BUILTINS
    for one in reversed([one for one in body if id(one) not in kept]):
        names = targets = _names([one])
        if isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = _names(one.targets if isinstance(one, ast.Assign) else [one.target])
        elif entry in names:
            continue  # an example call
        if targets & used:
            kept.add(id(one))
            used |= names - _BUILTINS
    spans = [(one.lineno - 1, one.end_lineno, getattr(one, "decorator_list", ())) for one in body if id(one) in kept]
    return "\n".join(
        "\n".join(lines[min([first, *(d.lineno - 1 for d in marks)]) : last]) for first, last, marks in spans
    )


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
