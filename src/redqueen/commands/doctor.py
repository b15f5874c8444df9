"""``redqueen doctor``: what this machine offers, as lines of (name, value, whether it is as needed)."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
import typer

from redqueen.commands.verify import protections
from redqueen.errors import how_to_install
from redqueen.policy.base import multiplies_bf16
from redqueen.policy.base_shape import embedded_folder

Line = tuple[str, str, bool]


def doctor(as_json: bool, copy: bool = False) -> None:
    """Print one line for each thing a run depends on; exit code 1 when one of them is not as needed.

    ``copy``: as one block of Markdown, for a bug report; it names no folder, no user and no machine.
    """
    healthy, lines = True, []
    if copy:
        print(f"```text\nsystem: {platform.system()} {platform.release()} {platform.machine()}")
    for name, value, ok in examine():
        lines.append({"name": name, "value": value, "ok": ok})
        if not as_json:
            print(f"{'ok ' if ok else 'BAD'}  {name}: {value}")
        healthy &= ok
    if as_json:
        print(json.dumps(lines))
    if copy:
        print("```")
    if not healthy:
        raise typer.Exit(1)


def examine() -> Iterator[Line]:
    """Yield one line for each thing a run depends on."""
    yield "python", platform.python_version(), True
    for package in ("redqueen", "torch", "transformers", "safetensors", "numpy"):
        try:
            yield package, version(package), True
        except PackageNotFoundError:
            yield package, "not installed: install it with `make setup`", False
    yield "cores", str(os.cpu_count()), True
    bf16 = "the processor's own" if multiplies_bf16() else "none of the processor's own (bases run in fp32 on it)"
    yield "products in bfloat16", bf16, True
    yield "CUDA", torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none (the CPU is used)", True
    free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    yield "free disk here", f"{free_gb:.1f} GB", free_gb > 1
    weights = embedded_folder() / "model.safetensors"
    size = f"{weights.stat().st_size / 1e6:.1f} MB" if weights.exists() else f"missing at {weights}: reinstall redqueen"
    yield "embedded base", size, weights.exists()
    yield "HTTP client for vLLM servers", _client(), True
    yield from _sandbox()


def _client() -> str:
    try:
        return f"httpx2 {version('httpx2')}"
    except PackageNotFoundError:
        return f"not installed, needed for sampler.kind = vllm alone: {how_to_install('vllm')}"


def _sandbox() -> Iterator[Line]:
    report = protections()
    strong = report.level == "full" or report.level.startswith("partial")
    yield "sandbox", f"{report.level} (as {report.user}, kernel {report.kernel}, {report.machine})", strong
    for name, holds in report.observed.items():
        yield f"sandbox: {name}", "holds" if holds else "does not hold here", True
    for remark in report.remarks:
        yield "sandbox", remark, strong
