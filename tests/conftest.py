"""What all tests share: no deadlines on a machine that may be busy, and one real run, played once in a process."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("redqueen", deadline=None)
settings.load_profile("redqueen")

if "PYTEST_XDIST_WORKER" in os.environ:  # beside other processes of tests: one thread each, before torch is imported
    os.environ.setdefault("OMP_NUM_THREADS", "1")

QUICK = Path(__file__).parent / "quick.toml"

os.environ["REDQUEEN_CACHE"] = ""  # no test reads what an earlier one has cached


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of ``quick.toml``, played to its end without interruption. Read it, do not write to it."""
    from redqueen.commands.train import play_to_report
    from redqueen.config import load_config
    from redqueen.run.lifecycle import start

    folder = tmp_path_factory.mktemp("quick") / "run"
    play_to_report(folder, lambda: start(load_config(QUICK), folder))
    return folder
