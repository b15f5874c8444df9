"""On a real GPU: recordings write what plain steps write, the CPU's numbers, and runs that repeat and resume exactly.

Skipped without CUDA. What can be tried without one is in ``adapters/test_fake_gpu.py``.
"""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import CONFIGS, tiny_model

from redqueen.adapters import torch_sampler
from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Precision, freeze
from redqueen.adapters.decoding import StepGraph
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.journal import Journal, diff
from redqueen.learn.batches import by_member
from redqueen.learn.loss import add_by_member
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Completion, Request, Rollout
from redqueen.run.store import JOURNAL

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]
HERE = Path(__file__).parent
QUICK, KILLED_RUN = HERE / "quick.toml", HERE / "run" / "killed_run.py"
ON_CUDA = ["--set", "run.device=cuda"]
END = 3


def bank_on(device: str, architecture: str = "qwen3", precision: Precision = "fp32") -> AdapterBank:
    """Three members that differ, the same on every device."""
    base = freeze(tiny_model(architecture), device, precision)
    bank = AdapterBank(base, 3, rank=4, alpha=8.0)
    generator = torch.Generator().manual_seed(1)
    for slot in range(3):
        for _, b in bank.factors(slot).values():
            b.copy_(torch.randn(b.shape, generator=generator) * 0.3)
    return bank


