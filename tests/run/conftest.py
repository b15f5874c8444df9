"""What the tests of whole runs share: the journal of a module's run, and few texts to time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.journal import Journal
from redqueen.run.store import JOURNAL


@pytest.fixture(scope="session", autouse=True)
def few_timed_texts() -> Iterator[None]:
    """Let a run that begins time as few texts as it can, to say how long it will take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("redqueen.run.duration.NUM_ROWS", 1)
        yield


@pytest.fixture(scope="module")
def journal(run: Path) -> Iterator[Journal]:
    """Of what the module's own fixture ``run`` played; read only."""
    with Journal.open(run / JOURNAL, read_only=True) as opened:
        yield opened
