"""Whether honest programs pass as tasks, on functions of well-known packages with literal doctests.

``pip install --target FOLDER python-stdnum boltons more-itertools toolz networkx``, then
``python bench/library_functions.py FOLDER``. The sources are read, never imported. A function counts once for each
package that defines it, with its first example whose value is a literal and whose arguments are. What it needs of its
package is cut out with it; where that is not possible it does not count, and neither do functions that are not pure,
by what they import (``NOT_PURE``; ``codecs`` opens the tables of stdnum) or because they ask for the day. Prints a
table, every function that is refused or gives another value, and, as its last line, one JSON object.
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
"""Longest program: a table of stdnum, which many of its functions need, has as much as a proposal may."""
BUILTINS = frozenset(dir(builtins))
_PART = "__of__"


class NotCut(Exception):
    """A function that needs more of its package than definitions."""


class Source:
    """The modules of one folder of packages, parsed when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parsed: dict[Path, dict[str, ast.stmt]] = {}
        self.changed: dict[Path, set[str]] = {}

    def file_of(self, name: str) -> Path | None:
        """The file of a module or of a package, by its dotted name."""
        base = self.folder / name.replace(".", "/")
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)

    def definitions(self, path: Path) -> dict[str, ast.stmt]:
        """What the top level of a file defines, by name; the last definition counts."""
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

    def cut(self, path: Path, name: str) -> str:
        """The source of one function, after all of its package that it needs, imports first."""
        order: dict[str, str] = {}
        self._need(path, name, order, set())
        imports = [text for text in order.values() if text.startswith(("import ", "from "))]
        return "\n".join(dict.fromkeys([*imports, *order.values()]))

    def unique(self, path: Path, name: str) -> str:
        """The name of a definition in a program: two modules may define the same."""
        return "_".join((*path.relative_to(self.folder).with_suffix("").parts, name))

    def _need(self, path: Path, name: str, order: dict[str, str], begun: set[str]) -> str:
        """Add the definition of a name in a file, after all that it names; returns its name in the program."""
        node, label = self.definitions(path).get(name), self.unique(path, name)
        if node is None:
            raise NotCut(f"no definition of {name}")
        if isinstance(node, ast.ImportFrom) and self._is_own(path, node):
            alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
            target = self.file_of(self._module_of(path, node))
            if target is None or alias.name not in self.definitions(target):
                raise NotCut(f"{name} is a module")
            if (passed := f"{label} is imported") in begun:
                raise NotCut(f"{name} is imported in a circle")
            begun.add(passed)
            try:
                return self._need(target, alias.name, order, begun)
            finally:
                begun.remove(passed)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Try):
            if _names_in(node) & self.definitions(path).keys() or "networkx" in ast.unparse(node):
                raise NotCut(f"{name} is imported with more of its package")
            order[ast.unparse(node)] = ast.unparse(node)
            return name
        if name in self.changed[path]:
            raise NotCut(f"{name} is changed after its definition")
        if label in begun:
            return label
        begun.add(label)
        node = _bare(node)
        if any(isinstance(inner, ast.ImportFrom) and self._is_own(path, inner) for inner in ast.walk(node)):
            raise NotCut(f"{name} imports of its package when it is called")
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
                raise NotCut(f"no definition of {other}")
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                inner.id = renamed.get(inner.id, inner.id)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = label
        order[label] = ast.unparse(node)
        return label

    def _join_modules(self, path: Path, node: ast.stmt) -> None:
        """Make one name of a module of the package and what is read of it."""
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
        """The dotted name of the module that a name of this file stands for, if it is one of its package."""
        node = self.definitions(path).get(name)
        if not isinstance(node, ast.ImportFrom):
            return None
        alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
        module = f"{self._module_of(path, node)}.{alias.name}"
        return module if module.split(".")[0] in PACKAGES and self.file_of(module) else None

    def _is_own(self, path: Path, node: ast.ImportFrom) -> bool:
        return self._module_of(path, node).split(".")[0] in PACKAGES

    def _module_of(self, path: Path, node: ast.ImportFrom) -> str:
        """The dotted name of the module that a ``from`` import reads."""
        parts = path.relative_to(self.folder).parts[: -node.level] if node.level else ()
        return ".".join([*parts, *([node.module] if node.module else [])])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of the top level; of an import from the package that is tried, the import."""
    for node in body:
        if isinstance(node, ast.Try) and isinstance(node.body[0], ast.ImportFrom) and node.body[0].level:
            yield from node.body
        else:
            yield node


def _bound_by(node: ast.stmt) -> list[str]:
    """The names that one statement of the top level binds."""
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
    """A definition without what is not its work: docstrings, annotations, networkx's dispatching."""
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
    """The names that a definition reads and does not bind itself."""
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
    """The examples of a function, or of its module, that are one call with literal arguments and give a literal: a
    program's last line, its input and the value promised."""
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
    """Puts the values of earlier lines in the place of their names."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """One name."""
        return self.known.get(node.id, node)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _literal(text: str) -> tuple[object] | None:
    """The value of a literal, in a tuple of one; None where the text is none."""
    try:
        return (ast.literal_eval(text.strip()),)
    except (ValueError, SyntaxError, TypeError, MemoryError):
        return None


def collect(folder: Path) -> tuple[list[Candidate], dict[str, str], Counter[str]]:
    """The programs of all packages, the values that they promise, and why others were not cut out."""
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
                    code = f"{source.cut(path, name)}\n{name} = {source.unique(path, name)}\n"
                    code += f"def f(args, kwargs):\n    return {last}\n"
                except NotCut as error:
                    print(f"not cut  {label}: {error}")
                    left_out["not cut out"] += 1
                    continue
                found = _modules_of(code) & NOT_PURE or {word for word in CLOCK if word in code}
                if found:
                    left_out[f"not pure: {', '.join(sorted(found))}"] += 1
                    continue
                candidates.append(Candidate(label, "T", "S", "code_o", text="", code=code, inputs=(given,)))
                promised[label] = want
    return candidates, promised, left_out


def _modules_of(code: str) -> set[str]:
    """The modules that a program imports, by their first names."""
    found = set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def main() -> None:
    """Check every program; print what was refused and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the five packages were installed")
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
        if given.split() != wanted.split():  # stdnum's docstrings are read without regard to white space
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
