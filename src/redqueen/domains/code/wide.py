"""Code tasks graded as CRUXEval means them: bytes are values, and any expression of literals is an input."""

from __future__ import annotations

from collections.abc import Generator

from redqueen.domains.code.kinds import ABDUCTION, DEDUCTION
from redqueen.domains.domain import Grader
from redqueen.nouns import Grade, Task
from redqueen.verify.literals import LiteralError, canonical
from redqueen.verify.programs import Rules, verify_program
from redqueen.verify.records import Program
from redqueen.verify.runs import Job, Run


def grade_output(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a deduction: equal by type and value, bytes included."""
    try:
        return Grade(canonical(answer, wide=True) == task.outputs[0], "ok")
    except LiteralError as error:
        return Grade(False, "unparsable", str(error))


def grade_input(task: Task, answer: str, rules: Rules) -> Generator[Job, Run, Grade]:
    """Grade an abduction by what the program gives on the answer."""
    result = yield from verify_program(Program(task.id, task.code, (answer,)), rules)
    if result.verdict == "ok":
        return Grade(result.outputs == task.outputs, "ok")
    verdict = result.verdict if result.verdict in ("infra", "invalid-input") else "ok"
    return Grade(False, verdict, f"{result.verdict} {result.detail}".strip(), lost=result.verdict == "infra")


GRADED_WIDE: dict[str, Grader] = {DEDUCTION.name: grade_output, ABDUCTION.name: grade_input}
