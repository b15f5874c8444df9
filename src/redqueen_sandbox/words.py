"""What a program's words show: the modules it needs, whether it needs a syntax tree, how many hash seeds it runs under.

Most programs name nothing that the gate looks at. A tree is dear in a child, where each kind of node and each name
touches a page of memory that the child then has to copy. So the judge looks at the words first, in linear time. Too
many trees and modules are safe, too few are not.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

from redqueen_sandbox.inside import allowed
from redqueen_sandbox.inside.allowed import HELPERS, OPEN, PARSER_HELPERS, PURE

GATED_KINDS: dict[str, tuple[str, ...]] = {"plain": PARSER_HELPERS, "pure": (*PURE, *HELPERS)}
"""The modules of the kinds of zygote that run gated programs: a fork costs by what its zygote holds."""

_WORD = re.compile(r"\w+")
_LOOKED_AT = frozenset({*allowed.REFUSED, *allowed.REFUSED_BUILTINS, "import"})
_CODEC_WORDS = frozenset({"encode", "decode", "bytes", "bytearray"})
"""With these a program may ask for a codec that the interpreter would have to import."""


def modules_of(kind: str) -> tuple[str, ...]:
    """Return what a zygote of this kind imports: ``plain``, ``pure``, ``open`` or the name of one installed module."""
    return GATED_KINDS.get(kind) or (OPEN if kind == "open" else (kind,))


def paths_of(kind: str) -> list[str]:
    """Return where a zygote of this kind looks for its modules beside the standard library."""
    return [] if kind in (*GATED_KINDS, "open") else [str(Path(path).resolve()) for path in sys.path if path]


@functools.lru_cache(maxsize=256)
def words_of(code: str) -> frozenset[str]:
    """Return every word of a text, in whatever place."""
    return frozenset(_WORD.findall(code))


def kind_for(code: str) -> str:
    """Return the smallest kind that has every module and codec the text could name."""
    return "plain" if code.isascii() and words_of(code).isdisjoint(("import", *_CODEC_WORDS)) else "pure"


def needs_tree(code: str, again: bool) -> bool:
    """Tell whether a child has to look at a gated program's tree; ``again``: the gate has seen it already."""
    return not again and (not code.isascii() or _has_special(code) or not _LOOKED_AT.isdisjoint(words_of(code)))


def _has_special(code: str) -> bool:
    return any(word.startswith("__") for word in words_of(code))


_LOUD = frozenset(
    {"args", "ascii", "class", "dir", "frozenset", "hash", "import", "object", "repr", "set", "str", "super", "type",
     "vars"}
)  # fmt: skip
# An opening brace that may begin a set: none that is closed at once, and none before a string or a word and a colon.
_MAY_BE_SET = re.compile(r"""\{(?!\s*\}|\s*(?:'[^'\\\n]*'|"[^"\\\n]*"|(?!lambda\b)[\w.]+)\s*:(?!=))""")


def shows_hashes(code: str, inputs: tuple[str, ...]) -> bool:
    """Tell whether hashes, the order of sets or addresses lie near: such a program runs under more hash seeds."""
    return any(not _LOUD.isdisjoint(words_of(text)) or _MAY_BE_SET.search(text) for text in (code, *inputs))
