"""One text for all programs that differ only in names, comments, docstrings and layout: for de-duplication."""

from __future__ import annotations

import ast


def normalise(code: str) -> str:
    """Return the program with its own names renamed in order of appearance, without comments and docstrings.

    Names the program does not bind (builtins, modules, attributes) stay. Where ``f``, which is what is asked, is not
    the first name, a last line says which it is (and where it is, the forms are those that older runs remember). A
    program that does not parse is returned as it is, but for blanks at its ends.
    """
    try:
        tree = ast.parse(code)
        _drop_docstrings(tree)
        renamer = _Renamer(_own_names(tree))
        text = ast.unparse(renamer.visit(tree))
        asked = renamer.renamed.get("f", "v0")
        return text if asked == "v0" else f"{text}\n# {asked} is asked"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code.strip()


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])


def _own_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.alias) and node.asname:
            names.add(node.asname)
    return names | _own_functions(tree)


def _own_functions(tree: ast.AST) -> set[str]:
    """Functions and classes that are called by their bare name; methods keep theirs, as attributes do."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not isinstance(
            tree, ast.ClassDef
        ):
            found.add(node.name)
        found |= _own_functions(node)
    return found


class _Renamer(ast.NodeTransformer):
    """Replaces each of ``names`` by v0, v1, ... in the order in which the walk meets them."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.renamed: dict[str, str] = {}

    def rename(self, name: str | None) -> str | None:
        if name is None or name not in self.names:
            return name
        return self.renamed.setdefault(name, f"v{len(self.renamed)}")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Name):
            node.id = self.rename(node.id) or node.id
        elif isinstance(node, ast.arg):
            node.arg = self.rename(node.arg) or node.arg
        elif isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar,
        ):
            node.name = self.rename(node.name)  # type: ignore[assignment]
        elif isinstance(node, ast.MatchMapping):
            node.rest = self.rename(node.rest)
        elif isinstance(node, ast.alias):
            node.asname = self.rename(node.asname)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self.rename(name) or name for name in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.names:
            for pair in node.keywords:
                pair.arg = self.rename(pair.arg)
        return super().generic_visit(node)