def tokens(seed: int, length: int) -> tuple[int, ...]:
    return tuple(torch.randint(4, 61, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


REQUESTS = [
    Request(slot=i % 4 - 1, prompt=tokens(i, 3 + 5 * (i % 4)), num_samples=1 + i % 3, rng_seed=i, temperature=1.0)
    for i in range(14)
]


def sampler(bank: AdapterBank, cuda_graphs: bool, **options: float) -> TorchSampler:
    settings: dict = {"max_new_tokens": 40, "end_tokens": [END], "max_rows": 9} | options
    return TorchSampler(bank, **settings, cuda_graphs=cuda_graphs)


def sample(bank: AdapterBank, cuda_graphs: bool, **options: float) -> list[list[Completion]]:
    return sampler(bank, cuda_graphs, **options).sample(REQUESTS)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_recorded_steps_write_the_tokens_of_plain_steps(
    architecture: str, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = 0

    class Counted(StepGraph):
        def run(self) -> None:
            nonlocal replays
            replays += 1
            super().run()

    monkeypatch.setattr(torch_sampler, "StepGraph", Counted)
    bank = bank_on("cuda", architecture, precision)
    plain = sample(bank, cuda_graphs=False)
    assert replays == 0
    recording = sampler(bank, cuda_graphs=True)
    assert recording.sample(REQUESTS) == plain
    assert replays == recording.steps_run - recording.steps_between_checks


@pytest.mark.parametrize("architecture", CONFIGS)
def test_the_gpu_writes_what_the_cpu_writes(architecture: str) -> None:
    there, here = (sample(bank_on(device, architecture), True, temperature=0.0) for device in ("cuda", "cpu"))
    for one, other in zip(there, here, strict=True):
        for mine, its in zip(one, other, strict=True):
            assert mine.tokens == its.tokens
            assert mine.logprobs == pytest.approx(its.logprobs, abs=1e-3)
            assert mine.entropy == pytest.approx(its.entropy, abs=1e-3)


def test_a_temperature_of_a_request_is_recorded_too() -> None:
    bank = bank_on("cuda")
    requests = [replace(request, temperature=0.5 + 0.1 * i) for i, request in enumerate(REQUESTS)]
    with_graphs, without = (
        TorchSampler(bank, 24, [END], 0.9, max_rows=9, cuda_graphs=graphs).sample(requests) for graphs in (True, False)
    )
    assert with_graphs == without


def rollouts() -> list[Rollout]:
    def group(slot: int, seed: int, lengths: tuple[int, ...], advantages: tuple[float, ...]) -> Rollout:
        completions = [Completion(tokens(100 * seed + i, n), (-4.0,) * n, 1.0, True) for i, n in enumerate(lengths)]
        return Rollout(slot, tokens(seed, 4 + seed), tuple(completions), advantages)

    return [
        group(2, 1, (4, 9, 1), (1.0, -0.5, 0.3)),
        group(0, 2, (6, 2), (-1.0, 1.0)),
        group(2, 3, (5, 5, 7), (0.5, 0.0, -2.0)),
        group(0, 4, (3,), (1.5,)),
    ]


LEARNING = {
    "plain": LearnConfig(),
    "held to the base": LearnConfig(kl_weight=0.1),
    "layers computed twice": LearnConfig(gradient_checkpointing=True),
}


@pytest.mark.parametrize(("precision", "bound"), [("fp32", 1e-4), ("bf16", 0.15)])
@pytest.mark.parametrize("config", LEARNING.values(), ids=LEARNING)
@pytest.mark.parametrize("architecture", CONFIGS)
def test_gradients_are_those_of_the_cpu(
    architecture: str, config: LearnConfig, precision: Precision, bound: float
) -> None:
    there, sums = TorchLearner(bank_on("cuda", architecture, precision), config).gradients(by_member(rollouts()))
    here, expected = TorchLearner(bank_on("cpu", architecture), config).gradients(by_member(rollouts()))
    for mine, its in zip(there.cpu(), here, strict=True):
        assert (mine - its).norm() / its.norm() < bound
    if precision == "fp32":
        torch.testing.assert_close(sums.cpu(), expected, rtol=1e-3, atol=1e-4)


def test_sums_by_member_are_those_of_the_cpu_and_the_same_every_time() -> None:
    generator = torch.Generator().manual_seed(0)
    values, member_of = torch.randn(20_000, generator=generator), torch.randint(0, 5, (20_000,), generator=generator)

    def summed(device: str) -> torch.Tensor:
        sums = torch.arange(5.0, device=device)
        add_by_member(sums, member_of.to(device), values.to(device))
        return sums.cpu()

    once = summed("cuda")
    assert all(summed("cuda").equal(once) for _ in range(20))
    torch.testing.assert_close(once, summed("cpu"), rtol=1e-4, atol=1e-2)


def test_steps_are_those_of_the_cpu_and_come_again_bit_by_bit() -> None:
    def stepped(device: str) -> torch.Tensor:
        bank = bank_on(device)
        learner = TorchLearner(bank, LearnConfig(learning_rate=1e-2))
        for _ in range(5):
            learner.update(rollouts())
        return bank.flat.cpu()

    once, again, here = stepped("cuda"), stepped("cuda"), stepped("cpu")
    assert once.equal(again)
    torch.testing.assert_close(once, here, rtol=1e-2, atol=2e-3)


def play(folder: Path, *words: str, kill: tuple[str, int] = ("never", 0)) -> int:
    """``redqueen`` in a process of its own, which dies by itself at a moment (see ``run/killed_run.py``)."""
    command = [sys.executable, str(KILLED_RUN), kill[0], str(kill[1]), str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def test_a_run_comes_again_bit_by_bit_and_after_a_kill_too(tmp_path: Path) -> None:
    whole, again, killed = tmp_path / "whole", tmp_path / "again", tmp_path / "killed"
    for folder in (whole, again):
        assert play(folder, "train", str(QUICK), *ON_CUDA, "--run-dir", str(folder)) == 0
    assert diff(whole / JOURNAL, again / JOURNAL) is None
    begin = ("train", str(QUICK), *ON_CUDA, "--run-dir", str(killed))
    assert play(killed, *begin, kill=("statement", 150)) == -signal.SIGKILL
    assert play(killed, "resume", str(killed)) == 0
    assert diff(whole / JOURNAL, killed / JOURNAL) is None
    with Journal.open(whole / JOURNAL, read_only=True) as journal:
        assert journal.tuples("SELECT count(*) FROM attempt")[0][0] > 0
