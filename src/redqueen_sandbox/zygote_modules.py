"""The modules of a zygote, in three kinds: a fork costs by what the zygote holds, and most programs need little.

``plain`` has no module for programs, only what the parser itself asks for, ``common`` the usual ones, ``full`` all
that are allowed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from redqueen_sandbox.inside.allowed import COMMON, FURTHER, HELPERS, PARSER_HELPERS

ZYGOTE_MODULES: dict[str, tuple[str, ...]] = {
    "plain": PARSER_HELPERS,
    "common": (*COMMON, *PARSER_HELPERS),
    "full": (*COMMON, *FURTHER, *HELPERS),
}
"""The modules that each kind of zygote imports.

A kind that is not here is the name of a module that is installed: of a library, or of our own code that needs one.
"""

_WORD = re.compile(r"\w+")
# Codecs are imported by the interpreter itself when these words need them.
_CODEC_WORDS = frozenset({"encode", "decode", "bytes", "bytearray"})
_FULL_WORDS = frozenset(FURTHER) | frozenset(HELPERS) | _CODEC_WORDS


def modules_of(kind: str) -> tuple[str, ...]:
    """Return the modules that a zygote of this kind imports."""
    return ZYGOTE_MODULES.get(kind, (kind,))


def paths_of(kind: str) -> list[str]:
    """Return where a zygote of this kind looks for them beside the standard library."""
    return [] if kind in ZYGOTE_MODULES else [str(Path(path).resolve()) for path in sys.path if path]


def kind_for(code: str) -> str:
    """The smallest kind that has every module the text could name. Looks at words, not at syntax: too large is safe."""
    words = set(_WORD.findall(code))
    if "import" not in words:
        return "full" if words & _CODEC_WORDS else "plain"
    return "full" if words & _FULL_WORDS or not code.isascii() else "common"
