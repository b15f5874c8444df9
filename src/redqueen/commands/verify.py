"""The commands ``redqueen verify`` and ``redqueen grade``: JSON lines in, JSON lines out, in the same order.

A line that cannot be used gets the verdict ``invalid-input`` with its number, and the rest go on. Files are worked
through in portions, so memory does not grow with them.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from redqueen.domains.registry import domain_of, entry_points, kinds, open_domain
from redqueen.domains.registry import grade as grade_answers
from redqueen.errors import UserError
from redqueen.files import open_data
from redqueen.records import Grade, Task
from redqueen_sandbox.programs import NUM_SEEDS
from redqueen_sandbox.records import Limits, Program, Result, protection_level
from redqueen_sandbox.sandbox import Sandbox

_PORTION_LINES = 512
_MAX_LINE_CHARS = 8 << 20
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class _BadLine(Exception):
    """A line that cannot be used; says why."""


def verify_file(
    path: Path, out: TextIO, workers: int = 2, cpu_ms: int = 100, num_seeds: int = NUM_SEEDS, allow_weak: bool = False
) -> Counter[str]:
    """Verify the programs of a file of lines ``{"id", "code", "input"}``.

    Writes lines ``{"id", "verdict", "output", "detail"}`` to ``out``, in order (``output`` is null unless ``ok``).
    Returns how often each verdict was given. Raises UserError for a bad file or flag.
    """

    def show(result: Result) -> dict[str, object]:
        output = result.outputs[0] if result.outputs else None
        return {"id": result.id, "verdict": result.verdict, "output": output, "detail": result.detail}

    def refuse(name: object, why: str) -> dict[str, object]:
        return {"id": name, "verdict": "invalid-input", "output": None, "detail": why}

    with _verifier(workers, cpu_ms, num_seeds, allow_weak) as verifier:
        return _work_through(path, out, _read_program, verifier.run, show, refuse)


def grade_file(
    path: Path, out: TextIO, workers: int = 2, cpu_ms: int = 100, num_seeds: int = NUM_SEEDS, allow_weak: bool = False
) -> Counter[str]:
    """Grade the answers of a file of lines ``{"id", "kind", "code", "input", "output", "hidden", "answer"}``.

    What a line must hold is its kind's to say: code tasks to predict an output need ``output``, to find an input
    ``code`` and ``output``, to write a program ``hidden`` (pairs ``[input, output]``); statements need ``output``,
    puzzles ``code`` and ``output``, lemmas ``code``. A null answer is ``unparsable``. Writes lines
    ``{"id", "correct", "verdict", "detail"}``; returns and raises as ``verify_file``.
    """

    def grade(pairs: list[tuple[Task, str | None]]) -> list[tuple[str, Grade]]:
        grades = grade_answers(pairs, verifier)
        return [(task.id, grade) for (task, _), grade in zip(pairs, grades, strict=True)]

    def show(graded: tuple[str, Grade]) -> dict[str, object]:
        name, grade = graded
        return {"id": name, "correct": grade.correct, "verdict": grade.verdict, "detail": grade.detail}

    def refuse(name: object, why: str) -> dict[str, object]:
        return {"id": name, "correct": False, "verdict": "invalid-input", "detail": why}

    with _verifier(workers, cpu_ms, num_seeds, allow_weak) as verifier:
        return _work_through(path, out, _read_answer, grade, show, refuse)


def protections() -> ProtectionReport:
    """Start the sandbox once and report which protections were verified (for ``redqueen doctor``)."""
    try:
        with Sandbox(workers=1, allow_weak=True, warn=False) as verifier:
            return make_report(verifier.protections())
    except UserError as error:
        return make_report({}, str(error))


def _verifier(workers: int, cpu_ms: int, num_seeds: int, allow_weak: bool) -> Sandbox:
    if not 10 <= cpu_ms <= 60_000:
        raise UserError(f"--cpu-ms {cpu_ms}: give a CPU limit from 10 to 60000 milliseconds")
    if not 1 <= workers <= 256:
        raise UserError(f"--workers {workers}: give a number of workers from 1 to 256")
    if not 1 <= num_seeds <= 16:
        raise UserError(f"--seeds {num_seeds}: give a number of hash seeds from 1 to 16")
    limits = Limits(cpu_ms=cpu_ms, accept_cpu_ms=cpu_ms)
    return Sandbox(workers, limits, num_seeds, allow_weak, weak_remedy="--allow-weak")


def _work_through(
    path: Path,
    out: TextIO,
    read: Callable[[dict[str, object]], Item],
    work: Callable[[list[Item]], list[Outcome]],
    show: Callable[[Outcome], dict[str, object]],
    refuse: Callable[[object, str], dict[str, object]],
) -> Counter[str]:
    """Read, work and write portion by portion. Returns how often each verdict was given."""
    counts: Counter[str] = Counter()
    for portion in _portions(path):
        refused: list[dict[str, object] | None] = []
        names: list[object] = []
        items: list[Item] = []
        for number, line in portion:
            name: object = None
            try:
                fields = _read_object(line)
                name = fields["id"] if isinstance(fields.get("id"), str | int) else None  # it is written out again
                items.append(read(fields))
                refused.append(None)
            except _BadLine as bad:
                refused.append(refuse(name, f"line {number}: {bad}"))
            names.append(name)
        done = iter(work(items))
        lines = [
            {**show(next(done)), "id": name} if line is None else line
            for name, line in zip(names, refused, strict=True)
        ]
        counts.update(str(line["verdict"]) for line in lines)
        _write(out, lines)
    return counts


def _write(out: TextIO, lines: Iterable[dict[str, object]]) -> None:
    try:
        out.writelines(json.dumps(line) + "\n" for line in lines)
        out.flush()
    except OSError as error:
        raise UserError(
            f"the results could not be written ({error.strerror}): free some space or choose another path"
        ) from None


def _portions(path: Path) -> Iterator[list[tuple[int, str]]]:
    """The file's lines with their numbers, blank ones left out, some hundred at a time."""
    portion: list[tuple[int, str]] = []
    try:
        with open_data(path, errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    portion.append((number, line))
                if len(portion) == _PORTION_LINES:
                    yield portion
                    portion = []
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}); give a file of JSON lines"
        ) from None
    if portion:
        yield portion


