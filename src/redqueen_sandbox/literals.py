"""Canonical literals: a bounded reader of plain Python values that never evaluates anything.

The judge reads every output of a child, and every answer that a student wrote, with this reader, and compares the
canonical texts it returns. Two values are equal if type and value are (``True``, ``1`` and ``1.0`` differ; ``-0.0`` and
``0.0`` differ). Sets and dicts are equal in any order of their elements. Nothing is ever truncated.

A first scan bounds the nesting and refuses characters that no literal contains. Then the text is parsed into a syntax
tree, and the tree is written as canonical text. The time is linear in the length of the text.

Plain values: int, float, bool, str, None, and list, tuple, dict, set and frozenset of them. The ``wide`` reader also
accepts bytes and the infinities, which a program may return to a caller of ``run`` but which are not allowed in a task;
the ``loose`` reader, for unit tests, also accepts the other values that ``inside/encode.py`` writes there: complex
numbers, NaN, decimals, dates and the like.

``ast.literal_eval`` reads an accepted text to the same value, except ``frozenset(...)``; blank lines at the ends are
ignored. The reader refuses some texts that Python accepts: complex numbers, bytes and ``...`` (except as above), floats
beyond the largest, backslashes at the end of a line, and values beyond a bound.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TypeVar

from redqueen_sandbox.guard import note_fault
from redqueen_sandbox.inside.equal import VALUES

MAX_CHARS = 65_536
"""Maximum length of a text, in characters (ours)."""
MAX_DEPTH = 100
"""Maximum nesting depth of brackets (ours)."""
MAX_DIGITS = 4_300
"""Maximum decimal digits of one integer, written in any base: the interpreter's own limit for int <-> str."""

_TOO_BIG = 10**MAX_DIGITS
_FILE_NAME = "<literal>"
warnings.filterwarnings("ignore", module=_FILE_NAME)  # about unknown escape sequences
_CALLS = {"Held", *VALUES}
_BLANKS = " \t\n\f"
_COMMENTS = re.compile(r"(?:[ \t\n\f]|#[^\n]*\n)+")
# Strings and comments. A quote that begins no complete string matches the rest of the text, to keep the time linear.
STRING = re.compile(
    r"'''[^'\\]*(?:(?:\\.|'{1,2}(?!'))[^'\\]*)*'''"
    r'|"""[^"\\]*(?:(?:\\.|"{1,2}(?!"))[^"\\]*)*"""'
    r"|(?!''')'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r'|(?!""")"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|#[^\n]*|(?P<rest>['\"].*)",
    re.DOTALL,
)
_BRACKET = re.compile(r"[\[\](){}]")
_ALLOWED = re.compile(r"[\w\s.,:+=\-\[\](){}]*")
_TOO_MANY_DIGITS = re.compile(rf"(?<![\w.])[0-9](?:_?[0-9]){{{MAX_DIGITS}}}")

Read = TypeVar("Read")
Value = tuple[str, str]
"""A value in the reader: its canonical text, and a key that is equal for values that Python stores as one set element
(equal numbers of different types share a key); "" for a value that cannot be hashed."""


