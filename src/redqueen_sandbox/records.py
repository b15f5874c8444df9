"""The records of the verifier: limits, programs, results, and the names of the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

VERDICTS = (
    "ok", "syntax", "forbidden", "error", "timeout", "memory", "too-large", "invalid-input", "invalid-output",
    "nondeterministic", "no-result", "crash", "bad-frame", "infra",
)  # fmt: skip
"""Only ``ok`` can earn a reward. ``infra``: the verifier itself failed: not a sample. ``bad-frame``: the child forged
its reply. ``invalid-output``: not a plain literal. ``too-large``: source, output or number."""


@dataclass(frozen=True)
class Grade:
    """The judge's verdict on one attempt.

    ``verdict``: ``ok``, or the reason why the answer could not be compared (a name in ``VERDICTS``, or ``unparsable``).
    ``lost``: the verifier itself failed, so the attempt is not a sample and counts as neither right nor wrong.
    """

    correct: bool
    verdict: str
    detail: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits of one program. All values are ours; the reasons are in ``docs/sandbox.md``."""

    cpu_ms: int = 100
    """CPU time of one child, milliseconds, 10 to 60,000. A child that exceeds it is killed: ``timeout``."""
    accept_cpu_ms: int = 50
    """A candidate that needs more is refused as a task: near the kill limit the verdict would vary between runs."""
    wall_ms: int = 2_000
    """Wall-clock time of one child, milliseconds."""
    memory_bytes: int = 64 << 20
    """Address space in addition to that of a warm interpreter, bytes. A program cannot fill more in 100 ms."""
    max_code_chars: int = 8_192
    """Longest program, characters: four times the longest program in the benchmarks."""
    max_input_chars: int = 65_536
    """Longest argument list, characters."""
    max_output_chars: int = 65_536
    """Longest canonical output, characters. Longer is ``too-large``; no output is truncated."""


@dataclass(frozen=True)
class Program:
    """A program to run. ``inputs`` are argument lists as source text: the text between the brackets of a call."""

    id: str
    code: str
    inputs: tuple[str, ...]
    entry: str = "f"


@dataclass(frozen=True)
class Result:
    """The result of a program. ``outputs`` are canonical literals, one for each input, and empty unless ``ok``.

    ``detail``: the exception's class for ``error``, else a few words. ``protection``: the result of the canaries
    (``full``, ``partial: no ...`` or ``weak: no ...``). ``cpu_ms``: the CPU time of the most expensive run.
    """

    id: str
    verdict: str
    outputs: tuple[str, ...] = ()
    detail: str = ""
    protection: str = ""
    cpu_ms: float = 0.0


Report = Callable[[int, int], None]
"""A progress callback: the number of programs done, and of all (0: unknown). If it raises, the call ends at once."""


def unheard(done: int, total: int) -> None:
    """Ignore the progress: the default callback."""


REQUIRED = ("seccomp", "landlock", "rlimits", "cpu-timer", "non-dumpable", "no-new-privileges", "nobody")
"""The protections that ``full`` means. Namespaces are optional: the filter already refuses the calls they restrict."""

WEAK = "the sandbox has no system-call filter here, so hostile programs could do harm: run on a kernel with seccomp"
"""First part of the error message; each command adds its own remedy."""


def protection_level(observed: Mapping[str, bool]) -> str:
    """Return ``full``, ``partial: no ...``, or, without the system-call filter, ``weak: no ...``."""
    missing = [name for name in REQUIRED if not observed.get(name, False)]
    if not missing:
        return "full"
    return f"{'partial' if observed.get('seccomp') else 'weak'}: no {', '.join(missing)}"
