"""Everyday Python over words, lists and dictionaries, built from patterns: the second world of programs.

The basic world (``programs.py``) composes single operations. This one composes idioms: split and join, counting in a
dict, two pointers, guards, helpers. The patterns are in ``everyday_patterns.py``; this module fills their holes.
"""

from __future__ import annotations

import re
from random import Random

from recipes.embedded_base.draft import WORDS, Draft, Type
from recipes.embedded_base.everyday_patterns import (
    ENDINGS,
    EXPRESSIONS,
    FINALS,
    FRAGMENTS,
    GUARDS,
    HELPER_USES,
    HELPERS,
    LOOPS,
    SINGLE,
    UPDATES,
)  # fmt: skip

PUNCTUATION = ("-", "_", ".", ",", "!", "*", "#", " ", "?")
SEPARATORS = (",", "-", " ", ":", "_", ".", "/", ", ")
_ONSETS = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "ch", "")
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "o", "ee", "ai")
_CODAS = ("", "", "", "n", "t", "r", "s", "l", "m", "ck", "nd")
_COMMON = (
    "the", "a", "in", "on", "is", "and", "hi", "you", "we", "one", "two", "ten", "yes", "no", "up", "big", "apple",
    "hello", "world", "fish", "bird", "home", "blue", "green", "map", "key", "old", "new", "time", "day", "man", "car",
)  # fmt: skip


def write_everyday_value(rng: Random, type_: Type) -> object:
    """Return a random argument of this type."""
    match type_:
        case "int":
            return rng.choice((rng.randint(0, 9), rng.randint(0, 9), rng.randint(-5, 20), rng.randint(10, 120)))
        case "bool":
            return rng.random() < 0.5
        case "str":
            return _text(rng)
        case "ints":
            high = rng.choice((5, 9, 9, 20, 60))
            low = rng.choice((0, 0, 1, -9))
            return [rng.randint(low, high) for _ in range(rng.choice((0, 1, 2, 3, 3, 4, 4, 5, 6, 7)))]
        case "strs":
            write = rng.choice((write_word, write_word, write_short_text, _code))
            return [write(rng) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
        case "tup":
            return tuple(rng.randint(-2, 12) for _ in range(rng.choice((2, 2, 3))))
        case "dict":
            write = rng.choice((write_word, write_short_text))
            high = rng.choice((5, 9, 30))
            return {write(rng): rng.randint(0, high) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))}


def write_word(rng: Random) -> str:
    """Return a word, a real or an invented one."""
    roll = rng.random()
    if roll < 0.2:
        return rng.choice(WORDS)
    if roll < 0.4:
        return rng.choice(_COMMON)
    text = "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(rng.choice((1, 1, 2, 2, 3)))
    )
    return rng.choice((text, text, text, text, text.title(), text.upper()))[:10]


def write_short_text(rng: Random) -> str:
    """Return one to four letters, sometimes with a digit."""
    roll = rng.random()
    if roll < 0.3:
        return rng.choice("abcdefghiklmnoprstuxyz")
    if roll < 0.5:
        return rng.choice(_COMMON)[:4]
    text = "".join(rng.choice("abcdeinorstxyz") for _ in range(rng.choice((2, 2, 3, 3, 4))))
    return text if roll < 0.92 else text + str(rng.randint(0, 9))


def _code(rng: Random) -> str:
    letters = rng.choice(("abc", "abcdexyz", "aAbBcC", "aab12", "0123456789", "xyz XYZ", "aeioubt"))
    return "".join(rng.choice(letters) for _ in range(rng.choice((1, 2, 3, 4, 5, 6, 7))))


