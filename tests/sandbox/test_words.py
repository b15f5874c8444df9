"""A program whose words alone show that the gate has nothing to say is compiled without a tree, and no other is."""

import ast
import itertools
from collections.abc import Iterator

import gate_attacks
import pytest
import test_second_attack
import test_worlds
from verify_data import DATA, honest_programs, read_lines

from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside import gate, syntax
from redqueen_sandbox.words import is_plain, needs_tree

REMARKABLE = [
    "x = {1, 2}", "x = {*y}", "x = {y for y in z}", "x = { 1 }", "x = {\n1}", "x = {lambda: 0}", "x = {lambda:0}",
    "x = {y := 1}", "x = {y:=1}", "x = {'a' 'b'}", "x = {# a: 1\n1}", "x = {\\\n1}", "x = {(1): 2}, {3}", "x = {-1}",
    "x = f'{ {1} }'", "x = f'{1:{ {2} }}'", "x = 0or{1}", "x = {a[1:2]}", "x = {r'a'}", "x = {f'a': 1, **{}}, {2}",
    "x = y.keys() & z", "x = y.keys\nx -= z", "x = y.items()^z", "x = set()", "x = y.union(z)", "x = frozenset",
    "import math", "from math import pi", "x = getattr", "x = str(y)", "x = 0or str(y)", "x = repr", "x = hash(y)",
    "x = y.format", "x = y.__class__", "x = __name__", "x = y.today", "x = y.tb_frame", "global f_back",
    "match x:\n    case 1: pass", "x = eval", "x = id(y)", "x = lambda open: 0", "x = f'{open}'", "größe = 1",
    "x = 'ß'", "x = ｅval", "def g(*, cr_code): pass", "class A: __slots__ = ()", "x = sorted(y, key=repr)",
]  # fmt: skip
PLAIN = [
    "x = {}", "x = { }", "x = {'a': 1}", 'x = {"a b" : {1: 2}}', "x = {y: 1 for y in z}", "x = {a.b: 1}",
    "x = y.keys()", "x = {1: 2}.items()", "x = y - z", "x = [1, 2][::-1]", "x = lambda y: {y: 1}",
    "class A:\n    def g(self): return 1", "x = '%s' % y", "x = f'a'",
]  # fmt: skip


def known_programs() -> Iterator[str]:
    for kind in ("FRAMES", "MODULES", "CLOCKS", "ADDRESSES", "ERRORS"):
        yield from [road if isinstance(road, str) else road[0] for road in getattr(gate_attacks, kind)]
    for table in (test_worlds.SEEN, test_worlds.BLIND):
        yield from [code for code, *_ in table.values()]
    yield from test_second_attack.ROADS.values()
    yield from [code for _, code, _ in honest_programs()]
    yield from [row["code"] for row in read_lines(DATA / "hostile" / "programs.jsonl")]
    yield from [row["code"] for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")]


def has_remark(code: str) -> bool:
    """Whether the gate refuses the program, changes it, or has it run in more worlds."""
    try:
        tree = syntax.parse(code, "<program>")
    except syntax.UNPARSABLE:
        return False
    before = ast.dump(tree)
    refusal = gate.screen(syntax.group(tree), "<guard>")
    return bool(refusal) or ast.dump(tree) != before or gate.uses_hash_order(syntax.group(tree))


def test_the_gate_has_no_remark_on_any_known_program_that_is_plain() -> None:
    codes = list(known_programs())
    plain = [code for code in codes if is_plain(code)]
    assert len(plain) > 700 and len(codes) - len(plain) > 500
    assert [code for code in plain if has_remark(code)] == []


@pytest.mark.parametrize("line", REMARKABLE)
def test_a_line_that_the_gate_may_remark_on_is_not_plain_wherever_it_stands(line: str) -> None:
    for before, after in itertools.product(("", "a = {'b': 1}\n", "'''{'''\n"), ("", "\nc = {}\n", "\n# }\n")):
        assert not is_plain(before + line + after)


@pytest.mark.parametrize("line", PLAIN)
def test_what_most_programs_are_made_of_is_plain(line: str) -> None:
    assert is_plain(line) and not has_remark(line)


def test_what_the_gate_changes_needs_a_tree_in_every_world() -> None:
    assert needs_tree("x = y.format", gated=True, screened=True)
    assert needs_tree("if __name__ == '__main__': pass", gated=True, screened=True)
    assert not needs_tree("x = {1}", gated=True, screened=True)
    assert needs_tree("x = {1}", gated=True, screened=False)
    assert needs_tree("x = 1", gated=False, screened=False) and not needs_tree("x = 1", gated=False, screened=True)


def test_a_program_without_a_tree_gives_what_it_gives_with_one(verifier: Sandbox) -> None:
    codes = [row for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz") if is_plain(row["code"])][:60]
    without = verifier.run([Program("a", row["code"], (row["input"],)) for row in codes])
    with_one = verifier.run([Program("a", row["code"] + "\n# {", (row["input"],)) for row in codes])

    def said(results: list[Result]) -> list[object]:
        return [(result.verdict, result.outputs, result.detail) for result in results]

    assert said(without) == said(with_one)
