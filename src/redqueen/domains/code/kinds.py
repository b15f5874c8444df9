"""The domain of programs: predict the output (deduction), find an input (abduction), write the program (induction).

To add a kind of task, write a ``TaskKind`` and add it to ``CODE`` below. It needs a ``name``, ``shown`` (how it is
displayed), ``words`` (prompts by prompt format), ``check`` (turns a proposal into a task or a rejection), ``grade``
and ``gold`` (a right answer); the rest is optional (``domains/domain.py``). Compact prompts end with
``frames.asked(name)`` or ``frames.new(name)``, which need no new token. Add a new domain to ``DOMAINS`` in
``domains/registry.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial

from redqueen.config import Config
from redqueen.domains.code import prompts_chat, prompts_compact, prompts_fewshot
from redqueen.domains.code.checking import check_program
from redqueen.domains.code.examples import SEEDS
from redqueen.domains.code.grading import grade_input, grade_literal, grade_program
from redqueen.domains.code.measures import behaviour_class, measure, size_class
from redqueen.domains.code.normalise import normalise
from redqueen.domains.code.suite import load_suite
from redqueen.domains.domain import Domain, Shown, TaskKind, plain_task
from redqueen.errors import UserError
from redqueen.journal.schema import MEASURES
from redqueen.records import Task
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args

PAIR = "f({}) == {}"

_normal_form = lru_cache(maxsize=4096)(normalise)  # for the whole buffer at every step: 3 ms instead of 300


def _measures(task: Task) -> dict[str, float]:
    found = measure(task.code)
    return {name: getattr(found, name) for name in MEASURES}


def _pairs(task: Task) -> str:
    pairs = zip(task.inputs[: task.num_shown], task.outputs[: task.num_shown], strict=True)
    message = [task.message] if task.message else []
    return "\n".join([*message, *(f"f({given}) == {result}" for given, result in pairs)])


DEDUCTION = TaskKind(
    name="code_o",
    shown=Shown(
        "code_o (predict the output)",
        "The student sees the program and the input, and is asked for the output.",
        PAIR,
    ),
    words={
        "compact": prompts_compact.DEDUCTION,
        "chat": prompts_chat.DEDUCTION,
        "fewshot": prompts_fewshot.DEDUCTION,
    },
    check=check_program,
    grade=grade_literal,
    gold=lambda task: task.outputs[0],
    runs_programs=True,
    statement=lambda task: f"{task.code.rstrip()}\n\nf({task.inputs[0]}) == ?",
    normal_form=lambda task: _normal_form(task.code),
    behaviour=lambda task: "\0".join((*task.inputs, "->", *task.outputs)),
    behaviour_class=behaviour_class,
    size_class=size_class,
    measure=_measures,
)
ABDUCTION = replace(
    DEDUCTION,
    name="code_i",
    shown=Shown(
        "code_i (find an input)",
        "The student sees the program and the output, and is asked for an input that gives it.",
        PAIR,
    ),
    words={
        "compact": prompts_compact.ABDUCTION,
        "chat": prompts_chat.ABDUCTION,
        "fewshot": prompts_fewshot.ABDUCTION,
    },
    grade=grade_input,
    gold=lambda task: task.inputs[0],
    statement=lambda task: f"{task.code.rstrip()}\n\nf(?) == {task.outputs[0]}",
)
INDUCTION = replace(
    DEDUCTION,
    name="code_f",
    shown=Shown(
        "code_f (write the program)",
        "The student sees the pairs marked so and is asked for the program, which is then tried on the others.",
        PAIR,
    ),
    words={
        "compact": prompts_compact.INDUCTION,
        "chat": prompts_chat.INDUCTION,
        "fewshot": prompts_fewshot.INDUCTION,
    },
    check=partial(check_program, with_pairs=True),
    grade=grade_program,
    gold=lambda task: task.code,
    needs_given=True,
    is_multiline=True,
    statement=_pairs,
)

IDENTITY = Task("seed", "seed", "", "code_o", "def f(x):\n    return x\n", ("1",), ("1",))
"""AZR's seed: the identity program."""


def refuse(config: Config, format_name: str, num_proposals: Mapping[str, int]) -> None:
    """Raise UserError when induction needs more inputs than the compact format's base was trained to write."""
    num_inputs, most = config.verify.num_inputs, prompts_compact.MOST_INPUTS
    if format_name == "compact" and num_inputs > most and num_proposals.get(INDUCTION.name):
        raise UserError(
            f"verify.num_inputs is {num_inputs}, and a base of the compact format writes at most {most}, so no "
            f"{INDUCTION.name} task would be valid: set it to {most} or less, or "
            f"propose.num_proposals.{INDUCTION.name} = 0"
        )


def read_task(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Read the plain fields of a task, its literals in canonical form. Raises ValueError for a damaged one.

    ``hidden`` may give pairs [input, output] instead; an abduction may lack its input.
    """
    if hidden := fields.get("hidden"):
        if not isinstance(hidden, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in hidden):
            raise ValueError('the field "hidden" must be a list of pairs [input, output]')
        fields = {**fields, "inputs": [given for given, _ in hidden], "outputs": [expected for _, expected in hidden]}
    task = plain_task(name, kind, fields)
    if kind == ABDUCTION.name and not task.inputs:
        task = replace(task, inputs=("",) * len(task.outputs))
    if not task.inputs or len(task.inputs) != len(task.outputs):
        raise ValueError('the fields "inputs" and "outputs" must hold equally many literals, at least one')
    try:
        inputs, outputs = map(canonical_args, task.inputs), map(canonical, task.outputs)
        return replace(task, inputs=tuple(inputs), outputs=tuple(outputs))
    except LiteralError as error:
        raise ValueError(f"an input or output is {error}") from None


CODE = Domain("code", (DEDUCTION, ABDUCTION, INDUCTION), IDENTITY, load_suite, read_task, refuse, examples=SEEDS)
