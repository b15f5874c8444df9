"""The four forms of benchmark question: what a model is asked, and what is read from its text as the answer.

Nothing here runs anything. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from redqueen.domains.domain import Grader
from redqueen.domains.frames import THINK_FIRST, PlainFrame, fence, last_answer, outside_thought, program_in
from redqueen.domains.maths.notation import states_answer
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.errors import UserError
from redqueen.records import Task
from redqueen_sandbox.unit_tests import UnitTest

_PLAIN_PROGRAM = "Answer with one self-contained Python program in a ```python block."
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


def styled(style: str, question: Question, own: PromptFormat, converses: bool) -> PromptFormat:
    """Return the format in which a question is asked; ``own``: the config's, ``converses``: there is a chat template.

    ``style`` is run (the config's format), plain (one chat request without marks), fewshot, or auto: tasks that runs
    pose as runs pose them, all others plainly where the base converses, else by examples.
    """
    if style == "auto":
        kept = isinstance(question, TaskQuestion) or own.name == "compact"
        style = "run" if kept else "plain" if converses else "fewshot"
    return own if style == "run" else replace(own, frame=FRAMES[style])


def stops_of(question: Question, prompt_format: PromptFormat) -> tuple[str, ...]:
    """Return the strings that end an answer: those of the format, and where a text is continued, what begins another.

    Source: those of EvalPlus for completions by base models, in which a function ends where other code begins.
    """
    if isinstance(question, TaskQuestion) or not prompt_format.shows_examples:
        return prompt_format.stops
    if isinstance(question, MathsQuestion):
        return ("\nProblem:",)
    others = (
        ("\ndef ", "\nclass ", "\nimport ", "\nfrom ")
        if isinstance(question, FunctionQuestion) and question.stub
        else ()
    )
    return ("\nif __name__", "\nprint(", "\nassert ", '\n"""', *others)


def prompt_for(question: Question, prompt_format: PromptFormat) -> str:
    """Write the prompt. Raises UserError when the model's prompt format has no words for such a question."""
    if isinstance(question, TaskQuestion):
        return prompt_format.solve(question.task)
    if prompt_format.name == "compact":
        raise UserError(
            f"the embedded base was not taught questions such as {question.id}: name another base (--set "
            "model.base=NAME), or take a suite of tasks, such as mini or cruxeval-o (an unknown --suite lists all)"
        )
    if prompt_format.shows_examples:
        return _continued(question)
    plain = isinstance(prompt_format.frame, PlainFrame)
    match question:
        case MathsQuestion():
            how = "Reason step by step, and put" if plain else f"{THINK_FIRST} The answer is"
            return f"{question.text}\n\n{how} the final result alone{',' if plain else ''} in \\boxed{{}}."
        case FunctionQuestion():
            asked = "Complete this Python function." if question.stub else "Write this Python function."
            return f"{asked}\n\n{fence('python', question.text.strip())}\n\n{_PLAIN_PROGRAM if plain else _PROGRAM}"
        case ContestQuestion():
            starter = f"Complete this code:\n{fence('python', question.starter.rstrip())}"
            form = "The program reads from standard input and prints its answer."
            form = starter if question.starter.strip() else form
            asked = f"Solve this programming problem in Python.\n\n{question.text.strip()}"
            return f"{asked}\n\n{form}\n\n{_PLAIN_PROGRAM if plain else _PROGRAM}"


def _continued(question: MathsQuestion | FunctionQuestion | ContestQuestion) -> str:
    """Write the beginning of a text that a base model continues: solved problems, or a file of Python."""
    if isinstance(question, MathsQuestion):
        return "".join(f"Problem: {a}\nSolution: {b}\n\n" for a, b in (*_SOLVED, (question.text, ""))).rstrip()
    if isinstance(question, FunctionQuestion) and question.stub:
        return question.stub
    starter = question.starter if isinstance(question, ContestQuestion) else ""
    return f'"""\n{question.text.strip()}\n"""\n{starter}'


_SOLVED = (
    ("A box has 4 rows of 6 eggs. Five eggs are broken. How many are whole?",
     "There are 4 * 6 = 24 eggs. Of these 24 - 5 = 19 are whole. The answer is \\boxed{19}."),
    ("Solve 3x + 5 = 20 for x.",
     "Subtracting 5 gives 3x = 15, and dividing by 3 gives x = 5. The answer is \\boxed{5}."),
    ("What is the probability that two fair coins show the same side?",
     "Two of the four outcomes show the same side, so it is 2/4. The answer is \\boxed{\\frac{1}{2}}."),
)  # fmt: skip
"""Examples of mathematics; ours."""


def read_answer(question: Question, prompt_format: PromptFormat, text: str, finished: bool = True) -> str | None:
    """Read the answer out of a model's text; None when there is none. Never raises on the text, never evaluates it.

    A chat model that answered without the marks it was asked for is taken by its last box, what it says "the answer is"
    or its last program. Of a text that was cut off (``finished`` False) only an answer counts that was closed before:
    by marks, box or fence; the fence of a function is closed for it, and ``judging.definitions`` reads what is whole.
    """
    if isinstance(question, TaskQuestion):
        return prompt_format.parse_answer(question.task.kind, text, finished).answer
    if prompt_format.shows_examples:
        ends = [text.find(stop) for stop in stops_of(question, prompt_format) if stop in text]
        text = text[: min(ends)] if ends else text
        if isinstance(question, MathsQuestion):
            return text.strip() if states_answer(text, finished or bool(ends)) else None
        starter = question.starter if isinstance(question, ContestQuestion) else ""
        return starter + text if text.strip() and (finished or ends) else None
    if isinstance(question, FunctionQuestion) and not finished:
        text += "\n```"
    outside = outside_thought(text, not isinstance(question, MathsQuestion))
    marked = last_answer(outside)
    if isinstance(question, MathsQuestion):
        found = marked if marked is not None else outside
        return (found.strip() or None) if marked is not None or states_answer(found, finished) else None
    entry = question.test.entry if isinstance(question, FunctionQuestion) else "Solution" if question.entry else ""
    program = program_in(marked or outside, entry)
    return (program or marked or "").strip("\n") or None
