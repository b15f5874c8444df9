"""The handwritten suite is what it claims: small, varied, distinct, deterministic, and its stored outputs are right."""

import ast
import builtins
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from redqueen.domains.code.suite import SUITES, Function, load_functions
from redqueen_sandbox.literals import canonical, canonical_args

PATH = SUITES / "everyday.jsonl"
RUN_ALL = """
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    record = json.loads(line)
    space = {}
    exec(record["code"], space)
    inputs = [record["input"], *record["io_inputs"]]
    print(json.dumps([record["id"], [repr(eval("f(" + text + ")", space)) for text in inputs]]))
"""


@pytest.fixture(scope="module")
def functions() -> list[Function]:
    return load_functions(PATH)


def arguments(text: str) -> tuple[object, ...]:
    return tuple(ast.literal_eval(f"({text},)"))


def without_names(code: str) -> str:
    """Dump the tree with names numbered by first appearance: equal for programs that differ only in names."""
    numbers: dict[str, str] = {}
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and not hasattr(builtins, name):
                setattr(node, field, numbers.setdefault(name, f"v{len(numbers)}"))
    return ast.dump(tree)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_every_stored_output_is_what_the_program_returns(functions: list[Function], hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", RUN_ALL, str(PATH)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    returned = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(returned) == len(functions)
    for function in functions:
        outputs = [canonical(text) for text in returned[function.id]]
        assert outputs == [function.output, *function.io_outputs], function.id


def test_there_are_enough_functions_over_every_kind_of_value_and_level(functions: list[Function]) -> None:
    assert len(functions) >= 170
    assert {function.level for function in functions} == {1, 2, 3, 4, 5}
    main_types = Counter(function.tags[0] for function in functions)
    assert main_types["list"] >= 80 and main_types["str"] >= 40 and main_types["int"] >= 25
    assert main_types["dict"] + main_types["tuple"] >= 15


def test_no_two_functions_are_equal_up_to_their_names(functions: list[Function]) -> None:
    shapes = Counter(without_names(function.code) for function in functions)
    assert [shape for shape, count in shapes.items() if count > 1] == []
    assert without_names("def f(a):\n    b = a\n    return b") == without_names("def f(x):\n    y = x\n    return y")


def test_programs_are_short_plain_and_import_nothing(functions: list[Function]) -> None:
    for function in functions:
        tree = ast.parse(function.code)
        assert 2 <= len(function.code.splitlines()) <= 12, function.id
        assert not any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)), function.id
        entry = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "f")
        names = [argument.arg for argument in entry.args.args]
        assert 1 <= len(names) <= 3 and all(len(name) <= 4 for name in names), function.id


def test_messages_are_one_short_sentence(functions: list[Function]) -> None:
    for function in functions:
        assert len(function.message.split()) <= 12 and function.message.endswith("."), function.id
    assert len({function.message for function in functions}) == len(functions)


def test_inputs_and_outputs_are_stored_canonical() -> None:
    for record in map(json.loads, PATH.read_text(encoding="utf-8").splitlines()):
        for text in (record["input"], *record["io_inputs"]):
            assert canonical_args(text) == text, record["id"]
        for text in (record["output"], *record["io_outputs"]):
            assert canonical(text) == text, record["id"]


def test_inputs_and_outputs_are_small(functions: list[Function]) -> None:
    numbers: list[int] = []
    for function in functions:
        for text in (function.input, *function.io_inputs):
            for node in ast.walk(ast.parse(f"({text},)")):
                assert not isinstance(node, ast.List) or len(node.elts) <= 6, function.id
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert len(node.value) <= 8, function.id
                elif isinstance(node, ast.Constant) and type(node.value) is int:
                    numbers.append(node.value)
        for text in (function.output, *function.io_outputs):
            assert len(text) <= 60, function.id
    assert sum(number > 99 for number in numbers) / len(numbers) < 0.02


def test_the_ten_pairs_tell_the_program_from_a_constant(functions: list[Function]) -> None:
    for function in functions:
        assert len({repr(arguments(text)) for text in function.io_inputs}) == 10, function.id
        assert len(set(function.io_outputs[:5])) > 1 and len(set(function.io_outputs[5:])) > 1, function.id
        assert function.input not in function.io_inputs, function.id
