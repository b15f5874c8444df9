"""Canonical literals: a bounded, linear-time reader of plain Python values that never evaluates anything.

The judge reads every text that came out of a child, and every answer that a student wrote, with this reader, and
compares the canonical texts it returns. Identity is by type and value (``True``, ``1`` and ``1.0`` differ; ``-0.0`` and
``0.0`` differ), sets and dicts do not depend on the order in which they were written, and nothing is ever cut short.

Plain values: int, float, bool, str, None, and list, tuple, dict, set and frozenset of them. The ``wide`` reader also
knows bytes and the infinities, which a program may return to a caller of ``run`` but which are not allowed in a task;
the ``loose`` reader knows complex numbers as well, which a few benchmarks use, and ``...``, which stands for a match
object there (see ``inside/encode.py``). NaN is never read.

What it reads, Python's ``ast.literal_eval`` reads to the same value, but for ``frozenset(...)``; blank lines at the
ends count for nothing. What Python reads and it refuses: complex numbers, bytes and ``...`` (but as above), floats
beyond the largest, character names (``\\N{...}``), backslashes at a line's end, NUL, and what is beyond a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from redqueen_sandbox.guard import note_fault
from redqueen_sandbox.reader import MAX_DEPTH, Reader
from redqueen_sandbox.tokens import MAX_DIGITS, LiteralError

__all__ = [
    "MAX_CHARS", "MAX_DEPTH", "MAX_DIGITS", "LiteralError", "canonical", "canonical_args", "is_canonical", "read_call",
]  # fmt: skip

MAX_CHARS = 65_536
"""Longest text that is read, in characters (ours)."""

Read = TypeVar("Read")


def canonical(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = False, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of one literal.

    ``keep_order`` leaves the entries of sets and dicts in the order they were written (for inputs, where a program
    may depend on it). Time is linear in the text for a bounded depth. Raises ``LiteralError``, and nothing else.
    """
    return _guarded(lambda: Reader(text, wide, loose, keep_order, max_chars).whole())


def canonical_args(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = True, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of an argument list, as it stands between the brackets of a call.

    Positional and keyword arguments, every value a literal; ``""`` is the empty list. Raises ``LiteralError``, and
    nothing else.
    """
    positional, named = read_call(text, wide, loose, keep_order, max_chars)
    return ", ".join([*positional, *[f"{name}={value}" for name, value in named.items()]])


def read_call(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = False, max_chars: int = MAX_CHARS
) -> tuple[list[str], dict[str, str]]:
    """Return the canonical texts of an argument list: the positional ones, and those given by name.

    Raises ``LiteralError``, and nothing else.
    """
    return _guarded(lambda: Reader(text, wide, loose, keep_order, max_chars).arguments())


def is_canonical(text: str, wide: bool = False, max_chars: int = MAX_CHARS) -> bool:
    """Tell whether ``text`` is a literal in exactly its canonical form."""
    try:
        return canonical(text, wide, max_chars=max_chars) == text
    except LiteralError:
        return False


def _guarded(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except LiteralError:
        raise
    except Exception as error:  # the guard of the judge (``guard.py``), here because every text passes through here
        raise LiteralError(note_fault("literals", error)) from None
