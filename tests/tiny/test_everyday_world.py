"""The everyday world: its programs parse and run, its traces are right, and it has what everyday Python has."""

import ast
import re
from itertools import islice
from random import Random

import pytest

from redqueen.tiny.corpus import Author
from redqueen.tiny.everyday import EverydayDraft, NoFit, Phrase, write_everyday_program
from redqueen.tiny.everyday_patterns import ENDINGS, GUARDS, HELPER_USES, HELPERS, LOOPS, SINGLE
from redqueen.tiny.everyday_rules import EXPRESSIONS, FINALS, FRAGMENTS, UPDATES
from redqueen.tiny.everyday_values import write_everyday_value
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.problems import Problem, skeleton, write_problem
from redqueen.tiny.thought_traces import TooMuch, instrument, run
from redqueen.tiny.values import NAMES, Type
from redqueen.tiny.worlds import EVERYDAY

METHODS = {
    "split", "join", "strip", "replace", "find", "count", "startswith", "upper", "title", "zfill", "append", "pop",
    "insert", "remove", "index", "extend", "sort", "reverse", "get", "items", "setdefault", "update", "partition",
}  # fmt: skip
FUNCTIONS = {"len", "sum", "min", "max", "any", "all", "sorted", "enumerate", "zip", "range", "map", "list", "dict"}


@pytest.fixture(scope="module")
def problems() -> dict[int, list[Problem]]:
    """Sixty problems of every level."""
    rng = Random("everyday test")
    return {
        level: list(islice((p for _ in range(4000) if (p := write_problem(rng, level, world=EVERYDAY))), 60))
        for level in LEVELS
    }


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_writes_the_same_programs_and_all_parse(level: int) -> None:
    one, two = Random(level), Random(level)
    first = [write_everyday_program(one, level) for _ in range(100)]
    assert first == [write_everyday_program(two, level) for _ in range(100)]
    assert len({skeleton(code) for code, _ in first}) > 50
    for code, types in first:
        functions = [n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
        assert functions[-1].name == "f" and len(functions[-1].args.args) == len(types)


@pytest.mark.parametrize("type_", NAMES)
def test_values_are_of_the_type_that_was_asked_for(type_: Type) -> None:
    kind = {"int": int, "bool": bool, "str": str, "ints": list, "strs": list, "tup": tuple, "dict": dict}[type_]
    rng = Random(type_)
    values = [write_everyday_value(rng, type_) for _ in range(200)]
    assert {type(value) for value in values} == {kind}
    assert all(ast.literal_eval(repr(value)) == value for value in values)


def test_the_result_and_the_trace_end_with_what_python_computes(problems: dict[int, list[Problem]]) -> None:
    assert [len(problems[level]) for level in LEVELS] == [60] * 5
    for problem in (p for level in LEVELS for p in problems[level]):
        scope: dict[str, object] = {}
        exec(problem.code, scope)  # written by our own generator
        for text, found in zip(problem.inputs, problem.runs, strict=True):
            assert repr(eval(f"f({text})", scope)) == found.result, problem.code
            assert found.trace.endswith(found.result)


def test_every_value_a_trace_names_is_the_one_that_python_has_at_that_point() -> None:
    code = (
        "def f(s, d):\n    words = s.strip().split(',')\n    last = words.pop()\n    del words[0]\n"
        "    d.setdefault(last, []).append(len(words))\n    if last.isalpha() and len(words) > 1:\n"
        "        words[0] += last\n    return '-'.join(w.upper() for w in sorted(words))"
    )
    found = run(instrument(code, True), (" a,b,c,d ", {}), EVERYDAY.bounds)
    assert found.trace == (
        "s=' a,b,c,d ';d={};.strip='a,b,c,d';words=['a', 'b', 'c', 'd'];last='d';words=['a', 'b', 'c'];"
        "words=['b', 'c'];.setdefault=[];len=2;d={'d': [2]};T;2 > 1:T;words=['bd', 'c'];sorted=['bd', 'c'];r='BD-C'"
    )
    assert found.result == "'BD-C'"


def test_an_else_behind_a_loop_is_traced_and_only_the_parts_of_a_test_that_are_looked_at() -> None:
    code = "def f(s):\n    for w in s.split():\n        if w > 'b' or len(w) > 3:\n            break\n    else:\n"
    found = run(instrument(f"{code}        s = s[1:]\n    return s", True), ("a aa",), EVERYDAY.bounds)
    tests = "w='a';'a' > 'b':F;1 > 3:F;w='aa';'aa' > 'b':F;2 > 3:F"
    assert found.trace == f"s='a aa';.split=['a', 'aa'];{tests};s=' aa';r=' aa'"


def test_a_run_beyond_the_bounds_of_the_world_is_too_much() -> None:
    code = instrument("def f(s):\n    return s * 8", True)
    assert run(code, ("abcdef",), EVERYDAY.bounds).result == repr("abcdef" * 8)
    with pytest.raises(TooMuch):
        run(code, ("abcdefgh",), EVERYDAY.bounds)


def test_the_programs_use_the_methods_and_functions_of_everyday_python(problems: dict[int, list[Problem]]) -> None:
    methods: set[str] = set()
    functions: set[str] = set()
    for node in (n for level in LEVELS for p in problems[level] for n in ast.walk(ast.parse(p.code))):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)):
                methods.add(name)
            case ast.Call(func=ast.Name(id=name)):
                functions.add(name)
    assert methods >= METHODS
    assert functions >= FUNCTIONS


