"""Whole runs whose shards are killed, in every phase and at random moments, are the runs that lost nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from process_host import Killing, ProcessHost

from redqueen.cluster.sharded import sharded_adapters
from redqueen.config import Config, load_config
from redqueen.engine import Adapters
from redqueen.journal import diff
from redqueen.run import lifecycle
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS, JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"
SMALL = [
    "cluster.num_shards=2",
    "propose.num_code_o=1",
    "propose.num_code_i=1",
    "population.num_teachers=1",
    "propose.num_code_f=0",
    "propose.max_new_tokens=48",
    "solve.num_attempts=2",
    "solve.max_new_tokens=12",
    "evaluate.max_items=1",
    "evaluate.control=false",
]
OFTEN = ["match", "propose", "verify", "solve", "learn", "evolve"]
"""The phases of every step."""
ONCE = {
    (step, phase): 0.0
    for step, phase in zip(range(1, 9), [*OFTEN[:5], "evolve", "evaluate", "checkpoint"], strict=True)
}
"""Each phase in a step of its own."""
NUM_STEPS, NUM_KILLS = 40, 20


def small_config(num_steps: int, more: list[str] | None = None) -> Config:
    return load_config(QUICK, [f"run.num_steps={num_steps}", *SMALL, *(more or [])])


def play_and_kill(
    config: Config, folder: Path, plan: dict[tuple[int, str], float], monkeypatch: pytest.MonkeyPatch
) -> Killing:
    """Play a run on processes, and kill that of one shard or the other as planned."""
    hosts: list[ProcessHost] = []

    def kill(step: int) -> None:
        connection = hosts[0].connections[step % 2]
        if not connection.killed:
            connection.kill()

    def load(config: Config) -> Adapters:
        hosts.append(ProcessHost(config))
        return sharded_adapters(config, hosts[0])

    killing = Killing(plan, kill)
    with monkeypatch.context() as patched:
        patched.setattr(lifecycle, "RunProgress", lambda schedule: killing)
        assert lifecycle.start(config, folder, load)
    assert sorted(killing.done) == sorted(plan), "every planned moment came"
    return killing


def same_run(one: Path, other: Path) -> bool:
    """Tell whether two runs have the same journal, row by row, and the same last tensors, bit by bit."""
    assert diff(one / JOURNAL, other / JOURNAL) is None
    first, second = (Checkpoint.latest_valid(folder / CHECKPOINTS) for folder in (one, other))
    assert first is not None and second is not None and first.tensors.keys() == second.tensors.keys()
    return all(tensor.equal(second.tensors[name]) for name, tensor in first.tensors.items())


@pytest.mark.slow
def test_a_shard_killed_in_each_phase_once_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(9, ["evaluate.every_steps=7"])
    lifecycle.start(config, tmp_path / "whole")
    killing = play_and_kill(config, tmp_path / "killed", ONCE, monkeypatch)
    assert same_run(tmp_path / "whole", tmp_path / "killed")
    assert killing.num_lost == len(ONCE) and killing.num_steps == 9


@pytest.mark.slow
def test_twenty_kills_at_random_moments_of_forty_steps_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(NUM_STEPS)
    lifecycle.start(config, tmp_path / "whole")
    rng = random.Random(0)
    steps = sorted(rng.sample(range(1, NUM_STEPS - 1), NUM_KILLS))
    plan = {(step, rng.choice(OFTEN)): rng.uniform(0.0, 0.3) for step in steps}
    killing = play_and_kill(config, tmp_path / "killed", plan, monkeypatch)
    assert same_run(tmp_path / "whole", tmp_path / "killed")
    assert len(killing.done) == NUM_KILLS and killing.num_steps == NUM_STEPS
    assert killing.num_lost >= NUM_KILLS - 2
