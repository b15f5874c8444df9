"""What the benchmarks ask: four forms of question, each with what its grader needs. Nothing here runs anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from redqueen.domains.domain import Grader
from redqueen.nouns import Task
from redqueen.verify.unit_tests import UnitTest


@dataclass(frozen=True)
class TaskQuestion:
    """A task of a kind that runs know. Graded like an attempt of a run, or by ``grade``, as the benchmark means it."""

    id: str
    task: Task
    gold: str | None = None
    """An answer known to be right, where the benchmark gives one."""
    grade: Grader | None = None
    cluster: str = ""
    """Questions of one cluster were made from one thing, and stand and fall together; "": it stands alone."""


@dataclass(frozen=True)
class FunctionQuestion:
    """A function to write, judged by unit tests. ``test.code`` is empty: the answer takes its place.

    ``stub`` is code that the answer continues (HumanEval's prompts), "" for none.
    """

    id: str
    text: str
    test: UnitTest
    stub: str = ""
    gold: str | None = None


@dataclass(frozen=True)
class Case:
    """One test of a contest problem: ``given`` is what the program reads, ``expected`` what it must say.

    For a program: standard input and output. For a function: JSON values, one argument a line, and the value returned.
    """

    given: str
    expected: str


@dataclass(frozen=True)
class ContestQuestion:
    """A contest problem, judged by its cases. ``entry``: the method of ``class Solution`` to call; "": a program that
    reads standard input and prints."""

    id: str
    text: str
    cases: tuple[Case, ...]
    entry: str = ""
    starter: str = ""
    gold: str | None = None


@dataclass(frozen=True)
class MathsQuestion:
    """A problem whose answer is a number or an expression. ``gold`` is LaTeX."""

    id: str
    text: str
    gold: str


Question = TaskQuestion | FunctionQuestion | ContestQuestion | MathsQuestion


def clusters_of(questions: Iterable[Question]) -> dict[str, str]:
    """Return the cluster that each question belongs to, by the question's id: that id where it stands alone."""
    return {q.id: (q.cluster if isinstance(q, TaskQuestion) else "") or q.id for q in questions}
