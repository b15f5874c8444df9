"""What counts as a plain value when a program returns it: frozen sets, and the library's own containers."""

from collections.abc import Callable

import pytest

from redqueen.domains.registry import check as check_all
from redqueen.domains.registry import grade as grade_all
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Result, Sandbox

PLAIN = [
    ("collections", "collections.Counter('abca')", "{'a': 2, 'b': 1, 'c': 1}"),
    ("collections", "collections.defaultdict(list, a=[1])", "{'a': [1]}"),
    ("collections", "collections.OrderedDict([('b', 1), ('a', 2)])", "{'a': 2, 'b': 1}"),
    ("collections", "collections.deque([1, 2], maxlen=5)", "[1, 2]"),
    ("collections", "collections.namedtuple('P', 'x y')(1, 2)", "(1, 2)"),
    ("collections", "[collections.Counter([collections.namedtuple('P', 'x')(1)])]", "[{(1,): 1}]"),
    ("collections", "collections.defaultdict(collections.Counter, a=collections.Counter('b'))", "{'a': {'b': 1}}"),
    ("typing", "typing.NamedTuple('P', [('x', int)])(7)", "(7,)"),
    ("math", "frozenset()", "frozenset()"),
    ("math", "frozenset([3, 1, 2, 1])", "frozenset({1, 2, 3})"),
    ("math", "{frozenset({1}): {frozenset()}}", "{frozenset({1}): {frozenset()}}"),
]

SLY = [
    "class D(dict):\n    pass\ndef f(x):\n    return D(a=1)",
    "class L(list):\n    def __iter__(self): return iter([1])\ndef f(x):\n    return L()",
    "import collections\nclass C(collections.Counter):\n    pass\ndef f(x):\n    return C('a')",
    "import collections\nclass C(collections.Counter):\n    def items(self): return [('a', 1)]\n"
    "def f(x):\n    return C()",
    "import collections\nP = collections.namedtuple('P', 'x')\nclass Q(P):\n    def __eq__(self, o): return True\n"
    "    __hash__ = None\ndef f(x):\n    return Q(1)",
    "import collections\nP = collections.namedtuple('P', 'x')\nclass Q(P):\n    def __iter__(self): return iter([7])\n"
    "def f(x):\n    return Q(1)",
    "class Q(tuple):\n    _fields = ('x',)\n    def __len__(self): return 7\ndef f(x):\n    return Q([1])",
    "import collections\nclass K:\n    def __hash__(self): raise ValueError\n    def __eq__(self, o): return True\n"
    "import collections\ndef f(x):\n    d = collections.deque()\n    d.append(d)\n    return d",
    "def f(x):\n    return {1: 2}.keys()",
    "def f(x):\n    return range(3)",
    "def f(x):\n    return ...",
    "import re\ndef f(x):\n    return re.match('', '')",
    "class F(frozenset):\n    pass\ndef f(x):\n    return F([1])",
    "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return 1\n"
    "class A(metaclass=M):\n    def __iter__(s): return iter([1, 2])\ndef f(x):\n    return A()",
    "import collections\nclass M(type):\n    def __eq__(s, o): return o is collections.Counter\n"
    "    def __hash__(s): return 1\nclass D(dict, metaclass=M):\n    pass\ndef f(x):\n    return D(a=1)",
    "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return 1\n"
    "class B(metaclass=M):\n    pass\nclass A(B):\n    _fields = ()\ndef f(x):\n    return A()",
]
"""What only looks like one: whatever a program defined itself, but a named tuple without ways of its own."""


@pytest.mark.parametrize(("module", "text", "output"), PLAIN)
def test_what_equals_a_plain_value_counts_as_it(
    module: str, text: str, output: str, run_one: Callable[..., Result]
) -> None:
    result = run_one(f"import {module}\ndef f(x):\n    return {text}")
    assert (result.verdict, result.outputs) == ("ok", (output,))


@pytest.mark.parametrize("code", SLY)
def test_what_a_program_defined_equals_no_plain_value(code: str, run_one: Callable[..., Result]) -> None:
    assert run_one(code).verdict in ("invalid-output", "forbidden")


def test_a_changed_class_of_the_library_is_not_asked(bare_verifier: Sandbox) -> None:
    from redqueen_sandbox import Program

    code = (
        "import collections\nasked = []\n"
        "def note(self, *a): asked.append(1); return iter([('forged', 1)])\n"
        "collections.Counter.items = collections.Counter.__iter__ = collections.Counter.keys = note\n"
        "def f(x):\n    return collections.Counter({'a': 1}) if x else len(asked)\n"
    )
    result = bare_verifier.run([Program("a", code, ("1",))])[0]
    assert result.outputs == ("{'a': 1}",)


def test_frozen_sets_are_values_of_a_task_and_of_answers(verifier: Sandbox) -> None:
    code = "def f(x):\n    return frozenset(x) | frozenset({'a'})\n"
    task = check_all([Candidate("p", "T", "S", "code_o", "", code, ("frozenset([1, 'b'])",))], verifier)[0]
    assert isinstance(task, Task), task
    assert (task.inputs, task.outputs) == (("frozenset({1, 'b'})",), ("frozenset({'a', 'b', 1})",))
    answers = ["frozenset({'a', 1, 'b'})", "frozenset(['b', 'a', 1])", "{'a', 1, 'b'}", "frozenset({'a', 'b'})"]
    assert [grade.correct for grade in grade_all([(task, a) for a in answers], verifier)] == [True, True, False, False]


def test_a_counter_is_an_output_of_a_task(verifier: Sandbox) -> None:
    code = "from collections import Counter\ndef f(x):\n    return Counter(x)\n"
    task = check_all([Candidate("p", "T", "S", "code_o", "", code, ("'aab'",))], verifier)[0]
    assert not isinstance(task, Rejection), task
    assert [
        g.correct for g in grade_all([(task, "{'b': 1, 'a': 2}"), (task, "Counter({'a': 2, 'b': 1})")], verifier)
    ] == [
        True,
        False,
    ]
