"""Exact values of expressions, in the sandbox: whole numbers and fractions, and surds and unknowns by sympy.

Nothing is rounded. Every operation is paid for from a budget, so that what would take too long is refused with a reason
before the sandbox's own limits kill it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy

from redqueen.domains.maths.language import Node, write

MAX_STEPS, MAX_BITS, MAX_FACTORED, MAX_FACTORIAL, MAX_POWER = 50_000, 2_000, 10**12, 300, 1_000
"""Operations of one statement, bits of a number on the way, the greatest number that is factored, whose factorial is
taken, or that stands as an exponent (all ours)."""

Value = Any
"""An int, a Fraction, or a sympy expression."""
Environment = Mapping[str, Any]
"""The values of names, and functions of one whole number for sequences."""


class Refused(Exception):
    """The statement has no value; the arguments are one word (``contradiction``, ``not-unique``, ...) and a reason."""


class Calculator:
    """Evaluates expressions and conditions from one budget of steps."""

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self.steps_left = max_steps

    def value(self, node: Node, names: Environment) -> Value:
        """Return the exact value. Raises Refused."""
        self.spend()
        match node:
            case ("num", text):
                return tidy(Fraction(text))
            case ("name", name):
                if name not in names or callable(names[name]):
                    raise Refused("unbounded", f"nothing says what {name} is")
                return names[name]
            case ("neg", inner):
                return -self.value(inner, names)
            case ("call", name, *arguments):
                return self.called(name, arguments, names)
            case ("sum" | "prod" | "count" as word, binders, body):
                return self.quantified(word, binders, body, names)
            case (op, left, right):
                return operate(op, self.value(left, names), self.value(right, names))
        raise ValueError("no part of a statement")

    def spend(self) -> None:
        """Pay for one step. Raises Refused when the budget is used up."""
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Refused("too-slow", f"more than {MAX_STEPS} steps")

    def whole(self, node: Node, names: Environment) -> int:
        """Return the value of what must be a whole number."""
        return whole(self.value(node, names), write(node))

    def called(self, name: str, arguments: list[Node], names: Environment) -> Value:
        if callable(names.get(name)):
            return names[name](self.whole(arguments[0], names))
        if name in ("floor", "ceil") and arguments[0][:2] == ("call", "sqrt"):
            root = self.value(arguments[0][2], names)
            if is_number(root) and root >= 0:
                below = math.isqrt(math.floor(root))
                return below + (name == "ceil" and below * below != root)
        if name in _OF_NUMBERS:
            return _OF_NUMBERS[name](*(number(self.value(part, names), name) for part in arguments))
        if name in _OF_WHOLE:
            given = [whole(self.value(part, names), f"what {name} is given") for part in arguments]
            return _OF_WHOLE[name](*given)
        if name == "sqrt":
            return square_root(self.value(arguments[0], names))
        raise Refused("unbounded", f"nothing says what {name} is")

    def quantified(self, word: str, binders: tuple[Node, ...], body: Any, names: Environment) -> Value:
        result: Value = 1 if word == "prod" else 0
        for inner in self.places(binders, names):
            if word == "count":
                result += all(self.holds(condition, inner) for condition in body)
            else:
                result = operate("*" if word == "prod" else "+", result, self.value(body, inner))
        return result

    def places(self, binders: tuple[Node, ...], names: Environment) -> Iterator[dict[str, Any]]:
        """Go through all values of the names of some ranges, a later range seeing the names before it."""
        if not binders:
            yield dict(names)
            return
        _, name, low, high = binders[0]
        if name in names:
            raise Refused("contradiction", f"{name} is given twice")
        for at in range(self.whole(low, names), self.whole(high, names) + 1):
            self.spend()
            yield from self.places(binders[1:], {**names, name: at})

    def holds(self, condition: Node, names: Environment) -> bool:
        """Tell whether a condition holds. Raises Refused when it compares what has no order."""
        match condition:
            case ("in", name, low, high):
                at = self.value(("name", name), names)
                return is_whole(at) and self.whole(low, names) <= at <= self.whole(high, names)
            case ("rel", ops, sides):
                values = [self.value(side, names) for side in sides]
                return all(compare(op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
            case ("call", "prime", inner):
                return _is_prime(self.whole(inner, names)) == 1
        raise ValueError("no condition")


def tidy(value: Fraction) -> int | Fraction:
    """Write a fraction of denominator 1 as a whole number."""
    return value.numerator if value.denominator == 1 else value


def is_number(value: Value) -> bool:
    """Tell whether it is a whole number or a fraction."""
    return isinstance(value, int | Fraction)


def is_whole(value: Value) -> bool:
    """Tell whether it is a whole number."""
    return isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1)


def number(value: Value, where: str) -> int | Fraction:
    """Return what must be a whole number or a fraction."""
    if not is_number(value):
        raise Refused("not-closed", f"{where} is taken of a root or of an unknown that has no range")
    return value  # type: ignore[no-any-return]


def whole(value: Value, where: str) -> int:
    """Return what must be a whole number as an int."""
    if not is_whole(value):
        raise Refused("undefined", f"{where} is no whole number")
    return int(value)


def compare(op: str, left: Value, right: Value) -> bool:
    """Compare two values. Raises Refused when that cannot be decided."""
    if not (is_number(left) and is_number(right)):
        difference = sympy.sympify(left - right)
        if difference.free_symbols:
            raise Refused("not-closed", "a comparison with an unknown")
        left, right = _signed(difference), 0
    found: bool = _COMPARED[op](left, right)
    return found


def _signed(difference: Any) -> Any:
    """Return 0 where a difference is exactly 0, whatever its digits, else its value to some digits."""
    about = difference.evalf(40)
    if not about.is_real:
        raise Refused("not-closed", "a comparison of what is written with imaginary numbers")
    if abs(about) >= TINY:
        return about
    is_zero = difference.equals(0)
    if is_zero is None:
        raise Refused("not-closed", "whether two numbers are equal cannot be decided")
    return 0 if is_zero else difference.evalf(40, maxn=_MOST_DIGITS)


def operate(op: str, left: Value, right: Value) -> Value:
    """Apply a sign between two values. Raises Refused for what is undefined or too large."""
    if op == "/" and right == 0:
        raise Refused("undefined", "a division by 0")
    if op == "^":
        return _power(left, right)
    if is_number(left) and is_number(right):
        if op == "%":
            if right == 0:
                raise Refused("undefined", "a remainder by 0")
            return left % right
        result = tidy(Fraction(left) / right) if op == "/" else _APPLIED[op](left, right)
        return _bounded(result)
    if op == "%":
        raise Refused("not-closed", "a remainder of a root or of an unknown that has no range")
    left, right = (as_sympy(side) for side in (left, right))
    return left / right if op == "/" else _APPLIED[op](left, right)


def as_sympy(value: Value) -> Any:
    """Return a value as sympy has it."""
    return sympy.Rational(value.numerator, value.denominator) if isinstance(value, int | Fraction) else value


def _bounded(value: Value) -> Value:
    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    if size > MAX_BITS:
        raise Refused("too-large", f"a number of more than {MAX_BITS} bits")
    return tidy(Fraction(value))


def _power(base: Value, exponent: Value) -> Value:
    if not is_whole(exponent):
        return _root(base, exponent)
    exponent = int(exponent)
    if abs(exponent) > MAX_POWER and base not in (0, 1, -1):
        raise Refused("too-large", f"an exponent above {MAX_POWER}")
    if exponent < 0 and base == 0:
        raise Refused("undefined", "a division by 0")
    if not is_number(base):
        return as_sympy(base) ** exponent
    size = max(abs(base.numerator), base.denominator).bit_length()
    if size * abs(exponent) > 4 * MAX_BITS and abs(base) != 1:
        raise Refused("too-large", f"a number of more than {MAX_BITS} bits")
    return tidy(Fraction(base) ** exponent)


def _root(base: Value, exponent: Value) -> Value:
    """A power with a fraction as its exponent: of a positive number alone."""
    if not (is_number(base) and is_number(exponent) and base > 0 and exponent.denominator <= 12):
        raise Refused("not-closed", "a power with an exponent that is no whole number")
    if max(abs(exponent.numerator), 1) > 24 or _bounded(base) > MAX_FACTORED:
        raise Refused("too-large", "a root of too large a number")
    return from_sympy(as_sympy(base) ** as_sympy(exponent))


def square_root(value: Value) -> Value:
    """Return the square root of a number that is not negative, or of a sum of roots of such numbers."""
    if not is_number(value):
        return _nested_root(value)
    if value < 0:
        raise Refused("undefined", "the root of a negative number")
    below = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if below * below == value:
        return tidy(below)
    if max(value.numerator, value.denominator) > MAX_FACTORED:
        raise Refused("too-large", "a root of too large a number")
    return sympy.sqrt(as_sympy(value))


def _nested_root(value: Any) -> Value:
    """The square root of a sum of roots, as a sum of roots where it is one; nothing is nested deeper."""
    if value.free_symbols or any(not part.base.is_Rational for part in value.atoms(sympy.Pow)):
        raise Refused("not-closed", "a root of a root of a root, or of an unknown that has no range")
    if compare("<", value, 0):
        raise Refused("undefined", "the root of a negative number")
    return from_sympy(sympy.sqrtdenest(sympy.sqrt(value)))


def from_sympy(value: Any) -> Value:
    """Return an int or a Fraction where sympy has a rational number, else the expression."""
    return tidy(Fraction(int(value.p), int(value.q))) if value.is_Rational else value


def _factored(name: str, count: Callable[[int], Any]) -> Callable[[int], int]:
    def function(value: int) -> int:
        if not 1 <= value <= MAX_FACTORED:
            raise Refused("undefined", f"{name} of a number that is not between 1 and {MAX_FACTORED}")
        return int(count(value))

    return function


def _factorial(value: int) -> int:
    if not 0 <= value <= MAX_FACTORIAL:
        raise Refused("too-large", f"the factorial of a number that is not between 0 and {MAX_FACTORIAL}")
    return math.factorial(value)


def _choose(n: int, k: int) -> int:
    if not (0 <= n <= MAX_FACTORIAL and k >= 0):
        raise Refused("undefined", f"choices out of a number that is not between 0 and {MAX_FACTORIAL}")
    return math.comb(n, k)


def _is_prime(value: int) -> int:
    if abs(value) > MAX_FACTORED:
        raise Refused("too-large", "a prime above the numbers that are factored")
    return int(sympy.isprime(value))


TINY = sympy.Float("1e-30")
"""What differs by less is compared exactly, or in ``_MOST_DIGITS``."""
_MOST_DIGITS = 2 * MAX_BITS
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_APPLIED: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": abs, "ceil": math.ceil, "floor": math.floor, "max": max, "min": min,
}  # fmt: skip
_OF_WHOLE: dict[str, Callable[..., int]] = {
    "choose": _choose,
    "digitsum": lambda n: sum(map(int, str(abs(n)))),
    "divisors": _factored("divisors", sympy.divisor_count),
    "fact": _factorial,
    "gcd": math.gcd,
    "lcm": lambda *given: _bounded(math.lcm(*given)),
    "phi": _factored("phi", sympy.totient),
    "prime": _is_prime,
    "sigma": _factored("sigma", sympy.divisor_sigma),
}
