"""Texts that a model might write in place of a literal: by grammar, by mutation of a kept corpus, by both.

All randomness comes from the generator handed in, so a text that did harm can be made again. Run as a program, this
file renews the corpus: the texts that led the reader along a new edge.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from random import Random
from types import FrameType

from redqueen_sandbox.literals import LiteralError, canonical, canonical_args

CORPUS = Path(__file__).parent / "corpus"
ATOMS = (
    "0", "1", "7", "-0", "0.0", "-0.0", "1.0", "1e3", "1E5_0", "1e999", "1e999999", "0x1F", "0b1_0", "0o17", "0_5",
    "1_000",
    "00", "012", "1.", ".5", "1..", "5j", "1+2j", "True", "False", "None", "inf", "-inf", "nan", "...", "set()",
    "set( )",
    "frozenset()", "frozenset({1})", "frozenset([1, True])", "frozenset((1,))", "frozenset({})", "dict()", "''",
    "'a'",
    '"a"', "'''a'''", "'''abc'", "''''''", '"""a"b"""', "r'\\n'", "b'x'", "rb'\\x'", "u'\u00e9'", "f'{1}'", "'\\x41'",
    "'\\ud800'", "'\\U00110000'", "'\\N{DIGIT ONE}'", "'\\400'", "b'\\400'", "'\\\n'", "'a' 'b'", "'a'\n'b'", "+(12)",
    "-(1)", "- 1", "+-1", "-+-~1", "--1", "+True", "-(1,)", "(1)", "(1,)", "()", "[]", "{}", "{1}", "{1: 2}",
    "1 if 1 else 2",
    "x", "f(1)", "a=1", "*[1]", "**{}", "lambda: 0", "\uff11", "\u0665", "\u00b2", "x\u0301=1", "\ufb01=1",
    "gr\u00f6\u00dfe=1",
    "# a\n1", "1 # a", "[1, # a\n2]", "[1\n,2]", "1,\n2", "1,\n", "\t1", "\f1", "\v1", "\u00a01", "\ufeff1",
    "1\u2028",
    "'\u2028'", "'\r'", "'''\r\n'''", "1\r2", "\ud800", "'\udfff'", "'\0'", "1\0", "1\\\n", "{1, 1.0, True}",
    "{1: 1, True: 2}",
    "{[]}", "{(): 1}", "{frozenset({1}): 2}", "[*[]]", "{**{}}", "{'a': 1, 'b'}", "1 2", "1;2", "9" * 4300,
    "9" * 4301,
    "0x" + "f" * 3600, "0b" + "1" * 14_286, "0o" + "7" * 4000, "-0x" + "f" * 3571, "1" * 400 + ".0",
    "0." + "1" * 5000,
    "[" * 100 + "]" * 100, "[" * 101 + "]" * 101, "(" * 150 + "1" + ")" * 150, "-" * 500 + "1", "'" + "\\" * 99 + "'",
)  # fmt: skip
PIECES = (
    "'", '"', "'''", '"""', "\\", "\n", "\r", "\r\n", "(", ")", "[", "]", "{", "}", ",", ":", " ", "#", "=", "+",
    "-", ".",
    "_", "e", "E", "j", "0", "x", "b", "o", "r", "u", "f", "9", "None", "True", "set", "frozenset", "inf", "\0",
    "\ud800",
    "\u00e9", "\uff15", "\u202e", "\u00a0", "\\x", "\\u", "\\N", "*", "**", "lambda", "@", "`", "$", "?", "!", "%",
)  # fmt: skip


def seeds() -> list[str]:
    """The texts of the kept corpus, one a line, escaped."""
    kept = CORPUS / "literals.txt"
    lines = kept.read_text(encoding="ascii").splitlines() if kept.exists() else []
    return [*ATOMS, *[line.encode("ascii").decode("unicode-escape") for line in lines if line]]


def a_text(rng: Random, known: list[str]) -> str:
    """One text: grown by the grammar, a known one mutated, or one grown and then mutated."""
    choice = rng.random()
    if choice < 0.4:
        return grown(rng, rng.randint(0, 4))
    return mutated(rng, rng.choice(known) if choice < 0.75 else grown(rng, 3))


def grown(rng: Random, depth: int) -> str:
    """A text that is nearly a literal: brackets, and atoms of which some are none."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ATOMS) if rng.random() < 0.3 else rng.choice(ATOMS[:24])
    items = [grown(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    comma = rng.choice((", ", ",", " , ", ",\n", ", # a\n"))
    end = rng.choice(("", "", ",", " "))
    body = comma.join(items) + end
    form = rng.randint(0, 7)
    if form == 0:
        keys = [grown(rng, 0) for _ in items]
        body = comma.join(f"{key}: {item}" for key, item in zip(keys, items, strict=True)) + end
        return "{" + body + "}"
    shapes = ("[%s]", "(%s)", "{%s}", "frozenset({%s})", "frozenset([%s])", "%s", "-(%s)")
    return shapes[form - 1].replace("%s", body)


def mutated(rng: Random, text: str) -> str:
    """The text with a few pieces put in, taken out, doubled or swapped."""
    for _ in range(rng.randint(1, 4)):
        place, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        end = min(end, place + 8)
        change = rng.randint(0, 3)
        middle = rng.choice(PIECES) if change == 0 else text[place:end] * change if change > 1 else ""
        text = text[:place] + middle + text[end if change else place :]
        if len(text) > 20_000:
            break
    return text


def grow_corpus(rng: Random, num_texts: int) -> list[str]:
    """Texts that each took the reader along an edge that none before had taken, found by mutating those found."""
    seen: set[tuple[str, int, int]] = set()
    found: list[str] = []
    known = seeds()
    for number in range(num_texts):
        text = known[number] if number < len(known) else a_text(rng, known[: len(ATOMS)] + found)
        edges = _edges(text)
        if len(text) < 2_000 and not edges <= seen:
            seen |= edges
            found.append(text)
    return found


def _edges(text: str) -> set[tuple[str, int, int]]:
    """The pairs of lines of the reader that follow each other while it reads the text, with how it ended."""
    edges: set[tuple[str, int, int]] = set()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, _: object) -> object:
        if "/verify/" not in frame.f_code.co_filename:
            return None
        if event in ("line", "return"):
            edges.add((frame.f_code.co_qualname + event, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        for read in (canonical, canonical_args):
            with contextlib.suppress(LiteralError):
                read(text, wide=True)
    finally:
        sys.settrace(None)
    return edges


if __name__ == "__main__":
    grown_texts = grow_corpus(Random(15), 60_000)
    lines = [text.encode("unicode-escape").decode("ascii") for text in grown_texts if text not in ATOMS]
    (CORPUS / "literals.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
