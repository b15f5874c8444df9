"""What a divided population moves and how long its steps take: planned, measured, and simulated for ten thousand.

    python bench/cluster_plan.py [CONFIG] [--set ...] [--steps 4] [--nodes 2] [--members 10000]
    python bench/cluster_plan.py --timings RUN_DIR [--members 10000]

First a run is played in one process, in shards whose calls are pickled as on a cluster: its bytes by purpose stand
beside the plan of ``redqueen.cluster.traffic`` for the same texts. With ``--nodes`` the run is then played on Ray nodes
of a core each on this machine, and its bytes and seconds stand beside the simulation's, which knows only the run in one
process. At last the simulation plays the same members in thousands: time, traffic, what stragglers and lost machines
take, and the price. With ``--timings`` nothing is played: seconds and texts are those of a finished run's journal,
which does not know how long prompts were (``--prompt-tokens``). Seconds, parameters and vocabulary of another base can
be given in place of those measured.
Prints tables and, as its last line, a JSON object.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from _shared import print_result, print_table

from redqueen.cluster.host import Connection, Later, LocalHost, Pending
from redqueen.cluster.opening import adapters_at
from redqueen.cluster.sharded import sharded_adapters
from redqueen.cluster.simulate import Cluster, shares, simulate, step_stages
from redqueen.cluster.traffic import FACTOR_BYTES, Texts, Work, planned
from redqueen.config import Config, load_config
from redqueen.display import size
from redqueen.journal import Journal
from redqueen.policy.base_shape import base_shape
from redqueen.policy.memory import plan, work_of
from redqueen.run.cluster_log import read_summary
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL, load_run_config

PLAIN = ["run.num_threads=1", "run.checkpoint_every_steps=1000000", "evolve.every_steps=1000000"]
"""Steps without births and checkpoints, which have traffic of their own."""
PHASES = ("propose", "solve", "learn", "verify")


class CountingHost(LocalHost):
    """Shards in this process whose calls, answers and backups are pickled as on a cluster, and counted by step."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.moved_bytes: Counter[str] = Counter()
        self.texts = {"sampled": Texts(), "learned": Texts()}
        self.steps: list[dict[str, Texts]] = []
        self.bank: Any = None

    def open(self, index: int, slots: Sequence[int]) -> Any:
        connection = super().open(index, slots)
        self.bank = connection.shard.store.bank
        return CountingConnection(self, connection)

    def keep(self, index: int, connection: Connection) -> Pending:
        def keep() -> None:
            self.moved_bytes["backup"] += len(pickle.dumps(connection.send("backup", silent=True).get()))

        return Later(keep)

    def moved(self) -> dict[str, int]:
        moved, self.moved_bytes = dict(self.moved_bytes), Counter()
        self.steps.append(self.texts)
        self.texts = {"sampled": Texts(), "learned": Texts()}
        return moved

    def count(self, kind: str, prompts: Sequence[Any], groups: Sequence[Sequence[Any]]) -> None:
        """Count prompts (requests or rollouts) and completions."""
        before = self.texts[kind]
        completions = [one for group in groups for one in group]
        self.texts[kind] = Texts(
            before.num_prompts + len(prompts),
            before.prompt_tokens + sum(len(one.prompt) for one in prompts),
            before.num_completions + len(completions),
            before.completion_tokens + sum(len(one.tokens) for one in completions),
        )


@dataclass
class CountingConnection:
    """Implements ``Connection``."""

    host: CountingHost
    inner: Any
    node: str = "this process"

    def send(self, method: str, *arguments: Any, silent: bool = False) -> Pending:
        if silent:
            return self.inner.send(method, *arguments)
        payload = pickle.dumps((method, arguments))
        self.host.moved_bytes["asked"] += len(payload)
        pending = self.inner.send(*pickle.loads(payload)[:1], *pickle.loads(payload)[1])

        def get() -> Any:
            answer = pickle.dumps(pending.get())
            self.host.moved_bytes["answered"] += len(answer)
            found = pickle.loads(answer)
            if method == "sample":
                self.host.count("sampled", arguments[1], found)
            elif method == "update":
                self.host.count("learned", arguments[1], [one.completions for one in arguments[1]])
            return found

        return Later(get)

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True)
class Measured:
    """Means over the steps but the last, which has the evaluation in it."""

    seconds: dict[str, float]
    moved_bytes: dict[str, float]


