"""Runs for the tests of experiments: they never were, and are written by the tests of the report."""

import json
import sys
from pathlib import Path

import pytest

from redqueen.experiment.plan import Experiment, load_experiment
from redqueen.experiment.runner import CONFIG, REPORT

sys.path.append(str(Path(__file__).parents[1] / "report"))

from synthetic_run import build_run

FILE = """
[experiment]
name = "e"
steps = 5
seeds = [0, 1]
reference = "4T+4S"
[[arm]]
name = "single"
set = {population = {single = true, num_teachers = 1, num_students = 1}}
[[arm]]
name = "4T+4S"
[[arm]]
name = "matched"
match = "tokens"
"""


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "e.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def plan(plan_file: Path) -> Experiment:
    return load_experiment(plan_file)


@pytest.fixture(scope="module")
def runs(plan: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of two arms, finished; nothing of the third."""
    folder = tmp_path_factory.mktemp("runs")
    for planned in plan.runs:
        if planned.arm != "matched":
            size = 0 if planned.arm == "single" else 4
            made = build_run(folder / planned.folder, 5, size, size, planned.seed, evolve_every=2)
            (made / CONFIG).write_text(json.dumps(planned.config.model_dump(mode="json")))
            (made / REPORT).write_text("")
    return folder