def _text(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.02:
        return ""
    if roll < 0.3:
        return write_word(rng)
    if roll < 0.48:
        return _code(rng)
    if roll < 0.58:
        return rng.choice(PUNCTUATION) * rng.choice((0, 1, 2)) + write_word(rng) + rng.choice(PUNCTUATION)
    separator = " " if roll < 0.82 else rng.choice(SEPARATORS)
    return separator.join(write_word(rng)[:6] for _ in range(rng.choice((2, 2, 3, 3, 4))))[:24]


TYPES: dict[str, Type] = {
    "s": "str", "w": "strs", "x": "ints", "d": "dict", "n": "int", "b": "bool", "t": "tup",
}  # fmt: skip
LETTER_OF: dict[Type, str] = {type_: letter for letter, type_ in TYPES.items()}
NAMES: dict[Type, tuple[str, ...]] = {
    "int": ("n", "k", "num", "total", "count", "idx", "pos", "length", "size", "m", "limit", "a", "b", "x", "y"),
    "bool": ("flag", "ok", "done", "found"),
    "str": ("s", "text", "string", "word", "line", "t", "name", "result", "res", "out", "value", "prefix", "a", "b"),
    "ints": ("nums", "numbers", "array", "lst", "xs", "values", "arr", "res", "out", "ys", "result"),
    "strs": ("words", "parts", "tokens", "items", "names", "lines", "chars", "res", "ls", "result"),
    "tup": ("pair", "p", "t", "point"),
    "dict": ("d", "counts", "freq", "dic", "mapping", "data", "dct", "result", "table"),
}
LOCALS: dict[str, tuple[str, ...]] = {
    "c": ("c", "ch", "char", "letter"), "e": ("word", "w", "item", "part", "e"), "v": ("x", "v", "num", "i", "y"),
    "i": ("i", "idx"), "j": ("j",), "k": ("k", "key"), "q": ("v", "val", "value"),
}  # fmt: skip
PARAM_WEIGHTS: dict[Type, float] = {"str": 11, "ints": 4, "strs": 3.2, "int": 4, "dict": 3, "bool": 0.3, "tup": 0.3}
_ALTERNATIVES = re.compile(r"\{([^{}]*\|[^{}]*)\}")
_HOLE = re.compile(r"<([+=]?)([a-zA-Z])(\d?)>|@([a-z]+)")


class NoFit(Exception):
    """No variable in scope fits a hole."""


class EverydayDraft(Draft):
    """A partly written function, with the names of this world."""

    def new_name(self, type_: Type) -> str:
        """Return a name that is not in use."""
        return self.unused(NAMES[type_])

    def unused(self, names: tuple[str, ...]) -> str:
        """Return an unused one of these names, the first ones more often. Raises NoFit when all are in use."""
        free = [n for n in names if n not in self.scope.types]
        if not free:
            raise NoFit
        return free[min(self.rng.randrange(len(free)), self.rng.randrange(len(free)))]


class Phrase:
    """One partly filled pattern. ``bound`` maps a hole to its text; ``new`` and ``changed`` map holes to variables."""

    def __init__(self, draft: EverydayDraft, bound: dict[str, str] | None = None) -> None:
        self.draft = draft
        self.bound = {} if bound is None else bound
        self.new: dict[str, Type] = {}
        self.changed: dict[str, Type] = {}

    def fill(self, pattern: str, depth: int = 1) -> str:
        """Return the pattern's text; ``depth`` bounds how deeply expressions are nested. Raises NoFit."""
        while found := _ALTERNATIVES.search(pattern):
            chosen = self.draft.rng.choice(found[1].split("|"))
            pattern = pattern[: found.start()] + chosen + pattern[found.end() :]
        lines = []
        for line in pattern.split("\n"):
            pad = line[: len(line) - len(line.lstrip(" "))]
            lines.append(_HOLE.sub(lambda m: self._hole(m, depth), line).replace("\n", "\n" + pad))
        return "\n".join(lines)

    def _hole(self, match: re.Match[str], depth: int) -> str:
        sign, letter, number, rule = match.groups()
        if rule:
            return self._rule(rule, depth)
        key = ("+" if sign == "+" else "") + letter + number
        if key not in self.bound:
            self.bound[key] = self._choose(sign, letter)
        if sign == "=":
            if letter not in TYPES or self.bound[key] in self.draft.scope.fixed:
                raise NoFit
            self.changed[self.bound[key]] = TYPES[letter]
        return self.bound[key]

    def _choose(self, sign: str, letter: str) -> str:
        draft, r = self.draft, self.draft.rng
        if letter in LOCALS:
            return draft.unused(tuple(n for n in LOCALS[letter] if n not in self.bound.values()))
        if letter in TYPES:
            taken = set(self.bound.values())
            if sign == "+":
                name = draft.unused(tuple(n for n in NAMES[TYPES[letter]] if n not in taken))
                self.new[name] = TYPES[letter]
                return name
            for _ in range(4):
                picked = draft.pick(TYPES[letter])
                if picked is not None and picked not in taken:
                    return picked
            raise NoFit
        match letter:
            case "L":
                return repr(r.choice("aabcdeeghiklmnoprsttuxz"))
            case "A":
                return repr(write_short_text(r))
            case "P":
                return repr(r.choice(PUNCTUATION))
            case "S":
                return repr(r.choice(SEPARATORS))
            case "N":
                return str(r.choice((1, 2, 2, 2, 3, 3, 4, 5)))
            case "M":
                return str(r.choice((5, 6, 7, 8, 10, 10, 12, 15)))
        raise ValueError(letter)

    def _rule(self, rule: str, depth: int) -> str:
        if rule in FRAGMENTS:
            return self.fill(self.draft.rng.choice(FRAGMENTS[rule]), depth)
        if rule == "update":
            inner = Phrase(self.draft)
            text = attempt(self.draft, UPDATES, inner, 0)
            self.changed |= inner.changed
            return text
        if depth <= 0 or self.draft.rng.random() < 0.15:
            picked = self.draft.pick(TYPES[rule])
            if picked is not None:
                return picked
        return attempt(self.draft, EXPRESSIONS[rule], Phrase(self.draft), depth - 1)

    def settle(self) -> None:
        """Bring the phrase's new variables into scope."""
        for name, type_ in {**self.changed, **self.new}.items():
            self.draft.declare(name, type_)


def attempt(draft: EverydayDraft, patterns: tuple[str, ...], phrase: Phrase, depth: int = 1) -> str:
    """Fill a pattern that fits. Raises NoFit when none of a few random patterns does."""
    before, fresh = dict(phrase.bound), list(draft.scope.fresh)
    for _ in range(12):
        try:
            return phrase.fill(draft.rng.choice(patterns), depth)
        except NoFit:
            phrase.bound.clear()
            phrase.bound.update(before)
            phrase.new.clear()
            phrase.changed.clear()
            draft.scope.fresh = list(fresh)
    raise NoFit


def write_everyday_program(rng: Random, level: int) -> tuple[str, tuple[Type, ...]]:
    """Return the source of a function ``f`` (with a helper at times) of this level (1-5) and its parameter types."""
    while True:
        try:
            return _function(EverydayDraft(rng, level))
        except NoFit:
            continue


def _function(draft: EverydayDraft) -> tuple[str, tuple[Type, ...]]:
    r = draft.rng
    params: list[tuple[str, Type]] = []
    for _ in range(r.choices((1, 2, 3), (6, 4, 1))[0]):
        type_ = r.choices(list(PARAM_WEIGHTS), list(PARAM_WEIGHTS.values()))[0]
        params.append((draft.declare(draft.new_name(type_), type_), type_))
    blocks: list[str] = []
    head = ""
    if draft.level >= 2 and r.random() < 0.14:
        taken, given, text = r.choice(HELPERS)
        head = Phrase(draft, {}).fill(text) + "\n"
        name = text[4 : text.index("(")]
        uses = tuple(use.replace("HELPER", name) for use in HELPER_USES[taken + given])
        blocks.append(_statement(draft, uses))
    if draft.level >= 2 and r.random() < 0.12:
        blocks.append(attempt(draft, GUARDS, Phrase(draft)))
    low, high = {1: (0, 1), 2: (1, 2), 3: (2, 3), 4: (2, 4), 5: (3, 5)}[draft.level]
    for _ in range(max(0, r.randint(low, high) - bool(head))):
        blocks.append(_any_statement(draft))
    if r.random() < (0.0, 0.1, 0.16, 0.16, 0.14, 0.12)[draft.level]:
        blocks.append(attempt(draft, ENDINGS, Phrase(draft)))
    else:
        blocks.append(f"return {_result(draft)}")
    body = "\n".join(blocks).replace("\n", "\n    ")
    signature = ", ".join(n for n, _ in params)
    return f"{head}def f({signature}):\n    {body}", tuple(t for _, t in params)


def _any_statement(draft: EverydayDraft) -> str:
    weights = {1: (6, 2, 0.5, 0.5), 2: (4, 3, 2.5, 1.5), 3: (3, 3, 4, 2), 4: (2.5, 3, 5, 2.5), 5: (2.5, 3, 5, 2.5)}
    kind = draft.rng.choices(("assign", "update", "loop", "single"), weights[draft.level])[0]
    if kind == "assign":
        letter = draft.rng.choices("swxndbt", (6, 4, 3, 4, 2, 0.5, 0.4))[0]
        return _statement(draft, (f"<+{letter}> = @{letter}",))
    return _statement(draft, {"update": UPDATES, "loop": LOOPS, "single": SINGLE}[kind])


def _statement(draft: EverydayDraft, patterns: tuple[str, ...]) -> str:
    phrase = Phrase(draft)
    text = attempt(draft, patterns, phrase, 2 if draft.level >= 3 and draft.rng.random() < 0.3 else 1)
    phrase.settle()
    return text


def _result(draft: EverydayDraft) -> str:
    """Return the expression after ``return``: mostly a variable not read yet, or an expression of its type."""
    r = draft.rng
    fresh = [v for v in draft.scope.fresh if v in draft.scope.types]
    if r.random() < 0.2:
        return attempt(draft, FINALS, Phrase(draft))
    if fresh and r.random() < 0.75:
        letter = LETTER_OF[draft.scope.types[fresh[-1]]]
        if draft.level > 1 and r.random() < 0.5:
            return fresh[-1]
    else:
        letter = r.choices("snbwxd", (5, 3, 1.2, 3, 2.5, 1.5))[0]
    return attempt(draft, EXPRESSIONS[letter], Phrase(draft))
