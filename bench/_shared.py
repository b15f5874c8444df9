"""What the population engine's benchmarks share: the machine's description, interleaved timing, a table, the base."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel

from redqueen.adapters.base import choose_precision
from redqueen.adapters.base_shape import model_source
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request, Rollout


def machine() -> dict[str, object]:
    """Describe what the figures were measured on."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "precision": choose_precision("auto", "cpu"),
        "load_1min": round(os.getloadavg()[0], 2),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def interleaved(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time each job once a round, ``repeats`` rounds after one to warm up: slow drifts of the machine hit all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            synchronise()
            start = time.perf_counter()
            job()
            synchronise()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def synchronise() -> None:
    """Wait for a GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios of two jobs, round by round."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def load_model(base: str) -> PreTrainedModel:
    """Load a base in fp32: ``embedded``, a model folder, a GGUF file, or a name on the hub."""
    return AutoModelForCausalLM.from_pretrained(model_source(base), dtype=torch.float32)


def sample_and_learn(sampler: TorchSampler, learner: TorchLearner, requests: Sequence[Request]) -> tuple[float, float]:
    """Sample what is asked for and learn from it, attempts by turns better and worse; return the seconds of both."""
    start = time.perf_counter()
    groups = sampler.sample(requests)
    between = time.perf_counter()
    learner.update(
        [
            Rollout(r.slot, r.prompt, tuple(group), tuple((-1.0) ** i for i in range(len(group))))
            for r, group in zip(requests, groups, strict=True)
        ]
    )
    return between - start, time.perf_counter() - between


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns, numbers with four significant digits."""
    texts = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *texts]) for i in range(len(header))]
    for line in [list(header), *texts]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def print_result(result: dict[str, object]) -> None:
    """Print the JSON object that ends every benchmark."""
    print(json.dumps(result | {"machine": machine()}))
