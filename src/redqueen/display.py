"""Text for display: numbers and durations in words, and model text made harmless."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

NOTHING = "–"
"""Shown for a number that is not defined."""

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that are not safe to display: controls, formats (bidi, zero width, tags), surrogates,
private use, unassigned, line and paragraph separators."""

BLANK = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE0E),
     *range(0xE0100, 0xE01F0)}
)  # fmt: skip
"""Letters and marks that are invisible: fillers, joiners, the braille blank, and variation selectors, which can hide
data. The two selectors that ordinary text uses (text or emoji style) are allowed."""

MAX_MARKS = 4
"""Longest run of combining marks that is shown unchanged; longer ones cover the neighbouring lines."""


def visible(text: str, max_chars: int | None = None, one_line: bool = False) -> str:
    """Return ``text`` with invisible and control characters written out, safe for a terminal and for HTML *text*.

    Control characters become their pictures (ESC is ``␛``), bidi marks, zero-width and other format characters become
    ``⟨U+202E⟩``; newline and tab stay, or with ``one_line`` become ``⏎`` and a space. Text beyond ``max_chars``
    characters is replaced by a note of how much is missing. HTML's own characters are not escaped here: the template
    engine does that.
    """
    num_left_out = 0 if max_chars is None else max(0, len(text) - max_chars)
    kept = text[: len(text) - num_left_out]
    if kept.isascii() and kept.isprintable():
        shown = kept
    else:
        shown = "".join(_visible_character(character, one_line) for character in _limit_combining_marks(kept))
    return f"{shown} … ({num_left_out:,} more characters)" if num_left_out else shown


def shown(value: object) -> object:
    """Return a ``str`` made ``visible``, any other value (also ``Markup``) as it is. The template engine calls this.

    It filters every expression of a page, so that no value can insert invisible characters.
    """
    return visible(value) if type(value) is str else value


MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~&])")


def literal(text: str) -> str:
    """Return text that markdown shows unchanged, in one line."""
    return MARKDOWN.sub(r"\\\1", visible(text, one_line=True))


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in markdown; the head is written as it is given, cells are ``literal``."""
    lines = [head, ["---"] * len(head), *([literal(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def script_json(value: object) -> str:
    """Return JSON that is safe inside a ``<script>`` element: ASCII only, and no ``<``, ``>`` or ``&`` in it.

    Nothing in it can end the element or open a comment. Its texts are ``visible``, because a script writes them on the
    page. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(all_visible(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def all_visible(value: object) -> object:
    """Return plain data with every text in it ``visible``."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {all_visible(key): all_visible(item) for key, item in value.items()}
    return [all_visible(item) for item in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=4096)
def _visible_character(character: str, one_line: bool) -> str:
    if character == "\n":
        return "⏎" if one_line else character
    if character == "\t":
        return " " if one_line else character
    code = ord(character)
    if unicodedata.category(character) not in HIDDEN_CATEGORIES and code not in BLANK:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _limit_combining_marks(text: str) -> str:
    """Write out the combining marks of a run beyond the first ``MAX_MARKS``."""
    if text.isascii():
        return text
    pieces, run = [], 0
    for character in text:
        run = run + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        pieces.append(character if run <= MAX_MARKS else f"⟨U+{ord(character):04X}⟩")
    return "".join(pieces)


def number(value: float | None) -> str:
    """Return a number with about three significant digits: 1,234 and 12.3 and 0.123."""
    if value is None:
        return NOTHING
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def counted(num: int, noun: str) -> str:
    """Return ``1 step`` or ``1,234 steps``."""
    return f"{num:,} {noun}{'s' * (num != 1)}"


def size(num_bytes: float) -> str:
    """Return a number of bytes as ``1.5 GB``, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"


def duration(seconds: float) -> str:
    """Return seconds as ``45 s``, ``12 min 3 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
