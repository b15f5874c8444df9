"""Code tasks as examples to continue, for base and small models.

::

    propose o, i    what is sought, END, (code that begins with >>> f(input), END) ..., def f    -> (...): ... END
    propose f       (code, # message, f(input) ..., END) ..., code, #              -> message, f(input) ..., END
    solve code_o    (code, f(input) == output, END) ..., code, f(input) ==         -> output END
    solve code_i    (code, # output, f(input), END) ..., code, # output, f         -> (input) END
    solve code_f    (# message, f(input) == output ..., code, END) ..., def f      -> (...): ... END

A proposal's input stands where Python has examples of a call, in a docstring in front of the body, and is taken out of
the program. A small model then writes an input first and a program for it; written behind the program, nine of ten
inputs are one or two integers (measured: docs/cookbook/real-base.md).

Prompts end where a token ends: tokenizers join a bracket with what follows it. With traces, ``code_o`` and ``code_i``
have a line of reasoning before the answer. Solving always shows the same examples, so that a task is asked in the same
words whenever it is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from redqueen.config import VerifyConfig
from redqueen.domains.code.examples import EXAMPLES, SEEDS, TRACES, Trace
from redqueen.domains.code.measures import UNPARSABLE
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.fewshot import ANSWER, END, without_end
from redqueen.nouns import Task

FEWEST_SHOWN = 4
"""Programs in a proposal prompt at least: where a buffer has fewer, the first of our own fill up (ours)."""

PAIRED = (0, 2, 6)
"""The examples with several pairs each that induction shows: long ones, so few."""

NEWLINE = "\n"

QUOTES = '"""'

PROMPT = ">>> f("
"""How a call in a docstring begins, as ``doctest`` has it."""

MAX_MESSAGE_CHARS = 80
"""A longer message is left out, as in the compact format: a teacher must not hand over the program in it (ours)."""


