"""Code tasks in the compact format of the embedded base: one-token marks between program, input and output.

Other bases use ``prompts_fewshot.py`` (examples) or, as chat models from a billion parameters, ``prompts_chat.py``.
Mathematics and puzzles have such files in ``domains/maths`` and ``domains/logic``. A mark NAME is the token
``<|name|>``, such as ``<|new_o|>``; prompts have no other text. A message too long for ``frames.hint`` is omitted.

::

    solve code_o    BOS code IN input O                       ->  [THINK trace /THINK] output EOS
    solve code_i    BOS code OUT output I                     ->  [THINK guess|trace!guess|trace /THINK] input EOS
    solve code_f    BOS MSG message IN i1 OUT o1 ... F        ->  code EOS
    propose o, i    BOS REF code IN input ... NEW_O (NEW_I)   ->  code IN input EOS
    propose f       BOS code NEW_F                            ->  message IN i1 IN i2 ... EOS
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redqueen.config import VerifyConfig
from redqueen.domains.code.calls import distinct_calls
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import ASKED, IN, MSG, OUT, REF, has_mark, hint
from redqueen.records import Task
from redqueen_sandbox.literals import LiteralError, canonical_args

KINDS = ("code_o", "code_i", "code_f")
ANSWER, NEW = dict(zip(KINDS, ASKED[:3], strict=True)), dict(zip(KINDS, ASKED[3:], strict=True))
"""The marks that ask for an answer to a task of a kind, and for a new task."""

MOST_INPUTS = 10
"""Number of inputs in a ``code_f`` proposal that the embedded base was trained to write."""


def _code(task: Task) -> str:
    return task.code.strip("\n")


def _propose_program(kind: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    shown = (f"{REF}{_code(task)}{IN}{task.inputs[0]}" for task in references)
    return "".join(shown) + NEW[kind]


def _propose_pairs(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    """Show only the given program."""
    if given is None:
        raise ValueError("a code_f proposal needs a given program")
    return _code(given) + NEW["code_f"]


def _solve_output(task: Task) -> str:
    return f"{_code(task)}{IN}{task.inputs[0]}{ANSWER['code_o']}"


def _solve_input(task: Task) -> str:
    return f"{_code(task)}{OUT}{task.outputs[0]}{ANSWER['code_i']}"


def _solve_program(task: Task) -> str:
    pairs = zip(task.inputs[: task.num_shown], task.outputs[: task.num_shown], strict=True)
    shown = "".join(f"{IN}{i}{OUT}{o}" for i, o in pairs)
    return f"{MSG}{hint(task.message)}{shown}{ANSWER['code_f']}"


def _split(text: str) -> tuple[list[str], str]:
    """Split a proposal at its IN marks. Return the parts, and a reason if it has another mark or no input, else ""."""
    parts = text.split(IN)
    if any(has_mark(part) for part in parts):
        return parts, "a mark where text should be"
    return parts, "" if len(parts) > 1 else "no input"


def _read_program(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    (code, *inputs), error = _split(text)
    if error or len(inputs) != 1:
        return ParsedProposal(error=error or "more than one input")
    return ParsedProposal(code.strip("\n") + "\n", (inputs[0].strip(),))


def _read_pairs(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    (message, *inputs), error = _split(text)
    if error or given is None:
        return ParsedProposal(error=error or "no given program")
    return ParsedProposal(given.code, tuple(i.strip() for i in inputs), message.strip())


def _pairs_are_whole(text: str, given: Task | None, terms: VerifyConfig) -> bool:
    """Return whether the required number of distinct inputs is complete, each followed by the mark of the next."""
    calls: list[str] = []
    for closed in text.split(IN)[1:-1]:
        try:
            calls.append(canonical_args(closed.strip()))
        except LiteralError:
            return False
        if given is not None and len(calls) >= terms.num_inputs:
            calls = distinct_calls(given.code, calls)
            if len(calls) == terms.num_inputs:
                return True
    return False


def _read_answered_program(answer: str) -> str:
    return answer.strip("\n") + "\n"


DEDUCTION = Words(partial(_propose_program, "code_o"), _solve_output, _read_program, str.strip)
ABDUCTION = Words(partial(_propose_program, "code_i"), _solve_input, _read_program, str.strip)
INDUCTION = Words(
    _propose_pairs,
    _solve_program,
    _read_pairs,
    _read_answered_program,
    has_thoughts=False,
    is_whole=_pairs_are_whole,
    stop=(IN, MOST_INPUTS + 1),
)
