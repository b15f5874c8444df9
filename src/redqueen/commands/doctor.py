"""``redqueen doctor``: what this machine offers and whether it can train, as lines of (name, value, is ok)."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

import torch
import typer
from packaging.requirements import Requirement

from redqueen.adapters.base import multiplies_bf16
from redqueen.commands.verify import protections
from redqueen.config import load_config
from redqueen.config.load import presets
from redqueen.engine import load_adapters
from redqueen.errors import UserError, how_to_install
from redqueen.fitting import fit_to_base
from redqueen.records import Request, Rollout

Line = tuple[str, str, bool]
UNLISTED_EXTRAS = ("all", "docs", "dist", "compare", "bench", "dev")
"""``all`` contains every extra for users; the others are for the development of redqueen."""


def doctor(as_json: bool, copy: bool = False) -> None:
    """Print one line for each thing a run depends on; exit code 1 when one of them fails.

    ``copy``: as one block of Markdown, for a bug report; it contains no name of a folder, user or machine.
    """
    healthy, lines = True, []
    if copy:
        print(f"```text\nsystem: {platform.system()} {platform.release()} {platform.machine()}")
    for name, value, ok in examine():
        lines.append({"name": name, "value": value, "ok": ok})
        if not as_json:
            print(f"{'-  ' if value.startswith('missing') else 'ok ' if ok else 'BAD'}  {name}: {value}")
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
    yield from _packages()
    yield "cores", str(os.cpu_count()), True
    bf16 = "fast on this processor" if multiplies_bf16() else "slow on this processor (bases run in fp32 on it)"
    yield "matrix products in bfloat16", bf16, True
    yield "CUDA", torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none (the CPU is used)", True
    free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    yield "free disk here", f"{free_gb:.1f} GB", free_gb > 1
    yield _training()
    yield from _sandbox()


def _packages() -> Iterator[Line]:
    """Yield the packages that redqueen needs and its extras for users, by the installed package's metadata."""
    try:
        yield "redqueen", version("redqueen"), True
    except PackageNotFoundError:
        yield "redqueen", "not installed: install it with `make setup`", False
        return
    needs = list(map(Requirement, requires("redqueen") or ()))
    plain = [need for need in needs if not need.marker or need.marker.evaluate({"extra": ""})]
    for need in plain:
        found = _installed(need)
        yield need.name, found or f"not installed in a suitable release: pip install '{need}'", bool(found)
    for extra in [name for name in metadata("redqueen").get_all("Provides-Extra", []) if name not in UNLISTED_EXTRAS]:
        own = [one for one in needs if one not in plain and one.marker and one.marker.evaluate({"extra": extra})]
        missing = ", ".join(need.name for need in own if not _installed(need))
        found = ", ".join(f"{need.name} {_installed(need)}" for need in own)
        yield f"extra {extra}", f"missing {missing}: {how_to_install(extra)}" if missing else found, True


def _installed(need: Requirement) -> str:
    """Return the installed release of a package if it satisfies ``need``, else an empty string."""
    try:
        found = version(need.name)
    except PackageNotFoundError:
        return ""
    return found if need.specifier.contains(found, prereleases=True) else ""


def _training() -> Line:
    """Sample one token from a member on the embedded base and learn from it, as each step of a run does."""
    name = "embedded base"
    try:
        with closing(load_adapters(fit_to_base(load_config(presets()["smoke"])).config)) as adapters:
            prompt = tuple(adapters.tokenizer("def f(a):")["input_ids"])
            [[sampled]] = adapters.sampler(1.0, 1, ()).sample([Request(0, prompt, 1, 0)])
            [stats] = adapters.learner.update([Rollout(0, prompt, (sampled,), (1.0,))])
    except UserError as error:
        return name, str(error), False
    except Exception as error:  # an incompatible release of a dependency may fail in any way
        why = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = "install the releases that constraints.txt in the repository names"
        return name, f"sampling and learning failed ({why}): {remedy}", False
    result = "sampled and learned one token" if stats.stepped else "the gradient of one token is not finite: report it"
    return name, result, stats.stepped


def _sandbox() -> Iterator[Line]:
    report = protections()
    strong = report.level == "full" or report.level.startswith("partial")
    yield "sandbox", f"{report.level} (as {report.user}, kernel {report.kernel}, {report.machine})", strong
    for name, holds in report.observed.items():
        yield f"sandbox: {name}", "holds" if holds else "does not hold here", True
    for remark in report.remarks:
        yield "sandbox", remark, strong
