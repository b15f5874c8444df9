"""The evaluation suites by name: the source of their items, and the reader that turns a row into a question."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from redqueen.config import GYM_PREFIX
from redqueen.domains.code.grading import grade_wide_input, grade_wide_literal
from redqueen.domains.code.kinds import ABDUCTION, CODE, DEDUCTION
from redqueen.domains.code.suite import build_items, load_functions, load_suite
from redqueen.domains.domain import Domain, Grader, Item, TaskKind
from redqueen.domains.maths.notation import final_answer
from redqueen.domains.own import FUNCTION, read_own
from redqueen.domains.registry import DOMAINS, OWN, domain_of, entry_points, frozen_items, kind_of, open_domain
from redqueen.domains.rows import Row, rows_of_file, rows_of_hub
from redqueen.errors import UserError
from redqueen.evaluate.evalplus import extended_test, with_stand_in
from redqueen.evaluate.livecode import read_question
from redqueen.evaluate.questions import FunctionQuestion, MathsQuestion, Question, TaskQuestion
from redqueen.records import Task
from redqueen_sandbox.literals import LiteralError, canonical
from redqueen_sandbox.unit_tests import UnitTest

MINI = "mini"
"""The embedded suite, which needs neither the hub nor a file."""

_ID_FIELDS = ("id", "task_id", "unique_id", "question_id", "idx")


@dataclass(frozen=True)
class Benchmark:
    """A suite's reader and its place on the hub; ``files``: a pattern of JSON-line files in the repository."""

    read: Callable[[Row, str], Question]
    repository: str
    split: str = "test"
    config: str | None = None
    files: str = ""


def load_questions(suite: str, data: Path | None = None, limit: int | None = None) -> list[Question]:
    """Return the first ``limit`` questions of a suite, from the file ``data`` or from the suite's own source.

    Raises UserError for an unknown suite, a file that does not fit, or a dataset that cannot be loaded.
    """
    plugins = entry_points()
    if suite not in (*SUITES, *plugins) and not suite.startswith(GYM_PREFIX):
        named = f"--suite {suite} is unknown" if suite else "--suite is missing"
        raise UserError(f"{named}: choose one of {', '.join((*SUITES, *plugins))}, or {PAPER} for the paper's ten")
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: give a number of items of at least 1")
    if suite == MINI:
        return _questions_of(build_items(load_functions(data)) if data else load_suite())[:limit]
    if suite == TESTS and data is None:
        raise UserError("--suite tests is a file of your own: name it by --data FILE")
    if suite not in BENCHMARKS and data is None:
        return _questions_of(frozen_items(open_domain(suite).suite))[:limit]
    benchmark = BENCHMARKS.get(suite) or Benchmark(_domain_reader(open_domain(suite)), repository="")
    if data is not None:
        rows = rows_of_file(data)
    else:
        rows = rows_of_hub(benchmark.repository, benchmark.config, benchmark.split, benchmark.files)
    questions: dict[str, Question] = {}
    for number, row in enumerate(rows[:limit]):
        name = next((row.text(field) for field in _ID_FIELDS if row.has(field)), str(number))
        if name in questions:
            raise UserError(f"{row.where}: the id {name} was used before; give every item its own")
        questions[name] = read_item(benchmark, row, name)
    if not questions:
        raise UserError(f"{data or benchmark.repository} holds no items; give a file of JSON lines")
    return list(questions.values())


def read_item(benchmark: Benchmark, row: Row, name: str) -> Question:
    """Turn a row into a question. Raises UserError for a damaged row."""
    try:
        return benchmark.read(row, name)
    except UserError:
        raise
    except Exception as error:  # a foreign row may hold anything in any field
        what = type(error).__name__
        raise UserError(f"{row.where}: cannot be read as an item ({what}); is it this suite's file?") from None


def _questions_of(items: Iterable[Item]) -> list[Question]:
    return [
        TaskQuestion(item.id, item.task, kind_of(item.task).gold(item.task), cluster=item.cluster) for item in items
    ]


def _domain_reader(domain: Domain) -> Callable[[Row, str], Question]:
    """Return the reader of a domain's tasks: a row has ``kind`` and the plain fields of a task."""
    names = [kind.name for kind in domain.kinds]

    def read(row: Row, name: str) -> Question:
        kind = row.text("kind")
        if kind not in names:
            raise UserError(f'{row.where}: the field "kind" must be one of {", ".join(names)}')
        try:
            task = domain.read_task(name, kind, row.fields)
        except ValueError as error:
            raise UserError(f"{row.where}: {error}") from None
        if not task.outputs:
            raise UserError(f'{row.where}: the field "outputs" must hold the right answer')
        return TaskQuestion(name, task, kind_of(task).gold(task))

    return read


def _cruxeval(kind: TaskKind, grade: Grader) -> Callable[[Row, str], Question]:
    def read(row: Row, name: str) -> Question:
        code, given, output = row.text("code"), row.text("input"), row.text("output")
        try:
            value = canonical(output, wide=True)
        except LiteralError as error:
            raise UserError(f"{row.where}: the output is not a plain literal ({error})") from None
        task = Task(name, "", "", kind.name, code, (given,), (value,))
        return TaskQuestion(name, task, output if kind is DEDUCTION else given, grade)

    return read


