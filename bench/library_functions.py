"""Test whether the verifier accepts real programs: functions of well-known packages with literal doctests.

``pip install --target FOLDER python-stdnum boltons more-itertools toolz networkx``, then
``python bench/library_functions.py FOLDER``. The sources are read, never imported. A function counts once for each
package that defines it, with its first example whose arguments and value are literals. The definitions of its package
that it needs are extracted with it. Functions for which that is not possible do not count, nor do functions that are
not pure by their imports (``NOT_PURE``; ``codecs`` opens the tables of stdnum) or because they read the date. Prints a
table, every function that is rejected or gives another value, and, as its last line, one JSON object.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import doctest
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from redqueen.domains.registry import check
from redqueen.records import Candidate, Task
from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.literals import canonical

PACKAGES = ("stdnum", "boltons", "more_itertools", "toolz", "networkx")
NOT_PURE = {
    "codecs",
    "inspect",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sys",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
CLOCK = (".today(", ".now(")
MAX_CODE_CHARS = 32_768
"""Longest program: a table that many functions of stdnum need is as long as a proposal may be."""
BUILTINS = frozenset(dir(builtins))
_PART = "__of__"


class NotExtracted(Exception):
    """A function that needs more of its package than definitions."""


class Source:
    """The modules of one folder of packages, parsed on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parsed: dict[Path, dict[str, ast.stmt]] = {}
        self.changed: dict[Path, set[str]] = {}

    def file_of(self, name: str) -> Path | None:
        """Return the file of a module or package, by its dotted name."""
        base = self.folder / name.replace(".", "/")
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)

    def definitions(self, path: Path) -> dict[str, ast.stmt]:
        """Return the definitions at the top level of a file by name; the last definition counts."""
        if path not in self.parsed:
            found = self.parsed[path] = {}
            changed = self.changed[path] = set[str]()
            for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
                if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                    target = self.file_of(self._module_of(path, node))
                    found |= self.definitions(target) if target else {}
                else:
                    found |= dict.fromkeys(bound := _bound_by(node), node)
                    changed |= set() if bound or isinstance(node, ast.If) else _names_in(node)
        return self.parsed[path]

    def extract(self, path: Path, name: str) -> str:
        """Return the source of one function after the definitions that it needs, imports first."""
        order: dict[str, str] = {}
        self._need(path, name, order, set())
        imports = [text for text in order.values() if text.startswith(("import ", "from "))]
        return "\n".join(dict.fromkeys([*imports, *order.values()]))

    def unique(self, path: Path, name: str) -> str:
        """Return the name of a definition in a program, unique because two modules may define the same name."""
        return "_".join((*path.relative_to(self.folder).with_suffix("").parts, name))

    def _need(self, path: Path, name: str, order: dict[str, str], begun: set[str]) -> str:
        """Add the definition of a name in a file after those it depends on; return its name in the program."""
        node, label = self.definitions(path).get(name), self.unique(path, name)
        if node is None:
            raise NotExtracted(f"no definition of {name}")
        if isinstance(node, ast.ImportFrom) and self._is_own(path, node):
            alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
            target = self.file_of(self._module_of(path, node))
            if target is None or alias.name not in self.definitions(target):
                raise NotExtracted(f"{name} is a module")
            if (passed := f"{label} is imported") in begun:
                raise NotExtracted(f"{name} is imported in a circle")
            begun.add(passed)
            try:
                return self._need(target, alias.name, order, begun)
            finally:
                begun.remove(passed)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Try):
            if _names_in(node) & self.definitions(path).keys() or "networkx" in ast.unparse(node):
                raise NotExtracted(f"{name} is imported with more of its package")
            order[ast.unparse(node)] = ast.unparse(node)
            return name
        if name in self.changed[path]:
            raise NotExtracted(f"{name} is changed after its definition")
        if label in begun:
            return label
        begun.add(label)
        node = _bare(node)
        if any(isinstance(inner, ast.ImportFrom) and self._is_own(path, inner) for inner in ast.walk(node)):
            raise NotExtracted(f"{name} imports of its package when it is called")
        self._join_modules(path, node)
        renamed = {name: label}
        for other in sorted(_names_in(node) - {name}):
            if _PART in other:
                module, _, part = other.partition(_PART)
                target = self.file_of(module)
                assert target is not None
                renamed[other] = self._need(target, part, order, begun)
            elif other in self.definitions(path):
                renamed[other] = self._need(path, other, order, begun)
            elif other not in BUILTINS:
                raise NotExtracted(f"no definition of {other}")
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                inner.id = renamed.get(inner.id, inner.id)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = label
        order[label] = ast.unparse(node)
        return label

    def _join_modules(self, path: Path, node: ast.stmt) -> None:
        """Replace attribute access on a module of the package by a single name."""
        for inner in ast.walk(node):
            for field, value in ast.iter_fields(inner):
                for index, one in enumerate(value if isinstance(value, list) else [value]):
                    if not (isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)):
                        continue
                    if (module := self._module_named(path, one.value.id)) is None:
                        continue
                    name = ast.Name(f"{module}{_PART}{one.attr}", ast.Load())
                    if isinstance(value, list):
                        value[index] = name
                    else:
                        setattr(inner, field, name)

    def _module_named(self, path: Path, name: str) -> str | None:
        """Return the dotted name of the package's module that a name of this file refers to, if any."""
        node = self.definitions(path).get(name)
        if not isinstance(node, ast.ImportFrom):
            return None
        alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
        module = f"{self._module_of(path, node)}.{alias.name}"
        return module if module.split(".")[0] in PACKAGES and self.file_of(module) else None

    def _is_own(self, path: Path, node: ast.ImportFrom) -> bool:
        return self._module_of(path, node).split(".")[0] in PACKAGES

    def _module_of(self, path: Path, node: ast.ImportFrom) -> str:
        """Return the dotted name of the module of a ``from`` import."""
        parts = path.relative_to(self.folder).parts[: -node.level] if node.level else ()
        return ".".join([*parts, *([node.module] if node.module else [])])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of the top level; of a ``try`` with an import from the package, the import."""
    for node in body:
        if isinstance(node, ast.Try) and isinstance(node.body[0], ast.ImportFrom) and node.body[0].level:
            yield from node.body
        else:
            yield node


def _bound_by(node: ast.stmt) -> list[str]:
    """Return the names that one statement of the top level binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.split(".")[0] for alias in names]
        case ast.Assign(targets=targets):
            names = [leaf for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
            return [leaf.id for leaf in names if isinstance(leaf.ctx, ast.Store)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Try(body=body):
            return [name for inner in body for name in _bound_by(inner)]
    return []


def _bare(node: ast.stmt) -> ast.stmt:
    """Return a definition without docstrings, annotations and networkx's dispatching."""
    node = ast.parse(ast.unparse(node)).body[0]
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(inner) is not None:
                inner.body = inner.body[1:] or [ast.Pass()]
            inner.decorator_list = [one for one in inner.decorator_list if "_dispatchable" not in ast.unparse(one)]
        if isinstance(inner, ast.FunctionDef):
            inner.returns = None
            for argument in ast.walk(inner.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
        if isinstance(inner, ast.AnnAssign):
            inner.annotation = ast.Name("object", ast.Load())
    return node


def _names_in(node: ast.AST) -> set[str]:
    """Return the names that a definition reads and does not bind itself."""
    read, bound = set[str](), set[str]()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import() | ast.ImportFrom():
                bound.update(_bound_by(inner))
    return read - bound - {"__name__", "__file__"}


def examples(function: ast.FunctionDef, module: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield the examples of a function or its module that are one call with literal arguments and a literal value: the
    program's last line, its input and the expected value."""
    known: dict[str, ast.expr] = {}
    try:
        texts = (ast.get_docstring(function) or "", ast.get_docstring(module) or "")
        found = [example for text in texts for example in doctest.DocTestParser().get_examples(text)]
    except ValueError:
        return
    for example in found:
        try:
            line = ast.parse(example.source.strip()).body[0]
        except (SyntaxError, IndexError):
            continue
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            known[line.targets[0].id] = line.value
        if not isinstance(line, ast.Expr) or _literal(example.want) is None:
            continue
        calls = [node for node in ast.walk(line) if isinstance(node, ast.Call) and _called(node) == function.name]
        if len(calls) != 1:
            continue
        call = _Insert(known).visit(calls[0])
        by_place, by_name = map(ast.unparse, call.args), {one.arg: ast.unparse(one.value) for one in call.keywords}
        given = f"[{', '.join(by_place)}], {{{', '.join(f'{name!r}: {text}' for name, text in by_name.items())}}}"
        if None in by_name or _literal(given) is None:
            continue
        call.func = ast.Name(function.name)
        call.args, call.keywords = [ast.Starred(ast.Name("args"))], [ast.keyword(None, ast.Name("kwargs"))]
        if _names_in(line) <= BUILTINS | {function.name, "args", "kwargs"}:
            yield ast.unparse(line), given, example.want.strip()


class _Insert(ast.NodeTransformer):
    """Replaces names by the values that earlier lines gave them."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """One name."""
        return self.known.get(node.id, node)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _literal(text: str) -> tuple[object] | None:
    """Return the value of a literal in a tuple of one; None if the text is not a literal."""
    try:
        return (ast.literal_eval(text.strip()),)
    except (ValueError, SyntaxError, TypeError, MemoryError):
        return None


def collect(folder: Path) -> tuple[list[Candidate], dict[str, str], Counter[str]]:
    """Return the programs of all packages, their expected values, and the reasons why others were not extracted."""
    source, left_out = Source(folder), Counter[str]()
    candidates, promised = list[Candidate](), dict[str, str]()
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*.py")):
            if "test" in path.relative_to(folder).as_posix():
                continue
            module = ast.parse(path.read_text(encoding="utf-8"))
            for node in module.body:
                example = next(examples(node, module), None) if isinstance(node, ast.FunctionDef) else None
                if example is None:
                    continue
                name = node.name
                label = f"{path.relative_to(folder).with_suffix('').as_posix().replace('/', '.')}.{name}"
                last, given, want = example
                try:
                    code = f"{source.extract(path, name)}\n{name} = {source.unique(path, name)}\n"
                    code += f"def f(args, kwargs):\n    return {last}\n"
                except NotExtracted as error:
                    print(f"not extracted  {label}: {error}")
                    left_out["not extracted"] += 1
                    continue
                found = _modules_of(code) & NOT_PURE or {word for word in CLOCK if word in code}
                if found:
                    left_out[f"not pure: {', '.join(sorted(found))}"] += 1
                    continue
                candidates.append(Candidate(label, "T", "S", "code_o", text="", code=code, inputs=(given,)))
                promised[label] = want
    return candidates, promised, left_out


def _modules_of(code: str) -> set[str]:
    """Return the top-level names of the modules that a program imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def main() -> None:
    """Check every program; print the rejected ones and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder in which the five packages were installed")
    folder = parser.parse_args().folder
    if missing := [name for name in PACKAGES if not (folder / name).is_dir()]:
        sys.exit(f"{folder} has no {', '.join(missing)}: pip install --target {folder} them first")
    candidates, promised, left_out = collect(folder)
    with Sandbox(workers=2, limits=Limits(max_code_chars=MAX_CODE_CHARS)) as verifier:
        results = check(candidates, verifier)
    accepted, wrong = Counter[str](), 0
    for candidate, result in zip(candidates, results, strict=True):
        package = candidate.id.split(".")[0]
        if not isinstance(result, Task):
            print(f"refused  {candidate.id}: {result.reason}, {result.detail[:80]}")
            continue
        accepted[package] += 1
        given, wanted = result.outputs[0], canonical(promised[candidate.id])
        if given.split() != wanted.split():  # stdnum's docstrings ignore white space
            wrong += 1
            print(f"another  {candidate.id}: {given} where {wanted} is promised")
    total = Counter(candidate.id.split(".")[0] for candidate in candidates)
    for package in PACKAGES:
        print(f"{package:16s} {accepted[package]:4d} of {total[package]:4d} accepted")
    for reason, count in left_out.most_common():
        print(f"{count:4d} {reason}")
    share = accepted.total() / len(candidates)
    figures = {
        "programs": len(candidates),
        "accepted": sum(accepted.values()),
        "share": round(share, 4),
        "wrong": wrong,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