def measure(folder: Path, num_steps: int) -> Measured:
    """Read what a finished run took and moved in its steps; a step's backup is counted in the next, which awaits it."""
    summary, steps = read_summary(folder), range(1, num_steps)
    assert summary is not None
    moved = {
        name: sum(summary.moved_by_step[s + (name == "backup")][name] for s in steps) / len(steps)
        for name in summary.moved_bytes
    }
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT phase, sum(seconds) AS s FROM timing WHERE step BETWEEN 1 AND ? GROUP BY phase",
                             (num_steps - 1,))  # fmt: skip
    return Measured({row["phase"]: row["s"] / len(steps) for row in rows}, moved)


def mean_work(host: CountingHost, config: Config) -> Work:
    """Return what the members did in a step, the mean over all but the first evaluation and the last step."""
    steps = host.steps[1:-1]

    def mean(kind: str) -> Texts:
        fields = zip(*(asdict(step[kind]).values() for step in steps), strict=True)
        return Texts(*(sum(values) / len(steps) for values in fields))

    bank = host.bank
    return Work(
        config.population.num_members,
        config.num_adapters,
        bank.flat.shape[1],
        bank.base.head.out_features,
        mean("sampled"),
        mean("learned"),
    )


def read_run(folder: Path, prompt_tokens: float) -> tuple[Work, dict[str, float]]:
    """Return what the members of a finished run did in a step, and the seconds of a step by phase."""
    config = load_run_config(folder)
    shape = base_shape(config.model.base)
    assert shape is not None, "the base of the run is not on this machine"
    factors_bytes = plan(shape, work_of(config, shape)).factors_bytes
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        last = journal.query("SELECT max(step) AS step FROM step")[0]["step"]
        steps = "FROM {} WHERE step BETWEEN 2 AND ?"
        sources = {"candidate": "candidate", "attempt": "attempt JOIN task ON task.seq = attempt.task"}
        texts = [
            journal.query(f"SELECT count(*) AS n, sum({name}.num_tokens) AS t {steps.format(of)}", (last - 1,))[0]
            for name, of in sources.items()
        ]
        rows = journal.query(f"SELECT phase, sum(seconds) AS s {steps.format('timing')} GROUP BY phase", (last - 1,))
    num_steps = last - 2
    each = [config.propose.num_per_prompt, config.solve.num_attempts]
    num_prompts = sum(row["n"] / num for row, num in zip(texts, each, strict=True)) / num_steps
    counts = (sum(row[name] for row in texts) / num_steps for name in ("n", "t"))
    sampled = Texts(num_prompts, num_prompts * prompt_tokens, *counts)
    adapters = config.num_adapters
    work = Work(
        config.population.num_members,
        adapters,
        factors_bytes // FACTOR_BYTES // adapters,
        shape["vocab_size"],
        sampled,
        sampled,
    )
    return work, {row["phase"]: row["s"] / num_steps for row in rows}


def play_here(config: Config, folder: Path) -> tuple[CountingHost, Measured]:
    """Play the run in one process, its calls pickled and counted."""
    hosts: list[CountingHost] = []

    def load(config: Config) -> Any:
        hosts.append(CountingHost(config))
        return sharded_adapters(config, hosts[0])

    start(config, folder, load)
    return hosts[0], measure(folder, config.run.num_steps)


def play_there(config: Config, folder: Path, num_nodes: int) -> Measured:
    """Play the run on Ray nodes of a core each on this machine."""
    from ray.cluster_utils import Cluster as RayCluster

    nodes = RayCluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(num_nodes - 1):
            nodes.add_node(num_cpus=1)
        start(config, folder, adapters_at(nodes.address))
    finally:
        nodes.shutdown()
    return measure(folder, config.run.num_steps)


