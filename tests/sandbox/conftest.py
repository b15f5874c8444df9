"""Shared by the verifier's tests: running verifiers, and the hostile corpus where it is at hand."""

from collections.abc import Callable, Iterator

import pytest
from verify_data import DATA, HOST_MODULES, read_lines

from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.zygotes import ZygoteSettings


@pytest.fixture(scope="session")
def verifier() -> Iterator[Sandbox]:
    with Sandbox(workers=2, settings=ZygoteSettings(hash_seed=7)) as running:  # one coin in eight would agree
        yield running


@pytest.fixture(scope="session")
def bare_verifier() -> Iterator[Sandbox]:
    """The cage alone: no static gate, and every module that a hostile program would like to have."""
    with Sandbox(workers=2, gated=False, settings=ZygoteSettings(preload=HOST_MODULES)) as running:
        yield running


@pytest.fixture
def run_one(verifier: Sandbox) -> Callable[..., Result]:
    """Run one program on one input."""

    def run(code: str, given: str = "3") -> Result:
        return verifier.run([Program("one", code, (given,))])[0]

    return run


@pytest.fixture(scope="session")
def hostile_rows() -> list[dict[str, object]]:
    return read_lines(DATA / "hostile" / "programs.jsonl")
