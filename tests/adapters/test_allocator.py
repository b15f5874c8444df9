"""Memory that a process frees is kept for its next step, unless the environment says otherwise."""

import json
import os
import subprocess
import sys
from ctypes import CDLL

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(CDLL(None), "gnu_get_libc_version"), reason="another C library"
)

PROGRAM = """
import json, resource, sys
from concurrent.futures import ThreadPoolExecutor
import torch
from redqueen.adapters.memory import give_back_if_scarce, keep_freed_memory

def faults(num_before):  # page faults of ten tensors of 40 MB, one after the other, behind some others
    for _ in range(num_before):
        torch.ones(10 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(10 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def given_back():  # bytes held, then whether they are given back and how many are held: with plenty, and when scarce
    tensors = [torch.ones(2**20) for _ in range(100)]  # 4 MB each
    pinned = tensors[-1].clone()  # so that the end of the heap is not free
    del tensors
    before = held()
    plenty = give_back_if_scarce(before + 2**20), held()
    return before, *plenty, give_back_if_scarce(before - 2**20), held()

def measured(num_before):
    in_thread = thread.submit(faults, num_before).result()
    return {"main": faults(num_before), "thread": in_thread, "given_back": given_back()}

thread = ThreadPoolExecutor(1)
if sys.argv[1] == "run":
    from redqueen.config import Config
    from redqueen.engine import set_up_torch
    set_up_torch(Config())
    print(json.dumps({"main": faults(40)}))
else:
    usual, taken = measured(0), keep_freed_memory()
    kept = measured(40 if taken else 0)  # until the holes in the heap fit
    print(json.dumps({"usual": usual, "taken": taken, "kept": kept}))
"""


def told(how: str, **environment: str) -> dict[str, dict[str, int]]:
    """Return what a new process measures: as usual and after ``keep_freed_memory``, or in what a run sets up."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PROGRAM, how]
    done = subprocess.run(command, env={**settings, **environment}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def process() -> dict[str, dict[str, int]]:
    return told("keep")


@pytest.mark.parametrize("where", ["main", "thread"])
def test_pages_of_a_freed_tensor_serve_the_next_one_on_any_thread(
    process: dict[str, dict[str, int]], where: str
) -> None:
    assert process["taken"]
    assert process["kept"][where] < process["usual"][where] / 20


def test_settings_of_the_environment_are_left_alone(process: dict[str, dict[str, int]]) -> None:
    other = told("keep", MALLOC_TRIM_THRESHOLD_="131072")
    assert not other["taken"]
    assert other["kept"]["main"] > process["kept"]["main"] * 20


def test_a_run_keeps_its_memory(process: dict[str, dict[str, int]]) -> None:
    assert told("run")["main"] < process["usual"]["main"] / 20


def test_what_is_kept_goes_back_only_where_the_machine_has_less_to_spare(process: dict[str, dict[str, int]]) -> None:
    before, plenty, then, scarce, last = process["kept"]["given_back"]
    assert (plenty, scarce) == (False, True)
    assert then == pytest.approx(before, abs=2**22)
    assert last < before - 300 * 2**20


def test_a_process_that_keeps_nothing_has_nothing_to_give_back(process: dict[str, dict[str, int]]) -> None:
    assert not process["usual"]["given_back"][3]
