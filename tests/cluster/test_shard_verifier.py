"""Verdicts are the same whether the driver's verifier judges or those of the shards, also when a shard is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lossy_host import Fate, LossyHost

from redqueen.cluster.fleet import Fleet
from redqueen.cluster.host import LocalHost
from redqueen.cluster.sharded import ShardedVerifier, sharded_adapters
from redqueen.config import Config, load_config
from redqueen.domains.registry import JobRunner, check, grade
from redqueen.engine import open_engine, set_up_torch
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen.verifying import open_sandbox
from redqueen_sandbox.sandbox import Sandbox

SMALL = ["population.num_teachers=1", "population.num_students=1", "population.lora_rank=2", "run.num_threads=1"]
PROGRAMS = [
    "def f(x):\n    return x * 2",
    "def f(x):\n    return [x] * x",
    "def f(x):\n    while True: pass",
    "def f(x):\n    return 1 / 0",
    "import os\ndef f(x):\n    return x",
]


@pytest.fixture
def config() -> Config:
    divided = ["cluster.num_shards=2", "cluster.verify=shard", "verify.num_workers=1", "model.precision=fp32"]
    config = load_config(Path("configs/smoke.toml"), [*SMALL, *divided])
    set_up_torch(config)
    return config


@pytest.fixture
def verifier(config: Config) -> Iterator[Sandbox]:
    with open_sandbox(config) as opened:
        yield opened


def verdicts(judge: JobRunner) -> tuple[list[Task | Rejection], list[Grade]]:
    candidates = [Candidate(f"c{i}", "T1", "S1", "code_o", code, code, ("3",)) for i, code in enumerate(PROGRAMS)]
    judged = check(candidates, judge)
    tasks = [one for one in judged if isinstance(one, Task)]
    return judged, grade([(task, answer) for task in tasks for answer in ("6", "[3, 3, 3]", "nonsense(", None)], judge)


def test_shards_judge_as_the_driver_does(config: Config, verifier: Sandbox) -> None:
    fleet = Fleet(config, LossyHost(config, Fate()))
    judged, grades = verdicts(ShardedVerifier(fleet))
    assert (judged, grades) == verdicts(verifier)
    assert [type(one) for one in judged] == [Task, Task, Rejection, Rejection, Rejection]
    assert [one.correct for one in grades] == [True, False, False, False, False, True, False, False]
    fleet.close()


def test_a_shard_that_is_lost_while_it_judges_changes_no_verdict(config: Config, verifier: Sandbox) -> None:
    fate = Fate(lost_before={3}, lost_after={7})
    fleet = Fleet(config, LossyHost(config, fate))
    assert verdicts(ShardedVerifier(fleet)) == verdicts(verifier)
    assert fleet.num_lost == 2 and set(fate.methods) == {"judge"}
    fleet.close()


def test_the_engine_of_a_divided_run_judges_at_the_shards_and_ends_their_verifiers(config: Config) -> None:
    host = LocalHost(config)
    with open_engine(config, lambda config: sharded_adapters(config, host)) as engine:
        assert isinstance(engine.verifier, ShardedVerifier)
        shards = [place.connection.shard for place in engine.verifier.fleet.shards]
        pids = [pid for shard in shards for pid in shard.verifier.process_ids()]
        assert len(pids) == 4 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_nothing_to_judge_asks_nobody(config: Config) -> None:
    fate = Fate()
    judge = ShardedVerifier(Fleet(config, LossyHost(config, fate)))
    asked = fate.num_calls
    assert judge.judge([]) == [] and fate.num_calls == asked
