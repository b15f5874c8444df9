"""The observed protections in words: the level that every result carries, and the report of ``redqueen doctor``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass

REQUIRED = ("seccomp", "landlock", "rlimits", "cpu-timer", "non-dumpable", "no-new-privileges", "nobody")
"""What ``full`` protection means. Namespaces are a bonus: the filter already refuses what they would hide."""

WEAK = "the sandbox has no system-call filter here, so hostile programs could do harm: run on a kernel with seccomp"
"""Begins the sentence of those who refuse; the remedy for who trusts every program differs by command."""

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


def protection_level(observed: Mapping[str, bool]) -> str:
    """``full``, ``partial: no ...``, or ``weak: no ...`` where the system-call filter itself does not hold."""
    missing = [name for name in REQUIRED if not observed.get(name, False)]
    if not missing:
        return "full"
    return f"{'partial' if observed.get('seccomp') else 'weak'}: no {', '.join(missing)}"


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
