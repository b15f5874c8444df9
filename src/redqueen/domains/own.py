"""The user's own tasks, one JSON object per line: a suite, seeds of the teachers' buffer, or anchors of the students.

A row is a program with an input (``{"code", "input"}``), a question (``{"question", "answer"}``), a function to write
(``{"prompt", "tests", "entry"}``, the tests being assertions that compare calls with literals), or a task of any kind
(``{"kind", "code", ...}``). Teachers do not write the kinds ``own_answer`` and ``own_function``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from redqueen.config import VerifyConfig
from redqueen.domains.code.grading import grade_function
from redqueen.domains.code.measures import UNPARSABLE
from redqueen.domains.domain import Domain, ParsedProposal, Shown, TaskKind, Words, plain_task
from redqueen.domains.frames import END, THINK_FIRST, asked, program_in
from redqueen.domains.rows import Row, rows_of_file, rows_of_hub
from redqueen.errors import UserError
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Grade
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules

FORMS = '{"code", "input"}, {"question", "answer"}, {"prompt", "tests", "entry"} or {"kind", "code", ...}'
MAX_NUMBER_CHARS = 1_000
"""A longer answer is compared as text (ours)."""
_NUMBER = re.compile(r"[-+]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?")


def rows_of_source(source: str, field: str) -> list[Row]:
    """Read a file, or the split ``train`` of a dataset on the hub (OWNER/NAME). Raises UserError naming ``field``."""
    if not Path(source).exists() and re.fullmatch(r"[\w.-]+/[\w.-]+", source) and not Path(source).suffix:
        return rows_of_hub(source, None, "train")
    return rows_of_file(Path(source), field)


def read_own(row: Row, name: str) -> Task:
    """Read a row as a task; a program may lack its output. Raises UserError naming the line and the remedy."""
    try:
        if row.has("kind"):
            return plain_task(name, row.text("kind"), row.fields)
        if row.has("tests"):
            inputs, outputs = _pairs(row)
            message = row.text("prompt", "question")
            return Task(name, "", "", FUNCTION.name, row.text("entry"), inputs, outputs, message)
        if row.has("code"):
            given = canonical_args(row.text("input"))
            outputs = (canonical(row.text("output"), wide=True),) if row.has("output") else ()
            return Task(name, "", "", "code_o", row.text("code").strip("\n") + "\n", (given,), outputs)
    except (ValueError, LiteralError) as error:
        raise UserError(f"{row.where}: {error}") from None
    if row.has("answer"):
        message = row.text("question", "prompt", "problem")
        return Task(name, "", "", ANSWER.name, "", ("",), (row.text("answer").strip(),), message)
    raise UserError(f"{row.where} does not have a known form of a task: write {FORMS}")


def _pairs(row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return arguments and values of ``assert entry(...) == literal``. Raises ValueError for other tests."""
    tests, entry, inputs, outputs = row.fields["tests"], row.text("entry"), [], []
    text = "\n".join(tests) if isinstance(tests, list) and all(isinstance(t, str) for t in tests) else tests
    try:
        body = ast.parse(text).body if isinstance(text, str) else []
    except UNPARSABLE:
        body = []
    for node in body:
        compared = node.test if isinstance(node, ast.Assert) else None
        call = compared.left if isinstance(compared, ast.Compare) and len(compared.ops) == 1 else None
        name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        is_equal = isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.Eq)
        if not isinstance(call, ast.Call) or name not in (entry, "candidate") or call.keywords or not is_equal:
            raise ValueError(f"the tests must all be assert {entry}(...) == VALUE")
        inputs.append(canonical_args(ast.unparse(ast.Tuple([*call.args], ast.Load()))[1:-1].removesuffix(",")))
        outputs.append(canonical(ast.unparse(compared.comparators[0]), wide=True))  # type: ignore[union-attr]
    if not inputs:
        raise ValueError(f'the field "tests" must hold assertions: assert {entry}(...) == VALUE')
    return tuple(inputs), tuple(outputs)


def _grade_answer(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade a short answer: the same text, ignoring case and blanks, or the same number."""
    return Grade(comparable(answer) == comparable(task.outputs[0]), "ok")


def comparable(text: str) -> Fraction | str:
    """Return the number that an answer is, exactly, or its text without case, outer signs and repeated blanks."""
    text = " ".join(text.split()).casefold().rstrip(".").removeprefix("$")
    return Fraction(text.replace(",", "")) if len(text) <= MAX_NUMBER_CHARS and _NUMBER.fullmatch(text) else text


def _grade_function(task: Task, answer: str, rules: Rules) -> Jobs[Grade]:
    """Grade a program: its function must return the expected value of every test."""
    return grade_function(answer, task.inputs, task.outputs, rules, task.code)


def _check(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Task | Rejection:
    return Rejection(candidate, "not-asked", "teachers do not write tasks of this kind")


def _propose(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return ""


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    return ParsedProposal(error="teachers do not write tasks of this kind")


def _solve_chat(task: Task) -> str:
    what = f"Write the Python function {task.code}, in a ```python block." if task.kind == FUNCTION.name else ""
    return f"{task.message}\n\n{THINK_FIRST} {what}".rstrip()


def _solve_fewshot(task: Task) -> str:
    if task.kind == ANSWER.name:
        return f"Question: What is 1 + 1?\nAnswer: 2\n{END}\nQuestion: {task.message}\nAnswer:"
    message = task.message.replace("\n", "\n# ")
    return f"# Add two numbers.\ndef add(a, b):\n    return a + b\n{END}\n# {message}\n"


def _words(name: str) -> dict[str, Words]:
    is_function = name == "own_function"

    def from_chat(answer: str) -> str | None:
        return (program_in(answer) if is_function else None) or answer.strip() or None

    def first_line(answer: str) -> str | None:
        return answer.strip("\n") if is_function else answer.strip().partition("\n")[0]

    def compact(task: Task) -> str:
        return f"{task.message.strip()}{asked(name)}"

    return {
        "chat": Words(_propose, _solve_chat, _read_proposal, from_chat),
        "fewshot": Words(_propose, _solve_fewshot, _read_proposal, first_line, has_thoughts=False),
        "compact": Words(_propose, compact, _read_proposal, str.strip),
    }


def _kind(name: str, title: str, multiline: bool) -> TaskKind:
    return TaskKind(
        name=name,
        shown=Shown(f"{name} ({title})", "The student sees the question of a file of your own."),
        words=_words(name),
        check=_check,
        grade=_grade_function if multiline else _grade_answer,
        gold=lambda task: task.outputs[0],
        is_multiline=multiline,
        statement=lambda task: task.message,
        normal_form=lambda task: task.message,
        behaviour=lambda task: f"{name}\0{task.message}",
    )


ANSWER = _kind("own_answer", "answer a question", multiline=False)
FUNCTION = _kind("own_function", "write a function", multiline=True)
OWN_TASKS = Domain(
    "own", (ANSWER, FUNCTION), Task("seed", "seed", "", ANSWER.name, "", ("",), ("2",), "What is 1 + 1?")
)
