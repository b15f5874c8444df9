"""Numbers as text, the same way on the page, in the summary and in the terminal."""

from __future__ import annotations

NOTHING = "–"
"""Stands where a number is not defined."""


def number(value: float | None) -> str:
    """Return a number with as many digits as are worth reading: 1,234 and 12.3 and 0.123."""
    if value is None:
        return NOTHING
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def duration(seconds: float) -> str:
    """Return seconds as ``45 s``, ``12 min 3 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
