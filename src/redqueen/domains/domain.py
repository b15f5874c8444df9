"""The interface of a domain: kinds of task, each one record of functions and prompts, and its held-out items.

Everything a model wrote is untrusted: reading never raises on it and never evaluates it, and whatever runs it goes to
the sandbox as a job. ``check`` and ``grade`` are therefore either plain functions that compare texts, or generators
that yield jobs for the verifier and are sent their runs.
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
    """What could be read from a teacher's text: the fields of a ``Candidate``.

    ``error`` is "" when the text could be read, else one short reason, and then the other fields may be empty.
    """

    code: str = ""
    inputs: tuple[str, ...] = ()
    message: str = ""
    error: str = ""


@dataclass(frozen=True)
class Words:
    """A kind of task in one prompt format. No text that a model wrote may spell a mark of the format in a prompt.

    ``propose`` writes the prompt that asks a teacher for one task: ``references`` are earlier tasks of the domain to
    differ from, ``given`` the task that the proposal is about (None unless the kind ``needs_given``). ``solve`` shows
    nothing that gives the answer away. The readers get the text outside the format's thinking; ``has_thoughts``
    is whether a student thinks about such a task at all. ``is_whole`` is whether a teacher's text holds a whole
    proposal already, whatever may still follow; True for a text is True for every longer one. ``stop`` is a mark and a
    number: where a teacher's text has so many, nothing that follows counts, whole or not.
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
    """How a kind is displayed: its ``title``; what a student sees and is asked for (``explained``); a pair of input
    and output, with ``{}`` for their texts."""

    title: str
    explained: str = ""
    pair: str = "{} -> {}"


def plain_statement(task: Task) -> str:
    """Return the text of a task, and its inputs, without the outputs."""
    return "\n".join((task.message, task.code, *task.inputs)).strip()


def plain_behaviour(task: Task) -> str:
    """Return all that a task asks: tasks are similar only when they are equal."""
    return "\0".join((task.kind, task.code, *task.inputs, "->", *task.outputs))


def plain_size(task: Task) -> str:
    """Return the kind and the octave (power of two) of the characters that a student must read."""
    return f"{task.kind} length {len(plain_statement(task)).bit_length()}"


@dataclass(frozen=True)
class TaskKind:
    """One kind of task. What has a default may be left out; the rest is what makes a kind.

    ``name`` is used in configs, journals and metrics and is unique among all domains. ``words`` are its prompts by the
    name of the prompt format.
    """

    name: str
    shown: Shown
    words: Mapping[str, Words]
    check: Callable[[Candidate, Rules, VerifyConfig], Task | Rejection | Jobs[Task | Rejection]]
    """From a proposal that could be read to a task whose truth is computed here, or to a rejection with a reason."""
    grade: Grader
    """Whether an answer is right."""
    gold: Callable[[Task], str]
    """An answer to a task that is known to be right."""
    grade_all: Callable[[Task, Sequence[str], Rules], Jobs[list[Grade]]] | None = None
    """All distinct answers to one task in one go, where that saves processes."""
    runs_programs: bool = False
    """Whether grading runs programs: the time of each then follows from the number of answers alone."""
    needs_given: bool = False
    """Whether a proposal is about an earlier task (and the seed buffer is grown without it)."""
    is_multiline: bool = False
    """Whether an answer is a text of several lines, which may be in a fence."""
    statement: Callable[[Task], str] = plain_statement
    """What a person at a keyboard is shown of a task: nothing that gives the answer away."""
    normal_form: Callable[[Task], str] = lambda task: task.code
    """A text equal for tasks that are the same but for layout and names; with the inputs it identifies repetitions."""
    behaviour: Callable[[Task], str] = plain_behaviour
    """A text equal for tasks that are the same however they are written: coverage counts the distinct ones."""
    behaviour_class: Callable[[Task], str] = lambda task: task.kind
    """The class of the task, for novelty, crowding and the teachers' distances; it begins with the kind's name."""
    size_class: Callable[[Task], str] = plain_size
    """Coarse steps of what makes a task long and laborious; it begins with the kind's name."""
    measure: Callable[[Task], dict[str, float]] = lambda task: {}
    """Measures of structure by name: those of the journal's columns, and others that become metrics of the step."""
    proposals: Callable[[], Sequence[str]] = tuple
    """Texts of ``Candidate.code`` that must become tasks: `redqueen validate` checks them instead of the suite's."""


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
    """Return a task from plain fields named as those of ``Task``; one input or output may be called so.

    Raises ValueError for a field that is not of its type.
    """
    inputs, outputs = ([fields[name]] if name in fields else fields.get(f"{name}s", []) for name in ("input", "output"))
    if not all(isinstance(fields.get(name, ""), str) for name in ("code", "message", "input", "output")):
        raise ValueError('the fields "code", "message", "input" and "output" must be texts')
    if not (isinstance(inputs, list) and isinstance(outputs, list)):
        raise ValueError('the fields "inputs" and "outputs" must be lists of texts')
    code, message = str(fields.get("code", "")), str(fields.get("message", ""))
    return Task(name, "", "", kind, code, tuple(map(str, inputs)), tuple(map(str, outputs)), message)


def task_with_truth(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Return a ``plain_task`` that has one output. Raises ValueError for another."""
    task = plain_task(name, kind, fields)
    if len(task.outputs) != 1:
        raise ValueError('the field "output" must hold the right answer')
    return task


@dataclass(frozen=True)
class Domain:
    """Kinds of task that refer to each other. ``seed`` is the task that a buffer begins with: nothing is shorter.

    ``suite`` loads the frozen items of external fitness; ``read_task`` reads a task's plain fields (ValueError with the
    reason); ``refuse`` raises UserError for a config, with the name of a prompt format,
    under which no task of the domain could be valid. ``examples`` are what a buffer begins with instead of the seed
    where proposals continue whole examples.
    """

    name: str
    kinds: tuple[TaskKind, ...]
    seed: Task
    suite: Callable[[], list[Item]] = field(default=list)
    read_task: Callable[[str, str, Mapping[str, object]], Task] = plain_task
    refuse: Callable[[Config, str, Mapping[str, int]], None] = lambda config, format_name, num_proposals: None
    examples: tuple[Task, ...] = ()


def worker_verdict(run: Run, accept_cpu_ms: int) -> tuple[str, ...]:
    """Return what a function of ours answered in the sandbox: "ok" and its results, or a verdict and its reason."""
    if run.verdict != "ok":
        return run.verdict, run.reason
    if run.cpu_ms > accept_cpu_ms:
        return "timeout", f"needs more than {accept_cpu_ms} ms of CPU"
    answer: tuple[str, ...] = ast.literal_eval(run.items[0].text)
    return answer


def task_of(candidate: Candidate, *, code: str, outputs: tuple[str, ...], protection: str, **more: Any) -> Task:
    """Return the task that a candidate was found to be, under its own name and of its own kind: see ``Task``."""
    inputs = more.pop("inputs", ("",))
    own = (candidate.id, candidate.teacher, candidate.student, candidate.kind)
    return Task(*own, code, inputs, outputs, protection=protection, **more)
