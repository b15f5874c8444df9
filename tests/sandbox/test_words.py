"""What a program's words show: whether it needs a tree, and whether a hash seed can matter to it."""

import ast
import itertools
from collections.abc import Iterator

import gate_attacks
import pytest
import test_determinism
import test_second_attack
from verify_data import DATA, honest_programs, read_lines

from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside import gate, syntax
from redqueen_sandbox.words import is_quiet, kind_for, needs_tree

NEED_A_TREE = [
    "import math", "from math import pi", "x = getattr", "x = y.format", "x = y.__class__", "x = __name__",
    "x = y.tb_frame", "global f_back", "match x:\n    case 1: pass", "x = eval", "x = id(y)", "x = lambda open: 0",
    "x = f'{open}'", "größe = 1", "x = 'ß'", "x = ｅval", "def g(*, cr_code): pass", "class A: __slots__ = ()",
]  # fmt: skip
LOUD = [
    "x = {1, 2}", "x = {*y}", "x = {y for y in z}", "x = { 1 }", "x = {\n1}", "x = {lambda: 0}", "x = {lambda:0}",
    "x = {y := 1}", "x = {y:=1}", "x = {'a' 'b'}", "x = {# a: 1\n1}", "x = {\\\n1}", "x = {(1): 2}, {3}", "x = {-1}",
    "x = f'{ {1} }'", "x = f'{1:{ {2} }}'", "x = {a[1:2]}", "x = {r'a'}", "x = {f'a': 1, **{}}, {2}",
    "x = y.keys() & z", "x = y.keys\nx -= z", "x = y.items()^z", "x = set()", "x = frozenset", "import json",
    "import math\nx = str(math.sqrt)", "x = hash(y)", "x = type(y)", "x = type('')(z)", "x = e.args",
    "class A: x = str(1)", "x = str(lambda: 0) if type(y) == str else 0", "x = type(type(y))", "x = [type(y)]",
    "x = type(y)(z)", "x = {**y, 1: 2}.keys() - z", "k = y.keys\nx = k() - z", "x = [c for c in {'a', 'b'}]",
    "x = list(y.keys() & z)", "def isinstance(a, b): return b(a)\nx = isinstance(y, str), (lambda: 0)",
    "x = str(map(lambda c: c, y))", "x = [lambda: 0]\nx = str(x)", "x = list([lambda: 0])\nx = str(x)",
    "def g(): pass\nx = str(max(g, g, key=len))", "def g(): pass\nx = str(max([], default=g))",
    "def g(): pass\nx = str(sum([], g))", "def g(): pass\nx = str(dict(a=g))", "x = str(max(iter(y), iter(y)))",
    "x = y\nx %= (lambda: 0)", "x = str(lambda: 0)", "def g(): pass\nx = f'{g}'", "x = '%s' % (a for a in b)",
    "x = str(iter(y))", "x = str(y.append)", "def g(): pass\nx = str((g,\n(1)))", "x = str(map(int, y))",
    "def list(a): return str(a)\nx = list(map(int, y))",
    "def g(a): return str(a)\nx = g(a for a in y)", "def g(): yield 1\nx = str(g())", 
    "async def g(): pass\nx = str(g())", "x = str(property())", "x = f'{staticmethod(y)}'", "x = '%s' % classmethod(y)",
    "x = str(aiter(y))", "x = 1\n" + "y = 2\n" * 700,
]  # fmt: skip
QUIET = [
    "x = str(sorted(y, key=lambda p: p))", "x = ' '.join(map(lambda c: str(c), y))", "x = type(y) == list",
    "x = y in {'a', 'b'}", "x = {**y, **z}", "x = list(y.items())\nx = len(x) - 1",
    "x = isinstance(y, (str, int)), lambda: 0", "x = sorted(y, key=lambda p: p % 10)",
    "x = {}", "x = { }", "x = {'a': 1}", 'x = {"a b" : {1: 2}}', "x = {y: 1 for y in z}", "x = {a.b: 1}",
    "x = y.keys()", "x = {1: 2}.items()", "x = y - z", "x = [1, 2][::-1]", "x = lambda y: {y: 1}",
    "class A:\n    def g(self): return 1", "x = '%s' % y", "x = f'a{y}'", "x = ''.join(str(a) for a in y)", "x = 7 % 2",
    "def g(y): return str(y)\nx = g(1)", "x = ''.join(map(str, y))", "for i, c in enumerate(y): x = str(c)",
    "import math\nx = math.sqrt(2)", "from itertools import chain\nx = [*chain(y)]",
]  # fmt: skip


