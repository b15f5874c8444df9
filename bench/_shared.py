"""Helpers of the benchmarks: machine description, interleaved timing, table output, loading of the base."""

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
    """Describe the machine of the measurement."""
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
    """Time each job once per round, ``repeats`` rounds after a warm-up, so that slow drifts affect all jobs equally."""
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
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the median over rounds of the ratio of two jobs' times."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def load_model(base: str) -> PreTrainedModel:
    """Load a base in fp32: ``embedded``, a model folder, a GGUF file, or a name on the hub."""
    return AutoModelForCausalLM.from_pretrained(model_source(base), dtype=torch.float32)


def sample_and_learn(sampler: TorchSampler, learner: TorchLearner, requests: Sequence[Request]) -> tuple[float, float]:
    """Sample the requests and learn from the samples with alternating advantages of +-1; return the seconds of both."""
    start = time.perf_counter()
    groups = sampler.sample(requests)
    middle = time.perf_counter()
    learner.update(
        [
            Rollout(r.slot, r.prompt, tuple(group), tuple((-1.0) ** i for i in range(len(group))))
            for r, group in zip(requests, groups, strict=True)
        ]
    )
    return middle - start, time.perf_counter() - middle


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, with four significant digits for numbers."""
    texts = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *texts]) for i in range(len(header))]
    for line in [list(header), *texts]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def print_result(result: dict[str, object]) -> None:
    """Print the JSON object that ends every benchmark."""
    print(json.dumps(result | {"machine": machine()}))
