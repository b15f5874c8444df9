"""A refused name is refused wherever it stands, and every road by which a string becomes a name is guarded."""
# ruff: noqa: E501 (a program a line)

import ast
import re
from collections.abc import Callable
from pathlib import Path

import gate_attacks
import pytest

from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside import allowed, gate, syntax

POSITIONS = {
    "FunctionDef.name": "def {}(): pass",
    "AsyncFunctionDef.name": "async def {}(): pass",
    "ClassDef.name": "class {}: pass",
    "ImportFrom.module": "from {} import x",
    "Global.names": "def g():\n    global {}",
    "Nonlocal.names": "def g(x):\n    def h():\n        nonlocal x, {}",
    "Attribute.attr": "x.{}",
    "Name.id": "{} = 1",
    "ExceptHandler.name": "try: pass\nexcept E as {}: pass",
    "arg.arg": "lambda {}: 1",
    "keyword.arg": "g({}=1)",
    "alias.name": "from math import {}",
    "alias.asname": "import math as {}",
    "MatchMapping.rest": "match x:\n    case {{**{}}}: pass",
    "MatchClass.kwd_attrs": "match x:\n    case object({}=y): pass",
    "MatchStar.name": "match x:\n    case [*{}]: pass",
    "MatchAs.name": "match x:\n    case {}: pass",
    "TypeVar.name": "def g[{}](): pass",
    "ParamSpec.name": "def g[**{}](): pass",
    "TypeVarTuple.name": "def g[*{}](): pass",
}
"""A program for each field of the syntax that holds a name."""

MORE_POSITIONS = [
    "del x.{}", "x.{} = 1", "x.{} += 1", "(x.{} for x in y)", "(y := x.{})", "@x.{}\ndef g(): pass",
    "class A(metaclass=x.{}): pass", "class A(x, {}=1): pass", "def g(a=x.{}): pass", "def g() -> x.{}: pass",
    "def g(*{}): pass", "def g(**{}): pass", "def g(a, /, {}): pass", "def g(*, {}=1): pass", "f'{{x.{}}}'",
    "f'{{x:{{y.{}}}}}'", "with x as {}: pass", "for {} in x: pass", "import math as m, re as {}", "async def g():\n    await x.{}",
    "match x:\n    case y.{}: pass", "match x:\n    case [A(b=B({}=c))]: pass", "match x:\n    case {{'k': A({}=c)}} | A(d=c): pass",
    "match x:\n    case A({}=_) as z if z: pass", "match x:\n    case {}(): pass", "match x:\n    case y.{}(): pass",
    "x: y.{} = 1", "assert x.{}", "x[y.{}:]", "{{**x.{}}}", "lambda: (yield x.{})", "global {}",
    "{}", "del {}",
]  # fmt: skip


def reason(code: str) -> str:
    return gate.screen(syntax.group(ast.parse(code)))


def fields_that_hold_names() -> set[str]:
    found = set()
    for kind in vars(ast).values():
        if isinstance(kind, type) and issubclass(kind, ast.AST) and kind.__doc__:
            head = kind.__doc__.split("\n")[0]
            if not head.startswith(f"{kind.__name__}("):  # a class of kinds
                continue
            for field in re.findall(r"identifier[*?]? (\w+)", head):
                found.add(f"{kind.__name__}.{field}")
    return found


def test_every_field_of_the_syntax_that_holds_a_name_is_known_here() -> None:
    assert len(fields_that_hold_names()) >= 17
    assert fields_that_hold_names() <= set(POSITIONS)


@pytest.mark.parametrize("position", sorted(fields_that_hold_names()))
def test_a_refused_name_is_refused_in_every_field(position: str) -> None:
    for name in allowed.REFUSED:
        assert reason(POSITIONS[position].format(name)), name
        assert reason(POSITIONS[position].format("harmless")) == "" or "import" in POSITIONS[position]


@pytest.mark.parametrize("template", MORE_POSITIONS)
def test_a_refused_name_is_refused_in_every_place(template: str) -> None:
    for name in allowed.REFUSED:
        assert name in reason(template.format(name)), name
    assert reason(template.format("harmless")) == ""


ROADS = [(kind, code) for kind in ("FRAMES", "MODULES", "CLOCKS") for code in getattr(gate_attacks, kind)]


def test_no_road_to_what_is_refused_is_open(verifier: Sandbox) -> None:
    results = verifier.run([Program(str(i), code, ("3",)) for i, (_, code) in enumerate(ROADS)])
    assert [code for (_, code), result in zip(ROADS, results, strict=True) if result.verdict in ("ok", "crash")] == []
    assert sum(result.verdict == "forbidden" for result in results) > 90


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os", "import of os"),
        ("e.__traceback__", "__traceback__, which leads into the interpreter"),
        ("match e:\n    case object(tb_frame=x): pass", "tb_frame, which leads into the interpreter"),
    ],
)
def test_a_refusal_says_the_name_and_the_reason(code: str, expected: str) -> None:
    assert reason(code) == expected


@pytest.mark.parametrize("name", ["größe", "π", "数", "ﬁ", "ｎ", "слово"])
def test_names_beyond_ascii_run_without_an_import(name: str, run_one: Callable[..., Result]) -> None:
    assert run_one(f"def f({name}):\n    return {name} + 1").outputs == ("4",)
    assert run_one(f"def f(x, {name}=1):\n    return x + {name}", f"1, {name}=2").outputs == ("3",)


MAIN = 'if __name__ == "__main__":\n    import doctest\n    doctest.testmod()\n    g()\n'


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("def f(x): return x\n" + MAIN, "ok"),
        ("import doctest\ndef f(x): return x\n" + MAIN, "forbidden"),
        ("def f(x): return x\nif __name__ == '__main__':\n    x.__globals__", "forbidden"),
        ("__name__ = '__main__'\ndef f(x): return x\n" + MAIN, "forbidden"),
        ("def f(x): return x\nif __name__ != '__main__':\n    import doctest", "forbidden"),
        ("def f(x): return y\nif __name__ == '__main__':\n    import os\nelse:\n    y = 3", "ok"),
        ("def f(x):\n    match 1:\n        case __name__: return __name__\n" + MAIN, "ok"),
    ],
)
def test_a_main_block_may_import_what_it_likes_since_it_never_runs(
    code: str, verdict: str, run_one: Callable[..., Result]
) -> None:
    assert run_one(code).verdict == verdict


def test_the_walk_meets_every_node_but_operators_and_contexts() -> None:
    source = Path(gate.__file__).read_text() + "\n".join(code for _, code in ROADS)
    marks = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    tree = ast.parse(source)
    met = [node for nodes in syntax.group(tree).values() for node in nodes]
    assert {id(node) for node in met} == {id(node) for node in ast.walk(tree) if not isinstance(node, marks)}