def known_programs() -> Iterator[str]:
    for kind in ("FRAMES", "MODULES", "CLOCKS", "ERRORS"):
        yield from [road if isinstance(road, str) else road[0] for road in getattr(gate_attacks, kind)]
    for table in (test_determinism.SEEN, test_determinism.BLIND):
        yield from [code for code, *_ in table.values()]
    yield from test_second_attack.ROADS.values()
    yield from [code for _, code, _ in honest_programs()]
    yield from [row["code"] for row in read_lines(DATA / "hostile" / "programs.jsonl")]
    yield from [row["code"] for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")]


def is_unchanged(code: str) -> bool:
    """Whether the gate lets the program through and guards nothing in it."""
    try:
        tree = syntax.parse(code, "<program>")
    except syntax.UNPARSABLE:
        return True
    before, nodes = ast.dump(tree), syntax.group(tree)
    refusal = gate.screen(nodes)
    gate.guard_attributes(nodes)
    return not refusal and ast.dump(tree) == before


def test_known_programs_that_need_no_tree_pass_the_gate_unchanged() -> None:
    codes = list(known_programs())
    plain = [code for code in codes if not needs_tree(code, again=False)]
    assert len(plain) > 700 and len(codes) - len(plain) > 300
    assert [code for code in plain if not is_unchanged(code)] == []


@pytest.mark.parametrize("line", NEED_A_TREE)
def test_a_line_that_the_gate_looks_at_needs_a_tree_wherever_it_stands(line: str) -> None:
    for before, after in itertools.product(("", "a = {'b': 1}\n", "'''{'''\n"), ("", "\nc = {}\n", "\n# }\n")):
        assert needs_tree(before + line + after, again=False)


def test_the_second_run_needs_a_tree_for_guarded_attributes_alone() -> None:
    assert needs_tree("x = y.format", again=True) and not needs_tree("import math", again=True)


@pytest.mark.parametrize("line", LOUD)
def test_a_line_through_which_a_hash_or_an_address_may_show_is_not_quiet(line: str) -> None:
    for before, after in itertools.product(("", "a = {'b': 1}\n"), ("", "\nc = {}\n", "\n# }\n")):
        assert not is_quiet(before + line + after, ("1",))


@pytest.mark.parametrize("line", QUIET)
def test_what_most_programs_are_made_of_is_quiet(line: str) -> None:
    assert is_quiet(line, ("1",))


def test_a_set_among_the_inputs_is_not_quiet() -> None:
    assert is_quiet("x = 1", ("{1: 2}",)) and not is_quiet("x = 1", ("1", "{1, 2}"))
    assert not is_quiet("x = 1", ("set()",)) and not is_quiet("import math", ("1", "2"))


def test_a_program_runs_where_its_modules_and_codecs_are() -> None:
    assert kind_for("x = 1") == "plain"
    assert {kind_for(code) for code in ("import math", "x = y.encode('cp437')", "x = 'ß'")} == {"pure"}


def test_a_program_without_a_tree_gives_what_it_gives_with_one(verifier: Sandbox) -> None:
    codes = [row for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz") if not needs_tree(row["code"], False)]
    without = verifier.run([Program("a", row["code"], (row["input"],)) for row in codes[:60]])
    with_one = verifier.run([Program("a", row["code"] + "\n# import", (row["input"],)) for row in codes[:60]])

    def said(results: list[Result]) -> list[object]:
        return [(result.verdict, result.outputs, result.detail) for result in results]

    assert said(without) == said(with_one)
