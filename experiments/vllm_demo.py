"""Twenty steps of 2T+2S whose samples come from vLLM, which is killed on the way, beside our own sampler.

    python experiments/vllm_demo.py --vllm-python PYTHON [--steps 20] [--seeds 0 1 2] [--out FOLDER]

PYTHON is the interpreter of an environment with vLLM (docs/vllm.md); everything else runs in this one. The server is
started as the dry run says, killed with SIGKILL in the middle of the run and started again. Then the same run is played
with our own sampler, once for each seed. Prints what each run came to and, as the last line, whether the run of vLLM
lies within the range of the others, widened by one standard deviation of a run; then the exit code is 0. With the
``--out`` of an earlier call that was cut off, its runs are gone on with.
"""

from __future__ import annotations

import argparse
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

from redqueen.config import Config, load_config
from redqueen.journal import Journal
from redqueen.remote.command import serve_command
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import JOURNAL

CONFIG = Path(__file__).parents[1] / "configs" / "population.toml"
POSITIONS = 1024
UNCUT = "--no-enable-chunked-prefill"
"""Without it the CPU build dies on a seeded request whose prompt it reads in two parts (docs/vllm.md)."""
MEASURES = ("solve rate", "sampled", "greedy")


class Server:
    """vLLM on the run's base, in the other environment."""

    def __init__(self, python: str, config: Config, log: Path) -> None:
        _, _, _, base, *options = shlex.split(serve_command(config, POSITIONS))
        self.command = [
            python,
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--model",
            base,
            "--enforce-eager",
            UNCUT,
            *options,
        ]
        self.log = log
        self.start()

    def start(self) -> None:
        """Start it, and do not wait: the run does."""
        surroundings = {
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
            "VLLM_HOST_IP": "127.0.0.1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=os.environ | surroundings, start_new_session=True, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill it with all its processes."""
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
    """Wait for a step of the run, kill the server a moment into the next one, and start it again."""
    while last_step(folder) < step:
        time.sleep(1.0)
    time.sleep(3.0)
    server.kill()
    print(f"killed the server after step {step}", flush=True)
    server.start()


@dataclass(frozen=True)
class Outcome:
    """What a run came to: its solve rate over the last half, the students' scores, and how far the samplers differ."""

    name: str
    values: tuple[float, ...]
    mismatch: float | None


def outcome(name: str, folder: Path, num_steps: int) -> Outcome:
    """Read a finished run. ``values`` are those of ``MEASURES``, in [0, 1]."""
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT value FROM metric WHERE name = 'solve/rate' AND step > ?", (num_steps // 2,))
        scores = {
            row["mode"]: row["mean_frac"]
            for row in journal.query(
                "SELECT mode, mean_frac FROM evaluation WHERE step = ? AND individual = 'students' AND kind = 'all' "
                "AND stratum = 'all'",
                (num_steps,),
            )
        }
        names = "name LIKE 'learn/mismatch/mean_abs/%'"
        mismatch = journal.query(f"SELECT avg(value) AS mean FROM metric WHERE {names}")[0]["mean"]
    rate = statistics.fmean(row["value"] for row in rows if row["value"] is not None)
    return Outcome(name, (rate, scores["sampled"], scores["greedy"]), mismatch)


def play(name: str, folder: Path, options: list[str], num_steps: int) -> Outcome:
    """Play a run to its end, or what is left of it."""
    if not (resume(folder) if folder.exists() else start(load_config(CONFIG, options), folder)):
        sys.exit("stopped: nothing was compared")
    return outcome(name, folder, num_steps)


def play_served(options: argparse.Namespace, asked: list[str], out: Path) -> Outcome:
    """Play the run of vLLM, whose server is killed half-way; a run that has reached its end is only read."""
    name, folder = "vLLM, killed once, seed 0", out / "vllm"
    if last_step(folder) == options.steps:
        return outcome(name, folder, options.steps)
    server = Server(options.vllm_python, load_config(CONFIG, asked), out / "server.log")
    try:
        if last_step(folder) < options.steps // 2:
            middle = options.steps // 2
            threading.Thread(target=kill_at, args=(server, folder, middle), daemon=True).start()
        return play(name, folder, asked, options.steps)
    finally:
        server.kill()


def within(one: float, others: list[float]) -> bool:
    """Tell whether a value lies within the range of others, widened to both sides by their standard deviation."""
    room = statistics.stdev(others)
    return min(others) - room <= one <= max(others) + room


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm-python", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--items", type=int, default=240)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if len(options.seeds) < 2:
        parser.error("--seeds: a spread needs two seeds or more")
    out = options.out or Path(tempfile.mkdtemp(prefix="redqueen-vllm-"))
    size = ["population.num_teachers=2", "population.num_students=2", f"evaluate.max_items={options.items}"]
    common = [f"run.num_steps={options.steps}", "run.product=none", *size]
    asked = [*common, "sampler.kind=vllm", "sampler.reconnect_s=900"]
    out.mkdir(parents=True, exist_ok=True)
    served = play_served(options, asked, out)
    own = [
        play(f"own sampler, seed {seed}", out / f"own-{seed}", [*common, f"run.rng_seed={seed}"], options.steps)
        for seed in options.seeds
    ]
    for one in (served, *own):
        values = ", ".join(f"{name} {100 * value:.1f} %" for name, value in zip(MEASURES, one.values, strict=True))
        mismatch = "" if one.mismatch is None else f", mismatch {one.mismatch:.1e} nats a token"
        print(f"{one.name}: {values}{mismatch}")
    outside = [
        name
        for i, name in enumerate(MEASURES)
        if not within(served.values[i], [one.values[i] for one in own])
    ]  # fmt: skip
    print(f"outside the spread of seeds: {', '.join(outside)}" if outside else "within the spread of seeds")
    sys.exit(bool(outside))


if __name__ == "__main__":
    main()
