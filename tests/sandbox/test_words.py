"""What a program's words show: whether it needs a tree, and whether a hash seed can matter to it."""

import ast
import itertools
import subprocess
import sys
from collections.abc import Iterator

import gate_attacks
import pytest
import test_determinism
import test_second_attack
from verify_data import DATA, honest_programs, read_lines

from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside import gate, syntax
from redqueen_sandbox.words import is_tame, kind_for, needs_tree

NEED_A_TREE = [
    "import math", "from math import pi", "x = y.__class__", "x = __name__",
    "x = y.tb_frame", "global f_back", "x = eval", "x = id(y)", "x = lambda open: 0",
    "x = f'{open}'", "größe = 1", "x = 'ß'", "x = ｅval", "def g(*, cr_code): pass", "class A: __slots__ = ()",
]  # fmt: skip
WILD = [
    "x = {1, 2}", "x = {*y}", "x = {y for y in z}", "x = { 1 }", "x = {\n1}", "x = {lambda: 0}", "x = {lambda:0}",
    "x = {y := 1}", "x = {y:=1}", "x = {'a' 'b'}", "x = {# a: 1\n1}", "x = {\\\n1}", "x = {(1): 2}, {3}",
    "x = {-1}", "x = f'{ {1} }'", "x = f'{y}'", "x = F''", "x = rf'{y}'", "x = b'%s' % y", "x = {a[1:2]}",
    "x = {r'a'}", "x = set()", "x = frozenset", "import json", "x = str(lambda: 0)", "x = hash(y)", "x = type(y)",
    "x = e.args", "x = y.keys()", "x = y.keys() & z", "x = {1: 2}.items() - y", "x = y. keys()", "x = y.\\\nkeys()",
    "x = y.__iter__()", "x = '%s' % y", "x = y % z, '%'", "x = y % z, '\\x25s'", "x = y % z\n'''\\45'''",
    "x = '{}'.format(y)", "x = [a for a in y & z.items()]", "x = [a for a in y.items() & z]",
    "x = [a for a in (y.keys()) & z]", "try: x\nexcept: pass", "with x: pass", "class A: pass", "x = y.append",
    "x = getattr(y, 'keys')", "x = ｓet()", "@x\ndef y(): pass", "# '''\nx = set()\n# '''", "x = 'a\\\\'; y = set()",
    "x = ''''a'''; y = set() #'''", "# \rx = set()", "match x:\n    case int(real=y): pass", "x: set", "x = chr(37)",
    "global x", "x = repr",
]  # fmt: skip
TAME = [
    "x = {}", "x = { }", "x = {'a': 1}", 'x = {"a b" : {1: 2}}', "x = {y: 1 for y in z}", "x = {-1: 1}",
    "for a, b in y.items():\n    x = a % b", "x = [1, 2][::-1]", "x = lambda y: {y: 1}", "x = sorted(y)",
    "x = 'set(%s)'  # {1, 2} and str()", "x = y.split('.')[0].upper()", "x = {k: v for k, v in y.items()}", "x = 1.5",
    "x = 'ß'", "'''a { str\nb'''\nx = 1",
]  # fmt: skip


def known_programs() -> Iterator[str]:
    for kind in ("FRAMES", "MODULES", "CLOCKS"):
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


def test_the_second_run_needs_no_tree() -> None:
    assert not needs_tree("import math", again=True)


@pytest.mark.parametrize("line", WILD)
def test_a_line_with_a_way_to_a_set_a_hash_or_a_text_makes_a_program_wild(line: str) -> None:
    for before, after in itertools.product(("", "a = {'b': 1}\n"), ("", "\nc = {}\n", "\n# }\n")):
        assert not is_tame(before + line + after, ("1",))


def test_an_input_that_holds_a_set_or_a_format_makes_a_program_wild() -> None:
    for given in ("{1, 2}", "set()", "[frozenset({'a'})]", "b'a'"):
        assert not is_tame("x = 1", ("1", given))
    assert not is_tame("x = 1", ("# \rset('ab')",))  # a line ends there, and with it the remark
    assert not is_tame("x = y % z", ("'%s'",)) and is_tame(
        "x = 1", ("'%s', {1: 2.5}", "'set'", "dict(a='b c'.split())")
    )


@pytest.mark.parametrize("line", TAME)
def test_a_line_without_one_leaves_it_tame(line: str) -> None:
    assert is_tame(line, ("{1: 2}",))


def test_no_known_program_that_depends_on_its_process_is_tame() -> None:
    assert [name for name, (code, given) in test_determinism.SEEN.items() if is_tame(code, (given,))] == []
    rows = [row for row in read_lines(DATA / "hostile" / "programs.jsonl") if row["expected"] == "nondeterministic"]
    tame = [row["id"] for row in rows if is_tame(row["code"], (str(row["input"]),))]
    assert tame == ["nondeterminism/mutable-default"]  # it depends on earlier calls, of which a process has none


@pytest.mark.parametrize(("code", "num_jobs"), [("def f(x):\n    return x", 2), ("def f(x):\n    return str(x)", 8)])
def test_a_program_is_decided_by_two_processes_if_it_is_tame_or_by_eight(
    code: str, num_jobs: int, verifier: Sandbox
) -> None:
    before = verifier.num_jobs
    assert verifier.run([Program("a", code, ("1",))])[0].verdict == "ok"
    assert verifier.num_jobs == before + num_jobs


def test_no_program_can_know_the_hash_seeds() -> None:
    code = (
        "from redqueen_sandbox import Program, Sandbox\n"
        "given = Program('a', 'def f(x): return hash(str(x))', ('1',))\n"
        "with Sandbox(workers=1, num_seeds=1) as single: print(single.run([given])[0].outputs)"
    )
    said = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(said) == 2


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
