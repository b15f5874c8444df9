"""A judge for the tests of mathematics."""

from collections.abc import Iterator

import pytest

from redqueen_sandbox import Sandbox, guard


@pytest.fixture(scope="module")
def verifier(verifier: Sandbox) -> Iterator[Sandbox]:
    guard.faults.clear()
    yield verifier
    assert not guard.faults, "the judge itself failed on a text"
