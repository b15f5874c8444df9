"""Where a run's adapters are opened: in this process whole, in this process by shards, or on a Ray cluster."""

from __future__ import annotations

from importlib.util import find_spec

from redqueen.cluster.host import Host, LocalHost
from redqueen.cluster.sharded import sharded_adapters
from redqueen.config import Config
from redqueen.engine import Adapters, LoadAdapters, load_adapters
from redqueen.errors import UserError, how_to_install
from redqueen.timing import Report, unheard


def adapters_here(report: Report = unheard) -> LoadAdapters:
    """Return what opens the adapters in this process, in as many shards as the config says."""

    def load(config: Config) -> Adapters:
        if config.cluster.num_shards == 1:
            return load_adapters(config, report)
        return sharded_adapters(config, LocalHost(config, report))

    return load


def adapters_at(address: str) -> LoadAdapters:
    """Return what opens the adapters on the Ray cluster at ``address``.

    Raises UserError when Ray is not installed; opening raises it when no cluster answers.
    """
    if find_spec("ray") is None:
        raise UserError(f"--cluster needs Ray: {how_to_install('ray')}")

    def load(config: Config) -> Adapters:
        from redqueen.cluster.ray_host import RayHost

        host: Host = RayHost(config, address)
        return sharded_adapters(config, host)

    return load
