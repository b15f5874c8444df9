"""The generator: the same seed writes the same programs, of every level, that parse, run and differ."""

import ast
from itertools import islice
from random import Random
from statistics import fmean

import pytest

from redqueen.domains.code.measures import measure
from redqueen.tiny.generator import LEVELS, write_program
from redqueen.tiny.measure import constructs_of
from redqueen.tiny.problems import MAX_CODE_CHARS, NUM_INPUTS, Problem, _message, skeleton, write_problem
from redqueen.tiny.values import NAMES, Type, write_value


@pytest.fixture(scope="module")
def problems() -> dict[int, list[Problem]]:
    """Sixty problems of every level."""
    rng = Random("test")
    found: dict[int, list[Problem]] = {}
    for level in LEVELS:
        drawn = (write_problem(rng, level) for _ in range(2000))
        found[level] = list(islice((p for p in drawn if p is not None), 60))
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_writes_the_same_programs(level: int) -> None:
    one, two = Random(level), Random(level)
    first = [write_program(one, level) for _ in range(20)]
    assert first == [write_program(two, level) for _ in range(20)]
    assert len({code for code, _ in first}) > 15


@pytest.mark.parametrize("level", LEVELS)
def test_every_program_parses_and_takes_what_its_types_say(level: int) -> None:
    rng = Random(f"parse/{level}")
    for _ in range(200):
        code, types = write_program(rng, level)
        functions = [n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
        assert functions[-1].name == "f" and len(functions) <= 2
        assert len(functions[-1].args.args) == len(types)


@pytest.mark.parametrize("type_", NAMES)
def test_values_are_of_the_type_that_was_asked_for(type_: Type) -> None:
    kind = {"int": int, "bool": bool, "str": str, "ints": list, "strs": list, "tup": tuple, "dict": dict}[type_]
    rng = Random(type_)
    values = [write_value(rng, type_) for _ in range(100)]
    assert {type(value) for value in values} == {kind}
    assert all(ast.literal_eval(repr(value)) == value for value in values)


def test_problems_of_every_level_come_up(problems: dict[int, list[Problem]]) -> None:
    assert [len(problems[level]) for level in LEVELS] == [60] * 5


def test_a_problem_runs_on_distinct_inputs_and_its_results_are_those_of_the_program(
    problems: dict[int, list[Problem]],
) -> None:
    for problem in (p for level in LEVELS for p in problems[level][:20]):
        assert len(set(problem.inputs)) == len(problem.runs) == NUM_INPUTS
        scope: dict[str, object] = {}
        exec(problem.code, scope)  # written by our own generator
        for text, run in zip(problem.inputs, problem.runs, strict=True):
            assert repr(eval(f"f({text})", scope)) == run.result
            last = run.trace.rpartition(";")[2]
            assert last.startswith("r=") and last.endswith(f"={run.result}")


def test_a_problem_is_short_and_its_results_are_not_nearly_all_alike(problems: dict[int, list[Problem]]) -> None:
    for problem in (p for level in LEVELS for p in problems[level]):
        results = [run.result for run in problem.runs]
        assert len(problem.code) <= MAX_CODE_CHARS
        assert len(set(results)) >= 2 and max(map(results.count, results)) <= 8


def test_the_message_says_what_goes_in_and_what_comes_out(problems: dict[int, list[Problem]]) -> None:
    words = {"int": "int", "bool": "bool", "str": "str", "ints": "list", "strs": "list", "tup": "tuple", "dict": "dict"}
    for problem in problems[3]:
        takes, gives = problem.message.split(": ")[0].split(" -> ")
        assert takes.split(", ") == [words[t] for t in problem.types]
        assert gives == type(ast.literal_eval(problem.runs[0].result)).__name__


def test_the_hint_names_what_the_program_uses_in_order() -> None:
    loop = "    for v in xs:\n        if v >= 3 and not k:\n            s += str(v)\n"
    code = f"def f(xs, k):\n    s = 'for if'\n{loop}    return s"
    assert _message(ast.parse(code), ("ints", "bool"), "'4'") == "list, bool -> str: for, if, >=, 3, and, not, +=, str"
    assert _message(ast.parse("def f(x):\n    return x"), ("int",), "4") == "int -> int"


def test_programs_grow_with_their_level(problems: dict[int, list[Problem]]) -> None:
    lines = [fmean(measure(p.code).num_lines for p in problems[level]) for level in LEVELS]
    paths = [fmean(measure(p.code).cyclomatic for p in problems[level]) for level in LEVELS]
    assert lines == sorted(lines) and lines[4] > 2 * lines[0]
    assert paths[4] > paths[2] > paths[0]


def test_the_programs_use_all_the_constructs_the_base_is_to_know(problems: dict[int, list[Problem]]) -> None:
    seen = set().union(*(constructs_of(p.code) for level in LEVELS for p in problems[level]))
    assert seen >= {
        "for", "while", "if", "conditional expression", "list comprehension", "slice", "dict", "tuple", "list",
        "augmented assignment", "comparison", "method call", "helper function", "generator",
    }  # fmt: skip


def test_a_held_out_program_is_refused_and_another_is_not() -> None:
    seeds = (f"held/{i}" for i in range(100))
    seed, problem = next((s, p) for s in seeds if (p := write_problem(Random(s), 2)) is not None)
    assert write_problem(Random(seed), 2, frozenset({skeleton(problem.code)})) is None
    assert write_problem(Random(seed), 2, frozenset({"another"})) == problem


def test_a_skeleton_is_the_same_for_programs_alike_up_to_names_and_another_for_others() -> None:
    one = "def f(a):\n    b = a + 1\n    return b"
    assert skeleton(one) == skeleton("def f(x):\n    y = x + 1\n    return y")
    assert skeleton(one) != skeleton("def f(x):\n    y = x + 2\n    return y")
    assert skeleton(one) != skeleton("def f(x):\n    y = x + 1\n    return x")
