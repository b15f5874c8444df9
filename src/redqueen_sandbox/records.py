"""What goes into the verifier and what comes out: limits, programs, results, and the names of the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

VERDICTS = (
    "ok", "syntax", "forbidden", "error", "timeout", "memory", "too-large", "invalid-input", "invalid-output",
    "nondeterministic", "no-result", "crash", "bad-frame", "infra",
)  # fmt: skip
"""Only ``ok`` can earn. ``infra`` is a failure of the verifier itself and not a sample. ``bad-frame``: the child forged
its reply. ``invalid-output``: not a plain literal. ``too-large``: source, output or number."""


@dataclass(frozen=True)
class Grade:
    """The judge's verdict on one attempt.

    ``verdict``: ``ok`` or the reason why the answer could not even be compared (verdict names of the sandbox,
    ``unparsable``). ``lost`` marks an attempt whose judgement failed for reasons of the infrastructure: it is
    not a sample, neither right nor wrong.
    """

    correct: bool
    verdict: str
    detail: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Limits:
    """What one program may use. All values are ours; the reasons are in ``docs/sandbox.md``."""

    cpu_ms: int = 100
    """CPU time of one child, milliseconds, 10 to 60,000; then it is killed: ``timeout``."""
    accept_cpu_ms: int = 50
    """A candidate that needs more than this is no task, so that none near the kill limit is valid only sometimes."""
    wall_ms: int = 2_000
    """Wall-clock time of one child, milliseconds."""
    memory_bytes: int = 64 << 20
    """Address space beyond what a warm interpreter has, bytes. In 100 ms no more could be filled anyway."""
    max_code_chars: int = 8_192
    """Longest program, characters: four times the longest of the benchmarks' own."""
    max_input_chars: int = 65_536
    """Longest argument list, characters."""
    max_output_chars: int = 65_536
    """Longest canonical output, characters. Longer is ``too-large``; no output is truncated."""


@dataclass(frozen=True)
class Program:
    """Something to run. ``inputs`` are argument lists as source text, as they stand in a call's brackets."""

    id: str
    code: str
    inputs: tuple[str, ...]
    entry: str = "f"


@dataclass(frozen=True)
class Result:
    """The result of a program. ``outputs`` are canonical literals, one for each input, and empty unless ``ok``.

    ``detail``: the exception's class for ``error``, else a few words. ``protection``: what the canaries saw hold
    (``full``, ``partial: no ...`` or ``weak: no ...``). ``cpu_ms`` is that of its costliest run.
    """

    id: str
    verdict: str
    outputs: tuple[str, ...] = ()
    detail: str = ""
    protection: str = ""
    cpu_ms: float = 0.0


Report = Callable[[int, int], None]
"""Is told how many of how many programs are done (0: unknown); it may raise, which ends the call there and then."""


def unheard(done: int, total: int) -> None:
    """A report that does nothing."""


REQUIRED = ("seccomp", "landlock", "rlimits", "cpu-timer", "non-dumpable", "no-new-privileges", "nobody")
"""What ``full`` protection means. Namespaces are a bonus: the filter already refuses what they would hide."""

WEAK = "the sandbox has no system-call filter here, so hostile programs could do harm: run on a kernel with seccomp"
"""First part of the refusal; each command adds its own remedy."""


def protection_level(observed: Mapping[str, bool]) -> str:
    """``full``, ``partial: no ...``, or ``weak: no ...`` where the system-call filter itself does not hold."""
    missing = [name for name in REQUIRED if not observed.get(name, False)]
    if not missing:
        return "full"
    return f"{'partial' if observed.get('seccomp') else 'weak'}: no {', '.join(missing)}"
