"""A real Ray cluster of two nodes on this machine: nodes that die, processes that hang, nodes that come."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'redqueen[ray]'")
from ray.cluster_utils import Cluster  # noqa: E402
from test_fleet import SMALL, learn, play  # noqa: E402

from redqueen.cluster.host import LocalHost  # noqa: E402
from redqueen.cluster.ray_host import RayHost  # noqa: E402
from redqueen.cluster.sharded import adapters_at, sharded_adapters  # noqa: E402
from redqueen.config import Config, load_config  # noqa: E402
from redqueen.engine import Adapters, set_up_torch  # noqa: E402
from redqueen.errors import UserError  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def config() -> Config:
    config = load_config(Path("configs/smoke.toml"), SMALL)
    set_up_torch(config)
    return config


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two nodes with a core each, whose workers find what this process finds."""
    sources = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([sources, os.environ.get("PYTHONPATH", "")]))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def ends(adapters: Adapters) -> tuple[object, dict[str, torch.Tensor]]:
    stats, state = play(adapters)
    return stats, state


def same(one: tuple[object, dict[str, torch.Tensor]], other: tuple[object, dict[str, torch.Tensor]]) -> bool:
    return one[0] == other[0] and all(torch.equal(one[1][name], other[1][name]) for name in one[1] | other[1])


def test_two_nodes_compute_what_one_process_computes_also_when_one_dies_or_another_comes(
    config: Config, nodes: Cluster
) -> None:
    here = sharded_adapters(config, LocalHost(config))
    there = sharded_adapters(config, RayHost(config, nodes.address))
    placed = {event.node for event in there.take_events()}
    assert len(placed) == 2, "both nodes have a shard"
    assert same(ends(there), ends(here))
    nodes.remove_node(sorted(nodes.worker_nodes, key=str)[0])
    assert same(ends(there), ends(here))
    assert [event.what for event in there.take_events()] == ["lost", "opened"]
    nodes.add_node(num_cpus=1)
    assert same(ends(there), ends(here))
    assert "moved" in [event.what for event in there.take_events()]
    there.close()


@pytest.mark.parametrize("killed", [[[1], [0]], [[0, 1], [0, 1]]], ids=["the keeper, then its charge", "both at once"])
def test_a_backup_outlives_the_shard_that_keeps_it(config: Config, nodes: Cluster, killed: list[list[int]]) -> None:
    host = RayHost(config, nodes.address)
    there, here = sharded_adapters(config, host), sharded_adapters(config, LocalHost(config))
    for step, indices in enumerate(killed):  # each time behind an update, with its backups on their way
        assert learn(there, step) == learn(here, step)
        for index in indices:
            ray.kill(host.connections[index].actor)
    assert same(ends(there), ends(here))
    events = [(event.what, event.shard) for event in there.take_events()]
    assert [shard for what, shard in events if what == "lost"] == [index for indices in killed for index in indices]
    there.close()


def test_a_shard_that_hangs_is_lost_when_it_makes_no_progress(config: Config, nodes: Cluster) -> None:
    host = RayHost(config, nodes.address)
    there, here = sharded_adapters(config, host), sharded_adapters(config, LocalHost(config))
    ends(there), ends(here)
    pid = ray.get(host.connections[1].actor.__ray_call__.remote(lambda actor: os.getpid()))
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        assert same(ends(there), ends(here))
    finally:
        os.kill(pid, signal.SIGKILL) if Path(f"/proc/{pid}").exists() else None
    assert [e.detail for e in there.take_events() if e.what == "lost"] == ["no progress for 20 s"]
    assert time.monotonic() - began < 120
    there.close()


def test_an_address_where_nothing_answers_is_refused_with_what_to_start(config: Config) -> None:
    with pytest.raises(UserError, match="ray start --head"):
        adapters_at("127.0.0.1:1")(config)
