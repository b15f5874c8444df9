"""Properties of a program that follow from its words: the kind of zygote, the need for a syntax tree, and ``is_tame``.

Most programs contain no name that the gate checks. A syntax tree is expensive in a child: each type of node and each
name touches a page of memory that the child then has to copy. So the judge checks the words first, in linear time. An
unnecessary tree or module is safe; a missing one is not.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import sys
from pathlib import Path

from redqueen_sandbox.inside import allowed
from redqueen_sandbox.inside.allowed import HELPERS, OPEN, PARSER_HELPERS, PURE
from redqueen_sandbox.literals import STRING

GATED_KINDS: dict[str, tuple[str, ...]] = {"plain": PARSER_HELPERS, "pure": (*PURE, *HELPERS)}
"""The kinds of zygotes for gated programs, and their modules. Each module makes every fork more expensive."""

_WORD = re.compile(r"\w+")
_GATED_WORDS = frozenset({*allowed.REFUSED, *allowed.REFUSED_BUILTINS, "import"})
_CODEC_WORDS = frozenset({"encode", "decode", "bytes", "bytearray"})
"""Words with which a program may request a codec that the interpreter has to import."""


def modules_of(kind: str) -> tuple[str, ...]:
    """Return what a zygote of this kind imports: ``plain``, ``pure``, ``open`` or the name of one installed module."""
    return GATED_KINDS.get(kind) or (OPEN if kind == "open" else (kind,))


def paths_of(kind: str) -> list[str]:
    """Return the folders in which a zygote of this kind finds modules, in addition to the standard library."""
    return [] if kind in (*GATED_KINDS, "open") else [str(Path(path).resolve()) for path in sys.path if path]


@functools.lru_cache(maxsize=256)
def words_of(code: str) -> frozenset[str]:
    """Return every word of a text, strings and comments included."""
    return frozenset(_WORD.findall(code))


def kind_for(code: str) -> str:
    """Return the smallest kind of zygote that has every module and codec which the text may need."""
    return "plain" if code.isascii() and words_of(code).isdisjoint(("import", *_CODEC_WORDS)) else "pure"


def needs_tree(code: str, again: bool) -> bool:
    """Return whether a child must screen a gated program's tree; ``again``: the gate has already passed it."""
    words = words_of(code)
    is_special = not code.isascii() or not _GATED_WORDS.isdisjoint(words) or any(word[:2] == "__" for word in words)
    return is_special and not again


_TAME_WORDS = """
    False None True abs all and any bool break continue def del dict divmod elif else enumerate filter float for if in
    int is isinstance iter lambda len list map max min next not or ord pass pow print range return reversed round slice
    sorted sum tuple while zip
"""
_RISKY_WORDS = frozenset({*dir(builtins), *keyword.kwlist, "match"}) - frozenset(_TAME_WORDS.split())
_TAME_METHODS = re.compile(
    r"""\.(?:append|capitalize|casefold|center|clear|copy|count|endswith|expandtabs|extend|fromkeys|get|insert|join|lower|pop
    |is(?:alnum|alpha|ascii|decimal|digit|identifier|lower|numeric|printable|space|title|upper)|[lr]just|[lr]?strip|popitem
    |r?find|r?index|r?partition|r?split|remove(?:prefix|suffix)?|replace|reverse|setdefault|sort|splitlines|startswith
    |swapcase|title|update|upper|values|zfill)\(|\bin\ [a-z]\w*\.(?:items|keys)\(\)(?=[]:)}])|(?<=[0-9])\.(?=[0-9])""",
    re.VERBOSE,
)
# Any other dot, a decorator, a double underscore, a string prefix, a brace that may begin a set.
_RISKY_SIGN = re.compile(r"[.@]|__|\w''|\{(?!\s*\}|\s*(?:''|-?(?!lambda\b)\w+)\s*:(?!=))")


@functools.lru_cache(maxsize=64)  # called when a job is made and when it is confirmed
def is_tame(code: str, inputs: tuple[str, ...]) -> bool:
    """Return whether a program cannot use a set, a hash or an object's text, so that two processes suffice for it.

    Outside strings it has only harmless keywords, builtins and methods, and no risky sign; no string is a format.
    """
    text = "\n".join((code, *inputs))
    bare = _TAME_METHODS.sub("(", STRING.sub(r"''\g<rest>", text))
    has_format = "%" in bare and ("\\" in text or text.count("%") > bare.count("%"))
    is_known = bare.isascii() and _RISKY_WORDS.isdisjoint(_WORD.findall(bare)) and not _RISKY_SIGN.search(bare)
    return is_known and not has_format and "\r" not in text
