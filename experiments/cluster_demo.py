"""Two Ray nodes on this machine, each with a core, play the run that one process plays: the journals must be equal.

    python experiments/cluster_demo.py [--steps 10] [--work 2] [--out FOLDER] [--limit]

4T+4S in two shards, each with a verifier of its own. The run is played in one process, then on the cluster, and both
are compared: journals row by row (tasks, verdicts, ratings) and the last checkpoint's tensors (factors and moments) bit
by bit. The last line is ``equal``, or where they differ; then the exit code is 1. The lines above tell the speed-up:
seconds of the steps in one process, bound to one core with its verifier, by those on two nodes that are bound to a core
each, without starting, evaluation and checkpoints, in all and by phase. With ``--limit`` the run of one process is then
played twice at the same time, each on its core: what two processes that share nothing gain on this machine is the most
that any division could.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import torch

from redqueen.cluster.sharded import adapters_at
from redqueen.config import Config, load_config
from redqueen.engine import LoadAdapters
from redqueen.journal import Journal
from redqueen.journal.compare import diff
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.lifecycle import start
from redqueen.run.store import CHECKPOINTS, JOURNAL

CONFIG = Path(__file__).parents[1] / "configs" / "population.toml"


def demo_config(num_steps: int, work: int = 2) -> Config:
    """4T+4S in two shards; one thread each, since the number of threads changes the last bits of a sum.

    A step has ``work`` times the proposals of the config: where half the rows of a token take more than half its time,
    shards gain by larger steps.
    """
    one_core_each = ["run.num_threads=1", "cluster.num_shards=2", 'cluster.verify="shard"', "verify.num_workers=1"]
    proposals = load_config(CONFIG).propose.num_proposals
    more = ", ".join(f"{kind} = {work * num}" for kind, num in proposals.items())
    steps = [f"run.num_steps={num_steps}", f"propose.num_proposals={{{more}}}", "evaluate.max_items=60"]
    return load_config(CONFIG, [*steps, *one_core_each])


def compare(one: Path, other: Path) -> str:
    """Return ``equal``, or the first difference of two runs."""
    found = diff(one / JOURNAL, other / JOURNAL)
    if found is not None:
        return found
    first, second = (Checkpoint.latest_valid(folder / CHECKPOINTS) for folder in (one, other))
    assert first is not None and second is not None
    if first.tensors.keys() != second.tensors.keys():
        return f"the checkpoints hold other tensors: {min(first.tensors.keys() ^ second.tensors.keys())}"
    unequal = [name for name, tensor in first.tensors.items() if not torch.equal(tensor, second.tensors[name])]
    return f"the tensor {unequal[0]} differs" if unequal else "equal"


def seconds_of_steps(folder: Path) -> dict[str, float]:
    """Return what the phases of the steps took but evaluation and checkpoints; the first step warms up."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        phases = "step > 1 AND phase NOT IN ('evaluate', 'checkpoint')"
        rows = journal.query(f"SELECT phase, sum(seconds) AS s FROM timing WHERE {phases} GROUP BY phase")
    return {row["phase"]: float(row["s"]) for row in rows}


def tell_speed_up(slower: dict[str, float], faster: dict[str, float]) -> None:
    """Print the ratio of two runs' seconds, and by phase where a phase took a second or more."""
    phases = [f"{phase} {slower[phase] / s:.2f}" for phase, s in sorted(faster.items()) if s >= 1 and phase in slower]
    ratio = sum(slower.values()) / sum(faster.values())
    print(f"speed-up of two nodes over one core: {ratio:.2f} ({', '.join(phases)})")


def limit(config: Config, folder: Path, alone_s: float) -> float:
    """Return the speed-up of two processes that share nothing: the run played twice at the same time."""
    folders = [folder / f"beside-{i}" for i in range(2)]
    play_on_cores(config, folders)
    return 2 * alone_s / (sum(sum(seconds_of_steps(one).values()) for one in folders) / 2)


def play_on_cores(config: Config, folders: list[Path]) -> None:
    """Play runs at the same time, each in a process that has, with all it starts, one core of its own."""
    spawn, cores = multiprocessing.get_context("spawn"), sorted(os.sched_getaffinity(0))
    if len(cores) < len(folders):
        sys.exit(f"{len(folders)} runs at a time need as many cores; this machine lends {len(cores)}")
    pairs = zip(cores, folders, strict=False)
    processes = [spawn.Process(target=play_on, args=(core, folder, config)) for core, folder in pairs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("stopped: nothing was compared")


def play_on(core: int, folder: Path, config: Config) -> None:
    """Play a run on one core."""
    os.sched_setaffinity(0, {core})
    play(config, folder)


def play(config: Config, folder: Path, *load: LoadAdapters) -> float:
    """Play a run to its end; return its seconds. A run that was stopped ends the demonstration."""
    began = time.monotonic()
    if not start(config, folder, *load):
        sys.exit("stopped: nothing was compared")
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--work", type=int, default=2, help="proposals of a step, as a multiple of the config's")
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="redqueen-cluster-"))
    config = demo_config(options.steps, options.work)
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    began = time.monotonic()
    play_on_cores(config, [out / "one-process"])
    one_s = time.monotonic() - began
    from ray.cluster_utils import Cluster

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])  # what a node starts stays on its core
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    os.sched_setaffinity(0, cores[-1:])
    nodes.add_node(num_cpus=1)
    os.sched_setaffinity(0, cores)
    try:
        two_s = play(config, out / "two-nodes", adapters_at(nodes.address))
    finally:
        nodes.shutdown()
    print(f"runs: {out}\none process: {one_s:.0f} s; two nodes: {two_s:.0f} s, with their start")
    one, two = (seconds_of_steps(out / name) for name in ("one-process", "two-nodes"))
    tell_speed_up(one, two)
    if options.limit:
        most = limit(config, out, sum(one.values()))
        print(f"speed-up of two processes that share nothing: {most:.2f}")
    verdict = compare(out / "one-process", out / "two-nodes")
    print(verdict)
    sys.exit(verdict != "equal")


if __name__ == "__main__":
    main()