def test_half_of_the_arguments_and_more_are_strings_or_hold_some(problems: dict[int, list[Problem]]) -> None:
    types = [t for level in LEVELS for p in problems[level] for t in p.types]
    assert sum(t == "str" for t in types) / len(types) > 0.4
    assert sum(t in ("str", "strs", "dict") for t in types) / len(types) > 0.6


def test_every_pattern_can_be_filled() -> None:
    patterns = [*LOOPS, *SINGLE, *GUARDS, *ENDINGS, *UPDATES, *FINALS, *(p for ps in EXPRESSIONS.values() for p in ps)]
    patterns += [f"if {p}:\n    return <s>" for name in ("ctest", "vtest", "etest") for p in FRAGMENTS[name]]
    patterns += [use.replace("HELPER", "g") for uses in HELPER_USES.values() for use in uses]
    patterns += [text for _, _, text in HELPERS]
    for pattern in patterns:
        texts = list(islice((t for seed in range(60) if (t := filled(pattern, seed)) is not None), 5))
        assert texts, pattern
        for text in texts:
            assert not re.search(r"<[+=]?[a-zA-Z]\d?>|@[a-z]", text), text
            ast.parse("def f():\n    " + text.replace("\n", "\n    "))


def filled(pattern: str, seed: int) -> str | None:
    draft = EverydayDraft(Random(seed), 3)
    for type_ in NAMES:
        for _ in range(2):
            draft.declare(draft.new_name(type_), type_)
    try:
        return Phrase(draft).fill(pattern)
    except NoFit:
        return None


def test_a_held_out_program_is_refused() -> None:
    seeds = (f"held/{i}" for i in range(100))
    found = ((s, p) for s in seeds if (p := write_problem(Random(s), 2, world=EVERYDAY)) is not None)
    seed, problem = next(found)
    assert write_problem(Random(seed), 2, frozenset({skeleton(problem.code)}), world=EVERYDAY) is None


def test_a_wrong_guess_is_traced_in_the_manner_of_its_world() -> None:
    author = Author(Random(3), world=EVERYDAY)
    traces = []
    for _ in range(30):
        problem = author.problem(2)
        wrong = author.wrong_guess(problem, problem.runs[0].result)
        if wrong is not None:
            compiled = instrument(problem.code, True)
            assert wrong[1] == run(compiled, eval(f"({wrong[0]},)"), EVERYDAY.bounds).trace
            traces.append(wrong[1])
    assert len(traces) > 15
