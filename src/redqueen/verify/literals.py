"""Canonical literals: a bounded, linear-time reader of plain Python values that never evaluates anything.

The judge reads every text that came out of a child, and every answer that a student wrote, with this reader, and
compares the canonical texts it returns. Identity is by type and value (``True``, ``1`` and ``1.0`` differ; ``-0.0`` and
``0.0`` differ), sets and dicts do not depend on the order in which they were written, and nothing is ever cut short.

Plain values: int, float, bool, str, None, and list, tuple, dict and set of them. The ``wide`` reader also knows bytes
and the infinities, which a program may return to whoever runs it but which are no part of a task; the ``loose``
reader knows complex numbers as well, which a few benchmarks use. NaN is never read.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable

MAX_CHARS = 65_536
"""Longest text that is read, in characters (ours)."""
MAX_DEPTH = 100
"""Deepest nesting of brackets (ours)."""
MAX_DIGITS = 4_300
"""Most digits of one number: the interpreter's own limit for int <-> str."""


class LiteralError(ValueError):
    """The text is not a plain literal within the bounds. ``too_large`` tells a bound from a mistake."""

    def __init__(self, message: str, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


_BLANK = re.compile(r"(?:[ \t\r\n\f]+|#[^\n]*)*")
_NUMBER = re.compile(
    r"(?P<base>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)"
    r"|(?P<float>(?:[0-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
    r"|[0-9](?:_?[0-9])*\.(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
    r"|[0-9](?:_?[0-9])*[eE][+-]?[0-9](?:_?[0-9])*)"
    r"|(?P<int>[1-9](?:_?[0-9])*|0(?:_?0)*)"
)
_FLOAT = r"(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?"
_COMPLEX = re.compile(rf"[+-]?(?:{_FLOAT} ?[+-] ?)?{_FLOAT}[jJ](?![\w.])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRING = re.compile(
    r"(?P<prefix>[rRuUbB]{0,2})(?:"
    r"'''(?P<a>[^'\\]*(?:(?:\\.|'{1,2}(?!'))[^'\\]*)*)'''"
    r'|"""(?P<b>[^"\\]*(?:(?:\\.|"{1,2}(?!"))[^"\\]*)*)"""'
    r"|'(?P<c>[^'\\\n]*(?:\\.[^'\\\n]*)*)'"
    r'|"(?P<d>[^"\\\n]*(?:\\.[^"\\\n]*)*)")',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v",
}  # fmt: skip

# A value on its way through the reader: its canonical text, and the key under which a set or a dict would store it
# (numbers that are equal across types share one key, as they do in Python); "" marks what cannot be hashed.
_Value = tuple[str, str]


def canonical(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = False, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of one literal.

    ``keep_order`` leaves the entries of sets and dicts in the order they were written (for inputs, where a program
    may depend on it). Time is linear in the text for a bounded depth. Raises ``LiteralError``.
    """
    reader = _Reader(text, wide, loose, keep_order, max_chars)
    first = reader.value(0)[0]
    if reader.pos == len(text):
        return first
    shown = [first]
    while reader.take(",") and reader.pos < len(text):  # a tuple without its brackets, as Python reads it
        shown.append(reader.value(1)[0])
    reader.expect_end()
    return f"({first},)" if len(shown) == 1 else "(" + ", ".join(shown) + ")"


def canonical_args(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = True, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of an argument list, as it stands between the brackets of a call.

    Positional and keyword arguments, every value a literal; ``""`` is the empty list. Raises ``LiteralError``.
    """
    reader = _Reader(text, wide, loose, keep_order, max_chars)
    reader.infinite = loose  # a caller cannot write it, but a benchmark's call may hand it on
    return reader.arguments()


def is_canonical(text: str, wide: bool = False, max_chars: int = MAX_CHARS) -> bool:
    """Tell whether ``text`` is a literal in exactly its canonical form."""
    try:
        return canonical(text, wide, max_chars=max_chars) == text
    except LiteralError:
        return False


class _Reader:
    """One pass over one text: ``pos`` only ever moves forward."""

    def __init__(self, text: str, wide: bool, loose: bool, keep_order: bool, max_chars: int) -> None:
        if len(text) > max_chars:
            raise LiteralError(f"longer than {max_chars} characters", too_large=True)
        if "\0" in text:
            raise LiteralError("a NUL character")
        self.text = text
        self.wide = wide or loose
        self.loose = loose
        self.infinite = self.wide
        self.keep_order = keep_order
        self.pos = 0
        self.skip()

    def skip(self) -> None:
        match = _BLANK.match(self.text, self.pos)
        if match:
            self.pos = match.end()

    def peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def take(self, char: str) -> bool:
        """Step over ``char`` and the blanks after it when it comes next."""
        if self.text[self.pos : self.pos + 1] != char:
            return False
        self.pos += 1
        self.skip()
        return True

    def fail(self) -> LiteralError:
        return LiteralError(f"not a plain literal at character {self.pos}")

    def expect_end(self) -> None:
        if self.pos != len(self.text):
            raise self.fail()

    def value(self, depth: int) -> _Value:
        char = self.peek()
        if char in _OPENERS and char:
            if depth >= MAX_DEPTH:
                raise LiteralError(f"nested deeper than {MAX_DEPTH}", too_large=True)
            self.pos += 1
            self.skip()
            return _OPENERS[char](self, depth + 1)
        if (char and char in "+-.") or "0" <= char <= "9":
            return self.complex_number() if self.loose else self.number()
        match = _STRING.match(self.text, self.pos)
        if match:
            return self.strings(match)
        return self.word()

    def complex_number(self) -> _Value:
        """A number that may be imaginary, or be followed by an imaginary part."""
        match = _COMPLEX.match(self.text, self.pos)
        if match is None:
            return self.number()
        self.pos = match.end()
        self.skip()
        text = repr(complex(match.group().replace(" ", "")))
        return text, text

    def number(self) -> _Value:
        sign = self.peek() if self.peek() in ("+", "-") else ""
        if sign:
            self.pos += 1
            self.skip()
        minus = "-" if sign == "-" else ""
        match = _NUMBER.match(self.text, self.pos)
        if match is None:
            if self.infinite and self.text.startswith("inf", self.pos):
                self.pos += 3
                self.skip()
                return minus + "inf", minus + "inf"
            raise self.fail()
        digits = match.group()
        if len(digits) > MAX_DIGITS:
            raise LiteralError(f"a number of more than {MAX_DIGITS} digits", too_large=True)
        self.pos = match.end()
        if _NAME.match(self.text, self.pos):
            raise self.fail()
        self.skip()
        if match.lastgroup == "float":
            return _float_value(minus + digits.replace("_", ""))
        text = digits.replace("_", "")
        if match.lastgroup == "base":
            text = str(int(text, 0))
        elif text[0] == "0":
            text = "0"
        text = minus + text if text != "0" else text
        return text, text

    def strings(self, match: re.Match[str] | None) -> _Value:
        """One string or bytes literal, or several in a row, which Python joins."""
        parts: list[str] = []
        is_bytes = None
        while match:
            prefix = match["prefix"].lower()
            if prefix not in ("", "r", "u", "b", "rb", "br") or is_bytes not in (None, "b" in prefix):
                raise self.fail()
            is_bytes = "b" in prefix
            body = next(group for group in match.group("a", "b", "c", "d") if group is not None)
            parts.append(body if "r" in prefix else _unescape(body, is_bytes))
            self.pos = match.end()
            self.skip()
            match = _STRING.match(self.text, self.pos)
        joined = "".join(parts)
        if not is_bytes:
            text = repr(joined)
            return text, text
        if not self.wide:
            raise LiteralError("bytes are no part of a task")
        if not joined.isascii() and any(ord(char) > 255 for char in joined):
            raise self.fail()
        text = repr(joined.encode("latin-1"))
        return text, text

    def word(self) -> _Value:
        match = _NAME.match(self.text, self.pos)
        name = match.group() if match else ""
        if match is None or (name not in _WORDS and not (self.infinite and name == "inf")):
            raise self.fail()
        self.pos = match.end()
        self.skip()
        if name == "set":
            if not (self.take("(") and self.take(")")):
                raise self.fail()
            return "set()", ""
        return name, _WORDS.get(name, name)

    def items(self, closer: str, depth: int) -> tuple[list[_Value], bool]:
        """Values up to ``closer``; the flag tells whether any comma was seen."""
        found: list[_Value] = []
        comma = False  # whether one stands after the last value read
        any_comma = False
        while not self.take(closer):
            if found and not comma:
                raise self.fail()
            found.append(self.value(depth))
            comma = self.take(",")
            any_comma = any_comma or comma
        return found, any_comma

    def list_(self, depth: int) -> _Value:
        found, _ = self.items("]", depth)
        return "[" + ", ".join([text for text, _ in found]) + "]", ""

    def tuple_(self, depth: int) -> _Value:
        found, comma = self.items(")", depth)
        if len(found) == 1 and not comma:
            return found[0]
        text = ", ".join([text for text, _ in found])
        key = "(" + ",".join([key for _, key in found]) + ")" if all(key for _, key in found) else ""
        return (f"({text},)" if len(found) == 1 else f"({text})"), key

    def braces(self, depth: int) -> _Value:
        if self.take("}"):
            return "{}", ""
        entries: dict[str, str] = {}
        first = self.value(depth)
        is_dict = self.peek() == ":"
        values: dict[str, str] = {}
        entry: _Value | None = first
        while entry is not None:
            text, key = entry
            if not key:
                raise LiteralError("a value that cannot be hashed in a set or as a key")
            entries.setdefault(key, text)
            if is_dict:
                if not self.take(":"):
                    raise self.fail()
                values[key] = self.value(depth)[0]
            more = self.take(",")
            entry = None
            if not self.take("}"):
                if not more:
                    raise self.fail()
                entry = self.value(depth)
        shown = [f"{text}: {values[key]}" for key, text in entries.items()] if is_dict else list(entries.values())
        if not self.keep_order:
            keys = list(entries.values())
            shown = [shown[i] for i in sorted(range(len(shown)), key=keys.__getitem__)]
        return "{" + ", ".join(shown) + "}", ""

    def arguments(self) -> str:
        shown: list[str] = []
        names: set[str] = set()
        comma = False
        while self.pos < len(self.text):
            if shown and not comma:
                raise self.fail()
            name = self.keyword_name()
            if name:
                if name in names:
                    raise LiteralError("a keyword argument given twice")
                names.add(name)
                shown.append(f"{name}={self.value(0)[0]}")
            elif names:
                raise LiteralError("a positional argument after a keyword argument")
            else:
                shown.append(self.value(0)[0])
            comma = self.take(",")
        return ", ".join(shown)

    def keyword_name(self) -> str:
        """Step over ``name =`` when it comes next and return the name, else return ""."""
        match = _NAME.match(self.text, self.pos)
        if match is None or keyword.iskeyword(match.group()):
            return ""
        start = self.pos
        self.pos = match.end()
        self.skip()
        if self.peek() == "=" and self.text[self.pos + 1 : self.pos + 2] != "=":
            self.take("=")
            return match.group()
        self.pos = start
        return ""


_OPENERS: dict[str, Callable[[_Reader, int], _Value]] = {"[": _Reader.list_, "(": _Reader.tuple_, "{": _Reader.braces}
_WORDS = {"True": "1", "False": "0", "None": "None", "set": "set"}


def _float_value(text: str) -> _Value:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise LiteralError("a float that is not finite")
    key = str(int(number)) if number.is_integer() else repr(number)
    return repr(number), key


def _unescape(body: str, is_bytes: bool) -> str:
    if "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[code]
        if code[0] in "01234567":
            return chr(int(code, 8) & 255 if is_bytes else int(code, 8))
        if len(code) == 3 or (len(code) > 1 and not is_bytes):
            number = int(code[1:], 16)
            if number > 0x10FFFF:
                raise LiteralError("a character outside Unicode")
            return chr(number)
        if code in ("x", "N") or (code in ("u", "U") and not is_bytes):
            raise LiteralError("a string escape that is not read here")
        return match.group()

    return _ESCAPE.sub(replace, body)
