"""Grading: an answer is right when it states the number, however it is written; what only evaluates to it is wrong,
but for a single power or root of whole numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from redqueen.domains.maths.answer_form import bare_number, comparable, final_answer, plain_form
from redqueen.domains.maths.language import Node, StatementError, parse
from redqueen.nouns import Grade, Task
from redqueen.verify.pool import Jobs
from redqueen.verify.programs import CALL_MEMORY_BYTES, Rules, call_job, run_once
from redqueen.verify.runs import Job

MAX_ANSWER_CHARS, COMPARE_CPU_MS = 300, 3_000
"""The longest answer that is looked at, and the CPU time of one comparison (ours)."""

_PLAIN = re.compile(r"-?[0-9]{1,80}(?:/[0-9]{1,80}|\.[0-9]{1,80})?", re.ASCII)
_DECIMAL = re.compile(r"[0-9]\.[0-9]|(?<![0-9])\.[0-9]", re.ASCII)


def grade_number(task: Task, answer: str, rules: Rules) -> Grade | Jobs[Grade]:
    """Grade one answer: in the judge where both are plain numbers, else in the sandbox, by our own solver where the
    answer is in our language, and by math-verify where it is in LaTeX.

    A decimal is compared exactly: ``1.41421356`` is not the root of 2, nor ``0.3333`` a third.
    """
    gold, given = task.outputs[0], final_answer(answer)
    if not given:
        return Grade(False, "unparsable", "no answer")
    if len(given) > MAX_ANSWER_CHARS:
        return Grade(False, "too-large", f"longer than {MAX_ANSWER_CHARS} characters")
    if given == gold:
        return Grade(True, "ok")
    wanted = plain_number(gold)
    if wanted is not None and _PLAIN.fullmatch(given):
        return Grade(wanted == plain_number(given), "ok")
    sides = None if _is_statement(given) else comparable(in_latex(gold), in_latex(given))
    if sides is None:
        return Grade(False, "ok", "no value, or not only one")
    if plain_form(sides[0]) == plain_form(sides[1]):
        return Grade(True, "ok")
    if wanted is not None and (number := bare_number(sides[1])) is not None:
        return Grade(wanted == number, "ok")
    for stated in (given, sides[1]):  # as it was given, and behind its ``x =``
        if in_latex(stated) != stated:
            difference = [f"({gold}) - ({stated})"]
            job = call_job("redqueen.domains.maths.solver", "solve", difference, COMPARE_CPU_MS, rules)
            return _said(job, "('ok', '0')")
    return Grade(False, "ok") if _DECIMAL.search(sides[1]) else same_value(*sides, rules)


def same_value(
    gold: str, answer: str, rules: Rules, cpu_ms: int = COMPARE_CPU_MS, memory_bytes: int = CALL_MEMORY_BYTES
) -> Jobs[Grade]:
    """Grade an answer by math-verify, in the sandbox: both in LaTeX, as ``comparable`` returns them."""
    job = call_job("redqueen.domains.maths.equality", "is_equal", [gold, answer], cpu_ms, rules)
    return _said(replace(job, memory_bytes=memory_bytes), "True")


def _is_statement(text: str) -> bool:
    """Tell whether an answer is a statement with conditions, ``n where n = 5``, which asks and does not say."""
    try:
        return bool(parse(text)[2])
    except StatementError:
        return False


def plain_number(text: str) -> Fraction | None:
    """Return the number that a text is, in digits with a sign, a point or a bar; None: it is more, or none."""
    try:
        return Fraction(text) if _PLAIN.fullmatch(text) else None
    except ZeroDivisionError:
        return None


def _said(job: Job, said_if_equal: str) -> Jobs[Grade]:
    run = yield from run_once(job)
    if run.verdict == "infra":
        return Grade(False, "infra", run.detail, lost=True)
    if run.verdict != "ok":
        return Grade(False, run.verdict, run.reason)
    return Grade(run.items[0].text == said_if_equal, "ok")


def in_latex(text: str) -> str:
    """Return a number of the language in LaTeX; a text that is none is LaTeX already, or whatever it is."""
    try:
        _, asked, conditions = parse(text)
    except StatementError:
        return text
    return text if conditions else _latex(asked) or text


def _latex(node: Node) -> str:
    """Write numbers, signs between them and roots; "" when there is anything else."""
    match node:
        case ("num", text):
            return str(text)
        case ("neg", inner):
            found = _latex(inner)
            return f"-{found}" if found and inner[0] in ("num", "call", "/", "*", "^") else ""
        case ("call", "sqrt", inner):
            return f"\\sqrt{{{found}}}" if (found := _latex(inner)) else ""
        case ("/", above, below):
            parts = _latex(above), _latex(below)
            return f"\\frac{{{parts[0]}}}{{{parts[1]}}}" if all(parts) else ""
        case ("^", base, exponent):
            parts = _latex(base), _latex(exponent)
            if not all(parts):
                return ""
            return f"{parts[0] if base[0] == 'num' else f'({parts[0]})'}^{{{parts[1]}}}"
        case ("*" | "+" | "-" as op, left, right):
            parts = _latex(left), _latex(right)
            if not all(parts):
                return ""
            if op == "*":
                return " \\cdot ".join(
                    f"({part})" if side[0] in ("+", "-", "neg") else part
                    for side, part in zip((left, right), parts, strict=True)
                )
            return f"{parts[0]} {op} {f'({parts[1]})' if right[0] in ('+', '-', 'neg') else parts[1]}"
    return ""