def _propose_program(sought: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    shown = [*references, *SEEDS[: max(0, FEWEST_SHOWN - len(references))]]
    examples = "".join(f"{_with_call(task)}\n{END}\n" for task in shown)
    return f"# Find the {sought}.\n{END}\n{examples}def f"


def _propose_pairs(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    if given is None:
        raise ValueError("a code_f proposal needs a given program")
    shown = [
        f"{_code(task)}\n\n# {task.message}\n" + "".join(f"f({i})\n" for i in task.inputs[: terms.num_inputs]) + END
        for task in (EXAMPLES[i] for i in PAIRED)
    ]
    return "\n".join([*shown, f"{_code(given)}\n\n#"])


def _solve_output(task: Task, traced: bool) -> str:
    shown = [
        f"{_code(one)}\n\n{_call(one)}{_thought(trace.forward) if traced else ' == '}{one.outputs[0]}\n{END}\n"
        for one, trace in _examples()
    ]
    return "".join(shown) + f"{_code(task)}\n\n{_call(task)}" + ("" if traced else " ==")


def _solve_input(task: Task, traced: bool) -> str:
    shown = [
        f"{_code(one)}\n\n# {one.outputs[0]}{_thought(trace.back) if traced else NEWLINE}{_call(one)}\n{END}\n"
        for one, trace in _examples()
    ]
    return "".join(shown) + f"{_code(task)}\n\n# {without_end(task.outputs[0])}" + ("" if traced else "\nf")


def _solve_program(task: Task) -> str:
    shown = [_pairs(EXAMPLES[i], task.num_shown) + f"{_code(EXAMPLES[i])}\n{END}\n" for i in PAIRED]
    return "".join(shown) + _pairs(task, task.num_shown) + "def f"


def _examples() -> list[tuple[Task, Trace]]:
    return [(EXAMPLES[i], trace) for i, trace in TRACES.items()]


def _thought(text: str) -> str:
    return f"\n# {text}{ANSWER}"


def _code(task: Task) -> str:
    return without_end(task.code)


def _call(task: Task) -> str:
    return f"f({without_end(task.inputs[0])})"


def _pairs(task: Task, num: int) -> str:
    message = without_end(task.message) if 0 < len(task.message) <= MAX_MESSAGE_CHARS else ""
    pairs = zip(task.inputs[:num], task.outputs[:num], strict=True)
    lines = [f"f({without_end(i)}) == {without_end(o)}\n" for i, o in pairs]
    return "".join([f"# {message}\n" if message else "", *lines])


def _with_call(task: Task) -> str:
    """Return the program with its call as the docstring of f; above it where no place for one can be found."""
    call = _call(task).replace(QUOTES, r"\x22\x22\x22")  # in a string it means the same
    for code in (_code(task), _unparsed(task.code)):
        place = _body_of_f(code)
        if place is not None:
            line, indent = place
            lines, doc = code.split("\n"), [QUOTES, f">>> {call}", QUOTES]
            return "\n".join([*lines[:line], *(" " * indent + part for part in doc), *lines[line:]])
    return f"{QUOTES}\n>>> {call}\n{QUOTES}\n{_code(task)}"


def _unparsed(code: str) -> str:
    """Return a program as Python would lay it out; "" for what it cannot read."""
    try:
        return without_end(ast.unparse(ast.parse(code)))
    except UNPARSABLE:
        return ""


def _body_of_f(code: str) -> tuple[int, int] | None:
    """Return the line before which the body of f begins, and its indent; None where it has no line of its own."""
    if "\r" in code:  # another end of a line to Python
        return None
    try:
        functions = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name == "f"]
    except UNPARSABLE:
        return None
    for function in functions:
        first = function.body[0]
        line = min([first.lineno, *(node.lineno for node in getattr(first, "decorator_list", []))]) - 1
        if not code.split("\n")[line][: first.col_offset].strip():
            return line, first.col_offset
    return None


def _read_program(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the program and the call in its docstring, which is taken out."""
    head, _, rest = text.partition(QUOTES)
    doc, closed, body = rest.partition(QUOTES)
    calls = [line.strip() for line in doc.splitlines() if line.strip().startswith(PROMPT)]
    if not closed or not calls:
        return ParsedProposal(error="no call of f")
    return _proposal(f"def f{head.rstrip()}{body}", [calls[0].removeprefix(PROMPT)])


def _proposal(code: str, calls: Sequence[str], message: str = "") -> ParsedProposal:
    inputs = tuple(call.rpartition(")")[0].strip() for call in calls)
    if not all(")" in call for call in calls):
        return ParsedProposal(error="a call that is not closed")
    return ParsedProposal(code.strip("\n") + "\n", inputs, message)


def _read_pairs(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    message, *calls = text.split("\nf(")
    if given is None or not calls:
        return ParsedProposal(error="no given program" if given is None else "no call of f")
    return _proposal(given.code, calls, message.strip())


def _read_input(answer: str) -> str | None:
    """Read ``f(1, 2)``, with or without the ``f``; models like to repeat the output behind it."""
    call = answer.strip().removeprefix("f")
    inside, closed, _ = call.partition(") ==") if ") ==" in call else call.rpartition(")")
    return inside[1:].strip() if closed and call.startswith("(") else None


def _read_answered_program(answer: str) -> str:
    return f"def f{answer}".strip("\n") + "\n"


def words(traced: bool) -> tuple[Words, Words, Words]:
    """Return the words of deduction, abduction and induction; ``traced``: with reasoning before the answers."""
    output, source = partial(_solve_output, traced=traced), partial(_solve_input, traced=traced)
    return (
        Words(partial(_propose_program, "output"), output, _read_program, str.strip),
        Words(partial(_propose_program, "input"), source, _read_program, _read_input),
        Words(_propose_pairs, _solve_program, _read_pairs, _read_answered_program, has_thoughts=False),
    )


DEDUCTION, ABDUCTION, INDUCTION = words(traced=False)
TRACED_DEDUCTION, TRACED_ABDUCTION, TRACED_INDUCTION = words(traced=True)
