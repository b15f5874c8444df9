"""The tokens of plain literals, as Python reads them: numbers, strings and their escapes, and what may stand between.

Patterns name ASCII classes, so no digit or blank of another script is taken for one of ours.
"""

from __future__ import annotations

import re

MAX_DIGITS = 4_300
"""Most decimal digits of one integer, in whatever base it is written: the interpreter's own limit for int <-> str."""

_TOO_BIG = 10**MAX_DIGITS


class LiteralError(ValueError):
    """The text is not a plain literal within the bounds. ``too_large`` tells a bound from a mistake."""

    def __init__(self, message: str, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


BLANK = re.compile(r"(?:[ \t\n\f]+|#[^\n]*)*")
"""What may stand between tokens inside brackets."""
BLANK_IN_LINE = re.compile(r"[ \t\f]*(?:#[^\n]*)?")
"""What may stand between tokens outside of brackets, where a line's end ends the expression."""
NUMBER = re.compile(
    r"(?P<base>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)"
    r"|(?P<float>(?:[0-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
    r"|[0-9](?:_?[0-9])*\.(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
    r"|[0-9](?:_?[0-9])*[eE][+-]?[0-9](?:_?[0-9])*)"
    r"|(?P<int>[1-9](?:_?[0-9])*|0(?:_?0)*)"
)
_FLOAT = r"(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?"
COMPLEX = re.compile(rf"[+-]?(?:{_FLOAT} ?[+-] ?)?{_FLOAT}[jJ](?![\w.])")
NAME = re.compile(r"[^\W\d]\w*")
"""A name; whether it may name an argument is ``str.isidentifier``'s word."""
# Three quotes in a row always open a long string: a short one does not begin with them.
STRING = re.compile(
    r"(?P<prefix>[rRuUbB]{0,2})(?:"
    r"'''(?P<a>[^'\\]*(?:(?:\\.|'{1,2}(?!'))[^'\\]*)*)'''"
    r'|"""(?P<b>[^"\\]*(?:(?:\\.|"{1,2}(?!"))[^"\\]*)*)"""'
    r"|(?!''')'(?P<c>[^'\\\n]*(?:\\.[^'\\\n]*)*)'"
    r'|(?!""")"(?P<d>[^"\\\n]*(?:\\.[^"\\\n]*)*)")',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v",
}  # fmt: skip


def int_text(digits: str, has_base: bool) -> str:
    """The decimal text of an integer's token. Raises ``LiteralError`` when its value has too many digits."""
    digits = digits.replace("_", "")
    if has_base:
        value = int(digits, 0)  # linear: the bases are powers of two
        if value < _TOO_BIG:
            return str(value)
    elif len(digits) <= MAX_DIGITS:
        return "0" if digits[0] == "0" else digits
    raise LiteralError(f"a number of more than {MAX_DIGITS} digits", too_large=True)


def float_value(text: str) -> tuple[str, str]:
    """The canonical text and the key of a float. Raises ``LiteralError`` when it is not finite."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise LiteralError("a float that is not finite")
    return repr(number), _float_key(number)


def complex_value(text: str) -> tuple[str, str]:
    """The canonical text and the key of a complex number. Raises ``LiteralError`` when it is not finite."""
    number = complex(text.replace(" ", ""))
    if abs(number.real) == float("inf") or abs(number.imag) == float("inf"):
        raise LiteralError("a complex number that is not finite")
    return repr(number), repr(number + 0) if number.imag else _float_key(number.real)


def _float_key(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def string_body(match: re.Match[str]) -> tuple[str, bool]:
    """The characters that a string token means, and whether they are bytes. Raises ``LiteralError``."""
    prefix = match["prefix"].lower()
    if prefix not in ("", "r", "u", "b", "rb", "br"):
        raise LiteralError("a string prefix that Python does not know")
    is_bytes = "b" in prefix
    body = next(group for group in match.group("a", "b", "c", "d") if group is not None)
    if is_bytes and not body.isascii():
        raise LiteralError("bytes are written in ASCII")
    return (body if "r" in prefix else _unescape(body, is_bytes)), is_bytes


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
        if code == "x" or (code in ("u", "U", "N") and not is_bytes):
            raise LiteralError("a string escape that is not read here")
        return match.group()

    return _ESCAPE.sub(replace, body)
