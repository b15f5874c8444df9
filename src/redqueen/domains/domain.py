"""The interface of a domain: kinds of task, each one record of functions and prompts, and its held-out items.

Text that a model wrote is untrusted: parsing never raises on it and never evaluates it, and code that runs it is a job
for the sandbox. ``check`` and ``grade`` are therefore either plain functions that compare texts, or generators that
yield jobs for the verifier and receive the runs by ``send``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redqueen.config import Config, VerifyConfig
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules
from redqueen_sandbox.runs import Run

Grader = Callable[[Task, str, Rules], Grade | Jobs[Grade]]


@dataclass(frozen=True)
class ParsedProposal:
    """The fields of a ``Candidate``, parsed from a teacher's text.

    ``error`` is "" when the text could be parsed, else one short reason; the other fields may then be empty.
    """

    code: str = ""
    inputs: tuple[str, ...] = ()
    message: str = ""
    error: str = ""


@dataclass(frozen=True)
class Words:
    """The prompts and parsers of a kind of task in one prompt format.

    No text that a model wrote may put a mark of the format into a prompt. ``propose`` writes the prompt that asks a
    teacher for one task: ``references`` are earlier tasks of the domain to differ from, ``given`` is the task that the
    proposal is about (None unless the kind ``needs_given``). The prompt of ``solve`` does not reveal the answer. The
    parsers get the text outside the thinking; ``has_thoughts``: whether students think about such a task. ``is_whole``:
    whether a teacher's text contains a complete proposal; if True for a text, it must be True for every extension.
    ``stop`` is (mark, number): a teacher's text is ignored after that many marks, complete or not.
    """

    propose: Callable[[Sequence[Task], Task | None, VerifyConfig], str]
    solve: Callable[[Task], str]
    read_proposal: Callable[[str, Task | None, VerifyConfig], ParsedProposal]
    read_answer: Callable[[str], str | None]
    has_thoughts: bool = True
    is_whole: Callable[[str, Task | None, VerifyConfig], bool] = lambda text, given, terms: False
    stop: tuple[str, int] | None = None


@dataclass(frozen=True)
class Shown:
    """How a kind is displayed: its ``title``; ``explained``, a sentence about what a student sees and is asked for;
    ``pair``, a pair of input and output, with ``{}`` for their texts."""

    title: str
    explained: str = ""
    pair: str = "{} -> {}"


def plain_statement(task: Task) -> str:
    """Return the message, code and inputs of a task, without the outputs."""
    return "\n".join((task.message, task.code, *task.inputs)).strip()


def plain_behaviour(task: Task) -> str:
    """Return kind, code, inputs and outputs as one text: two tasks behave the same only when these are equal."""
    return "\0".join((task.kind, task.code, *task.inputs, "->", *task.outputs))


def plain_size(task: Task) -> str:
    """Return the kind, and the octave (power of two) of the number of characters that a student must read."""
    return f"{task.kind} length {len(plain_statement(task)).bit_length()}"


@dataclass(frozen=True)
class TaskKind:
    """One kind of task. Fields with a default are optional.

    ``name`` is used in configs, journals and metrics and is unique among all domains. ``words`` maps the name of a
    prompt format to its prompts.
    """

    name: str
    shown: Shown
    words: Mapping[str, Words]
    check: Callable[[Candidate, Rules, VerifyConfig], Task | Rejection | Jobs[Task | Rejection]]
    """Turns a parsed proposal into a task, whose right answer it computes, or into a rejection with a reason."""
    grade: Grader
    """Grades one answer to a task."""
    gold: Callable[[Task], str]
    """Returns an answer that is known to be right."""
    grade_all: Callable[[Task, Sequence[str], Rules], Jobs[list[Grade]]] | None = None
    """Grades all distinct answers to one task together, where that saves processes."""
    runs_programs: bool = False
    """Whether grading runs programs: their time limit then depends on the number of answers, see ``answer_ms``."""
    needs_given: bool = False
    """Whether a proposal is about an earlier task (the initial buffer is then filled without this kind)."""
    is_multiline: bool = False
    """Whether an answer may have several lines, and may be in a fenced block."""
    statement: Callable[[Task], str] = plain_statement
    """The text of a task for a human solver; it does not reveal the answer."""
    normal_form: Callable[[Task], str] = lambda task: task.code
    """A text equal for tasks that differ only in layout and names; with the inputs it identifies duplicates."""
    behaviour: Callable[[Task], str] = plain_behaviour
    """A text equal for tasks that behave the same, however they are written: coverage counts the distinct ones."""
    behaviour_class: Callable[[Task], str] = lambda task: task.kind
    """The class of the task, for novelty, crowding and the teachers' distances; it begins with the kind's name."""
    size_class: Callable[[Task], str] = plain_size
    """Coarse steps of a task's length and amount of work; it begins with the kind's name."""
    measure: Callable[[Task], dict[str, float]] = lambda task: {}
    """Structural measures by name: columns of the journal's task table, and others that become metrics of the step."""
    proposals: Callable[[], Sequence[str]] = tuple
    """Values of ``Candidate.code`` that must become tasks: `redqueen validate` checks these instead of the suite's."""


