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
from redqueen.policy.allocator import keep_freed_memory

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