def seconds_of(measured: Measured, num_shards: int) -> dict[str, float]:
    """Return the seconds of the stages of a step: of one shard where shards work, of all where the driver does."""
    one = {f"{phase}_s": measured.seconds.get(phase, 0.0) / num_shards for phase in ("propose", "solve", "learn")}
    other = sum(s for phase, s in measured.seconds.items() if phase not in (*PHASES, "evaluate", "checkpoint"))
    return {**one, "verify_s": measured.seconds.get("verify", 0.0), "other_s": other}


def print_traffic(title: str, work: Work, moved: dict[str, float]) -> dict[str, float]:
    """Print bytes a member and step by purpose, measured beside planned; return the ratios."""
    expected = planned(work).by_purpose()
    print(f"\n{title}: bytes a member and step")
    ratios = {name: moved[name] / expected[name] for name in expected}
    cells = [[size(one[name] / work.num_members) for one in (moved, expected)] for name in expected]
    print_table(
        ["purpose", "measured", "planned", "measured / planned"],
        [[name, *pair, ratios[name]] for name, pair in zip(expected, cells, strict=True)],
    )
    return ratios


def print_check(here: Measured, there: Measured, work: Work, num_shards: int, num_nodes: int) -> float:
    """Print the seconds of a step on the nodes beside the simulation's; return measured by simulated."""
    seconds = seconds_of(here, num_shards)
    cluster = Cluster(num_nodes, num_shards, link_bytes_s=1e9, latency_s=0.002)
    parts = {f"{phase}_s": 0.0 for phase in PHASES}
    rows, traffic = [], planned(work)
    for phase in PHASES:
        alone = step_stages(replace(traffic, backup=0.0), num_shards, **(parts | {f"{phase}_s": seconds[f"{phase}_s"]}))
        rows.append(
            [phase, here.seconds.get(phase, 0.0), simulate(alone, cluster).mean_s, there.seconds.get(phase, 0.0)]
        )
    simulated = simulate(step_stages(traffic, num_shards, **seconds), cluster).mean_s
    own = [
        sum(s for phase, s in one.seconds.items() if phase not in ("evaluate", "checkpoint")) for one in (here, there)
    ]
    rows.append(["step", own[0], simulated, own[1]])
    print(f"\nseconds of a step on {num_nodes} nodes: simulated from the run in one process, and measured")
    print_table(["phase", "one process", "simulated", "measured", "ratio"],
                [[*row, row[3] / row[2] if row[2] else 0.0] for row in rows])  # fmt: skip
    return own[1] / simulated


