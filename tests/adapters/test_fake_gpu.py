"""The GPU's paths without a GPU: one device for all tensors, and no value read between two looks at the rows."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import run_apart

BENCH = Path(__file__).parents[2] / "bench"
PATHS = """
import sys
sys.path[:0] = [{bench!r}, {tests!r}]
from _fake_gpu import DEVICE, decode, fake_base, fake_gpu, learn, skeleton
from tiny_models import CONFIGS
from redqueen.adapters.bank import AdapterBank
with fake_gpu():
    for name, config in CONFIGS.items():
        bank = AdapterBank(fake_base(skeleton(config)), 3, rank=4, alpha=8.0)
        assert str(bank.flat.device) == DEVICE
        decode(bank)
        learn(bank)
        print(name)
"""
WAITING = """
import sys
sys.path[:0] = [{bench!r}, {tests!r}]
from _fake_gpu import decode, fake_base, fake_gpu, skeleton
from tiny_models import CONFIGS
from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.decoding import Decoding
kept = Decoding.next_inputs
FAULTS = [
    lambda self: (int(self.count.sum()), kept(self))[1],
    lambda self: (kept(self)[0].cpu() + kept(self)[1], kept(self)[1]),
]
with fake_gpu():
    for fault in FAULTS:
        Decoding.next_inputs = fault
        try:
            decode(AdapterBank(fake_base(skeleton(CONFIGS["llama"])), 2, rank=4, alpha=8.0))
        except Exception as error:
            print(type(error).__name__, str(error).replace(chr(10), " "))
        else:
            print("not found")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the device that is not there stays registered."""
    filled = code.format(bench=str(BENCH), tests=str(BENCH.parent / "tests"))
    return run_apart(filled)


@pytest.mark.slow
def test_every_architecture_reads_decodes_and_learns_on_one_device() -> None:
    done = run(PATHS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["llama", "qwen2", "qwen3", "mistral", "gemma", "phi"]


def test_a_step_that_waits_for_the_host_or_strays_from_the_device_is_found() -> None:
    done = run(WAITING)
    assert done.returncode == 0, done.stderr[-2000:]
    waits, strays = done.stdout.splitlines()
    assert "DataDependentOutputException" in waits and "same device" in strays


@pytest.mark.slow
def test_the_dry_form_of_the_shape_of_seven_billion_runs() -> None:
    command = [sys.executable, str(BENCH / "shape_7b.py"), "--dry", "--layers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "nothing waits for the host" in done.stdout and "one step of every member" in done.stdout
