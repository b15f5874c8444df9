"""Measures against radon as an oracle, and by hand; the normal form."""

import ast
import os
import subprocess
import sys
import time

import pytest
from benchmark_data import DATA, read_lines
from mccabe import PathGraphingAstVisitor
from radon.raw import analyze
from radon.visitors import ComplexityVisitor

from redqueen.domains.code.measures import measure
from redqueen.domains.code.normalise import normalise

PROGRAMS = [
    "def f(x):\n    return x + 1\n",
    '"""Doc."""\n\n# remark\ndef f(x):\n    """Two\n    lines."""\n    y = x  # not only a remark\n    return y\n',
    """
def f(a, b):
    while a and b or not a:
        a -= 1
    else:
        b += 1
    return [i for i in a if i if b]
""",
    """
def f(x):
    try:
        assert x and x > 0
    except KeyError:
        pass
    except ValueError:
        x = -x
    else:
        x = 1 < x < 3
    finally:
        x = x if x else 2
    return x
""",
    """
def f(x):
    match x:
        case 1:
            return 2
        case [a, *rest]:
            return a
        case _:
            return 0
""",
    "async def g(x):\n    async for i in x:\n        yield i\ndef f(x):\n    return 1\n",
]


def closures(code: str) -> bool:
    """Whether a function stands inside another: radon leaves those out of its total."""
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    return any(
        isinstance(inner, ast.FunctionDef) for node in functions for inner in ast.walk(node) if inner is not node
    )


def agree_with_radon(code: str) -> None:
    ours = measure(code)
    assert ours.num_lines == analyze(code).sloc
    if not closures(code):
        assert ours.cyclomatic == ComplexityVisitor.from_code(code).total_complexity


@pytest.mark.parametrize("code", PROGRAMS)
def test_small_programs_measure_as_radon_does(code: str) -> None:
    agree_with_radon(code)


def counts_alike(code: str) -> bool:
    """Whether mccabe counts a program's decisions as radon does: no junctions inside expressions, no closures."""
    apart = (
        ast.BoolOp,
        ast.IfExp,
        ast.comprehension,
        ast.Assert,
        ast.Lambda,
        ast.Try,
        ast.With,
        ast.Match,
        ast.ClassDef,
    )
    nodes = list(ast.walk(ast.parse(code)))
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While)]
    return not closures(code) and not any(isinstance(n, apart) for n in nodes) and not any(n.orelse for n in loops)


def mccabe_of(code: str) -> int:
    """The cyclomatic complexity of a program of one function, by mccabe."""
    visitor = PathGraphingAstVisitor()
    visitor.preorder(ast.parse(code), visitor)
    (graph,) = visitor.graphs.values()
    return int(graph.complexity())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x):\n    return x\n", 1),
        ("def f(x):\n    if x:\n        return 1\n    return 2\n", 2),
        (
            "def f(x):\n    if x > 1:\n        x = 1\n    elif x > 0:\n        x = 2\n    else:\n        x = 3\n",
            3,
        ),
        (
            "def f(x):\n    for i in x:\n        while i:\n            if i == 3:\n                i = 0\n",
            4,
        ),
    ],
)
def test_decisions_that_are_statements_count_as_mccabe_counts_them(code: str, expected: int) -> None:
    assert counts_alike(code)
    assert measure(code).cyclomatic == mccabe_of(code) == expected