def _human_eval(row: Row, name: str) -> Question:
    prompt, entry, gold = row.text("prompt"), row.text("entry_point"), row.text("canonical_solution")
    if row.has("test"):
        test = UnitTest(name, "", with_stand_in(row.text("test")) + "\ncheck(candidate)\n", entry, helpers=prompt)
    else:
        assertions = row.text("assertion") if row.has("assertion") else ""
        test = extended_test(row, prompt + gold, prompt, assertions)
    return FunctionQuestion(name, prompt, test, stub=prompt, gold=gold)


def _mbpp(row: Row, name: str) -> Question:
    name = name if name.startswith("Mbpp/") else f"Mbpp/{name}"
    if row.has("plus_input"):
        reference = row.text("canonical_solution")
        test = extended_test(row, reference, f"import math\n{reference}", row.text("assertion"))
        return FunctionQuestion(name, row.text("prompt"), test, gold=reference)
    reference = row.text("code", "canonical_solution")
    example = row.text("entry_point") if row.has("entry_point") else _entry_of(row, reference)
    test = UnitTest(name, "", with_stand_in(row.text("test", "assertion")), example, f"import math\n{reference}")
    shown = "\n".join(str(line) for line in row.fields.get("test_list") or [])
    return FunctionQuestion(name, f"{row.text('prompt')}\n{shown}".strip(), test, gold=reference)


def _entry_of(row: Row, reference: str) -> str:
    """Return the name of the reference's function that the published assertions call."""
    try:
        tested = ast.parse("\n".join(map(str, row.fields.get("test_list") or [])))
        defined = [node.name for node in ast.parse(reference).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise UserError(f"{row.where}: the reference or its tests do not parse ({error.msg})") from None
    called = {n.func.id for n in ast.walk(tested) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    for name in defined:
        if name in called:
            return name
    raise UserError(f"{row.where}: no function of the reference is called by test_list; is it this suite's file?")


def _maths(row: Row, name: str) -> Question:
    text = row.text("problem", "question", "Problem", "Question")
    gold = row.fields.get("answer", row.fields.get("final_answer", row.fields.get("solution")))
    if isinstance(gold, list):  # OlympiadBench
        gold = ", ".join(final_answer(str(part)) for part in gold)
    if not isinstance(gold, str):
        gold = row.text("answer", "final_answer", "solution")
    gold = final_answer(gold)
    if not gold:
        raise UserError(f"{row.where}: the answer is empty; is it this suite's file?")
    return MathsQuestion(name, text, gold)


def _tests(row: Row, name: str) -> Question:
    """Read a row of the user's own tasks; tests that are not comparisons with literals are run as a program."""
    if row.has("kind"):
        return _domain_reader(domain_of(row.text("kind")))(row, name)
    try:
        task = read_own(row, name)
    except UserError:
        if not row.has("tests"):
            raise
        given = row.fields["tests"]
        tests = "\n".join(map(str, given)) if isinstance(given, list) else row.text("tests")
        tests += "\ncheck(candidate)\n" if "def check(" in tests and "\ncheck(" not in tests else ""
        return FunctionQuestion(name, row.text("prompt", "question"), UnitTest(name, "", tests, row.text("entry")))
    if not task.outputs:
        raise UserError(f'{row.where}: the field "output" must hold the right answer')
    return TaskQuestion(name, task, None if task.kind == FUNCTION.name else kind_of(task).gold(task))


TESTS = "tests"
"""The suite of the user's own tasks: its items are in the file that ``--data`` names."""

BENCHMARKS: dict[str, Benchmark] = {
    TESTS: Benchmark(_tests, ""),
    "cruxeval-o": Benchmark(_cruxeval(DEDUCTION, grade_wide_literal), "cruxeval-org/cruxeval"),
    "cruxeval-i": Benchmark(_cruxeval(ABDUCTION, grade_wide_input), "cruxeval-org/cruxeval"),
    "humaneval": Benchmark(_human_eval, "openai/openai_humaneval"),
    "humaneval+": Benchmark(_human_eval, "evalplus/humanevalplus"),
    "mbpp+": Benchmark(_mbpp, "evalplus/mbppplus"),
    "livecodebench": Benchmark(read_question, "livecodebench/code_generation_lite", files="test*.jsonl"),
    "aime24": Benchmark(_maths, "HuggingFaceH4/aime_2024", "train"),
    "aime25": Benchmark(_maths, "yentinglin/aime_2025", "train"),
    "amc23": Benchmark(_maths, "math-ai/amc23"),
    "math500": Benchmark(_maths, "HuggingFaceH4/MATH-500"),
    "minerva": Benchmark(_maths, "math-ai/minervamath"),
    "gsm8k": Benchmark(_maths, "openai/gsm8k", config="main"),
    "olympiadbench": Benchmark(_maths, "Hothan/OlympiadBench", "train", config="OE_TO_maths_en_COMP"),
}
"""Published suites. Splits and names are from the hub's pages; loading them from the hub is not tested."""

PAPER = "paper"
"""The paper's ten benchmarks, one after the other."""

PAPER_SUITES = (
    "humaneval+", "mbpp+", "livecodebench",
    "aime24", "aime25", "amc23", "math500", "minerva", "olympiadbench", "gsm8k",
)  # fmt: skip
"""Source: AZR's suites; GSM8K is ours, because readers of the paper say ten and list only some."""

FROZEN = tuple(name for name in OWN if DOMAINS[name].suite is not CODE.suite)
"""The frozen suites of the other domains, by the domain's name; that of ``code`` is ``mini``."""

SUITES = (MINI, *FROZEN, *BENCHMARKS)
