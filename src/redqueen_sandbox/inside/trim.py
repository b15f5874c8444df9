"""What never runs is left out: the block for ``__name__ == "__main__"``, and the imports and functions only it uses."""

from __future__ import annotations

import _ast as ast

from . import syntax


def trim(tree: ast.AST, entry: str) -> None:
    """Take the main block out of the tree, with the imports and plain functions of the module that nothing else uses.

    A program is imported, not started. One that sets ``__name__`` itself is left as it is.
    """
    if not isinstance(tree, ast.Module):
        return
    blocks = [node for node in tree.body if isinstance(node, ast.If) and _is_main_test(node.test)]
    if not blocks or _binds_name(tree):
        return
    dropped = set().union(*[_used(child) for block in blocks for child in [block.test, *block.body]])
    body: list[ast.stmt] = []
    for node in tree.body:
        body += node.orelse if node in blocks else [node]  # type: ignore[attr-defined]
    tree.body = _without_unused(body, dropped, entry) or [
        ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    ]


def _is_main_test(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return _is_main_test(test.values[0])
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, test.comparators[0]]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def _binds_name(tree: ast.Module) -> bool:
    return any(
        node.id == "__name__" and not isinstance(node.ctx, ast.Load) for node in syntax.group(tree).get(ast.Name, ())
    )


def _used(node: ast.AST) -> set[str]:
    return {name.id for name in syntax.group(node).get(ast.Name, ())}


def _without_unused(body: list[ast.stmt], dropped: set[str], entry: str) -> list[ast.stmt]:
    """Drop imports and undecorated functions that what was dropped uses, and nothing that is kept."""
    uses = [_used(node) - ({node.name} if isinstance(node, _FUNCTIONS) else set()) for node in body]
    kept = list(range(len(body)))
    is_changed = True
    while is_changed:
        is_changed = False
        for i in kept:
            wanted = {entry}.union(*[uses[k] for k in kept if k != i])
            node = body[i]
            if isinstance(node, _FUNCTIONS) and not node.decorator_list:
                is_unused = node.name in dropped and node.name not in wanted
            elif isinstance(node, ast.Import | ast.ImportFrom):
                node.names = [alias for alias in node.names if _bound(alias) not in dropped or _bound(alias) in wanted]
                is_unused = not node.names
            else:
                continue
            if is_unused:
                dropped |= uses[i]
                kept.remove(i)
                is_changed = True
                break
    return [body[i] for i in kept]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]
