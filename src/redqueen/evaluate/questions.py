"""The four forms of benchmark question: what a model is asked, and what is read from its text as the answer.

Nothing here runs anything. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from redqueen.domains.domain import Grader
from redqueen.domains.frames import THINK_FIRST, fence, last_answer, program_in, split_thought
from redqueen.domains.prompt_format import PromptFormat
from redqueen.errors import UserError
from redqueen.records import Task
from redqueen_sandbox.unit_tests import UnitTest

_PROGRAM = f"{THINK_FIRST} The answer is the whole program, with its imports, in a ```python block."


@dataclass(frozen=True)
class TaskQuestion:
    """A task of a kind that runs know. Graded like an attempt of a run, or by ``grade``, as the benchmark means it."""

    id: str
    task: Task
    gold: str | None = None
    """An answer known to be right, where the benchmark gives one."""
    grade: Grader | None = None
    cluster: str = ""
    """Questions of one cluster were made from one source and are not independent; "": no cluster."""


@dataclass(frozen=True)
class FunctionQuestion:
    """A function to write, graded by unit tests. ``test.code`` is empty: the answer takes its place.

    ``stub`` is code that the answer continues (HumanEval's prompts), "" for none.
    """

    id: str
    text: str
    test: UnitTest
    stub: str = ""
    gold: str | None = None


@dataclass(frozen=True)
class Case:
    """One test of a contest problem: ``given`` is what the program reads, ``expected`` what it must print.

    For a program: standard input and output. For a function: JSON values, one argument a line, and the value returned.
    """

    given: str
    expected: str


@dataclass(frozen=True)
class ContestQuestion:
    """A contest problem, graded by its cases. ``entry``: the method of ``class Solution`` to call; "": a program that
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
    """Return the cluster that each question belongs to, by the question's id: that id where it has no cluster."""
    return {q.id: (q.cluster if isinstance(q, TaskQuestion) else "") or q.id for q in questions}


def prompt_for(question: Question, prompt_format: PromptFormat) -> str:
    """Write the prompt. Raises UserError when the model's prompt format has no words for such a question."""
    if isinstance(question, TaskQuestion):
        return prompt_format.solve(question.task)
    if prompt_format.name != "chat":
        raise UserError(
            f"the prompt format {prompt_format.name} has no prompts for questions such as {question.id}: set "
            "model.prompt_format=chat (a base that can chat: --set model.base=NAME), or take a suite of tasks, such as "
            "mini or cruxeval-o (an unknown --suite lists all)"
        )
    match question:
        case MathsQuestion():
            return f"{question.text}\n\n{THINK_FIRST} The answer is the final result alone, in \\boxed{{}}."
        case FunctionQuestion():
            asked = "Complete this Python function." if question.stub else "Write this Python function."
            return f"{asked}\n\n{fence('python', question.text.strip())}\n\n{_PROGRAM}"
        case ContestQuestion():
            return _contest_prompt(question)


def _contest_prompt(question: ContestQuestion) -> str:
    parts = ["Solve this programming problem in Python.", question.text.strip()]
    if question.starter.strip():
        parts.append(f"Complete this code:\n{fence('python', question.starter.rstrip())}")
    else:
        parts.append("The program reads from standard input and prints its answer.")
    return "\n\n".join([*parts, _PROGRAM])


def read_answer(question: Question, prompt_format: PromptFormat, text: str, finished: bool = True) -> str | None:
    """Read the answer out of a model's text; None when there is none. Never raises on the text, never evaluates it.

    A chat model that answered without the marks it was asked for is taken by its last box or its last program. Of a
    text that was cut off (``finished`` False) only an answer counts that was closed before: by marks, box or fence.
    """
    if isinstance(question, TaskQuestion):
        return prompt_format.parse_answer(question.task.kind, text, finished).answer
    outside = split_thought(text)[0]
    marked = last_answer(outside)
    if isinstance(question, MathsQuestion):
        found = marked if marked is not None else outside
        return (found.strip() or None) if marked is not None or "\\boxed{" in found else None
    entry = question.test.entry if isinstance(question, FunctionQuestion) else "Solution" if question.entry else ""
    program = program_in(marked or outside, entry)
    return (program or marked or "").strip("\n") or None
