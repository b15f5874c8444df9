"""Whether two answers have the same value. Texts of models are parsed here by libraries: in a sandbox."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import math_verify
import sympy

from redqueen.domains.maths.exact import Calculator, compare
from redqueen.domains.maths.language import StatementError, parse


def is_equal(gold: str, answer: str) -> bool:
    """Return whether an answer in LaTeX has the gold answer's value. What the library cannot read is not equal."""
    with contextlib.suppress(Exception):  # whatever a strange answer makes a library raise, it is not equal
        return _same(_of_latex(gold), _of_latex(answer))
    return False


def states(gold: str, answer: str) -> bool:
    """Return whether an answer, in LaTeX or in the language, has the value of a gold answer of the language."""
    with contextlib.suppress(Exception):
        try:
            value = Calculator().value(parse(answer)[1], {})
        except StatementError:
            value = _of_latex(answer)
        return _same(Calculator().value(parse(gold)[1], {}), value)
    return False


def _of_latex(text: str) -> Any:
    return math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None)[0]


def _same(gold: Any, answer: Any) -> bool:
    """Compare numbers exactly (the library rounds to six places), and inequalities as the sets that they describe."""
    sides = [_as_set(sympy.sympify(side)) for side in (gold, answer)]
    if all(isinstance(side, sympy.Expr) and side.is_number and side.is_real for side in sides):
        return compare("=", *(sympy.nsimplify(side, rational=True) for side in sides))
    return bool(math_verify.verify(*sides, allow_set_relation_comp=True, timeout_seconds=None))


def _as_set(value: Any) -> Any:
    """Return several inequalities as the union of what each describes."""
    if isinstance(value, sympy.FiniteSet) and value.args and all(hasattr(part, "as_set") for part in value.args):
        return sympy.Union(*(part.as_set() for part in value.args))
    return value


def _warm_up() -> None:
    """Compare some of each sort, so that all modules are there before the sandbox closes."""
    for gold, answer in (
        ("5", "x=5"), ("\\frac{1}{2}", "0.5"), ("\\sqrt{2}", "2^{1/2}"), ("(1,2)", "(2,1)"), ("\\{1,2\\}", "\\{2,1\\}"),
        ("1+\\sqrt{5}", "\\sqrt{5}+1"), ("3", "three"), ("5", "\\text{5 apples}"), ("\\pi", "3.14"), ("50\\%", "0.5"),
        ("\\int_0^1 x\\,dx", "\\int_0^1 y\\,dy"), ("[1,2]", "(1,2)"), ("x<5", "5>x"), ("\\sum_{k=1}^3 k", "6"),
        ("(-\\infty,2)\\cup(3,\\infty)", "x<2, x>3"),
    ):  # fmt: skip
        is_equal(gold, answer)
    states("2*sqrt(3)", "sqrt(12)")


logging.disable(logging.CRITICAL)
_warm_up()
