"""Whether two answers have the same value. Libraries parse models' texts here, so this module runs in the sandbox."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import math_verify
import sympy
from latex2sympy2_extended import NormalizationConfig
from sympy.core.relational import Relational

from redqueen.domains.maths.exact import Calculator, compare
from redqueen.domains.maths.language import StatementError, parse


def is_equal(gold: str, answer: str) -> bool:
    """Return whether an answer in LaTeX has the gold answer's value. Text that the library cannot read is not equal."""
    with contextlib.suppress(Exception):  # an answer on which a library raises is not equal
        return _same(_of_latex(gold), _of_latex(answer))
    return False


def states(gold: str, answer: str) -> bool:
    """Return whether an answer, in LaTeX or the formal language, has the value of a gold answer in that language."""
    with contextlib.suppress(Exception):
        try:
            in_language = answer.replace("\\sqrt{", "sqrt(").replace("}", ")")
            value = Calculator().value(parse(in_language)[1], {})
        except StatementError:
            value = _of_latex(answer)
        return _same(Calculator().value(parse(gold)[1], {}), value)
    return False


def _of_latex(text: str) -> Any:
    """Return the value of LaTeX. Inequalities become sets; parts joined by ``\\cup`` become their union."""
    parts = [_as_set(_parsed(part)) for part in text.split("\\cup")]
    sets = [part if isinstance(part, sympy.Set) else sympy.FiniteSet(part) for part in parts]
    return sympy.Union(*sets) if len(sets) > 1 else parts[0]


def _parsed(text: str) -> Any:
    read = NormalizationConfig(malformed_operators=True, nits=True)  # with ``units``, 4ab would be read as 4
    config = [math_verify.LatexExtractionConfig(normalization_config=read)]  # the other config evaluates Python
    return math_verify.parse(f"\\boxed{{{text}}}", config, parsing_timeout=None)[0]


def _as_set(value: Any) -> Any:
    """Return inequalities of one unknown as a set: their intersection, or if that is empty their union."""
    several = value.args if isinstance(value, sympy.FiniteSet) else (value,)
    if not all(isinstance(one, Relational | sympy.And) and len(one.free_symbols) == 1 for one in several) or value.has(
        sympy.Eq
    ):
        return value
    sets = [one.as_set() for one in several]
    joint = sympy.Intersection(*sets)
    return sympy.Union(*sets) if joint.is_empty else joint


def _same(gold: Any, answer: Any) -> bool:
    """Compare exactly, part by part: the library rounds to six decimals and treats tiny numbers as equal."""
    if isinstance(gold, sympy.Interval) and isinstance(answer, sympy.Interval):
        ends = gold.args[2:] == answer.args[2:] and all(map(_same, gold.args[:2], answer.args[:2]))
        return bool(gold == answer or ends)
    if isinstance(gold, sympy.MatrixBase) and isinstance(answer, sympy.MatrixBase):
        return gold.shape == answer.shape and all(map(_same, gold, answer))
    if isinstance(gold, sympy.Union) and isinstance(answer, sympy.FiniteSet):
        answer = sympy.Union(*answer.args)  # its intervals, as a list
    wanted, given = _members(gold), _members(answer)
    if wanted and given:
        if len(wanted) != len(given) or not isinstance(gold, sympy.FiniteSet):
            return len(wanted) == len(given) and all(map(_same, wanted, given))
        return all(any(_same(one, other) for other in given) for one in wanted)
    gold, answer = _exact(gold), _exact(answer)
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        if all(side.is_number and side.is_real for side in (gold, answer)):
            return compare("=", gold, answer)
        difference = sympy.expand_complex(gold - answer) if (gold - answer).is_number else gold - answer
        return bool(gold == answer or sympy.simplify(difference) == 0)
    if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
        ratio = sympy.simplify((gold.lhs - gold.rhs) / (answer.lhs - answer.rhs))
        return bool(ratio.is_number and ratio.is_finite and ratio != 0)
    return bool(math_verify.verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None))


def _members(value: Any) -> Sequence[Any]:
    """Return the members of a list or tuple in order; an open interval may be a pair, so its ends are returned."""
    if isinstance(value, sympy.Interval):
        return (value.start, value.end) if value.is_open and value.is_Interval else ()
    return getattr(value, "_unsorted_args", value.args) if isinstance(value, sympy.FiniteSet | sympy.Tuple) else ()


def _exact(value: Any) -> Any:
    """Replace decimals by fractions, and the symbol ``i`` by the imaginary unit."""
    exact = {one: sympy.Rational(str(one)) for one in value.atoms(sympy.Float)}
    return value.xreplace(exact | {sympy.Symbol("i", real=real): sympy.I for real in (True, False)})


def _warm_up() -> None:
    """Compare some of each sort, so that all modules are loaded before the sandbox closes."""
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
