"""Memory that a process frees is kept for its next step, unless the environment says otherwise."""

import os
import subprocess
import sys
from ctypes import CDLL

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(CDLL(None), "gnu_get_libc_version"), reason="another C library"
)

FAULTS = """
import resource, sys, threading
import torch
from redqueen.adapters.memory import keep_freed_memory

taken = sys.argv[1] == "keep" and keep_freed_memory()
if sys.argv[1] == "run":
    from redqueen.config import Config
    from redqueen.engine import set_up_torch
    set_up_torch(Config())

def work():
    for _ in range(40):  # until the holes in the heap fit
        torch.ones(10 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(10 * 2**20)
    print(int(taken), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if sys.argv[2] == "thread":
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


def faults(how: str, where: str = "main", **environment: str) -> tuple[bool, int]:
    """Return whether the setting was taken, and the page faults of ten tensors of 40 MB, one after the other.

    ``how``: "usual", "keep", or "run" for what a run sets up.
    """
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", FAULTS, how, where]
    done = subprocess.run(command, env={**settings, **environment}, capture_output=True, text=True, check=True)
    taken, num = done.stdout.split()
    return taken == "1", int(num)


@pytest.mark.parametrize("where", ["main", "thread"])
def test_pages_of_a_freed_tensor_serve_the_next_one_on_any_thread(where: str) -> None:
    usual = faults("usual", where=where)[1]
    taken, num = faults("keep", where=where)
    assert taken
    assert num < usual / 20


def test_settings_of_the_environment_are_left_alone() -> None:
    taken, num = faults("keep", MALLOC_TRIM_THRESHOLD_="131072")
    assert not taken
    assert num > faults("keep")[1] * 20


def test_a_run_keeps_its_memory() -> None:
    assert faults("run")[1] < faults("usual")[1] / 20


SCARCE = """
import sys
import torch
from redqueen.adapters.memory import give_back_if_scarce, keep_freed_memory

def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

if sys.argv[1] == "keep":
    keep_freed_memory()
tensors = [torch.ones(2**20) for _ in range(100)]  # 4 MB each
pinned = tensors[-1].clone()  # so that the end of the heap is not free
del tensors
before = held()
plenty = give_back_if_scarce(before + 2**20), held()
scarce = give_back_if_scarce(before - 2**20), held()
print(*map(int, (before, *plenty, *scarce)))
"""


def given_back(how: str) -> tuple[int, int, int, int, int]:
    """Return bytes that are held, whether they are given back where the machine has plenty, and how many are held
    then, and the same where it has not."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", SCARCE, how]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    before, plenty, then, scarce, last = map(int, done.stdout.split())
    return before, plenty, then, scarce, last


def test_what_is_kept_goes_back_only_where_the_machine_has_less_to_spare() -> None:
    before, plenty, then, scarce, last = given_back("keep")
    assert (plenty, scarce) == (False, True)
    assert then == pytest.approx(before, abs=2**22)
    assert last < before - 300 * 2**20


def test_a_process_that_keeps_nothing_has_nothing_to_give_back() -> None:
    assert not given_back("usual")[3]