def test_the_programs_of_cruxeval_count_as_mccabe_counts_them_where_both_mean_the_same() -> None:
    codes = [str(row["code"]) for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")[::4]]
    alike = [code for code in codes if counts_alike(code) and len(ast.parse(code).body) == 1]
    assert len(alike) > 50
    assert [code for code in alike if measure(code).cyclomatic != mccabe_of(code)] == []


def test_the_programs_of_cruxeval_measure_as_radon_does() -> None:
    for row in read_lines(DATA / "benchmarks" / "cruxeval.jsonl.gz")[::8]:
        agree_with_radon(str(row["code"]))


def test_the_reference_programs_of_humaneval_measure_as_radon_does() -> None:
    for row in read_lines(DATA / "benchmarks" / "humaneval.jsonl.gz")[::4]:
        agree_with_radon(f"{row['prompt']}{row['canonical_solution']}")


def test_depth_lines_and_variables_are_those_counted_by_hand() -> None:
    # Module > FunctionDef > Return > BinOp > Name: five deep.
    found = measure("def f(x):\n\n    # remark\n    return x + 1\n")
    assert (found.ast_depth, found.num_lines, found.num_variables) == (5, 2, 1)
    assert measure("def f(a, b=1):\n    for i in a:\n        c = d = i\n    return c\n").num_variables == 5


def test_nested_functions_count_once() -> None:
    code = "def f(x):\n    def g(y):\n        return 1 if y else 2\n    return g(x) if x else 0\n"
    assert measure(code).cyclomatic == 3


def test_what_does_not_parse_is_a_value_error() -> None:
    for code in ("def f(:", "x = '\ud800'", "a\0b", "-" * 50_000 + "1"):
        with pytest.raises(ValueError, match="does not parse"):
            measure(code)


def test_programs_that_differ_in_names_comments_and_layout_have_one_normal_form() -> None:
    first = (
        "def f(x):\n    '''Doc.'''\n    total = 0  # sum\n    for item in x:\n        total += item\n    return total\n"
    )
    second = "def f(values):\n    s=0\n\n    for v in values: s += v\n    return s"
    assert normalise(first) == normalise(second)
    assert normalise(first) != normalise(second.replace("+=", "-="))


def test_names_a_program_does_not_bind_keep_their_names() -> None:
    text = normalise("import math\ndef f(x, key=1):\n    return sorted(x, key=len)[0].real + math.pi + g(key=x)\n")
    assert all(f" {name!r}\n" in text for name in ("sorted", "len", "real", "math", "pi", "g"))
    assert "tuple('key')" in text and "key" not in text.replace("'key'", "")


def test_keywords_follow_the_parameters_of_own_functions() -> None:
    assert normalise("def g(a):\n    return a\ndef f(x):\n    return g(a=x)") == normalise(
        "def h(b):\n    return b\ndef f(y):\n    return h(b=y)"
    )


def test_a_program_that_does_not_parse_is_its_own_normal_form() -> None:
    assert normalise("  def f(: \n") == "def f(:"


def test_which_of_two_functions_is_asked_is_no_matter_of_names() -> None:
    one = "def f(x):\n    return x + 1\ndef g(x):\n    return x * 2\n"
    swapped = one.replace("def f", "def h").replace("def g", "def f").replace("def h", "def g")
    assert normalise(one) != normalise(swapped)
    assert normalise(swapped) == normalise(swapped.replace("g", "helper").replace("x", "number"))
    assert normalise("h = 2\nf = lambda x: x + h") == normalise("k = 2\nf = lambda y: y + k")
    assert normalise("h = lambda x: x\nf = lambda x: 1") != normalise("f = lambda x: x\nh = lambda x: 1")


PLAIN = "def f(x):\n    return x + 1\n"
SAME = [
    "def f(number: int) -> int:\n\n    'Doc.'\n    return (number)+1  # one more",
    "def f(x):\n    return x + (3 - 2) ** 4",
    "def f(x):\n    return x + 1\n    return 7",
    "def f(x):\n    if False:\n        z = 9\n        return z\n    return x + 1",
    "def f(x):\n    while 0:\n        x = 5\n    return x + 1 if not False else x",
    "def f(x):\n    if True:\n        return x + 1\n    else:\n        return x",
    "def f(x):\n    pass\n    ...\n    1 + 1\n    assert True\n    return x + 1",
    "def f(x):\n    unused: int = 5\n    y: str\n    z = [x, (1, 2)]\n    return x + 1",
    "import math\nK = 3\ndef g(y):\n    return y\nclass A:\n    pass\ndef f(x):\n    return x + 1",
    "from typing import List\nT = int\ndef f(x: List[T]) -> T:\n    x = x\n    return x + 1",
    "def f(x):\n    if 1 == 2 or 'a' > 'b':\n        return 3\n    return x + (1 if 2 >= 1 else 0)",
    "def f(x):\n    if None:\n        pass\n    else:\n        y = 3\n    return x + 1",
    "def f(x):\n    x\n    a, b = 1, 2\n    g = lambda y: y * x\n    del a\n    return x + 1",
    "def f(x):\n    for i in ():\n        x += i\n    return x + 1\nif __name__ == '__main__':\n    print(f(3))",
    "def f(x):\n    for i in range(0):\n        x += i\n    for i in range(3):\n        pass\n    return x + 1",
    "def f(x):\n    try:\n        return x + 1\n    finally:\n        pass",
    "def f(x):\n    print(x, str(x))\n    y = len(str(x))\n    x - 1\n    if y == x:\n        pass\n    return x + 1",
    "def f(x):\n    return x + 1\nif '__main__' == __name__:\n    f(3)",
    "def f(x):\n    n = 0\n    n += 1\n    z = x[1:] if x else f'{x.real}{x[0]}'\n    return x + 1",
    "def f(x):\n    n = 3\n    n = n + 1\n    for i in (1, 2):\n        pass\n    return (\n        x\n        + 1)",
    "def g(n):\n    return g(n - 1) if n else []\ndef f(x):\n    a = [y for y in [x]]\n    sorted(a)\n    return x + 1",
    "def f(x):\n    if 0:\n        u = 3\n    try:\n        x\n    except OSError:\n        x = 0\n    return x + 1",
    "async def h():\n    pass\ndef a(y):\n    return y\ndef b(y):\n    return a(y)\ndef f(x):\n    return x + 1",
]
OTHERS = ["x - 1", "1 + x", "x + 2", "x + 1.0", "x + True", "y + 1", "f(x) + 1", "x.y + 1", "x in {1, 2}", "(x) and 1"]


@pytest.mark.parametrize("code", SAME)
def test_layout_annotations_dead_code_and_constants_that_fold_do_not_make_another_program(code: str) -> None:
    assert normalise(code) == normalise(PLAIN)


def test_a_program_that_does_not_compile_is_compared_by_its_syntax() -> None:
    text = "def f({0}):\n    return {0} + 1\ndef g():\n    nonlocal y\n    y = 2\ng()"
    assert normalise(text.format("x")) == normalise(text.format("number")) != normalise(text.replace("1", "3"))


def test_variables_of_one_name_in_two_functions_are_two() -> None:
    one = "def g(x):\n    y = x\n    return y * y\ndef f(x):\n    return g(x)"
    other = "def h(v):\n    w = v\n    return w * w\ndef f(y):\n    return h(y)"
    assert normalise(one) == normalise(other) != normalise(other.replace("h(y)", "h(h)"))
    late = "def g(v):\n    def h(w):\n        return w{}\n    return h(v)\ndef f(y):\n    return g(y)"
    assert normalise(late.format("")) != normalise(late.format(" + v"))


def test_lines_without_effect_are_dead_in_every_body() -> None:
    code = "def f(x):\n    try:\n        return int(x)\n    except ValueError:\n        {}\n        return 0"
    match = "def f(x):\n    match x:\n        case 1:\n            {}\n            return 2"
    for text in (code, match):
        assert normalise(text.format("y = 3")) == normalise(text.format("pass")) != normalise(text.format("x = 3"))


def test_a_class_keeps_the_names_that_are_attributes() -> None:
    assert normalise("class A:\n    x = 1\n    y = 2\ndef f(a):\n    return A.x") != normalise(
        "class A:\n    y = 1\n    x = 2\ndef f(a):\n    return A.x"
    )


def test_neither_the_order_of_imports_nor_their_names_make_another_program() -> None:
    code = "import math\nfrom re import sub\ndef f(x):\n    return sub('a', '', x) * math.floor(2.5)"
    other = "from re import sub as s\nimport math as m\ndef f(x):\n    return s('a', '', x) * m.floor(2.5)"
    assert normalise(code) == normalise(other) != normalise(other.replace("floor", "ceil"))


@pytest.mark.parametrize("line", ["x.pop()", "print(x.pop())", "y = x\n    y += [1]"])
def test_a_line_with_an_effect_makes_another_program(line: str) -> None:
    assert normalise(f"def f(x):\n    {line}\n    return x + 1\n") != normalise(PLAIN)


def test_programs_that_compute_something_else_have_forms_of_their_own() -> None:
    forms = {normalise(f"def f(x):\n    return {text}\n") for text in OTHERS}
    assert len(forms | {normalise(PLAIN)}) == 1 + len(OTHERS)


def test_a_normal_form_is_the_same_in_every_process() -> None:
    code = "def f(x):\n    g = lambda: 1\n    return g() if x in {'a', 'b', 'c', 'd'} else 2"
    program = f"from redqueen.domains.code.normalise import normalise; print(normalise({code!r}))"
    forms = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(forms) == 1 and b"LOAD_CONST" in forms.pop()


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return 'a' * 10**9",
        "def f(x):\n    return 9**9**9",
        "f = " + "-" * 50_000 + "x",
        "x=[" + "1," * 40_000 + "]",
        "def f(x):\n try:\n" + "  if x: return\n" * 700 + " finally:\n" + "  x+=1\n" * 700,
    ],
)
def test_a_hostile_program_has_its_normal_form_in_bounded_time(code: str) -> None:
    start_s = time.process_time()
    assert normalise(code)
    assert time.process_time() - start_s < 2.0
