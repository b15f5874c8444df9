"""Which modules a zygote has: three kinds, since a fork costs by what the zygote holds, and most programs need little.

``plain`` has no module for programs at all, ``common`` the usual ones, ``full`` all that are allowed.
"""

from __future__ import annotations

import re

from redqueen.verify.inside.allowed import COMMON, FURTHER, HELPERS

KINDS: dict[str, tuple[str, ...]] = {"plain": (), "common": COMMON, "full": (*COMMON, *FURTHER, *HELPERS)}
"""The modules that each kind of zygote imports."""

_WORD = re.compile(r"\w+")
_IMPORT = re.compile(r"\bimport\b")
# Codecs and the table of character names are imported by the interpreter itself when these words need them.
_FULL_WORDS = frozenset(FURTHER) | frozenset(HELPERS) | {"encode", "decode", "codecs", "bytes", "bytearray"}


def kind_for(code: str) -> str:
    """The smallest kind that has every module the text could name. Looks at words, not at syntax: too large is safe."""
    if "\\N{" in code or (_IMPORT.search(code) and not code.isascii()):
        return "full"
    if not _IMPORT.search(code) and "code" not in code:
        return "plain"
    words = set(_WORD.findall(code))
    if words & _FULL_WORDS:
        return "full"
    return "common" if "import" in words else "plain"