def print_thousands(work: Work, per_member: dict[str, float], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Print and return what the simulation says of many members on several numbers of machines."""
    found, rows = [], []
    many = work.scaled(options.members)
    traffic = planned(many)
    for num_nodes in options.machines:
        num_shards = num_nodes * options.shards_per_node
        seconds = {f"{p}_s": per_member[p] * options.members / num_shards for p in ("propose", "solve", "learn")}
        whole = {"verify_s": per_member["verify"] * options.members, "other_s": per_member["other"] * options.members}
        for near in (False, True):
            stages = step_stages(traffic, num_shards, **seconds, **whole, verify_near=near)
            cluster = Cluster(
                num_nodes,
                num_shards,
                link_bytes_s=options.gbit_s * 1e9 / 8,
                spread=options.spread,
                mean_life_s=options.mean_life_h * 3600,
                open_s=options.open_s,
                restore_bytes=traffic.backup / num_shards,
            )
            got = shares(stages, cluster, options.sim_steps)
            cost = got.step_s * num_nodes * options.price / 3600
            moved = sum(traffic.by_purpose().values())
            found.append({"nodes": num_nodes, "verify": "shard" if near else "driver", "step_s": got.step_s,
                          "calm_s": got.calm_s, "stragglers_s": got.stragglers_s, "deaths_s": got.deaths_s,
                          "bytes": moved, "cost": cost})  # fmt: skip
            shown = [f"{100 * part / got.step_s:.0f} %" for part in (got.stragglers_s, max(0.0, got.deaths_s))]
            rows.append([num_nodes, "shard" if near else "driver", got.calm_s, got.step_s, *shown, f"{cost:.2f}"])
    by = {name: size(value) for name, value in traffic.by_purpose().items()}
    first = options.machines[0]
    print(
        f"\n{options.members:,} members: a step moves {by['asked']} asked, {by['answered']} answered, {by['backup']} "
        f"of backups; on {first} machines {size(traffic.backup / first)} of it from each"
    )
    print_table(["machines", "verify", "calm step s", "step s", "stragglers", "lost machines", "price"], rows)
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", type=Path, default=Path("configs/population.toml"))
    parser.add_argument("--set", action="append", default=[], help="as for `redqueen train`")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=0, help="Ray nodes on this machine; 0: none is started")
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--machines", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--shards-per-node", type=int, default=2)
    parser.add_argument("--gbit-s", type=float, default=10.0, help="each machine's link, the driver's too")
    parser.add_argument("--spread", type=float, default=0.2, help="of the logarithm of a shard's time")
    parser.add_argument("--mean-life-h", type=float, default=500.0, help="of one machine")
    parser.add_argument("--open-s", type=float, default=30.0, help="to open a shard again")
    parser.add_argument("--price", type=float, default=0.05, help="of one machine and hour")
    parser.add_argument("--sim-steps", type=int, default=50)
    parser.add_argument("--member-seconds", type=float, nargs=4, metavar=("PROPOSE", "SOLVE", "LEARN", "VERIFY"))
    parser.add_argument("--parameters", type=int, help="of an adapter, in place of the measured base's")
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--out", type=Path, help="a folder for the runs")
    parser.add_argument("--timings", type=Path, help="a finished run, in place of playing one")
    parser.add_argument("--prompt-tokens", type=float, default=150.0, help="of a prompt, with --timings")
    return parser.parse_args()


def main() -> None:
    options = parse()
    result: dict[str, Any] = {}
    if options.timings:
        work, seconds = read_run(options.timings, options.prompt_tokens)
    else:
        work, seconds, result = play(options)
    own = seconds_of(Measured(seconds, {}), 1)
    per_member = {name.removesuffix("_s"): value / work.num_members for name, value in own.items()}
    if options.member_seconds:
        per_member |= dict(zip(PHASES, options.member_seconds, strict=True))
    work = replace(
        work,
        num_parameters=options.parameters or work.num_parameters,
        vocabulary=options.vocabulary or work.vocabulary,
    )
    result |= {"member_seconds": per_member, "work": asdict(work), "seconds": seconds}
    result["thousands"] = print_thousands(work, per_member, options)
    print_result(result)


def play(options: argparse.Namespace) -> tuple[Work, dict[str, float], dict[str, Any]]:
    """Play the run here, and on nodes if there are any; return its work, its seconds by phase and what was found."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    more = [f"run.num_steps={options.steps}", f"cluster.num_shards={options.shards}", *PLAIN, *options.set]
    config = load_config(options.config, more)
    with nullcontext(options.out) if options.out else tempfile.TemporaryDirectory() as out:
        host, here = play_here(config, Path(out) / "one-process")
        there = play_there(config, Path(out) / "nodes", options.nodes) if options.nodes else None
    work = mean_work(host, config)
    result: dict[str, Any] = {"traffic": print_traffic("one process", work, here.moved_bytes)}
    if there is not None:
        result["cluster_traffic"] = print_traffic(f"{options.nodes} nodes", work, there.moved_bytes)
        result["step_ratio"] = print_check(here, there, work, options.shards, options.nodes)
    return work, here.seconds, result


if __name__ == "__main__":
    main()
