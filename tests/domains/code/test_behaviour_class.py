"""The class of a task says what sort it is, its size how laborious it is: neither says the other's part."""

import pytest

from redqueen.domains.code.measures import behaviour_class, size_class
from redqueen.records import Task


def task(code: str, inputs: str = "1", output: str = "2", kind: str = "code_o") -> Task:
    return Task("1-T1-0", "T1", "S1", kind, code, (inputs,), (output,))


@pytest.mark.parametrize(
    ("code", "inputs", "output", "expected"),
    [
        ("def f(x):\n    return x + 1\n", "1", "2", "code_o int->int plain"),
        ("def f(x, y):\n    return [x] * y\n", "'a', -2", "[]", "code_o str,int->list plain"),
        ("def f(x):\n    return [a for a in x if a]\n", "(True,)", "set()", "code_o tuple->set comprehension"),
        ("def f(x):\n    return 1 if x < 1 else x * f(x - 1)\n", "3", "6", "code_o int->int branch+recursion"),
        (
            "def g(x):\n    return x[0]\n\ndef f(x):\n    while x:\n        x = x[1:]\n    return g('a')\n",
            "''",
            "'a'",
            "code_o str->str helper+loop+subscript",
        ),
        ("def f():\n    return None\n", "", "None", "code_o ->NoneType plain"),
    ],
)
def test_a_class_names_the_types_and_the_constructs(code: str, inputs: str, output: str, expected: str) -> None:
    assert behaviour_class(task(code, inputs, output)) == expected


def test_names_values_and_layout_do_not_change_the_class_but_the_kind_does() -> None:
    one = task("def f(x):\n    for a in x:\n        pass\n    return a\n", "[1, 2]", "2")
    other = task("def f(long):\n\n    for each in long: pass\n    return each  # last\n", "[7]", "7")
    assert behaviour_class(one) == behaviour_class(other)
    assert behaviour_class(one) != behaviour_class(task(one.code, "[1, 2]", "2", "code_i"))


def test_longer_more_arithmetic_or_larger_numbers_are_another_size_of_the_same_class() -> None:
    plain = task("def f(x):\n    return x + 1\n")
    nested = task("def f(x):\n    return ((x * 3 + 1) * 7 - x) * ((x - 5) * 11 + 2) - 4\n")
    large = task("def f(x):\n    return x + 1\n", "123456789", "123456790")
    assert len({size_class(t) for t in (plain, nested, large)}) == 3
    assert len({behaviour_class(t) for t in (plain, nested, large)}) == 1
    assert size_class(plain) == size_class(task("def f(y):\n    return y + 7\n", "2", "9"))


def test_what_does_not_parse_still_has_a_class_and_a_size() -> None:
    broken = task("def f(:", "1)) (", "(")
    assert behaviour_class(broken) == "code_o ?->? plain"
    assert size_class(broken).startswith("code_o length")


def test_a_huge_integer_in_a_program_is_counted_up_to_nine_digits() -> None:
    assert size_class(task(f"def f(x):\n    return {10**3000}\n")).endswith("digits 9")
