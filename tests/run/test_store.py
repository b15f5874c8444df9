"""The lock of a run directory: one process writes, the second refuses."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.run.store import RunLock

HOLDER = """
import sys, time, os
from pathlib import Path
from redqueen.run.store import RunLock
with RunLock(Path(sys.argv[1])):
    if sys.argv[2] == "fork" and os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


def hold(run_dir: Path, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(run_dir), how], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    with hold(tmp_path, "alone") as first:
        with pytest.raises(UserError, match=rf"another process \(pid {first.pid}\)"), RunLock(tmp_path):
            pass
        first.kill()


def test_the_lock_dies_with_its_process_even_when_a_forked_worker_lives_on(tmp_path: Path) -> None:
    with hold(tmp_path, "fork") as first:
        first.kill()
        first.wait()
        start = time.monotonic()
        with RunLock(tmp_path):
            assert time.monotonic() - start < 1.0


def test_the_same_process_cannot_take_it_twice_but_can_take_it_again(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        with pytest.raises(UserError, match="by this process"), RunLock(tmp_path):
            pass
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    with RunLock(tmp_path):
        assert (tmp_path / "lock").exists()


def test_a_missing_run_directory_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the run directory .* cannot be written to"), RunLock(tmp_path / "nowhere"):
        pass
