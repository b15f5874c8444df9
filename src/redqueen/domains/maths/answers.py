"""Grading: an answer is right when it states the number, however it is written; what only evaluates to it is wrong,
but for a single power or root of whole numbers."""

from __future__ import annotations

from dataclasses import replace

from redqueen.domains.maths.answer_form import final_answer, judged
from redqueen.records import Grade, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import CALL_MEMORY_BYTES, Rules, call_job, run_once

MAX_ANSWER_CHARS, COMPARE_CPU_MS = 300, 3_000
"""The longest answer that is looked at, and the CPU time of one comparison (ours)."""


def grade_number(task: Task, answer: str, rules: Rules) -> Jobs[Grade]:
    """Grade one answer to a task, in the language or in LaTeX; the gold answer is a number of the language."""
    return grade_value(task.outputs[0], answer, rules)


def grade_value(
    gold: str,
    answer: str,
    rules: Rules,
    in_latex: bool = False,
    max_chars: int = MAX_ANSWER_CHARS,
    cpu_ms: int = COMPARE_CPU_MS,
    memory_bytes: int = CALL_MEMORY_BYTES,
) -> Jobs[Grade]:
    """Grade one answer: in the judge where the texts decide, as for every number in digits, else in the sandbox.

    ``in_latex``: the gold answer is LaTeX. Numbers are compared exactly: ``0.3333`` is not a third.
    """
    given = final_answer(answer)
    if not given:
        return Grade(False, "unparsable", "no answer")
    if len(given) > max_chars:
        return Grade(False, "too-large", f"longer than {max_chars} characters")
    found = judged(gold if in_latex else gold.replace("sqrt", "\\sqrt"), given)
    if isinstance(found, bool):
        return Grade(found, "ok")
    function, texts = ("is_equal", [*found]) if in_latex else ("states", [gold, found[1]])
    job = call_job("redqueen.domains.maths.equality", function, texts, cpu_ms, rules)
    run = yield from run_once(replace(job, memory_bytes=memory_bytes))
    if run.verdict != "ok":
        lost = run.verdict == "infra"
        return Grade(False, run.verdict, run.detail if lost else run.reason, lost=lost)
    return Grade(run.items[0].text == "True", "ok")
