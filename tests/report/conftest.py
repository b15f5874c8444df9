"""Runs for the tests of the report, each built once."""

from pathlib import Path

import pytest
from synthetic_run import build_run


@pytest.fixture(scope="session")
def population_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4T+4S over 36 steps, with hostile texts everywhere a model writes."""
    return build_run(tmp_path_factory.mktemp("runs") / "population-seed0", num_steps=36, evolve_every=6)


@pytest.fixture(scope="session")
def single_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the single arm over 12 steps."""
    return build_run(tmp_path_factory.mktemp("runs") / "single-seed0", 12, num_teachers=0, num_students=0, gain=0.0)
