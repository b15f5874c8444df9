"""Code tasks as examples to continue, for base and small models.

::

    propose o, i    what is sought, END, (# f(input) == output, code, END) ..., # f    -> (...) == ... code END
    propose f       (code, # message, f(input) ..., END) ..., code, #              -> message, f(input) ..., END
    solve code_o    (code, f(input) == output, END) ..., code, f(input) ==         -> output END
    solve code_i    (code, # output, f(input), END) ..., code, # output, f         -> (input) END
    solve code_f    (# message, f(input) == output ..., code, END) ..., def f      -> (...): ... END

A proposal starts with its input and the intended output. The output is ignored: the program is run. If inputs come
after the program, nine of ten inputs of a small model are one or two integers (measured: docs/real-models.md).

Prompts end at the end of a token, because tokenizers merge a bracket with the text after it. Solving always shows the
same examples, so that the prompt of a task is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redqueen.config import VerifyConfig
from redqueen.domains.code.examples import EXAMPLES, SEEDS
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import END, hint
from redqueen.records import Task
from redqueen_sandbox.literals import LiteralError, canonical_args

FEWEST_SHOWN = 4
"""Minimum number of programs in a proposal prompt: our own seeds are added to fewer references (ours)."""

SHOWN = (0, 2, 6)
"""Indices of ``EXAMPLES`` in prompts for solving and for proposals of induction; few, because they are long."""

NEWLINE = "\n"

EQUALS = ") =="
"""The text between a call and its expected result."""

MOST_ENDS = 8
"""Maximum number of positions at which the call in an answer may end (ours)."""


def _propose_program(sought: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    shown = [*references, *SEEDS[: max(0, FEWEST_SHOWN - len(references))]]
    examples = "".join(f"# {_call(task)} == {task.outputs[0]}\n{_code(task)}\n{END}\n" for task in shown)
    return f"# Find the {sought}.\n{END}\n{examples}# f"


def _propose_pairs(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    if given is None:
        raise ValueError("a code_f proposal needs a given program")
    shown = [
        f"{_code(task)}\n\n# {task.message}\n" + "".join(f"f({i})\n" for i in task.inputs[: terms.num_inputs]) + END
        for task in (EXAMPLES[i] for i in SHOWN)
    ]
    return "\n".join([*shown, f"{_code(given)}\n\n#"])


def _solve_output(task: Task) -> str:
    shown = [f"{_code(one)}\n\n{_call(one)} == {one.outputs[0]}\n{END}\n" for one in (EXAMPLES[i] for i in SHOWN)]
    return "".join(shown) + f"{_code(task)}\n\n{_call(task)} =="


def _solve_input(task: Task) -> str:
    shown = [f"{_code(one)}\n\n# {one.outputs[0]}\n{_call(one)}\n{END}\n" for one in (EXAMPLES[i] for i in SHOWN)]
    return "".join(shown) + f"{_code(task)}\n\n# {task.outputs[0]}\nf"


def _solve_program(task: Task) -> str:
    shown = [_pairs(EXAMPLES[i], task.num_shown) + f"{_code(EXAMPLES[i])}\n{END}\n" for i in SHOWN]
    return "".join(shown) + _pairs(task, task.num_shown) + "def f"


def _code(task: Task) -> str:
    return task.code.strip("\n")


def _call(task: Task) -> str:
    return f"f({task.inputs[0]})"


def _pairs(task: Task, num: int) -> str:
    message = "\n# ".join(hint(task.message).splitlines())
    pairs = zip(task.inputs[:num], task.outputs[:num], strict=True)
    lines = [f"f({i}) == {o}\n" for i, o in pairs]
    return "".join([f"# {message}\n" if message else "", *lines])


def _read_program(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the call in the first line and the program below; the result that the text claims is ignored."""
    call, _, code = text.partition(NEWLINE)
    if not call.startswith("(") or not code.strip():
        return ParsedProposal(error="no call of f" if code.strip() else "no program below the call")
    call = call.rpartition(EQUALS)[0] + ")" if EQUALS in call else call
    return _proposal(code, [call.removeprefix("(")])


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
    """Read ``f(1, 2)``, with or without the ``f``; models often repeat the output after it.

    ``EQUALS`` may also occur in a string of the input, so the call ends at the first position where it parses, if any.
    """
    call = answer.strip().removeprefix("f")
    if not call.startswith("(") or ")" not in call:
        return None
    parts = call[1:].split(EQUALS, MOST_ENDS)
    ends = [EQUALS.join(parts[:num]).strip() for num in range(1, len(parts))]
    ends.append(call[1:].rpartition(")")[0].strip())
    return next(filter(_can_be_read, ends), ends[0])


def _can_be_read(arguments: str) -> bool:
    try:
        canonical_args(arguments)
    except LiteralError:
        return False
    return True


def _read_answered_program(answer: str) -> str:
    return f"def f{answer}".strip("\n") + "\n"


DEDUCTION = Words(partial(_propose_program, "output"), _solve_output, _read_program, str.strip)
ABDUCTION = Words(partial(_propose_program, "input"), _solve_input, _read_program, _read_input)
INDUCTION = Words(_propose_pairs, _solve_program, _read_pairs, _read_answered_program, has_thoughts=False)
