"""The truth of a statement, in the sandbox: one number, or a reason why there is none.

Names that have a range are searched for in whole numbers; names that have none are real numbers, and the equations are
solved by sympy, exactly and completely or not at all. There must be finitely many solutions, and what is asked for must
be the same in all of them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from sympy.polys.polyerrors import UnsolvableFactorError

from redqueen.domains.maths.exact import (
    TINY,
    Calculator,
    Refused,
    Value,
    as_sympy,
    compare,
    from_sympy,
    is_number,
    tidy,
)
from redqueen.domains.maths.language import FUNCTIONS, Node, StatementError, free_names, parse, write

MAX_DEGREE, MAX_PRODUCT, MAX_UNKNOWNS, MAX_INDEX, MAX_ANSWER_CHARS = 6, 12, 4, 400, 60
"""Of an equation, of the equations of a system, of a system, of a sequence, of a number as it is written (all ours)."""
_LARGEST_BELOW = 10**12
"""Of a fraction that a surd is taken to be before it is looked at exactly."""


def solve(text: str) -> tuple[str, str]:
    """Return ``("ok", number)`` for a statement that has a truth, else one word and the reason."""
    try:
        shown = _shown(_truth(parse(text)))
    except Refused as refusal:
        return refusal.args[0], refusal.args[1]
    except StatementError as error:
        return "syntax", str(error)
    except (RecursionError, NotImplementedError, sympy.PolynomialError) as error:
        return "too-slow", f"not to be solved here ({type(error).__name__})"
    return "ok", shown


def _truth(statement: Node) -> Value:
    _, asked, conditions = statement
    if any(_defined(condition) for condition in conditions):
        return _of_sequences(asked, conditions)
    unknowns = sorted(set().union(*(free_names(part) for part in (asked, *conditions))))
    if not conditions or not unknowns:
        return _of_numbers(asked, conditions)
    ranges = {condition[1]: condition for condition in conditions if condition[0] == "in"}
    if len(ranges) < sum(condition[0] == "in" for condition in conditions):
        raise Refused("contradiction", "two ranges for one name")
    missing = [name for name in unknowns if name not in ranges]
    if ranges and missing:
        raise Refused("unbounded", f"{missing[0]} has no range, and others have")
    if len(unknowns) > MAX_UNKNOWNS:
        raise Refused("too-slow", f"more than {MAX_UNKNOWNS} unknowns")
    return _searched(asked, conditions, ranges) if ranges else _solved(asked, conditions, unknowns)


def _of_numbers(asked: Node, conditions: tuple[Node, ...]) -> Value:
    calculator = Calculator()
    for condition in conditions:
        if not calculator.holds(condition, {}):
            raise Refused("contradiction", f"{write(condition)} does not hold")
    return calculator.value(asked, {})


def _one(values: list[Value]) -> Value:
    """Return what is the same in all solutions."""
    if not values:
        raise Refused("contradiction", "no solution")
    if any(not compare("=", values[0], other) for other in values[1:]):
        raise Refused("not-unique", f"{len(values)} solutions that differ in what is asked for")
    return values[0]


# ---- sequences ------------------------------------------------------------------------------------------------------


def _defined(condition: Node) -> str:
    """The name of the sequence that a condition defines, as in ``a(n) = 2*a(n - 1)``, or ""."""
    match condition:
        case ("rel", ("=",), (("call", name, _), _)) if name not in FUNCTIONS:
            return str(name)
    return ""


def _of_sequences(asked: Node, conditions: tuple[Node, ...]) -> Value:
    if free_names(asked):
        raise Refused("unbounded", "a name that nothing defines beside a sequence")
    calculator = Calculator()
    members: dict[str, _Sequence] = {}
    for condition in conditions:
        name = _defined(condition)
        if not name:
            raise Refused("contradiction", f"{write(condition)} stands beside a sequence and defines none")
        members.setdefault(name, _Sequence(name, calculator, members)).define(condition[2][0][2], condition[2][1])
    for sequence in members.values():
        _forget(members)
        sequence.must_agree()
    _forget(members)
    return calculator.value(asked, members)


def _forget(members: dict[str, _Sequence]) -> None:
    """Leave every sequence its given members alone, so that the order of the conditions does not matter."""
    for sequence in members.values():
        sequence.values = dict(sequence.given)


class _Sequence:
    """Members of a sequence: given ones, and a rule for the others. A rule may look back only."""

    def __init__(self, name: str, calculator: Calculator, others: dict[str, _Sequence]) -> None:
        self.name = name
        self.calculator = calculator
        self.others = others
        self.given: dict[int, Value] = {}
        self.values: dict[int, Value] = {}
        self.rule: tuple[str, Node] | None = None
        self.open: list[int] = []
        self.first_given: int | None = None

    def define(self, index: Node, body: Node) -> None:
        if index[0] == "name":
            if self.rule is not None:
                raise Refused("contradiction", f"two rules for {self.name}")
            self.rule = (index[1], body)
            return
        if free_names(body):
            raise Refused("unbounded", f"a member of {self.name} that is no number")
        at = self.calculator.whole(index, {})
        if at in self.given:
            raise Refused("contradiction", f"{self.name}({at}) is given twice")
        self.given[at] = self.calculator.value(body, {})
        self.first_given = min(self.given)

    def must_agree(self) -> None:
        """Refuse given members that the rule contradicts, wherever it follows from members given before them."""
        for at in sorted(self.given):
            self.values = {k: value for k, value in self.given.items() if k < at}
            try:
                follows = self(at)
            except Refused:
                follows = self.given[at]
            if not compare("=", follows, self.given[at]):
                raise Refused("contradiction", f"{self.name}({at}) is given, and its rule says something else")

    def __call__(self, at: int) -> Value:
        if at in self.values:
            return self.values[at]
        if self.rule is None or (self.first_given is not None and at < self.first_given):
            raise Refused("unbounded", f"nothing says what {self.name}({at}) is")
        if self.open and at >= self.open[-1]:
            raise Refused("unbounded", f"{self.name}({at}) depends on itself")
        if self.first_given is not None and at - self.first_given > MAX_INDEX:
            raise Refused("too-slow", f"a member more than {MAX_INDEX} places behind the first")
        self.open.append(at)
        try:
            for before in range(at if self.first_given is None else self.first_given, at):
                self(before)  # from the first on, so that nothing is nested deeply
            name, body = self.rule
            self.values[at] = self.calculator.value(body, {**self.others, name: at})
        finally:
            self.open.pop()
        return self.values[at]


# ---- unknowns with ranges -------------------------------------------------------------------------------------------


def _searched(asked: Node, conditions: tuple[Node, ...], ranges: dict[str, Node]) -> Value:
    """Try all whole numbers of the ranges; a condition is looked at as soon as its names have values."""
    calculator = Calculator()
    ordered = _in_order(ranges)
    known: set[str] = set()
    due: list[list[Node]] = []
    left = [condition for condition in conditions if condition[0] != "in"]
    for name in ordered:
        known.add(name)
        due.append([condition for condition in left if free_names(condition) <= known])
        left = [condition for condition in left if not free_names(condition) <= known]
    found: list[Value] = []

    def go(depth: int, names: dict[str, Any]) -> None:
        if depth == len(ordered):
            found.append(calculator.value(asked, names))
            return
        for inner in calculator.places((ranges[ordered[depth]],), names):
            if all(calculator.holds(condition, inner) for condition in due[depth]):
                go(depth + 1, inner)

    go(0, {})
    return _one(found)


def _in_order(ranges: dict[str, Node]) -> list[str]:
    """The names such that the bounds of each range are known from those before it."""
    ordered: list[str] = []
    while len(ordered) < len(ranges):
        ready = [
            name for name, (_, _, low, high) in ranges.items()
            if name not in ordered and free_names(low) | free_names(high) <= set(ordered)
        ]  # fmt: skip
        if not ready:
            raise Refused("unbounded", "ranges that depend on each other")
        ordered += ready
    return ordered


# ---- unknowns that are real numbers ---------------------------------------------------------------------------------


def _solved(asked: Node, conditions: tuple[Node, ...], unknowns: list[str]) -> Value:
    """Solve polynomial equations exactly; other conditions choose among the real solutions."""
    symbols = {name: sympy.Symbol(name, real=True) for name in unknowns}
    calculator = Calculator()
    equations: list[Any] = []
    below: list[Any] = []
    for condition in conditions:
        if condition[0] != "rel" or set(condition[1]) != {"="}:
            continue
        sides = [as_sympy(calculator.value(side, symbols)) for side in condition[2]]
        for left, right in pairwise(sides):
            above, under = sympy.fraction(sympy.together(left - right))
            equations.append(sympy.expand(above))
            below.append(under)
    solutions = _real_solutions([one for one in equations if one != 0], list(symbols.values()))
    values = []
    for solution in solutions:
        names = {name: from_sympy(solution[symbol]) for name, symbol in symbols.items()}
        if any(as_sympy(one).subs(solution) == 0 for one in below):
            continue
        if _fulfils(calculator, conditions, names):
            values.append(calculator.value(asked, names))
    return _one(values)


def _fulfils(calculator: Calculator, conditions: tuple[Node, ...], names: dict[str, Value]) -> bool:
    """Tell whether all conditions hold; where one of them is undefined it does not."""
    try:
        return all(calculator.holds(condition, names) for condition in conditions)
    except Refused as refusal:
        if refusal.args[0] != "undefined":
            raise
        return False


def _real_solutions(equations: list[Any], symbols: list[Any]) -> list[dict[Any, Any]]:
    if any(one.is_number for one in equations):
        raise Refused("contradiction", "an equation that no number fulfils")
    if not equations or set().union(*(one.free_symbols for one in equations)) != set(symbols):
        raise Refused("unbounded", "an unknown that no equation says anything of")
    polynomials = [sympy.Poly(one, *symbols) for one in equations]
    if max(one.total_degree() for one in polynomials) > MAX_DEGREE:
        raise Refused("too-slow", f"an equation of a degree above {MAX_DEGREE}")
    if all(one.is_linear for one in polynomials):
        found = sympy.linsolve(equations, *symbols)
        if not found:
            raise Refused("contradiction", "no solution")
        solution = next(iter(found))
        if any(value.free_symbols for value in solution):
            raise Refused("unbounded", "infinitely many solutions")
        return [dict(zip(symbols, solution, strict=True))]
    if len(symbols) == 1:
        return _roots(polynomials, symbols[0])
    if math.prod(one.total_degree() for one in polynomials) > MAX_PRODUCT:
        raise Refused("too-slow", f"equations whose degrees multiply to more than {MAX_PRODUCT}")
    basis = sympy.groebner(equations, *symbols, order="lex")
    if basis.exprs == [1]:
        raise Refused("contradiction", "no solution")
    if not basis.is_zero_dimensional:
        raise Refused("unbounded", "infinitely many solutions, or too hard to tell")
    try:
        solutions = sympy.solve_poly_system(equations, *symbols, strict=True) or []
    except UnsolvableFactorError:
        raise Refused("not-closed", "a solution that has no closed form here") from None
    return [dict(zip(symbols, values, strict=True)) for values in solutions if all(map(_is_real, values))]


def _roots(polynomials: list[Any], symbol: Any) -> list[dict[Any, Any]]:
    """The real roots that polynomials of one unknown share, in closed form."""
    common = polynomials[0]
    for other in polynomials[1:]:
        common = sympy.gcd(common, other)
    common = sympy.Poly(common, symbol)
    if common.degree() == 0:
        raise Refused("contradiction", "no solution")
    num_real = len(set(common.real_roots(radicals=False)))
    found = [root for root in sympy.roots(common) if _is_real(root)]
    if len(found) != num_real:
        raise Refused("not-closed", "a solution that has no closed form here")
    return [{symbol: root} for root in found]


def _is_real(value: Any) -> bool:
    if value.is_real is not None:
        return bool(value.is_real)
    return bool(abs(sympy.im(value.evalf(40))) < sympy.Float("1e-30"))


# ---- how a number is written ----------------------------------------------------------------------------------------


def _shown(value: Value) -> str:
    """Write a number in the language: ``-3``, ``5/2``, ``(1 + sqrt(5))/2``."""
    if not is_number(value):
        value = _simplest(value)
    text = str(value) if is_number(value) else _closed(value)
    if len(text) > MAX_ANSWER_CHARS:
        raise Refused("too-large", f"a number of more than {MAX_ANSWER_CHARS} characters")
    return text


def _simplest(value: Any) -> Value:
    """Write a surd as simply as exact rules do, and as a fraction where it is one. No digits decide: ``nsimplify``
    takes ``90 + sqrt(11)`` for a product of powers that is as large in its first fifteen.
    """
    value = sympy.sqrtdenest(sympy.radsimp(sympy.simplify(value)))
    value = min(value, sympy.expand(value), key=lambda one: len(str(one)))
    about = value.evalf(40)
    if value.is_Rational or not about.is_Float:
        return from_sympy(value)
    near = Fraction(str(about)).limit_denominator(_LARGEST_BELOW)
    return tidy(near) if abs(about - as_sympy(near)) < TINY and compare("=", value, near) else value


def _closed(value: Any) -> str:
    """Write a surd. Raises Refused for anything else."""
    if value.has(sympy.I) or not value.is_number or value.atoms(sympy.Function) or not value.is_finite:
        raise Refused("not-closed", "a value that is no real number in closed form")
    allowed = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Rational)
    if any(not isinstance(part, allowed) for part in sympy.preorder_traversal(value)):
        raise Refused("not-closed", "a value that is no real number in closed form")
    try:
        node = parse(str(value).replace("**", "^"))[1]
    except StatementError as error:
        raise Refused("too-large", f"a root with {error}") from None
    Calculator().value(node, {})  # which compares answers with it: of what it refuses, no other form would be right
    return write(node)


def _warm_up() -> None:
    """Solve one statement of each sort, so that all modules are there before the sandbox closes."""
    for text in (
        "x where 3*x + 1 = 2*x", "x where x^2 = 2, x > 0", "x where x + y = 3, x*y = 1, x > y",
        "x where 2*x + y = 7, x - y = 2", "x where x^3 - 2*x = 1, x < 0, x > -1", "x where 1/x = 2",
        "count(k in 1..9, prime(k)) + sigma(6) + divisors(8)", "x where x^4 = 16, x >= 0", "x where x^5 - x = 1",
        "a(3) where a(1) = 2, a(n) = a(n - 1)/2", "x where x^3 = 2", "x*y where x^2 + y^2 = 5, x + y = 3",
        "phi(12) + sqrt(8)",
    ):  # fmt: skip
        solve(text)


_warm_up()
