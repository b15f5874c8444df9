"""The change to a program's tree by which values whose attribute decides only at run time pass through a guard."""

from __future__ import annotations

import _ast as ast
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

    from .syntax import Grouped

GUARD = f"<guard {os.urandom(8).hex()}>"
"""The name of the guard among the builtins: no program can write it, or know it."""


def guard_attributes(nodes: Grouped, guard: str, guarded: Set[str]) -> None:
    """Have the values of ``guarded`` attributes pass through the guard, each with the name that is wanted of it."""
    for node in nodes.get(ast.Attribute, ()):
        if node.attr in guarded and type(node.ctx) is ast.Load:
            if type(node.value) is ast.Constant:
                continue  # the template is in the text, and has been looked at
            place = {
                name: getattr(node.value, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
            }
            function = ast.Name(guard, ast.Load(), **place)
            node.value = ast.Call(function, [node.value, ast.Constant(node.attr, **place)], [], **place)
