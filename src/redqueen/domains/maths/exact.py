"""Exact values of expressions, computed in the sandbox: ints, and sympy expressions (fractions, surds, unknowns).

Nothing is rounded. A budget of steps and limits of sizes refuse slow computations with a reason, before the limits of
the sandbox kill the process.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import sympy

from redqueen.domains.maths.language import Node, free_names, write

MAX_STEPS, MAX_BITS, MAX_FACTORED, MAX_FACTORIAL, MAX_POWER = 50_000, 2_000, 10**12, 300, 1_000
"""Limits (ours): operations of one statement, bits of an intermediate number, largest number that is factored, largest
argument of a factorial, largest exponent."""

Value = Any
"""An int, or a sympy expression that is not an Integer."""
Environment = Mapping[str, Any]
"""Names and their values; a sequence is a function of one integer."""


class Refused(Exception):
    """The statement has no value; the arguments are a verdict (``contradiction``, ``not-unique``, ...) and a reason."""


class Calculator:
    """Evaluates expressions and conditions within one budget of steps."""

    def __init__(self) -> None:
        self.steps_left = MAX_STEPS

    def value(self, node: Node, names: Environment) -> Value:
        """Return the exact value. Raises Refused."""
        self._spend()
        match node:
            case ("num", text):
                return int(text) if text.isdecimal() else tidy(sympy.Rational(text))
            case ("name", name):
                if name not in names or callable(names[name]):
                    raise Refused("unbounded", f"{name} is not defined")
                return names[name]
            case ("neg", inner):
                return -self.value(inner, names)
            case ("call", name, *arguments):
                if callable(names.get(name)):
                    return names[name](self.whole(arguments[0], names))
                return _call_function(name, [self.value(argument, names) for argument in arguments])
            case ("count", binders, conditions):
                return sum(1 for _ in self.assignments(binders, names, conditions))
            case ("sum" | "prod" as word, binders, body):
                result = int(word == "prod")
                for inner in self.assignments(binders, names):
                    result = operate("*" if word == "prod" else "+", result, self.value(body, inner))
                return result
            case (op, left, right):
                return operate(op, self.value(left, names), self.value(right, names))
        raise ValueError("no part of a statement")

    def _spend(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Refused("too-slow", f"more than {MAX_STEPS} steps")

    def whole(self, node: Node, names: Environment) -> int:
        """Return the value of an expression that must be an integer. Raises Refused for another."""
        return whole(self.value(node, names), write(node))

    def assignments(
        self, binders: tuple[Node, ...], names: Environment, conditions: tuple[Node, ...] = ()
    ) -> Iterator[Environment]:
        """Yield all assignments of integers to the names of ``binders``; a range may use the names before it.

        A condition is checked as soon as its names have values; assignments that break one are skipped.
        """
        if not binders:
            if all(self.holds(condition, names) for condition in conditions):
                yield names
            return
        _, name, low, high = binders[0]
        if name in names:
            raise Refused("contradiction", f"{name} is given twice")
        unknown = {binder[1] for binder in binders[1:]}
        due = [condition for condition in conditions if unknown.isdisjoint(free_names(condition))]
        left = tuple(condition for condition in conditions if condition not in due)
        for at in range(self.whole(low, names), self.whole(high, names) + 1):
            self._spend()
            inner = {**names, name: at}
            if all(self.holds(condition, inner) for condition in due):
                yield from self.assignments(binders[1:], inner, left)

    def holds(self, condition: Node, names: Environment) -> bool:
        """Return whether a condition holds. Raises Refused when that cannot be decided."""
        match condition:
            case ("in", name, low, high):
                at = self.value(("name", name), names)
                return isinstance(at, int) and self.whole(low, names) <= at <= self.whole(high, names)
            case ("rel", ops, sides):
                values = [self.value(side, names) for side in sides]
                return all(compare(op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
        return self.value(condition, names) == 1  # prime


def tidy(value: Any) -> Value:
    """Convert a sympy expression to an int if it is an integer."""
    return int(value) if value.is_Integer else value


def is_rational(value: Value) -> bool:
    """Return whether a value is an integer or a fraction."""
    return isinstance(value, int) or bool(value.is_Rational)


def whole(value: Value, where: str) -> int:
    """Return ``value`` if it is an int. Raises Refused otherwise."""
    if not isinstance(value, int):
        raise Refused("undefined", f"{where} is no whole number")
    return value


def compare(op: str, left: Value, right: Value) -> bool:
    """Compare two values. Raises Refused when that cannot be decided."""
    if not (is_rational(left) and is_rational(right)):
        difference = sympy.sympify(left - right)
        if difference.free_symbols:
            raise Refused("not-closed", "a comparison with an unknown")
        left, right = _sign_value(difference), 0
    return bool(_COMPARISONS[op](left, right))


def _sign_value(difference: Any) -> Any:
    """Return 0 if a difference is exactly 0 (decided symbolically), else a numeric approximation."""
    about = difference.evalf(40)
    if not about.is_real:
        raise Refused("not-closed", "a comparison of what is written with imaginary numbers")
    if abs(about) >= TINY:
        return about
    is_zero = difference.equals(0)
    if is_zero is None:
        raise Refused("not-closed", "whether two numbers are equal cannot be decided")
    return 0 if is_zero else difference.evalf(40, maxn=2 * MAX_BITS)


def operate(op: str, left: Value, right: Value) -> Value:
    """Apply a binary operator. Raises Refused if the result is undefined or too large."""
    if op == "^":
        return _power(left, right)
    if op in "/%" and right == 0:
        raise Refused("undefined", f"a {'division' if op == '/' else 'remainder'} by 0")
    if op == "%" and not (is_rational(left) and is_rational(right)):
        raise Refused("not-closed", "a remainder of a root or of an unknown that has no range")
    return _bounded(sympy.sympify(left) / right if op == "/" else _OPERATORS[op](left, right))


def _num_bits(value: Value) -> int:
    parts = (value,) if isinstance(value, int) else (int(value.p), int(value.q))
    return max(part.bit_length() for part in parts)


def _bounded(value: Value) -> Value:
    if is_rational(value) and _num_bits(value) > MAX_BITS:
        raise Refused("too-large", f"a number of more than {MAX_BITS} bits")
    return value if isinstance(value, int) else tidy(value)


def _power(base: Value, exponent: Value) -> Value:
    if not isinstance(exponent, int):
        if not (is_rational(base) and is_rational(exponent) and base > 0 and exponent.q <= 12):
            raise Refused("not-closed", "a power with an exponent that is no whole number")
        if abs(exponent.p) > 24 or _bounded(base) > MAX_FACTORED:
            raise Refused("too-large", "a root of too large a number")
        return tidy(sympy.Pow(base, exponent))
    if exponent < 0 and base == 0:
        raise Refused("undefined", "a division by 0")
    if base not in (0, 1, -1):
        if abs(exponent) > MAX_POWER:
            raise Refused("too-large", f"an exponent above {MAX_POWER}")
        if is_rational(base) and _num_bits(base) * abs(exponent) > 4 * MAX_BITS:
            raise Refused("too-large", f"a number of more than {MAX_BITS} bits")
    return base**exponent if exponent >= 0 and isinstance(base, int) else tidy(sympy.sympify(base) ** exponent)


def _square_root(value: Value) -> Value:
    """Return the square root of a non-negative number or sum of roots, denested to a sum of roots where possible."""
    if not is_rational(value) and (value.free_symbols or not all(p.base.is_Rational for p in value.atoms(sympy.Pow))):
        raise Refused("not-closed", "a root of a root of a root, or of an unknown that has no range")
    if compare("<", value, 0):
        raise Refused("undefined", "the root of a negative number")
    return tidy(sympy.sqrtdenest(sympy.sqrt(value)))


def _call_function(name: str, given: list[Value]) -> Value:
    if name == "sqrt":
        return _square_root(given[0])
    if name in _REAL_FUNCTIONS:
        if any(not is_rational(value) and value.free_symbols for value in given):
            raise Refused("not-closed", f"{name} is taken of an unknown that has no range")
        found = _REAL_FUNCTIONS[name](*given)
        return found if isinstance(found, int) else tidy(found)
    if name not in _INTEGER_FUNCTIONS:
        raise Refused("unbounded", f"{name} is not defined")
    function, low, high = _INTEGER_FUNCTIONS[name]
    numbers = [whole(value, f"what {name} is given") for value in given]
    if min(numbers) < low or numbers[0] > high:
        verdict = "undefined" if min(numbers) < low else "too-large"
        raise Refused(verdict, f"{name} of a number that is not between {low:g} and {high:g}")
    return _bounded(int(function(*numbers)))


TINY = sympy.Float("1e-30")
"""Smaller differences are compared symbolically, or with many more digits."""
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod,
}  # fmt: skip
_REAL_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "ceil": math.ceil, "floor": math.floor, "max": max, "min": min,
}  # fmt: skip
_INTEGER_FUNCTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "choose": (math.comb, 0, MAX_FACTORIAL),
    "digitsum": (lambda n: sum(map(int, str(abs(n)))), -math.inf, math.inf),
    "divisors": (sympy.divisor_count, 1, MAX_FACTORED),
    "fact": (math.factorial, 0, MAX_FACTORIAL),
    "gcd": (math.gcd, -math.inf, math.inf),
    "lcm": (math.lcm, -math.inf, math.inf),
    "phi": (sympy.totient, 1, MAX_FACTORED),
    "prime": (sympy.isprime, -math.inf, MAX_FACTORED),
    "sigma": (sympy.divisor_sigma, 1, MAX_FACTORED),
}
"""Functions of integers: the function, the minimum of all arguments, and the maximum of the first."""
