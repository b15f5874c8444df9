"""One judge of answers to benchmarks for all tests of evaluation: some of its graders import sympy."""

from collections.abc import Iterator

import pytest

from redqueen.evaluate.judging import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge() as opened:
        yield opened
