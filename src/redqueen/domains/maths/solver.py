"""The right answer of a statement, computed in the sandbox: one number, or a reason why there is none.

Names with a range are integers and are found by search. Names without a range are real numbers: sympy solves their
equations exactly and completely, or the statement is refused. There must be finitely many solutions, and all must give
the same value of the expression that is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import sympy
from sympy.polys.polyerrors import UnsolvableFactorError

from redqueen.domains.maths.exact import TINY, Calculator, Refused, Value, compare, is_rational, tidy
from redqueen.domains.maths.language import FUNCTIONS, Node, StatementError, free_names, parse, write

MAX_DEGREE, MAX_PRODUCT, MAX_UNKNOWNS, MAX_INDEX, MAX_ANSWER_CHARS = 6, 12, 4, 400, 60
"""Limits (ours): degree of an equation, product of degrees, unknowns, index of a sequence, characters of an answer."""
_MAX_DENOMINATOR = 10**12
"""Maximum denominator of a fraction that may replace a surd, if both are exactly equal."""


def solve(text: str) -> tuple[str, str]:
    """Return ``("ok", number)`` for a statement with one answer, else a verdict and the reason."""
    try:
        shown = _write_number(_answer(parse(text)))
    except Refused as refusal:
        return refusal.args[0], refusal.args[1]
    except StatementError as error:
        return "syntax", str(error)
    except (RecursionError, NotImplementedError, TypeError, sympy.PolynomialError) as error:
        return "too-slow", f"cannot be solved ({type(error).__name__})"
    return "ok", shown


def _answer(statement: Node) -> Value:
    _, asked, conditions = statement
    calculator = Calculator()
    if any(_sequence_name(condition) for condition in conditions):
        return _answer_with_sequences(asked, conditions, calculator)
    unknowns = sorted(set().union(*(free_names(part) for part in (asked, *conditions))))
    if not conditions or not unknowns:
        for condition in conditions:
            if not calculator.holds(condition, {}):
                raise Refused("contradiction", f"{write(condition)} does not hold")
        return calculator.value(asked, {})
    ranges = {condition[1]: condition for condition in conditions if condition[0] == "in"}
    if len(ranges) < sum(condition[0] == "in" for condition in conditions):
        raise Refused("contradiction", "two ranges for one name")
    missing = [name for name in unknowns if name not in ranges]
    if ranges and missing:
        raise Refused("unbounded", f"{missing[0]} has no range, and others have")
    if len(unknowns) > MAX_UNKNOWNS:
        raise Refused("too-slow", f"more than {MAX_UNKNOWNS} unknowns")
    if not ranges:
        return _unique_value([calculator.value(asked, names) for names in _solutions(conditions, unknowns, calculator)])
    try:
        order = TopologicalSorter({name: free_names(ranges[name][2:]) for name in ranges}).static_order()
        binders = tuple(ranges[name] for name in order)
    except CycleError:
        raise Refused("unbounded", "ranges that depend on each other") from None
    others = tuple(condition for condition in conditions if condition[0] != "in")
    return _unique_value([calculator.value(asked, names) for names in calculator.assignments(binders, {}, others)])


def _unique_value(values: list[Value]) -> Value:
    """Return the value that all solutions have in common. Raises Refused if they differ."""
    if not values:
        raise Refused("contradiction", "no solution")
    if any(not compare("=", values[0], other) for other in values[1:]):
        raise Refused("not-unique", f"{len(values)} solutions that differ in what is asked for")
    return values[0]


def _sequence_name(condition: Node) -> str:
    """Return the name of the sequence that a condition defines, as in ``a(n) = 2*a(n - 1)``, or ""."""
    match condition:
        case ("rel", ("=",), (("call", name, _), _)) if name not in FUNCTIONS:
            return str(name)
    return ""


def _answer_with_sequences(asked: Node, conditions: tuple[Node, ...], calculator: Calculator) -> Value:
    if free_names(asked):
        raise Refused("unbounded", "a name that nothing defines beside a sequence")
    given: dict[str, dict[int, Value]] = {}
    rules: dict[str, tuple[str, Node]] = {}
    for condition in conditions:
        name = _sequence_name(condition)
        if not name:
            raise Refused("contradiction", f"{write(condition)} stands beside a sequence and defines none")
        (_, _, index), body = condition[2]
        members = given.setdefault(name, {})
        if index[0] == "name":
            if name in rules:
                raise Refused("contradiction", f"two rules for {name}")
            rules[name] = (index[1], body)
            continue
        if free_names(body):
            raise Refused("unbounded", f"a member of {name} that is no number")
        if (at := calculator.whole(index, {})) in members:
            raise Refused("contradiction", f"{name}({at}) is given twice")
        members[at] = calculator.value(body, {})
    firsts = {name: min(members, default=None) for name, members in given.items()}

    def sequences(given: dict[str, dict[int, Value]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, members in given.items():
            found[name] = _Sequence(name, firsts[name], dict(members), rules.get(name), calculator, found)
        return found

    for name, members in given.items():  # a given member that the rule can compute from earlier ones must agree with it
        for at in sorted(members):
            try:
                follows = sequences({**given, name: {k: v for k, v in members.items() if k < at}})[name](at)
            except Refused:
                continue
            if not compare("=", follows, members[at]):
                raise Refused("contradiction", f"{name}({at}) is given, and its rule says something else")
    return calculator.value(asked, sequences(given))


@dataclass
class _Sequence:
    """A sequence: given members, and a rule for the others. A rule may use earlier members only."""

    name: str
    first: int | None
    values: dict[int, Value]
    rule: tuple[str, Node] | None
    calculator: Calculator
    others: dict[str, Any]
    open: list[int] = field(default_factory=list)

    def __call__(self, at: int) -> Value:
        if at in self.values:
            return self.values[at]
        if self.rule is None or (self.first is not None and at < self.first):
            raise Refused("unbounded", f"{self.name}({at}) is not defined")
        if self.open and at >= self.open[-1]:
            raise Refused("unbounded", f"{self.name}({at}) depends on itself")
        if self.first is not None and at - self.first > MAX_INDEX:
            raise Refused("too-slow", f"a member more than {MAX_INDEX} places behind the first")
        self.open.append(at)
        try:
            for before in range(at if self.first is None else self.first, at):
                self(before)  # in order, so that the recursion is not deep
            name, body = self.rule
            self.values[at] = self.calculator.value(body, {**self.others, name: at})
        finally:
            self.open.pop()
        return self.values[at]


def _solutions(conditions: tuple[Node, ...], unknowns: list[str], calculator: Calculator) -> list[dict[str, Value]]:
    """Solve polynomial equations exactly; the other conditions filter the real solutions."""
    symbols = {name: sympy.Symbol(name, real=True) for name in unknowns}
    equations = []
    for condition in conditions:
        if condition[0] == "rel" and set(condition[1]) == {"="}:
            for left, right in pairwise(calculator.value(side, symbols) for side in condition[2]):
                equations.append(sympy.expand(sympy.fraction(sympy.together(left - right))[0]))
    solutions = _real_solutions([one for one in equations if one != 0], list(symbols.values()))
    found = [{name: tidy(solution[symbol]) for name, symbol in symbols.items()} for solution in solutions]
    return [names for names in found if _satisfies(calculator, conditions, names)]


def _satisfies(calculator: Calculator, conditions: tuple[Node, ...], names: dict[str, Value]) -> bool:
    """Return whether all conditions hold; an undefined condition does not hold."""
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
    if not all(one.is_polynomial(*symbols) for one in equations):
        raise Refused("not-closed", "an equation between other things than polynomials")
    polynomials = [sympy.Poly(one, *symbols) for one in equations]
    if max(one.total_degree() for one in polynomials) > MAX_DEGREE:
        raise Refused("too-slow", f"an equation of a degree above {MAX_DEGREE}")
    if all(one.is_linear for one in polynomials):
        found = sympy.linsolve(equations, *symbols)
        if not found:
            raise Refused("contradiction", "no solution")
        if found.free_symbols:
            raise Refused("unbounded", "infinitely many solutions")
        return [dict(zip(symbols, *found, strict=True))]
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
    """Return the common real roots of polynomials of one unknown, in closed form."""
    common = sympy.Poly(reduce(sympy.gcd, polynomials), symbol)
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
    return bool(abs(sympy.im(value.evalf(40))) < TINY)


def _write_number(value: Value) -> str:
    """Write a number in the formal language: ``-3``, ``5/2``, ``(1 + sqrt(5))/2``."""
    if not is_rational(value):
        value = _simplify(value)
    text = str(value) if is_rational(value) else _write_surd(value)
    if len(text) > MAX_ANSWER_CHARS:
        raise Refused("too-large", f"a number of more than {MAX_ANSWER_CHARS} characters")
    return text


def _simplify(value: Any) -> Value:
    """Simplify a surd by exact rules, to a fraction where it is one. Numeric ``nsimplify`` is not used: it replaces
    ``90 + sqrt(11)`` by a product of powers that agrees in only fifteen digits.
    """
    value = sympy.sqrtdenest(sympy.radsimp(sympy.simplify(value)))
    value = min(value, sympy.expand(value), key=lambda one: len(str(one)))
    about = value.evalf(40)
    if value.is_Rational or not about.is_Float:
        return tidy(value)
    near = sympy.Rational(str(about)).limit_denominator(_MAX_DENOMINATOR)
    return tidy(near) if abs(about - near) < TINY and compare("=", value, near) else value


def _write_surd(value: Any) -> str:
    """Write a surd. Raises Refused for any other value."""
    parts = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Rational)
    if not (value.is_finite and all(isinstance(part, parts) for part in sympy.preorder_traversal(value))):
        raise Refused("not-closed", "a value that is no real number in closed form")
    try:
        node = parse(str(value).replace("**", "^"))[1]
    except StatementError as error:
        raise Refused("too-large", f"a root with {error}") from None
    Calculator().value(node, {})  # grading evaluates this text, so it must not be refused
    return write(node)


def _warm_up() -> None:
    """Solve one statement of each sort, so that all modules are loaded before the sandbox closes."""
    for text in (
        "x where 3*x + 1 = 2*x", "x where x^2 = 2, x > 0", "x where x + y = 3, x*y = 1, x > y",
        "x where 2*x + y = 7, x - y = 2", "x where x^3 - 2*x = 1, x < 0, x > -1", "x where 1/x = 2",
        "count(k in 1..9, prime(k)) + sigma(6) + divisors(8)", "x where x^4 = 16, x >= 0", "x where x^5 - x = 1",
        "a(3) where a(1) = 2, a(n) = a(n - 1)/2", "x where x^3 = 2", "x*y where x^2 + y^2 = 5, x + y = 3",
        "phi(12) + sqrt(8)",
    ):  # fmt: skip
        solve(text)


_warm_up()
