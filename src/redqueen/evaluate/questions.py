"""The four types of benchmark question: their prompts, and how an answer is read from a model's text.

This module runs no programs. The wording is ours.
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
    """A task of a kind that runs use. Graded like an attempt in a run, or by ``grade``, the benchmark's own rule."""

    id: str
    task: Task
    gold: str | None = None
    """An answer known to be right, where the benchmark gives one."""
    grade: Grader | None = None
    cluster: str = ""
    """Questions of one cluster come from one source and are not independent; "": no cluster."""


@dataclass(frozen=True)
class FunctionQuestion:
    """A function to write, graded by unit tests. ``test.code`` is empty: the answer replaces it.

    ``stub`` is code that the answer continues (a HumanEval prompt), "" for none.
    """

    id: str
    text: str
    test: UnitTest
    stub: str = ""
    gold: str | None = None


@dataclass(frozen=True)
class Case:
    """One test of a contest problem: ``given`` is what the program reads, ``expected`` what it must print.

    For a program: standard input and output. For a function: JSON values, an argument per line, and the returned value.
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
    """Return the cluster of each question by the question's id; a question without a cluster is its own."""
    return {q.id: (q.cluster if isinstance(q, TaskQuestion) else "") or q.id for q in questions}


def styled(style: str, question: Question, own: PromptFormat, converses: bool) -> PromptFormat:
    """Return the format of a question's prompt. ``own``: the config's; ``converses``: the base has a chat template.

    ``style`` is run (the config's format), plain (one chat request without marks), fewshot, or auto: run for tasks of
    runs and with the compact format, else plain for a base with a chat template, else fewshot.
    """
    if style == "auto":
        kept = isinstance(question, TaskQuestion) or own.name == "compact"
        style = "run" if kept else "plain" if converses else "fewshot"
    return own if style == "run" else replace(own, frame=FRAMES[style])


def stops_of(question: Question, prompt_format: PromptFormat) -> tuple[str, ...]:
    """Return the strings that end an answer: those of the format, or for few-shot prompts the start of other text.

    Source: EvalPlus, for completions by base models, where a function ends when other code starts.
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
    """Write the prompt. Raises UserError when the compact format cannot ask such a question."""
    if isinstance(question, TaskQuestion):
        return prompt_format.solve(question.task)
    if prompt_format.name == "compact":
        raise UserError(
            f"the embedded base was not trained on questions such as {question.id}: name another base (--set "
            "model.base=NAME), or take a suite of tasks, such as mini or cruxeval-o (an unknown --suite lists all)"
        )
    if prompt_format.shows_examples:
        return _continuation_prompt(question)
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


def _continuation_prompt(question: MathsQuestion | FunctionQuestion | ContestQuestion) -> str:
    """Write the start of a text that a base model continues: solved problems, or a Python file."""
    if isinstance(question, MathsQuestion):
        return "".join(f"Problem: {a}\nSolution: {b}\n\n" for a, b in (*_MATHS_EXAMPLES, (question.text, ""))).rstrip()
    if isinstance(question, FunctionQuestion) and question.stub:
        return question.stub
    starter = question.starter if isinstance(question, ContestQuestion) else ""
    return f'"""\n{question.text.strip()}\n"""\n{starter}'


_MATHS_EXAMPLES = (
    ("A box has 4 rows of 6 eggs. Five eggs are broken. How many are whole?",
     "There are 4 * 6 = 24 eggs. Of these 24 - 5 = 19 are whole. The answer is \\boxed{19}."),
    ("Solve 3x + 5 = 20 for x.",
     "Subtracting 5 gives 3x = 15, and dividing by 3 gives x = 5. The answer is \\boxed{5}."),
    ("What is the probability that two fair coins show the same side?",
     "Two of the four outcomes show the same side, so it is 2/4. The answer is \\boxed{\\frac{1}{2}}."),
)  # fmt: skip
"""Few-shot examples of mathematics (ours)."""


def read_answer(question: Question, prompt_format: PromptFormat, text: str, finished: bool = True) -> str | None:
    """Read the answer from a model's text; None when there is none. Never raises on the text, never evaluates it.

    Without the requested marks, the answer is the last box, the text after "the answer is", or the last program. In a
    text that was cut off (``finished`` False) an answer counts only if marks, box or fence are closed. The open fence
    of a function is closed here, and ``judging.definitions`` keeps the complete part.
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