class LiteralError(ValueError):
    """The text is not a plain literal within the bounds. ``too_large``: it exceeds a bound."""

    def __init__(self, message: str, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


def canonical(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = False, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of one literal.

    ``keep_order`` leaves the entries of sets and dicts in the order they were written (for inputs: a program may
    depend on it). Raises only ``LiteralError``.
    """

    def read() -> str:
        source = _checked(text, max_chars).strip(_BLANKS)
        if comments := _COMMENTS.match(source):
            source = source[comments.end() :]
        depth = _scan(source)
        tree = _parsed(source)
        found = _Writer(wide or loose, loose, wide or loose, keep_order).value(tree)[0]
        if depth == MAX_DEPTH and isinstance(tree, ast.Tuple):  # the writer may have added brackets
            _scan(found)
        return found

    return _guarded(read)


def canonical_args(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = True, max_chars: int = MAX_CHARS
) -> str:
    """Return the canonical text of an argument list: the text between the brackets of a call.

    Arguments are positional or keyword, and every value is a literal; ``""`` is the empty list. Raises only
    ``LiteralError``.
    """
    positional, named = read_call(text, wide, loose, keep_order, max_chars)
    return ", ".join([*positional, *[f"{name}={value}" for name, value in named.items()]])


def read_call(
    text: str, wide: bool = False, loose: bool = False, keep_order: bool = False, max_chars: int = MAX_CHARS
) -> tuple[list[str], dict[str, str]]:
    """Return the canonical texts of an argument list: the positional arguments, and the keyword arguments by name.

    Raises only ``LiteralError``.
    """

    def read() -> tuple[list[str], dict[str, str]]:
        source = _checked(text, max_chars)
        _scan(source)
        call = _parsed(f"f({source}\n)")
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise LiteralError("not an argument list")
        # An infinity cannot be written in a call, but a unit test may pass one on.
        writer = _Writer(wide or loose, loose, loose, keep_order)
        names = [pair.arg or "" for pair in call.keywords]
        if len(set(names)) < len(names) or "" in names or "__debug__" in names:
            raise LiteralError("a keyword argument given twice, or without a name")
        positional = [writer.value(node)[0] for node in call.args]
        return positional, {name: writer.value(pair.value)[0] for name, pair in zip(names, call.keywords, strict=True)}

    return _guarded(read)


def is_canonical(text: str, wide: bool = False, max_chars: int = MAX_CHARS) -> bool:
    """Return whether ``text`` is a literal in exactly its canonical form."""
    try:
        return canonical(text, wide, max_chars=max_chars) == text
    except LiteralError:
        return False


def _guarded(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except LiteralError:
        raise
    except Exception as error:  # the judge's guard (see ``guard.py``): every text passes through here
        raise LiteralError(note_fault("literals", error)) from None


def _checked(text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise LiteralError(f"longer than {max_chars} characters", too_large=True)
    if "\0" in text or (not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)):
        raise LiteralError("a NUL character or half a character")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _scan(source: str) -> int:
    """Return the nesting depth of brackets. Raises ``LiteralError`` for text that no literal has outside strings."""
    bare = STRING.sub(r"\g<rest>", source)
    if not _ALLOWED.fullmatch(bare):
        raise LiteralError("not a plain literal")
    if len(bare) > MAX_DIGITS and _TOO_MANY_DIGITS.search(bare):
        raise LiteralError(f"a number of more than {MAX_DIGITS} digits", too_large=True)
    depth = deepest = 0
    for bracket in _BRACKET.findall(bare):
        if bracket in "[({":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
        if depth < 0 or depth > MAX_DEPTH:
            raise LiteralError(f"nested deeper than {MAX_DEPTH}, or not at all", too_large=depth > 0)
    return deepest


def _parsed(source: str) -> ast.expr:
    try:
        tree: ast.Expression = compile(source, _FILE_NAME, "eval", ast.PyCF_ONLY_AST, dont_inherit=True)  # type: ignore[assignment]
        return tree.body
    except (SyntaxError, ValueError):
        raise LiteralError("not a plain literal") from None
    except (RecursionError, MemoryError):  # for example many signs in a row
        raise LiteralError("nested too deeply", too_large=True) from None


class _Writer:
    """Writes a syntax tree as canonical text. Its methods raise ``LiteralError`` for a value that is not plain."""

    def __init__(self, wide: bool, loose: bool, infinite: bool, keep_order: bool) -> None:
        self.wide, self.loose, self.infinite, self.keep_order = wide, loose, infinite, keep_order

    def value(self, node: ast.expr) -> Value:
        kind = type(node)
        if kind is ast.Constant:
            return self.constant(node.value)  # type: ignore[attr-defined]
        if kind is ast.List:
            return "[" + ", ".join([self.value(item)[0] for item in node.elts]) + "]", ""  # type: ignore[attr-defined]
        if kind is ast.Dict:
            return self.dict_(node.keys, node.values)  # type: ignore[attr-defined]
        match node:
            case ast.Tuple(elts=items):
                return self.tuple_(items)
            case ast.Set(elts=items):
                return "{" + ", ".join(self.members(items).values()) + "}", ""
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return self.signed(operand, -1 if isinstance(sign, ast.USub) else 1)
            case ast.Name(id="inf") if self.infinite:
                return "inf", "inf"
            case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
                return "set()", ""
            case ast.Call(func=ast.Name(id="frozenset"), args=[] | [_] as given, keywords=[]):
                return self.frozen(given)
            case ast.Name(id="nan") if self.loose:
                return "nan", "nan"
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if self.loose and name in _CALLS:
                text = f"{name}({', '.join([self.value(item)[0] for item in given])})"
                return text, text
        raise LiteralError("not a plain literal")

    def constant(self, value: object) -> Value:
        kind = type(value)
        if kind is str:
            text = repr(value)
            return text, text
        if kind is int:
            if value >= _TOO_BIG:  # type: ignore[operator]
                raise LiteralError(f"a number of more than {MAX_DIGITS} digits", too_large=True)
            text = str(value)
            return text, text
        if kind is float:
            return _float(value)  # type: ignore[arg-type]
        if kind is bool or value is None:
            return repr(value), {True: "1", False: "0", None: "None"}[value]  # type: ignore[index]
        if kind is bytes:
            if not self.wide:
                raise LiteralError("bytes are no part of a task")
            return repr(value), repr(value)
        raise LiteralError("not a plain literal")

    def signed(self, operand: ast.expr, sign: int) -> Value:
        """Return a number with a sign."""
        minus = "-" if sign < 0 else ""
        match operand:
            case ast.Constant(value=float() as number):
                return _float(sign * number)
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                text = self.constant(number)[0]
                return (text, text) if text == "0" else (minus + text, minus + text)
            case ast.Name(id="inf") if self.infinite:
                return minus + "inf", minus + "inf"
        raise LiteralError("not a plain literal")

    def tuple_(self, items: Iterable[ast.expr]) -> Value:
        found = [self.value(item) for item in items]
        text = ", ".join([text for text, _ in found])
        key = "(" + ",".join([key for _, key in found]) + ")" if all(key for _, key in found) else ""
        return (f"({text},)" if len(found) == 1 else f"({text})"), key

    def members(self, items: Iterable[ast.expr]) -> dict[str, str]:
        """Return the texts of a set's elements by their keys, in canonical or (``keep_order``) written order."""
        found: dict[str, str] = {}
        for text, key in map(self.value, items):
            found.setdefault(_hashable(key), text)
        return found if self.keep_order else dict(sorted(found.items(), key=lambda pair: pair[1]))

    def frozen(self, given: list[ast.expr]) -> Value:
        items: list[ast.expr] = []
        if given and isinstance(given[0], ast.Set | ast.List):
            items = given[0].elts
        elif given and not (isinstance(given[0], ast.Dict) and not given[0].keys):
            raise LiteralError("not a plain literal")
        members = self.members(items)
        text = "frozenset({" + ", ".join(members.values()) + "})" if members else "frozenset()"
        return text, "frozenset(" + ",".join(sorted(members)) + ")"

    def dict_(self, keys: Iterable[ast.expr | None], values: Iterable[ast.expr]) -> Value:
        entries: dict[str, tuple[str, str]] = {}
        for key_node, value_node in zip(keys, values, strict=True):
            if key_node is None:
                raise LiteralError("not a plain literal")
            text, key = self.value(key_node)
            first = entries.get(_hashable(key), (text, ""))[0]
            entries[key] = first, self.value(value_node)[0]
        shown = list(entries.values()) if self.keep_order or len(entries) < 2 else sorted(entries.values())
        return "{" + ", ".join([f"{text}: {value}" for text, value in shown]) + "}", ""


def _float(number: float) -> Value:
    if number in (float("inf"), float("-inf")):
        raise LiteralError("a float that is not finite")
    return repr(number), _float_key(number)


def _float_key(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _hashable(key: str) -> str:
    if not key:
        raise LiteralError("a value that cannot be hashed in a set or as a key")
    return key
