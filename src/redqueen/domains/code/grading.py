"""Grading answers: canonical literals are compared; no answer is evaluated and no ``==`` of a program is called.

Deduction needs no child process. Abduction runs the task's program on each answer, and induction runs each answered
program on the hidden inputs: each in a child process, and a second time under another hash seed if it was right.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from redqueen.records import Grade, Task
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args
from redqueen_sandbox.programs import Rules, confirm, make_job, run_once, verify_program
from redqueen_sandbox.records import Program
from redqueen_sandbox.runs import Job, Run

SHOWN_CHARS = 60
"""Maximum number of characters of a literal in the reason of a wrong answer (ours)."""


def grade_literal(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a deduction: the answer is a literal, equal by type and value to the recorded output."""
    try:
        text = canonical(answer, max_chars=rules.room_for(task.outputs))
    except LiteralError as error:
        return Grade(False, "unparsable", str(error))
    return Grade(text == task.outputs[0], "ok")


def grade_input(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade one answer to an abduction, in its own child process. Any input that gives the recorded output is right."""
    try:
        text = canonical_args(answer, max_chars=rules.room_for(task.inputs))
    except LiteralError as error:
        return Grade(False, "invalid-input", str(error))
    job = make_job(task.code, (("literal", text),), "all", rules, wanted=task.outputs)
    run = yield from run_once(job)
    if run.verdict == "ok" and run.items[0].text == task.outputs[0]:
        run = yield from confirm(job, run, min(rules.num_seeds, 2))
        if run.verdict == "ok":
            return Grade(True, "ok")
    if run.verdict == "infra":
        return Grade(False, "infra", run.reason, lost=True)
    if run.verdict == "ok":
        return Grade(False, "ok", _difference(text, run.items[0].text, task.outputs[0]))
    return Grade(False, "ok", f"{run.verdict} {run.reason}".strip())


def grade_program(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade an induction: the answered program must give every hidden output."""
    return grade_function(answer, task.inputs[task.num_shown :], task.outputs[task.num_shown :], rules)


def grade_function(
    code: str, inputs: Sequence[str], outputs: Sequence[str], rules: Rules, entry: str = "f"
) -> Generator[Job, Run, Grade]:
    """Grade a program: ``entry`` must give every output, and give it again under another hash seed."""
    if len(code) > rules.limits.max_code_chars:
        return Grade(False, "too-large", "source")
    calls, expected = tuple(("literal", text) for text in inputs), tuple(outputs)
    job = make_job(code, calls, "all", rules, entry, expected)
    first = yield from run_once(job)
    if first.verdict != "ok":
        return _grade_failed_program(first, entry)
    for given, item, wanted in zip(inputs, first.items, expected, strict=True):
        if item.text != wanted:
            return Grade(False, "ok", _difference(given, item.text, wanted, entry))
    second = yield from confirm(job, first, min(rules.num_seeds, 2))
    return Grade(True, "ok") if second.verdict == "ok" else _grade_failed_program(second, entry)


def _difference(given: str, got: str, wanted: str, entry: str = "f") -> str:
    return f"{entry}({given:.{SHOWN_CHARS}}) gives {got:.{SHOWN_CHARS}}, expected {wanted:.{SHOWN_CHARS}}"


def _grade_failed_program(run: Run, entry: str) -> Grade:
    if run.verdict == "infra":
        return Grade(False, "infra", run.detail, lost=True)
    if run.verdict == "error" and any(item.text == "no entry function" for item in run.items):
        return Grade(False, "syntax", f"no function {entry}")
    return Grade(False, run.verdict, run.reason)


def grade_wide_literal(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a deduction as CRUXEval does: equal by type and value, and bytes are values too."""
    try:
        return Grade(canonical(answer, wide=True) == task.outputs[0], "ok")
    except LiteralError as error:
        return Grade(False, "unparsable", str(error))


def grade_wide_input(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade an abduction as CRUXEval does: any expression of literals is an input."""
    result = yield from verify_program(Program(task.id, task.code, (answer,)), rules)
    if result.verdict == "ok":
        return Grade(result.outputs == task.outputs, "ok")
    verdict = result.verdict if result.verdict in ("infra", "invalid-input") else "ok"
    return Grade(False, verdict, f"{result.verdict} {result.detail}".strip(), lost=result.verdict == "infra")
