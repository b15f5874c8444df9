"""One pass over the text of a literal or of an argument list: recursive descent, and nothing is ever evaluated."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable

from redqueen_sandbox.tokens import (
    BLANK,
    BLANK_IN_LINE,
    COMPLEX,
    NAME,
    NUMBER,
    STRING,
    LiteralError,
    complex_value,
    float_value,
    int_text,
    string_body,
)

MAX_DEPTH = 100
"""Deepest nesting of brackets (ours)."""

Value = tuple[str, str]
"""A value in the reader: its canonical text, and the key under which a set or a dict would store it
(numbers that are equal across types share one key, as they do in Python); "" marks what cannot be hashed."""


class Reader:
    """One pass over one text: ``pos`` only ever moves forward. Its methods raise ``LiteralError``."""

    def __init__(self, text: str, wide: bool, loose: bool, keep_order: bool, max_chars: int) -> None:
        if len(text) > max_chars:
            raise LiteralError(f"longer than {max_chars} characters", too_large=True)
        if "\0" in text:
            raise LiteralError("a NUL character")
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise LiteralError("half a character")
        self.text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.wide = wide or loose
        self.loose = loose
        self.infinite = self.wide
        self.keep_order = keep_order
        self.pos = 0
        self.deepest = 0
        self.blank = BLANK
        self.skip()

    def whole(self) -> str:
        """The one literal that the text is."""
        self.blank = BLANK_IN_LINE
        first = self.value(0)[0]
        shown = [first]
        comma = False
        while self.take(","):  # a tuple without its brackets, as Python reads it
            comma = True
            if self.deepest >= MAX_DEPTH:
                raise _too_deep()
            if self.at_end():
                break
            shown.append(self.value(1)[0])
        if not self.at_end():
            raise self.fail()
        if not comma:
            return first
        return f"({first},)" if len(shown) == 1 else "(" + ", ".join(shown) + ")"

    def skip(self) -> None:
        if self.text[self.pos : self.pos + 1] in _MAY_BE_BLANK:
            match = self.blank.match(self.text, self.pos)
            if match:
                self.pos = match.end()

    def at_end(self) -> bool:
        """Tell whether nothing but blank lines and remarks is left."""
        match = BLANK.match(self.text, self.pos)
        return (match.end() if match else self.pos) == len(self.text)

    def peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def take(self, char: str) -> bool:
        """Step over ``char`` and the blanks after it when it comes next."""
        if self.text[self.pos : self.pos + 1] != char:
            return False
        self.pos += 1
        self.skip()
        return True

    def close(self, closer: str) -> bool:
        """Step over a closing bracket when it comes next; what may follow it is for the one who opened it."""
        if self.text[self.pos : self.pos + 1] != closer:
            return False
        self.pos += 1
        return True

    def fail(self) -> LiteralError:
        return LiteralError(f"not a plain literal at character {self.pos}")

    def value(self, depth: int) -> Value:
        char = self.peek()
        if char in _OPENERS and char:
            return self.bracketed(_OPENERS[char], depth)
        if self.loose and self.text.startswith("...", self.pos):
            self.pos += 3
            self.skip()
            return "...", "..."
        if "0" <= char <= "9" and not self.loose:
            return self.number("")
        if char and char in "+-.0123456789":
            return self.signed(depth)
        match = STRING.match(self.text, self.pos)
        if match:
            return self.strings(match)
        return self.word(depth)

    def bracketed(self, read: Callable[[Reader, int], Value], depth: int) -> Value:
        """Step into a bracket, read what it holds with ``read``, and step over the blanks after it."""
        if depth >= MAX_DEPTH:
            raise _too_deep()
        self.deepest = max(self.deepest, depth + 1)
        outside = self.blank
        self.blank = BLANK
        self.pos += 1
        self.skip()
        found = read(self, depth + 1)
        self.blank = outside
        self.skip()
        return found

    def signed(self, depth: int) -> Value:
        """A number with or without a sign; brackets may stand between the two."""
        if self.loose:
            match = COMPLEX.match(self.text, self.pos)
            if match:
                self.pos = match.end()
                self.skip()
                return complex_value(match.group())
        sign = self.peek()
        if sign not in ("+", "-"):
            return self.number("")
        self.pos += 1
        self.skip()
        return self.operand("-" if sign == "-" else "", depth)

    def operand(self, minus: str, depth: int) -> Value:
        """What a sign stands before: a number, or one in brackets."""
        if self.peek() != "(":
            return self.number(minus)

        def read(_: Reader, inner: int) -> Value:
            found = self.operand(minus, inner)
            if not self.close(")"):
                raise self.fail()
            return found

        return self.bracketed(read, depth)

    def number(self, minus: str) -> Value:
        """A number without a sign; ``minus`` stood before it."""
        match = NUMBER.match(self.text, self.pos)
        if match is None:
            if self.infinite and self.text.startswith("inf", self.pos):
                return self.infinity(minus)
            raise self.fail()
        self.pos = match.end()
        after = self.text[self.pos : self.pos + 1]
        if after.isalpha() or after == "_":
            raise self.fail()
        self.skip()
        digits = match.group()
        if match.lastgroup == "float":
            return float_value(minus + digits.replace("_", ""))
        text = int_text(digits, match.lastgroup == "base")
        text = minus + text if text != "0" else text
        return text, text

    def infinity(self, minus: str) -> Value:
        match = NAME.match(self.text, self.pos)
        if match is None or match.group() != "inf":
            raise self.fail()
        self.pos = match.end()
        self.skip()
        return minus + "inf", minus + "inf"

    def strings(self, match: re.Match[str] | None) -> Value:
        """One string or bytes literal, or several in a row, which Python joins."""
        parts: list[str] = []
        is_bytes = None
        while match:
            part, of_bytes = string_body(match)
            if is_bytes not in (None, of_bytes):
                raise self.fail()
            is_bytes = of_bytes
            parts.append(part)
            self.pos = match.end()
            self.skip()
            match = STRING.match(self.text, self.pos)
        joined = "".join(parts)
        if is_bytes and not self.wide:
            raise LiteralError("bytes are no part of a task")
        text = repr(joined.encode("latin-1") if is_bytes else joined)
        return text, text

    def word(self, depth: int) -> Value:
        match = NAME.match(self.text, self.pos)
        name = match.group() if match else ""
        if name == "inf" and self.infinite:
            return self.infinity("")
        if match is None or name not in _WORDS:
            raise self.fail()
        self.pos = match.end()
        self.skip()
        if name in ("set", "frozenset"):
            if self.peek() != "(":
                raise self.fail()
            return self.bracketed(Reader.no_members if name == "set" else Reader.frozen_members, depth)
        return name, _WORDS[name]

    def no_members(self, depth: int) -> Value:
        if not self.close(")"):
            raise self.fail()
        return "set()", ""

    def frozen_members(self, depth: int) -> Value:
        """What stands between the brackets of ``frozenset(...)``: nothing, or a set or a list of what it holds."""
        found: list[Value] = []
        if self.peek() in ("{", "["):
            closer = "}" if self.peek() == "{" else "]"

            def read(reader: Reader, inner: int) -> Value:
                found.extend(reader.items(closer, inner)[0])
                return "", ""

            self.bracketed(read, depth)
            self.take(",")
        if not self.close(")"):
            raise self.fail()
        members: dict[str, str] = {}
        for text, key in found:
            members.setdefault(_hashable(key), text)
        shown = list(members.values()) if self.keep_order else sorted(members.values())
        text = "frozenset({" + ", ".join(shown) + "})" if shown else "frozenset()"
        return text, "frozenset(" + ",".join(sorted(members)) + ")"

    def items(self, closer: str, depth: int) -> tuple[list[Value], bool]:
        """Values up to ``closer``; the flag tells whether any comma was seen."""
        found: list[Value] = []
        comma = False  # whether one stands after the last value read
        any_comma = False
        while not self.close(closer):
            if found and not comma:
                raise self.fail()
            found.append(self.value(depth))
            comma = self.take(",")
            any_comma = any_comma or comma
        return found, any_comma

    def list_(self, depth: int) -> Value:
        found, _ = self.items("]", depth)
        return "[" + ", ".join([text for text, _ in found]) + "]", ""

    def tuple_(self, depth: int) -> Value:
        found, comma = self.items(")", depth)
        if len(found) == 1 and not comma:
            return found[0]
        text = ", ".join([text for text, _ in found])
        key = "(" + ",".join([key for _, key in found]) + ")" if all(key for _, key in found) else ""
        return (f"({text},)" if len(found) == 1 else f"({text})"), key

    def braces(self, depth: int) -> Value:
        if self.close("}"):
            return "{}", ""
        entries: dict[str, str] = {}
        first = self.value(depth)
        is_dict = self.peek() == ":"
        values: dict[str, str] = {}
        entry: Value | None = first
        while entry is not None:
            text, key = entry
            entries.setdefault(_hashable(key), text)
            if is_dict:
                if not self.take(":"):
                    raise self.fail()
                values[key] = self.value(depth)[0]
            more = self.take(",")
            entry = None
            if not self.close("}"):
                if not more:
                    raise self.fail()
                entry = self.value(depth)
        shown = [f"{text}: {values[key]}" for key, text in entries.items()] if is_dict else list(entries.values())
        if not self.keep_order:
            keys = list(entries.values())
            shown = [shown[i] for i in sorted(range(len(shown)), key=keys.__getitem__)]
        return "{" + ", ".join(shown) + "}", ""

    def arguments(self) -> tuple[list[str], dict[str, str]]:
        """The arguments of which the whole text consists, positional and by name."""
        self.infinite = self.loose  # a caller cannot write it, but a benchmark's call may hand it on
        positional: list[str] = []
        named: dict[str, str] = {}
        comma = True
        while self.pos < len(self.text):
            if not comma:
                raise self.fail()
            name = self.keyword_name()
            if name in named:
                raise LiteralError("a keyword argument given twice")
            if name:
                named[name] = self.value(0)[0]
            elif named:
                raise LiteralError("a positional argument after a keyword argument")
            else:
                positional.append(self.value(0)[0])
            comma = self.take(",")
        return positional, named

    def keyword_name(self) -> str:
        """Step over ``name =`` when it comes next and return the name as Python spells it, else return ""."""
        match = NAME.match(self.text, self.pos)
        if match is None or not match.group().isidentifier():
            return ""
        name = unicodedata.normalize("NFKC", match.group())
        if keyword.iskeyword(name) or name == "__debug__":
            return ""
        start = self.pos
        self.pos = match.end()
        self.skip()
        if self.peek() == "=" and self.text[self.pos + 1 : self.pos + 2] != "=":
            self.take("=")
            return name
        self.pos = start
        return ""


_OPENERS: dict[str, Callable[[Reader, int], Value]] = {"[": Reader.list_, "(": Reader.tuple_, "{": Reader.braces}
_MAY_BE_BLANK = frozenset(" \t\n\f#")
_WORDS = {"True": "1", "False": "0", "None": "None", "set": "", "frozenset": ""}


def _too_deep() -> LiteralError:
    return LiteralError(f"nested deeper than {MAX_DEPTH}", too_large=True)


def _hashable(key: str) -> str:
    if not key:
        raise LiteralError("a value that cannot be hashed in a set or as a key")
    return key
