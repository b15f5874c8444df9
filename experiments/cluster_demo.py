"""Do one run in one process and on two Ray nodes of this machine, with one core each: the journals must be equal.

    python experiments/cluster_demo.py [--steps 10] [--work 2] [--out FOLDER] [--limit]

4T+4S in two shards, each with its own verifier. The run is done in one process, then on the cluster, and both are
compared: journals row by row (tasks, verdicts, ratings) and the last checkpoint's tensors (factors and moments) bit by
bit. The last line is ``equal``, or the first difference; then the exit code is 1. The lines above it give the speed-up,
in total and by phase: the seconds of the steps in one process, bound to one core with its verifier, divided by those on
two nodes with one core each, without start, evaluation and checkpoints. With ``--limit`` the one-process run is then
done twice at the same time, on one core each: the speed-up of two processes that share nothing is the upper bound for
any division of work on this machine.
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
    """Return 4T+4S in two shards; one thread each, because the number of threads changes the last bits of a sum.

    A step has ``work`` times the proposals of the config: shards gain by larger steps, because sampling a token for
    half the rows takes more than half the time.
    """
    one_core_each = ["run.num_threads=1", "cluster.num_shards=2", 'cluster.verify="shard"', "verify.num_workers=1"]
    proposals = load_config(CONFIG).propose.num_proposals
    multiplied = ", ".join(f"{kind} = {work * num}" for kind, num in proposals.items())
    steps = [f"run.num_steps={num_steps}", f"propose.num_proposals={{{multiplied}}}", "evaluate.max_items=60"]
    return load_config(CONFIG, [*steps, *one_core_each])


def compare(one: Path, other: Path) -> str:
    """Return ``equal``, or the first difference of two runs."""
    found = diff(one / JOURNAL, other / JOURNAL)
    if found is not None:
        return found
    first, second = (Checkpoint.latest_valid(folder / CHECKPOINTS) for folder in (one, other))
    assert first is not None and second is not None
    if first.tensors.keys() != second.tensors.keys():
        return f"the checkpoints have different tensors: {min(first.tensors.keys() ^ second.tensors.keys())}"
    unequal = [name for name, tensor in first.tensors.items() if not torch.equal(tensor, second.tensors[name])]
    return f"the tensor {unequal[0]} differs" if unequal else "equal"


def seconds_of_steps(folder: Path) -> dict[str, float]:
    """Return the seconds of each phase, without evaluation, checkpoints and the first step (warm-up)."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        phases = "step > 1 AND phase NOT IN ('evaluate', 'checkpoint')"
        rows = journal.query(f"SELECT phase, sum(seconds) AS s FROM timing WHERE {phases} GROUP BY phase")
    return {row["phase"]: float(row["s"]) for row in rows}


def print_speed_up(slower: dict[str, float], faster: dict[str, float]) -> None:
    """Print the ratio of two runs' seconds, and that of each phase of at least one second."""
    phases = [f"{phase} {slower[phase] / s:.2f}" for phase, s in sorted(faster.items()) if s >= 1 and phase in slower]
    ratio = sum(slower.values()) / sum(faster.values())
    print(f"speed-up of two nodes over one core: {ratio:.2f} ({', '.join(phases)})")


def limit(config: Config, folder: Path, single_s: float) -> float:
    """Return the speed-up of two processes that share nothing: the run done twice at the same time."""
    folders = [folder / f"parallel-{i}" for i in range(2)]
    play_on_cores(config, folders)
    return 2 * single_s / (sum(sum(seconds_of_steps(one).values()) for one in folders) / 2)


def play_on_cores(config: Config, folders: list[Path]) -> None:
    """Do runs at the same time, each in a process that is bound, with its children, to its own core."""
    spawn, cores = multiprocessing.get_context("spawn"), sorted(os.sched_getaffinity(0))
    if len(cores) < len(folders):
        sys.exit(f"{len(folders)} runs at a time need as many cores, but {len(cores)} are available")
    pairs = zip(cores, folders, strict=False)
    processes = [spawn.Process(target=play_on, args=(core, folder, config)) for core, folder in pairs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("stopped: nothing was compared")


def play_on(core: int, folder: Path, config: Config) -> None:
    """Do a run on one core."""
    os.sched_setaffinity(0, {core})
    play(config, folder)


def play(config: Config, folder: Path, *load: LoadAdapters) -> float:
    """Do a run to its end; return its seconds. Exits if the run was stopped."""
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
    os.sched_setaffinity(0, cores[:1])  # inherited by the node's processes
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
    print_speed_up(one, two)
    if options.limit:
        most = limit(config, out, sum(one.values()))
        print(f"speed-up of two processes that share nothing: {most:.2f}")
    verdict = compare(out / "one-process", out / "two-nodes")
    print(verdict)
    sys.exit(verdict != "equal")


if __name__ == "__main__":
    main()
