"""EvalPlus items as unit tests: the published assertions, and the reference solution's values on many more inputs.

EvalPlus publishes inputs as JSON, where tuples, sets and complex numbers are lists and strings, and compares sets if
the order is free. Both are inferred here from the item's own assertions: arguments get the types that they have there,
and values are compared as there. The reference runs in the process of the tests, not in that of the program.

Only plain values reach that process (``inside/roles.py``), so the comparison is Python's equality on plain data. If a
reference returns a match object or None, truth values are compared.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from redqueen.domains.rows import Row
from redqueen_sandbox.unit_tests import UnitTest

NUMPY_IMPORT = "import numpy as np"
NUMPY_STAND_IN = '''
class np:
    """The little of numpy that published tests use, for a process that has no numpy.

    Closeness goes element by element: a list is close to a list of the same length alone, never to a number.
    """
    ndarray = float32 = float64 = ()

    @staticmethod
    def allclose(a, b, rtol=1e-05, atol=1e-08):
        if type(a) in (list, tuple) or type(b) in (list, tuple):
            if type(a) is not type(b) or len(a) != len(b):
                return False
            return all(np.allclose(x, y, rtol, atol) for x, y in zip(a, b))
        if type(a) not in (int, float, complex) or type(b) not in (int, float, complex):
            return a == b
        return a == b or (abs(b) != float("inf") and abs(a - b) <= atol + rtol * abs(b))
'''

ORDER_IS_FREE = frozenset({"find_dissimilar", "Diff", "intersection_array"})
"""Functions of MBPP+ whose values are compared as sets although their assertions do not: the references of the first
two return the order of a set, which depends on the hash seed (EvalPlus does the same)."""

_COMPLEX = re.compile(r"\bcomplex\b")

_LOOP = """
import copy as _copy
inf, nan = float("inf"), float("nan")
_space = {{"__name__": "reference"}}
exec({reference!r}, _space)
_reference = _space[{entry!r}]

def _is_floats(value):
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)

def _check_value(given, value, expected):
    mode, atol = {mode!r}, {atol!r}
    if mode == "root":
        assert type(value) in (int, float) and abs(_space["poly"](*given, value)) <= (atol or 1e-4)
    elif mode == "set":
        assert type(value) in (list, tuple, set, frozenset, type(expected)) and set(value) == set(expected)
    elif mode == "truth" and type(expected) is not bool:
        assert bool(value) == bool(expected)
    elif value != expected:
        if atol == 0 and _is_floats(expected):
            atol = 1e-6
        assert atol and np.allclose(value, expected, 1e-07, atol)

for _given in {inputs}:
    _expected = _reference(*_copy.deepcopy(_given))
    _check_value(_given, candidate(*_copy.deepcopy(_given)), _expected)
"""


def with_stand_in(tests: str) -> str:
    """Replace the import of numpy in published tests by a stand-in, so that they run without numpy."""
    return tests.replace(NUMPY_IMPORT, NUMPY_STAND_IN)


def extended_test(row: Row, reference: str, helpers: str, assertions: str) -> UnitTest:
    """Return the tests of an item with ``base_input`` and ``plus_input``: its assertions, then the reference's values.

    ``reference`` is the whole reference program; ``helpers`` is code for the assertions. Raises UserError for a row
    that lacks a field.
    """
    entry = row.text("entry_point")
    examples = f"{assertions}\n{_asserts_of(row.text('prompt'))}"
    shown = example_arguments(examples, entry)
    takes_complex = bool(_COMPLEX.search(str(row.fields.get("contract") or "")))
    given = [*(row.fields.get("base_input") or []), *(row.fields.get("plus_input") or [])]
    inputs = [typed_arguments(arguments, shown, takes_complex) for arguments in given]
    atol = row.fields.get("atol") or 0
    mode = "root" if entry == "find_zero" else comparison(examples, entry)
    loop = _LOOP.format(reference=reference, entry=entry, mode=mode, atol=atol, inputs=repr(inputs))
    return UnitTest(row.text("task_id"), "", f"{assertions}\n{loop}", entry, f"{NUMPY_STAND_IN}\n{helpers}")


def example_arguments(assertions: str, entry: str) -> list[list[object]]:
    """Return the arguments of every call of ``entry`` in the assertions that has only literal arguments."""
    found = []
    for node in ast.walk(ast.parse(assertions)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry:
            try:
                found.append([ast.literal_eval(argument) for argument in node.args])
            except ValueError:
                continue
    return found


def comparison(assertions: str, entry: str) -> str:
    """Return how the assertions compare a value: as ``set``, ``truth`` or ``value``."""
    if entry in ORDER_IS_FREE:
        return "set"
    modes = set()
    for statement in ast.parse(assertions).body:
        if isinstance(statement, ast.Assert):
            test = statement.test
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test = test.operand
            left = test.left if isinstance(test, ast.Compare) else test
            name = left.func.id if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) else ""
            modes.add("set" if name == "set" else "truth" if name == entry and left is test else "value")
    return "set" if "set" in modes else "truth" if modes == {"truth"} else "value"


def typed_arguments(
    given: Sequence[object], shown: Sequence[Sequence[object]], takes_complex: bool = False
) -> list[Any]:
    """Give JSON arguments the types that the arguments at the same positions have in the examples.

    ``takes_complex``: the item's contract allows complex numbers, even if no example has one.
    """
    has_complex = takes_complex or any(isinstance(argument, complex) for arguments in shown for argument in arguments)
    typed: list[Any] = []
    for place, value in enumerate(given):
        if has_complex and isinstance(value, str):  # JSON has no complex numbers: such items have them as text
            typed.append(ast.literal_eval(value.replace(" ", "")))
        else:
            typed.append(_typed(value, [arguments[place] for arguments in shown if place < len(arguments)], list))
    return typed


def _typed(value: object, examples: Sequence[object], default: type) -> object:
    """Give a JSON value the types of its examples. Without an example, a list gets the type ``default``."""
    if isinstance(value, list):
        alike = [example for example in examples if isinstance(example, list | tuple | set | frozenset)]
        kinds = [type(example) for example in alike]
        kind = max(set(kinds), key=kinds.count) if kinds else default
        fixed = kind is tuple and all(isinstance(e, tuple) and len(e) == len(value) for e in alike) and alike
        flat = [inner for example in alike for inner in example]
        items = [
            _typed(
                item, [list(example)[place] for example in alike] if fixed else flat, kind if kind is tuple else list
            )
            for place, item in enumerate(value)
        ]
        return kind(items)
    if isinstance(value, dict):
        alike_dicts = [example for example in examples if isinstance(example, dict)]
        inner = [item for example in alike_dicts for item in example.values()]
        return {key: _typed(item, inner, list) for key, item in value.items()}
    return value


def _asserts_of(prompt: str) -> str:
    """Return the assertions in a prompt, one per line; "" when they do not parse."""
    lines = "\n".join(line.strip() for line in prompt.splitlines() if line.strip().startswith("assert "))
    try:
        ast.parse(lines)
    except SyntaxError:
        return ""
    return lines
