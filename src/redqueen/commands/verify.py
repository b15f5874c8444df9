"""The command ``redqueen verify``: JSON lines in, JSON lines out, in the same order.

A line that cannot be used gets the verdict ``invalid-input`` with its number, and the other lines are processed. Files
are read in batches, so memory does not grow with their size.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from redqueen.errors import UserError
from redqueen.files import naming_remedy, open_data
from redqueen_sandbox.programs import NUM_SEEDS
from redqueen_sandbox.records import Limits, Program, protection_level
from redqueen_sandbox.sandbox import Sandbox

_BATCH_LINES = 512
_MAX_LINE_CHARS = 8 << 20


def verify_file(
    path: Path, out: TextIO, workers: int = 2, cpu_ms: int = 100, num_seeds: int = NUM_SEEDS, allow_weak: bool = False
) -> None:
    """Verify the programs of a file of lines ``{"id", "code", "input"}``.

    Writes lines ``{"id", "verdict", "output", "detail"}`` to ``out``, in order (``output`` is null unless ``ok``).
    Raises UserError for a bad file or flag.
    """
    if not 10 <= cpu_ms <= 60_000:
        raise UserError(f"--cpu-ms {cpu_ms}: give a CPU limit from 10 to 60000 milliseconds")
    if not 1 <= workers <= 256:
        raise UserError(f"--workers {workers}: give a number of workers from 1 to 256")
    if not 1 <= num_seeds <= 16:
        raise UserError(f"--seeds {num_seeds}: give a number of hash seeds from 1 to 16")
    limits = Limits(cpu_ms=cpu_ms, accept_cpu_ms=cpu_ms)
    with Sandbox(workers, limits, num_seeds, allow_weak, weak_remedy="--allow-weak") as verifier:
        for batch in _batches(path):
            read = [_read_program(line) for _, line in batch]
            results = iter(verifier.run([found for _, found in read if isinstance(found, Program)]))
            lines: list[dict[str, object]] = []
            for (number, _), (name, found) in zip(batch, read, strict=True):
                verdict, output, detail = "invalid-input", None, f"line {number}: {found}"
                if isinstance(found, Program):
                    result = next(results)
                    verdict, detail = result.verdict, result.detail
                    output = result.outputs[0] if result.outputs else None
                lines.append({"id": name, "verdict": verdict, "output": output, "detail": detail})
            with naming_remedy("the results cannot be written", "free some space or choose another path"):
                out.writelines(json.dumps(line) + "\n" for line in lines)
                out.flush()


def protections() -> ProtectionReport:
    """Start the sandbox once and report which protections were verified (for ``redqueen doctor``)."""
    try:
        with Sandbox(workers=1, allow_weak=True, warn=False) as verifier:
            return make_report(verifier.protections())
    except UserError as error:
        return make_report({}, str(error))


def _batches(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the file's lines that are not blank, with their numbers, ``_BATCH_LINES`` at a time."""
    batch: list[tuple[int, str]] = []
    what, errors = f"{path} cannot be read", (OSError, EOFError, zlib.error)
    with naming_remedy(what, "give a file of JSON lines", errors), open_data(path, errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                batch.append((number, line))
            if len(batch) == _BATCH_LINES:
                yield batch
                batch = []
    if batch:
        yield batch


def _read_program(line: str) -> tuple[str | int | None, Program | str]:
    """Return a line's id (None if it has no valid one), and its program or the reason why it has none."""
    if len(line) > _MAX_LINE_CHARS:
        return None, f"longer than {_MAX_LINE_CHARS} characters"
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None, "not JSON"
    if not isinstance(fields, dict):
        return None, "not a JSON object"
    name = fields.get("id")
    if not isinstance(name, str | int):
        return None, 'the field "id" must be a text or a number'
    for field in ("code", "input"):
        if not isinstance(fields.get(field), str):
            return name, f'the field "{field}" must be a text'
    return name, Program(str(name), fields["code"].removeprefix("\ufeff"), (fields["input"],))


TESTED_MACHINES = ("x86_64",)
TESTED_PYTHONS = ((3, 11),)

_WITHOUT = {
    "seccomp": "a program may make any system call: run on a kernel with seccomp, or in a container that allows it",
    "landlock": "only the system-call filter blocks access to files; Landlock needs Linux 5.13 and, in a container, a "
    "profile that allows it",
    "rlimits": "a program may take more memory or processes than its share",
    "cpu-timer": "endless loops are stopped only by wall-clock time, so they cost more",
    "non-dumpable": "a program that got past the filter could read its parent's memory",
    "no-new-privileges": "the system-call filter cannot be installed",
    "nobody": "programs run as root or with capabilities",
    "namespaces": "no network namespace of its own; the system-call filter refuses sockets anyway",
}


@dataclass(frozen=True)
class ProtectionReport:
    """The protections of this machine. ``level`` as in results, or ``none`` with the reason in ``remarks``."""

    level: str
    observed: Mapping[str, bool]
    machine: str
    kernel: str
    python: str
    user: str
    remarks: tuple[str, ...]


def make_report(observed: Mapping[str, bool], failure: str = "") -> ProtectionReport:
    """Return the report of the protections that the canaries observed, or of the failure to start any canary."""
    remarks = [failure] if failure else []
    remarks += [f"no {name}: {_WITHOUT[name]}" for name, holds in observed.items() if not holds]
    if platform.machine() not in TESTED_MACHINES:
        remarks.append(f"the filter's system-call numbers for {platform.machine()} are not tested on such a machine")
    if sys.version_info[:2] not in TESTED_PYTHONS:
        remarks.append(f"untested on Python {platform.python_version()}")
    return ProtectionReport(
        level="none" if failure else protection_level(observed),
        observed=dict(observed),
        machine=platform.machine(),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        user="root" if hasattr(os, "getuid") and os.getuid() == 0 else "unprivileged",
        remarks=tuple(remarks),
    )
