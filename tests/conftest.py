"""What all tests share: no deadlines, no look-ups on the hub, and one real run, made once for all worker processes."""

import fcntl
import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from scripted import Table

    from redqueen_sandbox import Sandbox

settings.register_profile("redqueen", deadline=None)
settings.load_profile("redqueen")

os.environ["REDQUEEN_CACHE"] = ""  # that of the user stays as it is
os.environ["HF_HUB_OFFLINE"] = "1"  # before huggingface_hub is imported: a name that is not here is refused at once
if "PYTEST_XDIST_WORKER" in os.environ:  # beside other processes of tests: one thread each, before torch is imported
    os.environ.setdefault("OMP_NUM_THREADS", "1")

QUICK = Path(__file__).parent / "quick.toml"
LONG = ("test_docs.py", "test_untrusted_folders.py", "test_architectures.py")
"""Files that take long and would be among the last."""


gc.disable()  # till the tests are collected: a fifth of that time, and of what was imported nothing is ever free


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files: a worker that began one at the end would be alone with it."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session", autouse=True)
def few_timed_texts() -> Iterator[None]:
    """Let a run that begins time as few texts as it can, and only the first of a process, to say how long it takes."""
    with pytest.MonkeyPatch.context() as patch:
        if "torch" in sys.modules:  # tests that were collected import it, and only they play runs
            from redqueen.run import duration

            measured, paces = duration._measured_pace, []

            @functools.wraps(measured)
            def first_pace(state: object, engine: object) -> object:
                if not paces:
                    paces.append(measured(state, engine))  # type: ignore[arg-type]
                return paces[0]

            patch.setattr(duration, "NUM_ROWS", 1)
            patch.setattr(duration, "_measured_pace", first_pace)
        yield


def folder_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.getbasetemp()  # of this worker, inside the folder of all of them
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def shared_base_scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the first run of each kind evaluate its base, and later ones read the scores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDQUEEN_CACHE", str(folder_of_all(tmp_path_factory) / "base_scores"))
        yield


@pytest.fixture
def own_base_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run of the test evaluate its base."""
    monkeypatch.setenv("REDQUEEN_CACHE", "")


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of ``quick.toml``, finished without interruption. Read it, do not write to it.

    The worker that needs it first makes it, and the others wait for it.
    """
    from redqueen.commands.train import run_and_report
    from redqueen.config import load_config
    from redqueen.run.lifecycle import start

    folder = folder_of_all(tmp_path_factory) / "quick" / "run"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "report.html").exists():
            run_and_report(folder, lambda: start(load_config(QUICK), folder))
    return folder


@pytest.fixture(scope="session")
def verifier() -> "Iterator[Sandbox]":
    """One open sandbox with the limits of a config that sets none."""
    from redqueen_sandbox import Sandbox

    with Sandbox(workers=1) as running:  # each worker process of the tests has one
        yield running


@pytest.fixture(scope="session")
def table() -> "Iterator[Table]":
    """One open engine of four members, at which tests play steps (``scripted.py``)."""
    from scripted import open_table

    with open_table() as opened:
        yield opened
