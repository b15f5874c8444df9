"""CRUXEval: recorded outputs of real programs, reproduced under two hash seeds."""

import pytest
from verify_data import DATA, read_lines

from redqueen_sandbox import Program, Sandbox
from redqueen_sandbox.literals import canonical

NOT_REPRODUCED = {
    "sample_258": "its input names a variable that the program does not have outside a function: no literal",
    "sample_344": "its input is a lambda: no literal",
    "sample_364": "its input is a lambda: no literal",
}
"""Each item that is not reproduced, and why."""


def not_reproduced(verifier: Sandbox, rows: list[dict[str, object]]) -> dict[str, str]:
    results = verifier.run([Program(str(row["id"]), str(row["code"]), (str(row["input"]),)) for row in rows])
    return {
        result.id: result.verdict
        for row, result in zip(rows, results, strict=True)
        if result.outputs != (canonical(str(row["output"]), wide=True),)
    }


def test_a_sample_of_cruxeval_is_reproduced(verifier: Sandbox) -> None:
    rows = read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")
    some = [
        row for i, row in enumerate(rows) if i % 20 == 0 or row["id"] in (*NOT_REPRODUCED, "sample_621", "sample_152")
    ]
    assert not_reproduced(verifier, some) == dict.fromkeys(NOT_REPRODUCED, "invalid-input")


@pytest.mark.slow
def test_all_of_cruxeval_but_the_explained_items_is_reproduced(verifier: Sandbox) -> None:
    rows = read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")
    assert not_reproduced(verifier, rows) == dict.fromkeys(NOT_REPRODUCED, "invalid-input")
    assert len(rows) - len(NOT_REPRODUCED) >= 795
