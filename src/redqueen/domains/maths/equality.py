"""Whether two numbers in LaTeX are the same value, by math-verify. Texts of models are parsed here: in a sandbox."""

from __future__ import annotations

import contextlib
import logging

import math_verify


def is_equal(gold: str, answer: str) -> bool:
    """Tell whether the answer has the gold answer's value. What the library cannot read is not equal."""
    with contextlib.suppress(Exception):  # whatever a strange answer makes the library raise, it is not equal
        read = [math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (gold, answer)]
        return bool(math_verify.verify(read[0], read[1], timeout_seconds=None))
    return False


def _warm_up() -> None:
    """Compare some of each sort, so that all modules are there before the sandbox closes."""
    for gold, answer in (
        ("5", "x=5"), ("\\frac{1}{2}", "0.5"), ("\\sqrt{2}", "2^{1/2}"), ("(1,2)", "(2,1)"), ("\\{1,2\\}", "\\{2,1\\}"),
        ("1+\\sqrt{5}", "\\sqrt{5}+1"), ("3", "three"), ("5", "\\text{5 apples}"), ("\\pi", "3.14"), ("50\\%", "0.5"),
        ("\\int_0^1 x\\,dx", "\\int_0^1 y\\,dy"), ("[1,2]", "(1,2)"), ("x<5", "5>x"), ("\\sum_{k=1}^3 k", "6"),
    ):  # fmt: skip
        is_equal(gold, answer)


logging.disable(logging.CRITICAL)
_warm_up()
