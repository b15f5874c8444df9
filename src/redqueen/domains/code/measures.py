"""Structural measures of a program, and the class and size of a task, computed from the syntax without running it.

The measures follow the definitions of ``radon`` where it has one, and are tested against it. All are computed in one
walk over the tree. Measure verified programs only: hostile source must be parsed in a child process, not here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from redqueen.records import Task

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of ``ast.parse`` for a text that is not a program or is too deeply nested."""
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


@dataclass(frozen=True)
class Measures:
    """Measures of one program.

    ``ast_depth``: nodes on the longest path from the module to a leaf, operators and contexts not counted (ours).
    ``cyclomatic``: 1 + decision points (McCabe; counted as radon does, nested functions once). ``num_lines``: lines
    that are neither blank nor only a comment or a docstring (radon's sloc). ``num_variables``: distinct names assigned
    or taken as parameters.
    """

    ast_depth: int
    cyclomatic: int
    num_lines: int
    num_variables: int


def measure(code: str) -> Measures:
    """Measure one program. Raises ValueError when it does not parse."""
    try:
        tree = ast.parse(code)
    except UNPARSABLE as error:
        raise ValueError(f"the program does not parse ({type(error).__name__})") from None
    walk = _Walk(tree)
    return Measures(
        ast_depth=walk.depth,
        cyclomatic=walk.cyclomatic,
        num_lines=_num_code_lines(code, walk.docstring_lines),
        num_variables=len(walk.variables),
    )


def _num_code_lines(code: str, docstring_lines: set[int]) -> int:
    lines = enumerate(code.splitlines(), start=1)
    return sum(1 for i, line in lines if (bare := line.strip()) and bare[0] != "#" and i not in docstring_lines)


class _Walk:
    """One pass over a tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.depth = 0
        self.cyclomatic = 1
        self.variables: set[str] = set()
        self.docstring_lines: set[int] = set()
        stack: list[tuple[ast.AST, int, bool]] = [(tree, 1, True)]  # a node, its depth, whether decisions count
        while stack:
            node, depth, decides = stack.pop()
            kind = type(node)
            if depth > self.depth:
                self.depth = depth
            if kind is ast.Name:
                if type(node.ctx) is ast.Store:  # type: ignore[attr-defined]
                    self.variables.add(node.id)  # type: ignore[attr-defined]
                continue
            if kind in _LEAVES:
                continue
            if kind is ast.Expr and type(node.value) is ast.Constant:  # type: ignore[attr-defined]
                self.docstring_lines.update(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]
            if decides and kind in _DECISIONS:
                self.cyclomatic += _DECISIONS[kind](node)
                decides = kind is not ast.Assert  # radon does not enter assertions
            depth += 1
            if kind in _FUNCTIONS:  # parameters and decorators count for depth and names only
                stack.extend([(item, depth, decides) for item in node.body])  # type: ignore[attr-defined]
                heads = [node.args, *node.decorator_list]  # type: ignore[attr-defined]
                heads += [node.returns] if node.returns else []  # type: ignore[attr-defined]
                stack.extend([(item, depth, False) for item in heads])
                continue
            if kind is ast.arg:
                self.variables.add(node.arg)  # type: ignore[attr-defined]
            for name in node._fields:
                value = getattr(node, name)
                if type(value) is list:
                    stack.extend([(item, depth, decides) for item in value if type(item) in _TREE])
                elif type(value) in _TREE:
                    stack.append((value, depth, decides))


def _match_paths(node: ast.Match) -> int:
    catches_all = any(isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None for case in node.cases)
    return max(0, len(node.cases) - catches_all)


def _loop_paths(node: ast.For | ast.AsyncFor | ast.While) -> int:
    return 1 + bool(node.orelse)


_DECISIONS: dict[type, Callable[..., int]] = {
    ast.Try: lambda node: len(node.handlers) + bool(node.orelse),
    ast.BoolOp: lambda node: len(node.values) - 1,
    ast.If: lambda node: 1,
    ast.IfExp: lambda node: 1,
    ast.Match: _match_paths,
    ast.For: _loop_paths,
    ast.AsyncFor: _loop_paths,
    ast.While: _loop_paths,
    ast.comprehension: lambda node: len(node.ifs) + 1,
    ast.Assert: lambda node: 1,
}
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
_LEAVES = frozenset({ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.alias})


def _tree_types() -> Iterator[type]:
    """Yield every node type except operators and contexts, which are attributes of a node."""
    marks = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.type_ignore)
    for kind in vars(ast).values():
        if isinstance(kind, type) and issubclass(kind, ast.AST) and not issubclass(kind, marks):
            yield kind


_TREE = frozenset(_tree_types())


def behaviour_class(task: Task) -> str:
    """Return the class of a verified task: kind, types of the first input and output, constructs of the program.

    For example ``code_o int,list->str branch+loop``; ``plain`` is a program without any of the constructs. Tasks of one
    class map the same types with the same constructs; their programs may still compute different things (ours).
    """
    inputs = ",".join(_types(f"f({task.inputs[0]})"))
    output = ",".join(_types(f"f({task.outputs[0]})"))
    return f"{task.kind} {inputs}->{output} {_constructs(task.code)}"


def size_class(task: Task) -> str:
    """Return the size of a verified task as text: kind, length, arithmetic and digits, each in coarse steps.

    Length is the octave (power of two) of the number of characters of program, inputs and outputs. Arithmetic is the
    octave of 1 + the number of arithmetic operators. Digits are those of the largest integer, at most 9.
    """
    arithmetic, digits = _arithmetic(task.code)
    written = " ".join((*task.inputs, *task.outputs))
    length = (len(task.code) + len(written)).bit_length()
    digits = max(digits, max(map(len, re.findall(r"\d+", written)), default=0))
    return f"{task.kind} length {length} arithmetic {(arithmetic + 1).bit_length()} digits {min(9, digits)}"


def _types(call: str) -> list[str]:
    """Return the types of the literal arguments of a call."""
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
def _arithmetic(code: str) -> tuple[int, int]:
    """Return the number of arithmetic operators in a program, and the number of digits of its largest integer."""
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
