"""What a model is asked for a question, and what is read out of its text as the answer. The wording is ours."""

from __future__ import annotations

from redqueen.domains.chat import THINK_FIRST, fence, last_answer, program_in, split_thought
from redqueen.domains.prompt_format import PromptFormat
from redqueen.errors import UserError
from redqueen.evaluate.questions import ContestQuestion, FunctionQuestion, MathsQuestion, Question, TaskQuestion

_PROGRAM = f"{THINK_FIRST} The answer is the whole program, with its imports, in a ```python block."


def prompt_for(question: Question, prompt_format: PromptFormat) -> str:
    """Write the prompt. Raises UserError when the model's prompt format has no words for such a question."""
    if isinstance(question, TaskQuestion):
        return prompt_format.solve(question.task)
    if prompt_format.name != "chat":
        raise UserError(
            f"the prompt format {prompt_format.name} has no words for questions such as {question.id}: set "
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
