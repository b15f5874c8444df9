"""The class and the size of a task: what sort of thing it asks, and how long and laborious it is, told apart.

Two tasks of one class map the same types with the same constructs; their programs may still do different things (a
digest of inputs and outputs, ``behaviour_key``, tells those). The size says what makes a task hard without making it
interesting: much to read, many arithmetic steps, large numbers. Ground: ours.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from redqueen.domains.code.measures import UNPARSABLE
from redqueen.nouns import Task

_CONSTRUCTS: dict[type, str] = {
    ast.For: "loop",
    ast.While: "loop",
    ast.If: "branch",
    ast.IfExp: "branch",
    ast.Match: "branch",
    ast.ListComp: "comprehension",
    ast.SetComp: "comprehension",
    ast.DictComp: "comprehension",
    ast.GeneratorExp: "comprehension",
    ast.Subscript: "subscript",
    ast.Try: "exception",
}


def behaviour_class(task: Task) -> str:
    """Return the class of a verified task: kind, types of the first input and output, constructs of the program.

    For example ``code_o int,list->str branch+loop``; ``plain`` stands for a program without any of the constructs.
    """
    inputs = ",".join(_types(f"f({task.inputs[0]})"))
    output = ",".join(_types(f"f({task.outputs[0]})"))
    return f"{task.kind} {inputs}->{output} {_constructs(task.code)}"


def size_class(task: Task) -> str:
    """Return the size of a verified task as text: kind, length, arithmetic and magnitude, each in coarse steps.

    Length is the octave (power of two) of the characters of program, inputs and outputs; arithmetic the octave of one
    more than the number of arithmetic operators; magnitude the number of digits of the largest integer, at most 9.
    """
    arithmetic, digits = _labour(task.code)
    written = " ".join((*task.inputs, *task.outputs))
    length = (len(task.code) + len(written)).bit_length()
    digits = max(digits, max(map(len, _runs_of_digits(written)), default=0))
    return f"{task.kind} length {length} arithmetic {(arithmetic + 1).bit_length()} digits {min(9, digits)}"


def _types(call: str) -> list[str]:
    """The types of the literals between the brackets of a call."""
    try:
        parsed = ast.parse(call, mode="eval").body
    except UNPARSABLE:
        return ["?"]
    return [_type(value) for value in parsed.args] if isinstance(parsed, ast.Call) else ["?"]


def _type(value: ast.expr) -> str:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.Constant):
        return type(value.value).__name__
    if isinstance(value, ast.Call):  # an empty set is written set()
        return "set"
    return type(value).__name__.lower()


@lru_cache(maxsize=4096)
def _constructs(code: str) -> str:
    found: set[str] = set()
    functions: list[str] = []
    called: set[str] = set()
    for node in _walk(code):
        if type(node) in _CONSTRUCTS:
            found.add(_CONSTRUCTS[type(node)])
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            functions.append(node.name if isinstance(node, ast.FunctionDef) else "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(node.func.id)
    if len(functions) > 1:
        found.add("helper")
    if "f" in called:
        found.add("recursion")
    return "+".join(sorted(found)) or "plain"


@lru_cache(maxsize=4096)
def _labour(code: str) -> tuple[int, int]:
    """The number of arithmetic operators in a program and the digits of its largest integer."""
    arithmetic = digits = 0
    for node in _walk(code):
        arithmetic += isinstance(node, ast.BinOp | ast.AugAssign)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            digits = max(digits, len(str(min(node.value, 10**9))))
    return arithmetic, digits


def _walk(code: str) -> Iterator[ast.AST]:
    try:
        return ast.walk(ast.parse(code))
    except UNPARSABLE:
        return iter(())


def _runs_of_digits(text: str) -> list[str]:
    return "".join(c if c.isdecimal() else " " for c in text).split()
