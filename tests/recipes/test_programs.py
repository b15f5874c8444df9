"""Both worlds of programs: the same seed writes the same ones, they parse, run and differ; traces, dead code."""

import ast
import re
from itertools import islice
from random import Random

import pytest

from recipes.embedded_base.draft import NAMES
from recipes.embedded_base.everyday import EverydayDraft, NoFit, Phrase
from recipes.embedded_base.everyday_patterns import (
    ENDINGS,
    EXPRESSIONS,
    FINALS,
    FRAGMENTS,
    GUARDS,
    HELPER_USES,
    HELPERS,
    LOOPS,
    SINGLE,
    UPDATES,
)  # fmt: skip
from recipes.embedded_base.problems import (
    EVERYDAY,
    WORLDS,
    Problem,
    World,
    _message,
    dead_names,
    skeleton,
    write_problem,
)
from recipes.embedded_base.programs import LEVELS
from recipes.embedded_base.traces import TooMuch, instrument, run

TYPES = {"int": int, "bool": bool, "str": str, "ints": list, "strs": list, "tup": tuple, "dict": dict}
METHODS = {
    "split", "join", "strip", "replace", "find", "count", "startswith", "upper", "title", "zfill", "append", "pop",
    "insert", "remove", "index", "extend", "sort", "reverse", "get", "items", "setdefault", "update", "partition",
}  # fmt: skip


@pytest.fixture(scope="module", params=WORLDS)
def written(request: pytest.FixtureRequest) -> tuple[World, list[Problem]]:
    """A world and forty of its problems of every level."""
    world, rng = WORLDS[request.param], Random("programs")
    drawn = (write_problem(rng, level, world=world) for level in LEVELS for _ in range(400))
    return world, [p for p in drawn if p is not None]


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_same_seed_writes_the_same_programs_and_values_of_their_types(world: World) -> None:
    one, two = Random(5), Random(5)
    first = [world.write_program(one, level) for level in LEVELS for _ in range(20)]
    assert first == [world.write_program(two, level) for level in LEVELS for _ in range(20)]
    assert len({skeleton(code) for code, _ in first}) > 80
    for code, types in first:
        *_, function = [n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
        assert function.name == "f" and len(function.args.args) == len(types)
        assert [type(world.write_value(one, type_)) for type_ in types] == [TYPES[type_] for type_ in types]


def test_a_problem_has_the_results_of_its_program_on_distinct_inputs(written: tuple[World, list[Problem]]) -> None:
    world, problems = written
    assert len(problems) > 200
    for problem in problems[::5]:
        scope: dict[str, object] = {}
        exec(problem.code, scope)  # written by our own generator
        for text, found in zip(problem.inputs, problem.runs, strict=True):
            assert repr(eval(f"f({text})", scope)) == found.result, problem.code
            assert found.trace.endswith(found.result)
        results = [found.result for found in problem.runs]
        assert len(set(problem.inputs)) == 10 and len(set(results)) >= 2 and max(map(results.count, results)) <= 8
        assert len(problem.code) <= world.max_code_chars


def test_everyday_programs_use_the_methods_of_everyday_python() -> None:
    rng = Random("methods")
    codes = [EVERYDAY.write_program(rng, level)[0] for level in LEVELS for _ in range(300)]
    nodes = (n for code in codes for n in ast.walk(ast.parse(code)))
    found = {n.func.attr for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    assert found >= METHODS


def test_every_pattern_of_the_everyday_world_can_be_filled() -> None:
    patterns = [*LOOPS, *SINGLE, *GUARDS, *ENDINGS, *UPDATES, *FINALS, *(p for ps in EXPRESSIONS.values() for p in ps)]
    patterns += [f"if {p}:\n    return <s>" for name in ("ctest", "vtest", "etest") for p in FRAGMENTS[name]]
    patterns += [use.replace("HELPER", "g") for uses in HELPER_USES.values() for use in uses]
    patterns += [text for _, _, text in HELPERS]
    for pattern in patterns:
        text = next(t for seed in range(60) if (t := filled(pattern, seed)) is not None)
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


def test_a_detailed_trace_shows_calls_and_the_evaluated_parts_of_a_test() -> None:
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


def test_a_run_beyond_the_bounds_of_the_world_is_refused() -> None:
    code = instrument("def f(s):\n    return s * 8", True)
    assert run(code, ("abcdef",), EVERYDAY.bounds).result == repr("abcdef" * 8)
    with pytest.raises(TooMuch):
        run(code, ("abcdefgh",), EVERYDAY.bounds)


def test_the_hint_names_types_and_what_the_program_uses_in_order() -> None:
    loop = "    for v in xs:\n        if v >= 3 and not k:\n            s += str(v)\n"
    code = f"def f(xs, k):\n    s = 'for if'\n{loop}    return s"
    assert _message(ast.parse(code), ("ints", "bool"), "'4'") == "list, bool -> str: for, if, >=, 3, and, not, +=, str"
    assert _message(ast.parse("def f(x):\n    return x"), ("int",), "4") == "int -> int"


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_held_out_program_is_refused_and_another_is_not(world: World) -> None:
    seeds = (f"held/{i}" for i in range(100))
    found = ((s, p) for s in seeds if (p := write_problem(Random(s), 2, world=world)) is not None)
    [(seed, problem)] = islice(found, 1)
    assert write_problem(Random(seed), 2, frozenset({skeleton(problem.code)}), world=world) is None
    assert write_problem(Random(seed), 2, frozenset({"another"}), world=world) == problem


def test_a_skeleton_is_equal_for_programs_that_are_equal_up_to_names() -> None:
    one = "def f(a):\n    b = a + 1\n    return b"
    assert skeleton(one) == skeleton("def f(x):\n    y = x + 1\n    return y")
    assert skeleton(one) != skeleton("def f(x):\n    y = x + 2\n    return y")
    assert skeleton(one) != skeleton("def f(x):\n    y = x + 1\n    return x")


@pytest.mark.parametrize(
    ("body", "dead"),
    [
        ("    c = a + 1\n    d = c\n    return d", {"b"}),
        ("    if b > 1:\n        return a\n    return 0", set()),
        ("    for v in b:\n        a += 1\n    return a", {"v"}),
        ("    while b:\n        a.append(b.pop())\n    return a", set()),
        ("    for v in a:\n        if b:\n            break\n    else:\n        a = 1\n    return a", {"v"}),
        ("    a[b] = 1\n    return a", set()),
        ("    x, y = a, b\n    return x", {"y"}),
    ],
)
def test_a_variable_that_cannot_reach_the_result_is_dead(body: str, dead: set[str]) -> None:
    assert dead_names(ast.parse(f"def f(a, b):\n{body}")) == dead
