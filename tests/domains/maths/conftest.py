"""A judge for the tests of mathematics."""

from collections.abc import Iterator

import pytest

from redqueen_sandbox import Sandbox, guard


@pytest.fixture(scope="module")
def verifier() -> Iterator[Sandbox]:
    guard.faults.clear()
    with Sandbox(workers=1) as running:
        yield running
    assert not guard.faults, "the judge itself failed on a text"
