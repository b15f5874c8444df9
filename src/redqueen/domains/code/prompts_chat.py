"""Code tasks in plain English: programs, inputs, outputs and messages in fenced blocks. The wording is ours.

Programs are in ``python`` fences, argument lists in ``input`` fences, messages in ``message`` fences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import (
    MAX_MESSAGE_CHARS,
    THINK_FIRST,
    fence,
    fenced_blocks,
    hint,
    last_block,
    program_in,
    unfenced,
)
from redqueen.records import Task

_RULES = """Rules for the program:
- its entry point is a function named f; helper functions may stand before it;
- it is deterministic: no randomness, no clock, no identities or hashes of objects;
- it imports nothing and does no input or output: no print, no files, no network;
- it takes and returns plain literals only: int, float, bool, str, None, and lists, tuples, dicts or sets of them;
- it ends quickly on every input that you give."""

_INPUT_RULE = (
    "Write an input as the argument list that stands between the brackets of the call, literals only: "
    "the call f([1, 2], 'ab') has the input [1, 2], 'ab'."
)

_SEES_INPUT = "Another programmer will see the program and the input, and must predict the exact output."
_SEES_OUTPUT = "Another programmer will see the program and its output, and must find an input that gives this output."


def _propose_program(sees: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    parts = [f"Invent a programming puzzle: a Python program and one input for it. {sees}", _RULES]
    parts.append(_INPUT_RULE)
    for number, task in enumerate(references, start=1):
        parts.append(f"Earlier puzzle {number}:\n{fence('python', task.code)}\n{fence('input', task.inputs[0])}")
    if references:
        parts.append("Your puzzle must differ from all of the above in what it computes, not only in names or numbers.")
    parts.append(
        "Write something different and harder for the solver: several steps of reasoning, yet solvable with care. "
        "First plan between <think> and </think>. Then write the program in a ```python block and the input in an "
        "```input block."
    )
    return "\n\n".join(parts)


def _propose_pairs(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    if given is None:
        raise ValueError("a proposal of pairs needs the given task whose program it describes")
    code, num_inputs = given.code, terms.num_inputs
    return "\n\n".join(
        [
            "Here is a Python program.",
            fence("python", code),
            f"Choose {num_inputs} different inputs for it and write a short message about it. Another programmer will "
            "see the message and some of your inputs with their outputs, but not the program, and must write a "
            "program that agrees on all of them.",
            _INPUT_RULE,
            "The inputs should be varied, lead to different outputs, and together pin down what the program does. "
            "The message should hint at the idea in one sentence, without any code, so that the task is hard for the "
            f"solver but possible. A message of more than {MAX_MESSAGE_CHARS} characters is not shown.",
            f"First plan between <think> and </think>. Then write {num_inputs} ```input blocks with one input each, "
            "and the message in a ```message block.",
        ]
    )


def _solve_output(task: Task) -> str:
    return "\n\n".join(
        [
            "What does this Python program return when f is called with this input?",
            fence("python", task.code),
            fence("input", task.inputs[0]),
            f"{THINK_FIRST} The answer is the returned value as a Python literal, and nothing else.",
        ]
    )


def _solve_input(task: Task) -> str:
    return "\n\n".join(
        [
            "Find an input for which this Python program returns this output. Any input that gives it is right.",
            fence("python", task.code),
            fence("output", task.outputs[0]),
            f"{THINK_FIRST} {_INPUT_RULE} The answer is the input, and nothing else.",
        ]
    )


def _solve_program(task: Task) -> str:
    parts = ["Write a Python program that agrees with these examples, and with others that you are not shown."]
    if message := hint(task.message):
        parts.append(f"A hint:\n{fence('message', message)}")
    for source, value in zip(task.inputs[: task.num_shown], task.outputs[: task.num_shown], strict=True):
        parts.append(f"{fence('input', source)}\n{fence('output', value)}")
    return "\n\n".join([*parts, _RULES, f"{THINK_FIRST} The answer is the whole program in a ```python block."])


def _read_program(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the last program block and the last input block."""
    inputs = _inputs(text)
    if not inputs:
        return ParsedProposal(error="no input block")
    code = last_block(text, "python")
    if not code.strip():
        return ParsedProposal(error="no python block")
    return ParsedProposal(code=code, inputs=inputs[-1:])


def _read_pairs(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the last inputs, and the last message."""
    inputs = _inputs(text)
    if not inputs:
        return ParsedProposal(error="no input block")
    if given is None:
        return ParsedProposal(error="no given program")
    message = last_block(text, "message").strip()
    if not message:
        return ParsedProposal(error="no message block")
    return ParsedProposal(code=given.code, inputs=inputs[-terms.num_inputs :], message=message)


def _inputs(text: str) -> tuple[str, ...]:
    return tuple(body.strip() for label, body in fenced_blocks(text) if label == "input")


def _read_literal(answer: str) -> str | None:
    return (unfenced(answer) or "").strip("`*").strip() or None


def _read_answered_program(answer: str) -> str | None:
    return program_in(answer, "f")


DEDUCTION = Words(partial(_propose_program, _SEES_INPUT), _solve_output, _read_program, _read_literal)
ABDUCTION = Words(partial(_propose_program, _SEES_OUTPUT), _solve_input, _read_program, _read_literal)
INDUCTION = Words(_propose_pairs, _solve_program, _read_pairs, _read_answered_program)
