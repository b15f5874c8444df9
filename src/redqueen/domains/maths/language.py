"""The formal language of the domain: an expression that is asked for, and the conditions that determine its value.

::

    statement  = expression [" where " condition {", " condition}]
    condition  = expression relation expression {relation expression}     relation: = != < <= > >=
               | name " in " expression ".." expression                   a whole number of a range
               | "prime(" expression ")"
    expression = sums, products, quotients, remainders (%) and powers (^) of numbers, names of one letter, calls of
                 ``FUNCTIONS``, sequences such as a(5), and sum, prod and count over ranges:
                 sum(k in 1..5, k^2)    count(j in 1..6, k in 1..6, j + k = 7)

Text that a model wrote is never evaluated as Python: this parser turns it into nested tuples of words and numbers in
linear time, and the sandbox computes with these tuples only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Node = tuple[Any, ...]
"""``("num", "2.5")``, ``("name", "x")``, ``("neg", a)``, ``("+", a, b)`` (and ``- * / % ^``), ``("call", function,
a...)``, ``("sum", binders, body)`` (and ``prod``), ``("count", binders, conditions)``; conditions are ``("rel", ops,
sides)``, ``("in", name, low, high)`` and ``("call", "prime", a)``; a statement is ``("ask", expression,
conditions)``."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1), "ceil": (1, 1), "choose": (2, 2), "digitsum": (1, 1), "divisors": (1, 1), "fact": (1, 1),
    "floor": (1, 1), "gcd": (2, 4), "lcm": (2, 4), "max": (2, 6), "min": (2, 6), "phi": (1, 1), "prime": (1, 1),
    "sigma": (1, 1), "sqrt": (1, 1),
}  # fmt: skip
"""Functions by name, with the minimum and maximum number of their arguments. ``divisors`` is the number of
divisors, ``sigma`` their sum, ``phi`` Euler's, ``digitsum`` the sum of the decimal digits; ``prime`` is a condition."""

MAX_CHARS, MAX_TOKENS, MAX_DEPTH, MAX_DIGITS, MAX_BINDERS = 400, 200, 24, 12, 3
"""Limits of a statement (ours): a statement beyond them is refused before it is computed."""

_TOKEN = re.compile(r" *(?:([0-9]+(?:\.[0-9]+)?)|([A-Za-z]+)|(\.\.|<=|>=|!=|[-=<>+*/%^(),]))", re.ASCII)
_SPELLINGS = {"**": "^", "==": "=", "−": "-", "×": "*", "·": "*", "≤": "<=", "≥": ">=", "≠": "!=", "\n": " "}
_RELATIONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_LEVELS = (("+", "-"), ("*", "/", "%"))
_QUANTIFIERS = ("sum", "prod", "count")
_WORDS = frozenset({"where", "in", *_QUANTIFIERS, *FUNCTIONS})


class StatementError(ValueError):
    """A text that is not a statement; the message is one short reason."""


def parse(text: str) -> Node:
    """Read a statement. Raises StatementError."""
    if len(text) > MAX_CHARS:
        raise StatementError(f"longer than {MAX_CHARS} characters")
    for spelling, ours in _SPELLINGS.items():
        text = text.replace(spelling, ours)
    parser = _Parser(_tokens(text))
    asked = parser.expression()
    conditions = parser.conditions() if parser.takes("where") else ()
    if parser.at < len(parser.tokens):
        raise StatementError(f"{parser.tokens[parser.at]!r} where the statement should end")
    return ("ask", asked, conditions)


def _tokens(text: str) -> list[str]:
    tokens, at, text = [], 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise StatementError(f"{text[at : at + 1]!r} is no sign of the language")
        token = found[0].strip()
        if found[1] and len(token.replace(".", "")) > MAX_DIGITS:
            raise StatementError(f"a number of more than {MAX_DIGITS} digits")
        if found[2] and len(token) > 1 and token not in _WORDS:
            raise StatementError(f"{token[:20]!r} is no word of the language")
        tokens.append(token)
        at = found.end()
        if len(tokens) > MAX_TOKENS:
            raise StatementError(f"more than {MAX_TOKENS} words and signs")
    return tokens


