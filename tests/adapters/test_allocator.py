"""Memory that a process frees is kept for its next step, unless the environment says otherwise."""

import json
import os
import sys
from ctypes import CDLL
from typing import Any

import pytest
from processes import run_apart

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(CDLL(None), "gnu_get_libc_version"), reason="another C library"
)

PROGRAM = """
import json, os, resource
from concurrent.futures import ThreadPoolExecutor
import torch
from redqueen.adapters.memory import give_back_if_scarce, keep_freed_memory
from redqueen.config import Config
from redqueen.engine import set_up_torch

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

def keep():
    thread = ThreadPoolExecutor(1)
    def measured(num_before):
        in_thread = thread.submit(faults, num_before).result()
        return {"main": faults(num_before), "thread": in_thread, "given_back": given_back()}
    usual, taken = measured(0), keep_freed_memory()
    return {"usual": usual, "taken": taken, "kept": measured(40)}  # until the holes in the heap fit

def leave_alone():
    os.environ["MALLOC_TRIM_THRESHOLD_"] = "131072"
    return {"taken": keep_freed_memory(), "main": faults(0)}

def run():
    set_up_torch(Config())
    return {"main": faults(40)}

def forked(measure):  # each has an allocator of its own, and no thread or freed memory of another
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(measure()).encode())
        os._exit(0)
    os.close(writing)
    return json.loads(os.fdopen(reading).read())

print(json.dumps({measure.__name__: forked(measure) for measure in (keep, leave_alone, run)}))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """What new processes measure: as usual and after ``keep_freed_memory``, with settings of the user, and in a run."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = run_apart(PROGRAM, env=settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def process(told: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return told["keep"]


@pytest.mark.parametrize("where", ["main", "thread"])
def test_pages_of_a_freed_tensor_serve_the_next_one_on_any_thread(process: dict[str, Any], where: str) -> None:
    assert process["taken"]
    assert process["kept"][where] < process["usual"][where] / 20


def test_settings_of_the_environment_are_left_alone(told: dict[str, dict[str, Any]]) -> None:
    assert not told["leave_alone"]["taken"]
    assert told["leave_alone"]["main"] > told["keep"]["kept"]["main"] * 20


def test_a_run_keeps_its_memory(told: dict[str, dict[str, Any]]) -> None:
    assert told["run"]["main"] < told["keep"]["usual"]["main"] / 20


def test_what_is_kept_goes_back_only_where_the_machine_has_less_to_spare(process: dict[str, Any]) -> None:
    before, plenty, then, scarce, last = process["kept"]["given_back"]
    assert (plenty, scarce) == (False, True)
    assert then == pytest.approx(before, abs=2**22)
    assert last < before - 300 * 2**20


def test_a_process_that_keeps_nothing_has_nothing_to_give_back(process: dict[str, Any]) -> None:
    assert not process["usual"]["given_back"][3]
