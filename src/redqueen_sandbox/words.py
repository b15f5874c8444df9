"""What a program's words alone show: most programs name nothing that the gate looks at, and need no syntax tree.

A tree is dear in a child: each kind of node and each name touches a page of memory that the child then has to copy. So
the judge looks at the words first, in linear time and without parsing anything. Too many trees are safe, too few are
not: a program is plain only if its text is ASCII and no word of it, in whatever place, is in a table of the gate.
"""

from __future__ import annotations

import functools
import re

from redqueen_sandbox.inside.allowed import (
    GUARDED,
    ORDER_ATTRIBUTES,
    ORDER_NAMES,
    REFUSED,
    REFUSED_BUILTINS,
    TAKE_A_NAME,
    TELLING,
    VIEWS,
)

_WORD = re.compile(r"\w+")
_LOOKED_AT = frozenset(
    {*REFUSED, *REFUSED_BUILTINS, *GUARDED, *TAKE_A_NAME, *TELLING, *ORDER_NAMES, *ORDER_ATTRIBUTES, "case", "import"}
)
# An opening brace that may begin a set: none that is closed at once, and none before a string or a word and a colon.
# (A word and a colon begin a set only after ``lambda`` and in ``{x := 1}``.)
_MAY_BE_SET = re.compile(
    r"""\{(?!\s*\}|\s*(?:'[^'\\\n]*'|"[^"\\\n]*"|(?!lambda\b)[\w.]+)\s*:(?!=))""",
)
_SET_OPERATOR = re.compile(r"[-|&^]")


def needs_tree(code: str, gated: bool, screened: bool) -> bool:
    """Tell whether a child has to build the program's tree before it compiles it.

    ``screened``: the gate has seen it already. Then only what it changes needs a tree: guarded names, the main block.
    """
    if gated and (not code.isascii() or "__name__" in code or any(name in code for name in GUARDED)):
        return True
    return not screened and not (gated and is_plain(code))


@functools.lru_cache(maxsize=256)
def is_plain(code: str) -> bool:
    """Tell whether the gate would let the program through, unchanged and without a remark, whatever its syntax."""
    if not code.isascii():
        return False
    words = set(_WORD.findall(code))
    if not _LOOKED_AT.isdisjoint(words) or any(word.startswith("__") for word in words):
        return False
    if not VIEWS.isdisjoint(words) and _SET_OPERATOR.search(code):
        return False
    return not _MAY_BE_SET.search(code)
