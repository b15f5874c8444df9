"""Compare twenty steps of 2T+2S sampled by vLLM, which is killed halfway, with runs of our own sampler.

    python experiments/vllm_demo.py --vllm-python PYTHON [--steps 20] [--served-seeds 0] [--seeds 0 1 2]
        [--out FOLDER] [--config FILE] [--set section.field=value]

PYTHON is the interpreter of an environment with vLLM (docs/vllm.md); everything else runs in this one. For each of
``--served-seeds``, the server is started with the command that the dry run prints, killed with SIGKILL in the middle of
the run and started again. Then the same run is done with our own sampler, once for each of ``--seeds``. At the end the
students of all runs answer the same items of the suite with our own sampler, so that only learning is compared.

Prints the results of each run and, for each measure, the interval that should contain the mean of as many further runs
of our own sampler. The last line says whether vLLM's means are in these intervals; if so, the exit code is 0. The
interval is Student's prediction interval at 95 % for all measures together (Bonferroni), so a correct engine is outside
in one of twenty calls. With the ``--out`` of an interrupted call, its runs are continued. ``--config`` replaces the
main run's config; ``--set``, which may be repeated, changes fields of all runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import t as student_t

from redqueen.commands.evaluate import evaluate
from redqueen.config import Config, load_config
from redqueen.journal import Journal
from redqueen.remote.server import serve_command
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import JOURNAL

MAIN = Path(__file__).parents[1] / "configs" / "population.toml"
POSITIONS = 1024
NO_CHUNKS = "--no-enable-chunked-prefill"
"""Without it the CPU build crashes on a seeded request whose prompt is processed in two chunks (docs/vllm.md)."""
MEASURES = ("solve rate", "sampled", "greedy")


class Server:
    """A vLLM server of the run's base, in the other environment."""

    def __init__(self, python: str, config: Config, log: Path) -> None:
        _, _, _, base, *options = shlex.split(serve_command(config, POSITIONS))
        self.command = [
            python,
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            base,
            "--enforce-eager",
            NO_CHUNKS,
            *options,
        ]
        self.log = log
        self.start()

    def start(self) -> None:
        """Start the server without waiting; the run waits for it."""
        environment = {
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
            "VLLM_HOST_IP": "127.0.0.1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=os.environ | environment, start_new_session=True, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill the server with all its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def last_step(folder: Path) -> int:
    """Return the last step that a run has written; -1 before the first."""
    if not (folder / JOURNAL).exists():
        return -1
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        steps = journal.query("SELECT step FROM step ORDER BY step DESC LIMIT 1")
    return int(steps[0]["step"]) if steps else -1


def kill_at(server: Server, folder: Path, step: int) -> None:
    """Wait for a step of the run, kill the server three seconds later, and start it again."""
    while last_step(folder) < step:
        time.sleep(1.0)
    time.sleep(3.0)
    server.kill()
    print(f"killed the server after step {step}", flush=True)
    server.start()


@dataclass(frozen=True)
class Outcome:
    """The results of a run: solve rate over the last half, the students' scores, and the samplers' mismatch."""

    name: str
    values: tuple[float, ...]
    mismatch: float | None


def scores(folder: Path, num_items: int) -> tuple[float, float]:
    """Return the students' mean score, sampled and greedy, on items of the suite; cached in a file next to the run."""
    kept = folder.parent / f"{folder.name}-{num_items}-items.json"
    if not kept.exists():
        found = evaluate(
            str(folder), "mini", limit=num_items, num_samples=1, temperature=1.0, out=kept.with_suffix(".jsonl")
        )
        kept.write_text(json.dumps(found))
    students = [member for member in json.loads(kept.read_text())["members"] if member["role"] == "student"]
    sampled = statistics.fmean(member["pass_at_k"]["1"]["mean"] for member in students)
    return sampled, statistics.fmean(member["greedy"]["score"] for member in students)


def outcome(name: str, folder: Path, options: argparse.Namespace) -> Outcome:
    """Return the results of a finished run, with the ``values`` of ``MEASURES`` in [0, 1]."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        half = "name = 'solve/rate' AND value IS NOT NULL AND step > ?"
        rate = journal.query(f"SELECT avg(value) AS mean FROM metric WHERE {half}", (options.steps // 2,))[0]["mean"]
        names = "name LIKE 'learn/mismatch/mean_abs/%'"
        mismatch = journal.query(f"SELECT avg(value) AS mean FROM metric WHERE {names}")[0]["mean"]
    return Outcome(name, (rate, *scores(folder, options.items)), mismatch)


def is_finished(folder: Path, num_steps: int) -> bool:
    """Return whether a run has finished, including its last evaluation."""
    if last_step(folder) < num_steps:
        return False
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        return bool(journal.query("SELECT 1 FROM evaluation WHERE individual = 'students' AND step = ?", (num_steps,)))


def play(folder: Path, config: Config) -> None:
    """Start a run or resume it, and bring it to its end."""
    if not (resume(folder) if folder.exists() else start(config, folder)):
        sys.exit("stopped: nothing was compared")


def play_served(folder: Path, config: Config, options: argparse.Namespace) -> None:
    """Do a run with vLLM, whose server is killed halfway."""
    server = Server(options.vllm_python, config, folder.with_suffix(".server.log"))
    try:
        middle = options.steps // 2
        if last_step(folder) < middle:
            threading.Thread(target=kill_at, args=(server, folder, middle), daemon=True).start()
        play(folder, config)
    finally:
        server.kill()


def predicted(others: list[float], num_means: int) -> tuple[float, float]:
    """Return the interval of the mean of further runs, at 95 % for all measures together.

    Student's prediction interval of the mean of m further runs: the mean of n runs plus and minus
    t * s * sqrt(1 / m + 1 / n), where s is the standard deviation of the n runs and t the quantile for n - 1 degrees of
    freedom.
    """
    level = 1.0 - 0.05 / (2 * len(MEASURES))
    margin = student_t.ppf(level, len(others) - 1) * statistics.stdev(others)
    margin *= math.sqrt(1.0 / num_means + 1.0 / len(others))
    mean = statistics.fmean(others)
    return mean - margin, mean + margin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm-python", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--served-seeds", type=int, nargs="+", default=[0], help="seeds of the runs with vLLM")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds of the runs with our own sampler"
    )
    parser.add_argument("--items", type=int, default=700, help="number of suite items for the last evaluation")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--config", type=Path, default=MAIN)
    parser.add_argument("--set", action="append", default=[], help="section.field=value, for all runs")
    options = parser.parse_args()
    if len(set(options.seeds)) < 3:
        parser.error("--seeds: give at least three seeds")
    out = options.out or Path(tempfile.mkdtemp(prefix="redqueen-vllm-"))
    size = ["population.num_teachers=2", "population.num_students=2", "evaluate.max_items=120"]
    common = [f"run.num_steps={options.steps}", "run.product=none", *size, *options.set]
    with_vllm = [*common, "sampler.kind=vllm"]
    out.mkdir(parents=True, exist_ok=True)
    served_runs = [(seed, out / f"vllm-{seed}") for seed in options.served_seeds]
    own_runs = [(seed, out / f"own-{seed}") for seed in options.seeds]
    for seed, folder in served_runs:
        if not is_finished(folder, options.steps):
            play_served(folder, load_config(options.config, [*with_vllm, f"run.rng_seed={seed}"]), options)
    for seed, folder in own_runs:
        if not is_finished(folder, options.steps):
            play(folder, load_config(options.config, [*common, f"run.rng_seed={seed}"]))
    served = [outcome(f"vLLM, killed once, seed {seed}", folder, options) for seed, folder in served_runs]
    own = [outcome(f"own sampler, seed {seed}", folder, options) for seed, folder in own_runs]
    for one in (*served, *own):
        values = ", ".join(f"{name} {100 * value:.1f} %" for name, value in zip(MEASURES, one.values, strict=True))
        mismatch = "" if one.mismatch is None else f", mismatch {one.mismatch:.1e} nats per token"
        print(f"{one.name}: {values}{mismatch}")
    outside = []
    for i, name in enumerate(MEASURES):
        low, high = predicted([one.values[i] for one in own], len(served))
        mean = statistics.fmean(one.values[i] for one in served)
        print(f"{name}: vLLM {100 * mean:.1f} %, expected {100 * low:.1f} to {100 * high:.1f} %")
        outside += [] if low <= mean <= high else [name]
    print(f"outside the spread of seeds: {', '.join(outside)}" if outside else "within the spread of seeds")
    sys.exit(bool(outside))


if __name__ == "__main__":
    main()
