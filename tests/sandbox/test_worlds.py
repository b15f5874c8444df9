# ruff: noqa: E501 (tables of one-line programs)
"""Whatever a pure function may not see gives itself away: with certainty, where two worlds can reverse each other."""

from collections.abc import Callable
from pathlib import Path

import pytest
from test_inheritance import changed_zygotes

from redqueen.domains.registry import check as check_all
from redqueen.records import Candidate, Rejection
from redqueen_sandbox import Program, Result, Sandbox

TWO = [f"{{'{a}{i}', '{b}{i}'}}" for i, (a, b) in enumerate([("left", "right"), ("x", "yy"), ("", " ")] * 20)]
OBJECTS = "class A: pass\ndef f(x):\n    a, b = A(), A()\n"
SEEN = {
    "a set that came in": ("def f(x):\n    return list(x)", "{'a', 'b'}"),
    "its first element": ("def f(x):\n    return next(iter(x))", "{'a', 'b'}"),
    "its middle element": ("def f(x):\n    return [*x][1]", "{'a', 'b', 'c'}"),
    "its text": ("def f(x):\n    return str(x)", "{'a', 'b'}"),
    "its elements joined": ("def f(x):\n    return '-'.join(x)", "{'a', 'b'}"),
    "taken apart": ("def f(x):\n    a, b = x\n    return a", "{'a', 'b'}"),
    "what is popped": ("def f(x):\n    return x.pop()", "{'a', 'b'}"),
    "what is popped, asked otherwise": ("def f(x):\n    return set.pop(x)", "{'a', 'b'}"),
    "keys made of it": ("def f(x):\n    return list(dict.fromkeys(x))", "{'a', 'b'}"),
    "the first of equals": ("def f(x):\n    return max(x, key=len)", "{'a', 'b'}"),
    "ties of a sort": ("def f(x):\n    return sorted(x, key=len)", "{'a', 'b'}"),
    "a set of tuples": ("def f(x):\n    return list(x)", "{('a', 1), ('b', 2)}"),
    "a set with None": ("def f(x):\n    return list(x)", "{None, 1}"),
    "bytes": ("def f(x):\n    return [c.decode() for c in {x.encode(), b'zz'}]", "'a'"),
    "numbers that collide": ("def f(x):\n    return list(x)", "{0, 8}"),
    "a frozenset": ("def f(x):\n    return [*frozenset(x)]", "['a', 'b']"),
    "a subclass": ("class S(set): pass\ndef f(x):\n    return [*S(x)]", "['a', 'b']"),
    "its iterator asked for by name": ("def f(x):\n    return next(x.__iter__())", "{'a', 'b'}"),
    "keys and a set": ("def f(x):\n    return list({'a': 1, 'b': 2}.keys() & x)", "['a', 'b', 'c']"),
    "keys by another name": ("def f(x):\n    k = x.keys\n    return list(k() - {'c'})", "{'a': 1, 'b': 2}"),
    "items": ("def f(x):\n    return list(x.items() | ())", "{'a': 1, 'b': 2}"),
    "an operator as a function": (
        "import operator\ndef f(x):\n    return list(operator.and_(x.keys(), ['a', 'b']))", "{'a': 1, 'b': 2}"),
    "literals": ("import ast\ndef f(x):\n    return list(ast.literal_eval(x))", "\"{'a', 'b'}\""),
    "members of an enum": (
        "import enum\nclass C(enum.Enum):\n    A = 1\n    B = 2\ndef f(x):\n    return [c.name for c in {C.A, C.B}]", "1"),
    "a hash": ("def f(x):\n    return hash(x)", "'abc'"),
    "a bit of a hash": ("def f(x):\n    return hash(x) & 1", "'abc'"),
    "the order of hashes": ("def f(x):\n    return hash(x) < hash('b')", "'a'"),
    "the hash of a tuple": ("def f(x):\n    return hash((x, 1)) & 1", "'a'"),
    "numbers that are none": (
        "def f(x):\n    x.add(float('nan'))\n    return [v == v for v in x]", "{1.0, 2.0, 3.0}"),
    "the order in which pprint shows what has none": (
        "import pprint\nclass A:\n    def __init__(self, n): self.n = n\n    def __repr__(self): return self.n\n"
        "def f(x):\n    made = [A(str(i)) for i in range(300)]\n    return pprint.pformat({made[150]: 1, made[290]: 2})", "1"),
    "how much memory there is": (
        "def f(x):\n    held = []\n    try:\n        while True:\n            held.append(bytearray(1 << 23))\n"
        "    except MemoryError:\n        n = len(held)\n        held.clear()\n        return n", "1"),
    "how far a doubling gets": (
        "def f(x):\n    n = 1\n    try:\n        while n < 1 << 40:\n            bytearray(n)\n            n *= 2\n"
        "    except MemoryError:\n        return n", "1"),
    "the hash of nothing": ("def f(x):\n    return hash(x) & 1", "None"),
    "a hash by its slot": ("def f(x):\n    return str.__hash__(x)", "'abc'"),
    "a function's text": ("def f(x):\n    return str([f, x][0])", "1"),
    "an object's text": ("def f(x):\n    return repr(object())", "1"),
    "a bit of an object's text": ("def f(x):\n    return f'{object()}'[-3] < '8'", "1"),
    "the order of two objects' hashes": (OBJECTS + "    return hash(a) < hash(b)", "1"),
    "the order of two objects' texts": (OBJECTS + "    return str(a) < str(b)", "1"),
    "the order of two functions": (
        "def f(x):\n    a, b = (lambda: 0), (lambda: 0)\n    return str(a) < str(b)", "1"),
    "the order of two plain objects": ("def f(x):\n    a, b = object(), object()\n    return str(a) < str(b)", "1"),
    "objects sorted by hash": (
        "class A:\n    def __init__(self, n): self.n = n\n"
        "def f(x):\n    return [a.n for a in sorted([A(1), A(2), A(3)], key=hash)]", "1"),
    "objects in a set": (
        "class A:\n    def __init__(self, n): self.n = n\ndef f(x):\n    return [a.n for a in {A(1), A(2), A(3)}]", "1"),
    "how deep it may go": (
        "def f(x):\n    def g(n):\n        try:\n            return g(n + 1)\n        except RecursionError:\n"
        "            return n\n    return g(0)", "1"),
}  # fmt: skip
BLIND = {
    "a sorted set": ("def f(x):\n    return sorted(set(x))", "['a', 'b', 'c']", "['a', 'b', 'c']"),
    "a set of numbers": ("def f(x):\n    return list({*x})", "[3, 1, 2]", "[1, 2, 3]"),
    "a set as it is": ("def f(x):\n    return x | {'c'}", "{'a', 'b'}", "{'a', 'b', 'c'}"),
    "a sum over a set": ("def f(x):\n    return sum(map(len, x))", "{'a', 'bb'}", "3"),
    "a set emptied": (
        "def f(x):\n    n = 0\n    while x:\n        n += len(x.pop())\n    return n", "{'a', 'bb', 'ccc'}", "6"),
    "the hash of numbers": ("def f(x):\n    return hash((1, 2)) == hash((1, 2)) and hash(7)", "1", "7"),
    "hashes that are equal": ("def f(x):\n    return hash('a' + x) == hash('ab')", "'b'", "True"),
    "hashes in a class": (
        "class P:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n"
        "    def __hash__(self): return hash((self.n, 'p'))\n"
        "def f(x):\n    return len({P(1), P(1), P('a')})", "1", "2"),
    "a set that must not grow under it": (
        "def f(x):\n    try:\n        for c in x:\n            x.add(c + c)\n    except RuntimeError as error:\n"
        "        return str(error)", "{'a', 'b'}", "'Set changed size during iteration'"),
    "an empty set popped": (
        "def f(x):\n    try:\n        set().pop()\n    except KeyError as error:\n        return str(error)", "1",
        "\"'pop from an empty set'\""),
    "keys of a dict": ("def f(x):\n    return dict.fromkeys(x, 0)", "['b', 'a']", "{'a': 0, 'b': 0}"),
    "a thousand frames": (
        "def g(n):\n    return 0 if n == 0 else 1 + g(n - 1)\ndef f(x):\n    return g(x)", "985", "985"),
    "dates": ("import datetime\ndef f(x):\n    d = datetime.datetime(2020, 2, 3)\n    return d.strftime('%d.%m.%Y')", "1",
              "'03.02.2020'"),
    "modules by every form of import": (
        "import collections.abc\nimport json.decoder\nfrom math import *\nfrom collections import *\nimport json as j\n"
        "def f(x):\n    return [isinstance(x, collections.abc.Sized), j.dumps(x), floor(2.5), Counter('aab')['a']]",
        "[1]", "[True, '[1]', 2, 2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_depends_on_the_world_is_no_value(name: str, run_one: Callable[..., Result]) -> None:
    assert run_one(*SEEN[name]).verdict == "nondeterministic"


@pytest.mark.parametrize("name", BLIND)
def test_what_does_not_depend_on_the_world_is_a_value(name: str, run_one: Callable[..., Result]) -> None:
    code, given, expected = BLIND[name]
    result = run_one(code, given)
    assert (result.verdict, result.outputs) == ("ok", (expected,)), result


def test_of_sixty_inputs_of_two_strings_in_a_set_none_becomes_a_task(verifier: Sandbox) -> None:
    candidates = [
        Candidate(str(i), "T", "S", "code_o", "", code, (given,))
        for i, given in enumerate(TWO)
        for code in ("def f(x):\n    return list(x)", "def f(x):\n    return ''.join(x)")
    ]
    assert len(candidates) == 120
    found = check_all(candidates, verifier)
    assert {one.reason for one in found if isinstance(one, Rejection)} == {"nondeterministic"}
    assert all(isinstance(one, Rejection) for one in found)


CLOCKS = [
    "import datetime\ndef f(x):\n    return getattr(datetime.datetime, 'n' + 'ow')().year",
    "import datetime\ndef f(x):\n    match datetime.datetime:\n        case object(now=read):\n            return read().year",
    "from datetime import date as d\ndef f(x):\n    return getattr(d, 'to' + 'day')().year",
    "import datetime\ndef f(x):\n    return getattr(datetime.datetime(2000, 1, 1), 'utc' + 'now')().year",
    "import datetime\ndef f(x):\n    class D(datetime.datetime): pass\n    return getattr(D, 'n' + 'ow')().year",
    "import calendar\ndef f(x):\n    return getattr(calendar, 's' + 'ys').version",
    "import calendar\ndef f(x):\n    return getattr(calendar, 'date' + 'time').MINYEAR and getattr("
    "getattr(calendar, 'date' + 'time').date, 'to' + 'day')().year",
    "import random\ndef f(x):\n    return getattr(random, '_' + 'os').getpid()",
    "import statistics\ndef f(x):\n    return getattr(statistics, 's' + 'ys').maxsize",
    "import dataclasses\ndef f(x):\n    match dataclasses:\n        case object(sys=s):\n            return s.maxsize",
]


@pytest.mark.parametrize("code", CLOCKS)
def test_no_way_of_asking_finds_a_clock_or_the_interpreter_behind_a_module(
    code: str, run_one: Callable[..., Result]
) -> None:
    result = run_one(code)
    assert result.verdict in ("forbidden", "error") or result.outputs == ("None",), result


SHOWN = {
    "an object": "object()", "one of a class": "A()", "a function": "[f][0]", "a generator": "(i for i in x)",
    "a method": "A().m", "a builtin method": "x.append", "a slot": "x.__len__", "an iterator": "iter(x)",
    "a map": "map(len, x)", "a view of memory": "memoryview(b'ab')", "what an exception holds": "ValueError(object())",
    "what a list holds": "[A()]", "a part of a function": "functools.partial(f, 1)", "a cell": "types.CellType(3)",
    "a generator of numbers": "random.Random(3)", "a lock": "functools.cached_property(f).lock",
}  # fmt: skip


@pytest.mark.parametrize("thing", SHOWN)
def test_no_bit_of_an_address_in_a_text_is_a_value(thing: str, verifier: Sandbox) -> None:
    code = (
        "import functools, random, types\nclass A:\n    def m(self): pass\n"
        f'def f(x, n):\n    text = f"{{{SHOWN[thing]}}}"'
        ".rpartition(' at 0x')[2][:12]\n    return int(text, 16) >> n & 1"
    )
    results = verifier.run([Program(str(n), code, (f"[1, 2], {n}",)) for n in range(4, 47)])
    assert {result.verdict for result in results} == {"nondeterministic"}


def test_an_address_in_a_text_is_as_long_as_ever_and_stays_the_same(run_one: Callable[..., Result]) -> None:
    code = "class A: pass\ndef f(x):\n    a = A()\n    return [len(f'{a}'), f'{a}' == f'{a}', f'{a}' != f'{A()}', f'{a}'[:19]]"
    assert run_one(code).outputs == ("[36, True, True, '<program.A object a']",)


def test_a_text_of_the_program_s_own_is_left_as_it_is(run_one: Callable[..., Result]) -> None:
    code = "class A:\n    def __repr__(self): return '<A at 0x1f>'\ndef f(x):\n    return f'{A()}' + f'{[A()]}'"
    assert run_one(code).outputs == ("'<A at 0x1f>[<A at 0x1f>]'",)


MUTATIONS = {
    "addresses in texts as they come": (
        "texts.py", "    if number % 2:", "    if False:", "a bit of an object's text"),
    "sets in the order of the seed": (
        "worlds.py", "elif _World.pair > 1 or", "elif True or", "a set that came in"),
    "hashes as they are": (
        "worlds.py", "    return ~stable if _World.number % 2 else stable", "    return stable", "a bit of a hash"),
    "addresses as they come": (
        "worlds.py", "falling = _World.number % 2 == 1", "falling = False", "the order of two objects' hashes"),
    "frames as many": ("child.py", "_MORE_FRAMES = 37", "_MORE_FRAMES = 0", "how deep it may go"),
    "inputs forwards": (
        "child.py", "backwards=job.screened", "backwards=False", "numbers that collide"),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_without_one_difference_something_that_depends_on_the_world_is_a_value(
    mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before, after, name = MUTATIONS[mutation]
    changed_zygotes(tmp_path, monkeypatch, file, before, after)
    code, given = SEEN[name]
    with Sandbox(workers=2) as verifier:
        programs = [Program(name, code, (given,))]
        if file == "worlds.py" and "set" in name:
            programs = [Program(name, code, (two,)) for two in TWO]
        if "addresses" in mutation:  # what a program allocates before its objects moves them: any of forty may agree
            programs = [Program(str(n), f"made = {[0] * n}\n{code}", (given,)) for n in range(40)]
        if file == "texts.py" or "set" in name:
            monkeypatch.setattr("redqueen_sandbox.programs.NUM_SEEDS_UNORDERED", 2)
        assert any(result.verdict == "ok" for result in verifier.run(programs))
