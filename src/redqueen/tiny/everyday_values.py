"""Random arguments of the everyday world: words, phrases, codes, lists and dictionaries as people pass them."""

from __future__ import annotations

from random import Random

from redqueen.tiny.values import WORDS, Type

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
    """Return one to four letters, at times with a digit."""
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
