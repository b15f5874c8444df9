"""A judge for the tests of mathematics."""

from collections.abc import Iterator

import pytest

from redqueen_sandbox import Verifier, guard


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    guard.faults.clear()
    with Verifier(workers=1) as running:
        yield running
    assert not guard.faults, "the judge itself failed on a text"
