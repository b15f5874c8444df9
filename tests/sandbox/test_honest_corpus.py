"""Honest programs become tasks: a corpus of many styles, and the canonical solutions of two benchmarks.

The corpus stands in ``honest/*.txt``: each program under a line ``#: argument list``, its entry ``f``. What it must
give is computed here, by plain Python.
"""

import ast
import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest
from verify_data import DATA, honest_programs, read_lines

from redqueen.domains.registry import check as check_all
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.literals import canonical

REFUSED = {
    "refused:0": "types.FunctionType: it builds a function from code",
    "refused:1": "eval: text that no gate has seen",
    "refused:2": "sys.getsizeof: only for its public names. The size of an object is the machine's",
    "refused:3": "__traceback__: it leads to frames",
    "refused:4": "typing.get_type_hints: it evaluates text",
    "library:20": "calendar.mdays: no public name",
    "library:23": "hashlib: a bit of a hash can only be guessed",
    "library:24": "random: what a seed gives can only be guessed",
    "library:25": "random: what a seed gives can only be guessed",
    "library:28": "contextlib.redirect_stdout: it changes sys",
    "library:33": "array: it tells addresses",
    "library:36": "ast: its trees have no use here",
    "mixed:19": "globals: a namespace as a dict, by which names are computed",
    "mixed:9": "binascii: a bit of a checksum can only be guessed",
    "names_and_syntax:40": "doctest: imported where it runs, for the main block alone",
    "names_and_syntax:41": "argparse: imported where it runs, for the main block alone",
    "names_and_syntax:42": "time: imported where it runs, for the main block alone",
    "names_and_syntax:43": "input: read in a function that is called by the main block alone",
    "names_and_syntax:44": "logging: imported where it runs, for the main block alone",
    "names_and_syntax:45": "unittest: imported where it runs, for the main block alone",
    "simulations:14": "random: what a seed gives can only be guessed",
}
"""The honest programs that are refused, and why that is the price of something."""

NO_TASK = {
    "HumanEval/160": "forbidden",  # eval
    "HumanEval/162": "forbidden",  # hashlib
    "Mbpp/590": "invalid-output",  # a complex number
    "Mbpp/596": "forbidden",  # sys.getsizeof
    "Mbpp/737": "invalid-output",  # a match object
    "Mbpp/794": "invalid-output",  # a match object
}
"""Canonical solutions that are no task."""

INPUTS = {
    "HumanEval/32": "[1, 2]",
    "HumanEval/38": "'eabhdf'",
    "HumanEval/50": "'mjqqt'",
    "Mbpp/106": "[5, 6, 7], (9, 10)",
    "Mbpp/124": "0, 1.0",
    "Mbpp/580": "(4, 5, (7, 6, (2, 4)), 6, 8)",
    "Mbpp/720": "(4, 5, 6), {'MSAM': 1, 'is': 2, 'best': 3}",
}
"""Inputs for items whose file has none that is a plain literal of the right type."""


def by_plain_python(code: str, given: str) -> str:
    """What the program gives here, as a canonical literal."""
    module = ModuleType("program")
    kept, sys.modules["program"] = sys.getrecursionlimit(), module
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(code, module.__dict__)
            return canonical(repr(eval(f"f({given})", module.__dict__)))
    finally:
        sys.setrecursionlimit(kept)
        del sys.modules["program"]


def as_candidate(name: str, code: str, given: str) -> Candidate:
    return Candidate(name, "T", "S", "code_o", "", code, (given,))


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.slow)], ids=["a third", "all"])
def checked(request: pytest.FixtureRequest, verifier: Sandbox) -> dict[str, tuple[Task | Rejection, str, str]]:
    rows = [row for i, row in enumerate(honest_programs()) if i % request.param == 0 or row[0] in REFUSED]
    found = check_all([as_candidate(*row) for row in rows], verifier)
    return {name: (result, code, given) for result, (name, code, given) in zip(found, rows, strict=True)}


def test_the_corpus_has_three_hundred_programs_and_no_two_alike_and_few_are_refused() -> None:
    rows = list(honest_programs())
    assert len({code for _, code, _ in rows}) == len({name for name, _, _ in rows}) == len(rows) >= 300
    assert len(REFUSED) <= 0.07 * len(rows)


def test_honest_programs_become_tasks_and_each_refusal_is_explained(
    checked: dict[str, tuple[Task | Rejection, str, str]],
) -> None:
    rejected = {name: result for name, (result, _, _) in checked.items() if isinstance(result, Rejection)}
    assert {name: result.detail for name, result in rejected.items() if name not in REFUSED} == {}
    assert rejected.keys() == REFUSED.keys()
    for name, result in rejected.items():
        assert result.reason == "forbidden" and REFUSED[name].split(":")[0] in result.detail


def test_honest_programs_give_what_plain_python_gives(
    checked: dict[str, tuple[Task | Rejection, str, str]],
) -> None:
    tasks = [(name, task, code, given) for name, (task, code, given) in checked.items() if isinstance(task, Task)]
    wrong = [name for name, task, code, given in tasks if task.outputs[0] != by_plain_python(code, given)]
    assert wrong == [] and len(tasks) == len(checked) - len(REFUSED) >= 95


def solutions() -> Iterator[tuple[str, str, str]]:
    """(id, code with an ``f``, argument list) of the canonical solutions of HumanEval and MBPP+."""
    for row in read_lines(DATA / "benchmarks" / "humaneval.jsonl.gz"):
        name, code = str(row["task_id"]), f"{row['prompt']}{row['canonical_solution']}\nf = {row['entry_point']}\n"
        yield name, code, INPUTS.get(name) or first_arguments(str(row["test"]))
    for row in read_lines(DATA / "benchmarks" / "mbpp_plus.jsonl.gz"):
        name, code = str(row["task_id"]), f"{row['prompt']}\n{row['canonical_solution']}\nf = {row['entry_point']}\n"
        yield name, code, INPUTS.get(name) or ", ".join(map(repr, row["base_input"][0]))  # type: ignore[index]


def first_arguments(test: str) -> str:
    """The arguments of the first call of ``candidate`` in a test that has only literals."""
    for node in ast.walk(ast.parse(test)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate":
            with contextlib.suppress(ValueError):
                return ", ".join(repr(ast.literal_eval(argument)) for argument in node.args)
    raise AssertionError("no call with literals")


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_canonical_solutions_become_tasks_and_each_refusal_is_explained(every: int) -> None:
    rows = [row for i, row in enumerate(solutions()) if i % every == 0 or row[0] in NO_TASK]
    limits = replace(Limits(), cpu_ms=1_000, accept_cpu_ms=500)  # HumanEval/75 is slow, which is not its fault
    with Sandbox(workers=1, limits=limits) as patient:
        found = check_all([as_candidate(*row) for row in rows], patient)
    reasons = {name: r.reason for (name, _, _), r in zip(rows, found, strict=True) if isinstance(r, Rejection)}
    assert reasons == NO_TASK
    assert len(rows) >= 542 // every and len(NO_TASK) <= 0.012 * 542
