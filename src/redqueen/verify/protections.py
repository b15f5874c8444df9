"""The observed protections in words: the level that every result carries, and the report of ``redqueen doctor``."""

from __future__ import annotations

from collections.abc import Mapping

REQUIRED = ("seccomp", "landlock", "rlimits", "cpu-timer", "non-dumpable", "no-new-privileges", "nobody")
"""What ``full`` protection means. Namespaces are a bonus: the filter already refuses what they would hide."""


def protection_level(observed: Mapping[str, bool]) -> str:
    """``full``, ``partial: no ...``, or ``weak: no ...`` where the system-call filter itself does not hold."""
    missing = [name for name in REQUIRED if not observed.get(name, False)]
    if not missing:
        return "full"
    return f"{'partial' if observed.get('seccomp') else 'weak'}: no {', '.join(missing)}"