class _Parser:
    """Recursive descent over tokens; ``depth`` bounds the recursion."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def next_is(self, *wanted: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] in wanted

    def takes(self, *wanted: str) -> str:
        """Take the next token if it is one of these, else return ""."""
        if not self.next_is(*wanted):
            return ""
        self.at += 1
        return self.tokens[self.at - 1]

    def needs(self, wanted: str) -> None:
        if not self.takes(wanted):
            found = repr(self.tokens[self.at]) if self.at < len(self.tokens) else "the end"
            raise StatementError(f"{found} where {wanted!r} should be")

    def conditions(self) -> tuple[Node, ...]:
        found = [self.condition()]
        while self.takes(","):
            found.append(self.condition())
        return tuple(found)

    def condition(self) -> Node:
        if self.is_binder():
            return self.binder()
        sides, ops = [self.expression()], []
        while op := self.takes(*_RELATIONS):
            ops.append(op)
            sides.append(self.expression())
        if ops:
            return ("rel", tuple(ops), tuple(sides))
        if sides[0][:2] == ("call", "prime"):
            return sides[0]
        raise StatementError("a condition that compares nothing")

    def is_binder(self) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == "in" and self.tokens[self.at].isalpha()

    def binder(self) -> Node:
        name = self.name()
        self.needs("in")
        low = self.expression()
        self.needs("..")
        return ("in", name, low, self.expression())

    def name(self) -> str:
        token = self.tokens[self.at]
        if len(token) != 1:
            raise StatementError(f"{token!r} is no name of one letter")
        self.at += 1
        return token

    def expression(self, level: int = 0) -> Node:
        if level == len(_LEVELS):
            return self.signed()
        found = self.expression(level + 1)
        while op := self.takes(*_LEVELS[level]):
            found = (op, found, self.expression(level + 1))
        return found

    def signed(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise StatementError(f"nested deeper than {MAX_DEPTH}")
        found: Node = ("neg", self.signed()) if self.takes("-") else self.power()
        self.depth -= 1
        return found

    def power(self) -> Node:
        base = self.atom()
        return ("^", base, self.signed()) if self.takes("^") else base

    def atom(self) -> Node:
        if self.takes("("):
            found = self.expression()
            self.needs(")")
            return found
        if self.at >= len(self.tokens):
            raise StatementError("it ends where a number or a name should be")
        token = self.tokens[self.at]
        if token[0].isdigit():
            self.at += 1
            return ("num", token)
        if token in _QUANTIFIERS:
            return self.quantified()
        if token in FUNCTIONS:
            return self.call()
        if not token.isalpha() or len(token) > 1:
            raise StatementError(f"{token!r} where a number or a name should be")
        self.at += 1
        if self.takes("("):
            index = self.expression()
            self.needs(")")
            return ("call", token, index)
        return ("name", token)

    def call(self) -> Node:
        name = self.tokens[self.at]
        self.at += 1
        self.needs("(")
        arguments = [self.expression()]
        while self.takes(","):
            arguments.append(self.expression())
        self.needs(")")
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise StatementError(f"{name} of {len(arguments)} arguments")
        return ("call", name, *arguments)

    def quantified(self) -> Node:
        word = self.tokens[self.at]
        self.at += 1
        self.needs("(")
        if not self.is_binder():
            raise StatementError(f"{word} without a range such as k in 1..5")
        binders: list[Node] = []
        while self.is_binder():
            binders.append(self.binder())
            self.needs(",")
        if len(binders) > MAX_BINDERS:
            raise StatementError(f"{word} over more than {MAX_BINDERS} ranges")
        body = self.conditions() if word == "count" else self.expression()
        self.needs(")")
        return (word, tuple(binders), body)


def write(node: Node) -> str:
    """Write a statement, a condition or an expression in the formal language, with one layout."""
    match node:
        case ("ask", asked, conditions):
            return write(asked) + (f" where {_listed(conditions)}" if conditions else "")
        case ("rel", ops, sides):
            return write(sides[0]) + "".join(f" {op} {write(side)}" for op, side in zip(ops, sides[1:], strict=True))
        case ("in", name, low, high):
            return f"{name} in {write(low)}..{write(high)}"
        case ("num" | "name", text):
            return str(text)
        case ("neg", inner):
            return f"-{_bracketed(inner, 2)}"
        case ("call", name, *arguments):
            return f"{name}({_listed(arguments)})"
        case ("count", binders, conditions):
            return f"count({_listed([*binders, *conditions])})"
        case ("sum" | "prod" as word, binders, body):
            return f"{word}({_listed([*binders, body])})"
        case ("+" | "-" as op, left, right):
            return f"{_bracketed(left, 0)} {op} {_bracketed(right, 1)}"
        case ("%", left, right):
            return f"{_bracketed(left, 1)} % {_bracketed(right, 2)}"
        case ("^", base, exponent):
            return f"{_bracketed(base, 4)}^{_bracketed(exponent, 3)}"
        case (op, left, right):
            return f"{_bracketed(left, 1)}{op}{_bracketed(right, 2)}"
    raise ValueError("no part of a statement")


_PRECEDENCE = {"+": 0, "-": 0, "*": 1, "/": 1, "%": 1, "neg": 2, "^": 3}


def _bracketed(node: Node, least: int) -> str:
    """Write a part, in brackets if its precedence is below ``least``: 0 sum, 1 product, 2 sign, 3 power, 4 atom."""
    text = write(node)
    return text if _PRECEDENCE.get(node[0], 4) >= least else f"({text})"


def _listed(nodes: Any) -> str:
    return ", ".join(map(write, nodes))


def free_names(node: Any) -> set[str]:
    """Return the names in a part that are not bound by a range of a sum, product or count."""
    match node:
        case ("name", name):
            return {name}
        case ("in", name, low, high):
            return {name} | free_names(low) | free_names(high)
        case ("sum" | "prod" | "count", binders, body):
            names: set[str] = set()
            bound: set[str] = set()
            for _, name, low, high in binders:
                names |= (free_names(low) | free_names(high)) - bound
                bound.add(name)
            parts = body if node[0] == "count" else (body,)
            return names | set().union(*(free_names(part) for part in parts)) - bound
        case tuple():
            return set().union(*(free_names(part) for part in node))
    return set()


def normal_form(text: str) -> str:
    """Return a text equal for statements that differ only in names, layout, and the order of commutative parts.

    Names are numbered in order of appearance; then the parts of sums and products, the sides of equations and the
    conditions are sorted. A text that is not a statement is its own normal form.
    """
    try:
        statement = parse(text)
    except StatementError:
        return text.strip()
    names: dict[str, str] = {}
    return _sorted_form(statement, lambda name: names.setdefault(name, f"v{len(names)}"))


def _sorted_form(node: Node, named: Callable[[str], str]) -> str:
    match node:
        case ("num", text):
            return str(text)
        case ("name", name):
            return named(name)
        case ("call", name, *arguments):
            parts = [_sorted_form(part, named) for part in arguments]
            shown = name if name in FUNCTIONS else named(name)
            return f"{shown}({','.join(sorted(parts) if name in ('gcd', 'lcm', 'max', 'min') else parts)})"
        case ("+" | "*" as op, _, _):
            return f"({op.join(sorted(_sorted_form(part, named) for part in _operands(node, op)))})"
        case ("in", name, low, high):
            return f"{named(name)} in {_sorted_form(low, named)}..{_sorted_form(high, named)}"
        case ("rel", ops, sides):
            parts = [_sorted_form(side, named) for side in sides]
            if set(ops) <= {"="}:
                return "=".join(sorted(parts))
            return parts[0] + "".join(f"{op}{part}" for op, part in zip(ops, parts[1:], strict=True))
        case ("ask", asked, conditions):
            return f"{_sorted_form(asked, named)} where {_sorted_list(conditions, named)}"
        case ("count", binders, conditions):
            return f"count({_sorted_list(binders, named)};{_sorted_list(conditions, named)})"
        case ("sum" | "prod" as word, binders, body):
            return f"{word}({_sorted_list(binders, named)};{_sorted_form(body, named)})"
        case (str() as op, *operands):
            return f"({op} {' '.join(_sorted_form(operand, named) for operand in operands)})"
    raise ValueError("no part of a statement")


def _operands(node: Node, op: str) -> list[Node]:
    """Return the operands of a chain of sums or products."""
    parts: list[Node] = []
    while node[0] == op:
        parts.append(node[2])
        node = node[1]
    return [node, *reversed(parts)]


def _sorted_list(nodes: tuple[Node, ...], named: Callable[[str], str]) -> str:
    return ";".join(sorted(_sorted_form(node, named) for node in nodes))