@dataclass(frozen=True)
class Item:
    """One held-out task. ``stratum`` is "suite/level"; items of one ``cluster`` are not independent."""

    id: str
    cluster: str
    stratum: str
    kind: str
    task: Task

    @property
    def suite(self) -> str:
        """Name of the suite that the item comes from."""
        return self.stratum.split("/")[0]


def plain_task(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Return a task from a mapping with the field names of ``Task``; ``input`` or ``output`` may give a single one.

    Raises ValueError for a field of the wrong type.
    """
    inputs, outputs = ([fields[name]] if name in fields else fields.get(f"{name}s", []) for name in ("input", "output"))
    if not all(isinstance(fields.get(name, ""), str) for name in ("code", "message", "input", "output")):
        raise ValueError('the fields "code", "message", "input" and "output" must be texts')
    if not (isinstance(inputs, list) and isinstance(outputs, list)):
        raise ValueError('the fields "inputs" and "outputs" must be lists of texts')
    code, message = str(fields.get("code", "")), str(fields.get("message", ""))
    return Task(name, "", "", kind, code, tuple(map(str, inputs)), tuple(map(str, outputs)), message)


def task_with_truth(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Return a ``plain_task`` with exactly one output. Raises ValueError otherwise."""
    task = plain_task(name, kind, fields)
    if len(task.outputs) != 1:
        raise ValueError('the field "output" must hold the right answer')
    return task


@dataclass(frozen=True)
class Domain:
    """Kinds of task that are references for each other. ``seed`` starts an empty buffer; no task is shorter.

    ``suite`` loads the frozen items of external fitness. ``read_task`` makes a task from plain fields, or raises
    ValueError with the reason. ``refuse(config, format_name, num_proposals)`` raises UserError where no task of the
    domain could be valid. ``examples`` replace the seed where proposals continue whole examples.
    """

    name: str
    kinds: tuple[TaskKind, ...]
    seed: Task
    suite: Callable[[], list[Item]] = field(default=list)
    read_task: Callable[[str, str, Mapping[str, object]], Task] = plain_task
    refuse: Callable[[Config, str, Mapping[str, int]], None] = lambda config, format_name, num_proposals: None
    examples: tuple[Task, ...] = ()


def worker_verdict(run: Run, accept_cpu_ms: int) -> tuple[str, ...]:
    """Return the answer of a worker function of ours in the sandbox: "ok" and results, or a verdict and a reason."""
    if run.verdict != "ok":
        return run.verdict, run.reason
    if run.cpu_ms > accept_cpu_ms:
        return "timeout", f"needs more than {accept_cpu_ms} ms of CPU"
    answer: tuple[str, ...] = ast.literal_eval(run.items[0].text)
    return answer


def task_of(candidate: Candidate, *, code: str, outputs: tuple[str, ...], protection: str, **more: Any) -> Task:
    """Return the task of a valid candidate, with its id, teacher, student and kind; ``more``: fields of ``Task``."""
    inputs = more.pop("inputs", ("",))
    own = (candidate.id, candidate.teacher, candidate.student, candidate.kind)
    return Task(*own, code, inputs, outputs, protection=protection, **more)