def _read_object(line: str) -> dict[str, object]:
    if len(line) > _MAX_LINE_CHARS:
        raise _BadLine(f"longer than {_MAX_LINE_CHARS} characters")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise _BadLine("not JSON") from None
    if not isinstance(fields, dict):
        raise _BadLine("not a JSON object")
    return fields


def _text(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _BadLine(f'the field "{name}" must be a text')
    return value


def _id(fields: dict[str, object]) -> str:
    value = fields.get("id")
    if not isinstance(value, str | int):
        raise _BadLine('the field "id" must be a text or a number')
    return str(value)


def _read_program(fields: dict[str, object]) -> Program:
    return Program(_id(fields), _text(fields, "code"), (_text(fields, "input"),))


def _read_answer(fields: dict[str, object]) -> tuple[Task, str | None]:
    name, kind = _id(fields), fields.get("kind")
    if isinstance(kind, str) and kind not in kinds():
        for installed in entry_points():
            open_domain(installed)
    if not isinstance(kind, str) or kind not in kinds():
        raise _BadLine(f'the field "kind" must be one of {", ".join(kinds())}')
    answer = None if fields.get("answer") is None else _text(fields, "answer")
    try:
        return domain_of(kind).read_task(name, kind, fields), answer
    except ValueError as error:
        raise _BadLine(str(error)) from None


TESTED_MACHINES = ("x86_64",)
TESTED_PYTHONS = ((3, 11),)

_WITHOUT = {
    "seccomp": "a program may make any system call: run on a kernel with seccomp, or in a container that allows it",
    "landlock": "files are refused by the system-call filter alone; Landlock needs Linux 5.13 and, in a container, a "
    "profile that knows it",
    "rlimits": "a program may take more memory or processes than its share",
    "cpu-timer": "endless loops are stopped by the clock on the wall alone, so they cost more",
    "non-dumpable": "a program that got past the filter could read its parent's memory",
    "no-new-privileges": "the system-call filter cannot be put on",
    "nobody": "programs run as root or with capabilities",
    "namespaces": "no network namespace of its own; the system-call filter refuses sockets anyway",
}


@dataclass(frozen=True)
class ProtectionReport:
    """What holds on this machine. ``level`` as in results, or ``none`` with the reason in ``remarks``."""

    level: str
    observed: Mapping[str, bool]
    machine: str
    kernel: str
    python: str
    user: str
    remarks: tuple[str, ...]


def make_report(observed: Mapping[str, bool], failure: str = "") -> ProtectionReport:
    """Put what the canaries saw, or why none could start, into a report."""
    remarks = [failure] if failure else []
    remarks += [f"no {name}: {_WITHOUT[name]}" for name, holds in observed.items() if not holds]
    if platform.machine() not in TESTED_MACHINES:
        remarks.append(f"the filter's numbers for {platform.machine()} are from the tables and untested on the metal")
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
