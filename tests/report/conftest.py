"""Runs for the tests of report and dashboard, each built once: populations, single agents, hostile texts, damage."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_run import build_hostile_run
from starlette.testclient import TestClient
from synthetic_run import build_run

from redqueen.report.site import create_app


@pytest.fixture(scope="session")
def population_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4T+4S over 36 steps, with hostile texts everywhere a model writes."""
    return build_run(tmp_path_factory.mktemp("runs") / "population-seed0", num_steps=36, evolve_every=6)


@pytest.fixture(scope="session")
def single_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the single arm over 12 steps."""
    return build_run(tmp_path_factory.mktemp("runs") / "single-seed0", 12, num_teachers=0, num_students=0, gain=0.0)


@pytest.fixture(scope="session")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs ``arms/population-0`` (2T+2S, 12 steps), ``single-0``, ``hostile`` and ``damaged``, and a folder of none."""
    root = tmp_path_factory.mktemp("dashboard")
    (root / "arms").mkdir()
    build_run(root / "arms" / "population-0", 12, 2, 2, tasks_per_match=4, num_attempts=3, evolve_every=4)
    build_run(root / "single-0", 4, 0, 0, tasks_per_match=3, num_attempts=2)
    build_hostile_run(root / "hostile")
    (root / "damaged").mkdir()
    (root / "damaged" / "journal.sqlite").write_bytes(b"no journal at all" * 100)
    (root / "notes").mkdir()
    return root


@pytest.fixture
def client(runs_dir: Path) -> Iterator[TestClient]:
    with TestClient(create_app(runs_dir), base_url="http://127.0.0.1:8470", raise_server_exceptions=True) as opened:
        yield opened
