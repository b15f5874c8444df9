"""What the tests of whole runs share: the journal of a module's run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.journal import Journal
from redqueen.run.store import JOURNAL


@pytest.fixture(scope="module")
def journal(run: Path) -> Iterator[Journal]:
    """Of what the module's own fixture ``run`` played; read only."""
    with Journal.open(run / JOURNAL, read_only=True) as opened:
        yield opened
