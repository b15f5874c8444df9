"""Grading answers: canonical literals are compared; no answer is evaluated and no ``==`` of a program is called.

Deduction is decided in the judge alone. Abduction runs the task's program on all answers to it in one child, a fresh
namespace for each; a program that imports anything runs in a child for each. Induction runs each answered program on
the hidden inputs, and again under another hash seed only while it is right.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from redqueen.records import Grade, Task
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args
from redqueen_sandbox.programs import Rules, confirm, make_job, run_once, verify_program
from redqueen_sandbox.records import Program
from redqueen_sandbox.runs import Item, Job, Run

MAX_ANSWERS_PER_CHILD = 64


def grade_literal(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a deduction: the answer is a literal, equal by type and value to the recorded output."""
    try:
        text = canonical(answer, max_chars=rules.limits.max_output_chars)
    except LiteralError as error:
        return Grade(False, "unparsable", str(error))
    return Grade(text == task.outputs[0], "ok")


def grade_input(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade one answer to an abduction."""
    return (yield from grade_inputs(task, [answer], rules))[0]


def grade_inputs(task: Task, answers: Sequence[str], rules: Rules) -> Generator[Job, Run, list[Grade]]:
    """Grade the distinct answers to one abduction. Any input that gives the recorded output is right.

    What a program changed in a module outlives its namespace, so one that imports runs on each answer alone: no grade
    depends on the other answers.
    """
    read = [_read_arguments(answer, rules) for answer in answers]
    texts = list(dict.fromkeys(text for text in read if isinstance(text, str)))
    at_once = 1 if "import" in task.code else MAX_ANSWERS_PER_CHILD
    found: dict[str, Grade] = {}
    for start in range(0, len(texts), at_once):
        found.update((yield from _try_inputs(task, texts[start : start + at_once], rules)))
    return [found[text] if isinstance(text, str) else text for text in read]


def _read_arguments(answer: str, rules: Rules) -> str | Grade:
    try:
        return canonical_args(answer, max_chars=rules.limits.max_input_chars)
    except LiteralError as error:
        return Grade(False, "invalid-input", str(error))


def _try_inputs(task: Task, texts: list[str], rules: Rules) -> Generator[Job, Run, dict[str, Grade]]:
    """Run the program on all texts; after one that kills the child the rest run in another child."""
    grades: dict[str, Grade] = {}
    right: list[str] = []
    seed = -1
    left = list(texts)
    while left:
        run = yield from run_once(make_job(task.code, _literals(left), "each", rules))
        for text, item in zip(left, run.items, strict=False):
            grades[text] = _grade_item(item, task.outputs[0])
            if grades[text].correct:
                right.append(text)
                seed = run.seed
        num_done = len(run.items)
        if run.ended != "ok" and num_done == 0:  # the first one had the whole child to itself, and killed it
            grades[left[0]] = _grade_death(run)
            num_done = 1
        left = left[num_done:]
    if right:
        job = make_job(task.code, _literals(right[::-1]), "each", replace(rules, num_seeds=1))
        again = yield from run_once(replace(job, world=seed ^ 1, screened=True))
        for text, item in zip(right[::-1], again.items, strict=False):
            if _grade_item(item, task.outputs[0]).correct is False:
                grades[text] = Grade(False, "ok", "nondeterministic")
        if again.ended == "infra":
            grades.update({text: _grade_death(again) for text in right[::-1][len(again.items) :]})
    return grades


def _literals(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(("literal", text) for text in texts)


def _grade_item(item: Item, output: str) -> Grade:
    if item.verdict != "ok":
        return Grade(False, "ok", f"{item.verdict} {item.detail}".strip())
    return Grade(item.text == output, "ok")


def _grade_death(run: Run) -> Grade:
    if run.ended == "infra":
        return Grade(False, "infra", run.detail, lost=True)
    return Grade(False, "ok", f"{run.ended} {run.detail}".strip())


def grade_program(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade an induction: the answered program must give every hidden output."""
    if len(answer) > rules.limits.max_code_chars:
        return Grade(False, "unparsable", "the program is too long")
    hidden = _literals(task.inputs[task.num_shown :])
    expected = tuple(task.outputs[task.num_shown :])
    job = make_job(answer, hidden, "all", rules)
    first = yield from run_once(job)
    if first.verdict != "ok":
        return _grade_failed_program(first)
    if tuple(item.text for item in first.items) != expected:
        return Grade(False, "ok")
    second = yield from confirm(job, first, min(rules.num_seeds, 2))
    return Grade(True, "ok") if second.verdict == "ok" else _grade_failed_program(second)


def _grade_failed_program(run: Run) -> Grade:
    if run.verdict == "infra":
        return Grade(False, "infra", run.detail, lost=True)
    if run.verdict == "error" and any(item.text == "no entry function" for item in run.items):
        return Grade(False, "syntax", "no function f")
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
