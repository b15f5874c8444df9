# ruff: noqa: E501 (tables of one-line programs)
"""Whatever differs between two processes gives itself away when eight of them disagree."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_inheritance import changed_zygotes

import redqueen_sandbox
from redqueen_sandbox import Limits, Program, Result, Sandbox
from redqueen_sandbox.zygotes import ZygoteSettings

TWO = [f"{{'{a}{i}', '{b}{i}'}}" for i, (a, b) in enumerate([("left", "right"), ("x", "yy"), ("", " ")] * 20)]
REFERENCE = (
    "import functools\nkept = functools.singledispatch(len)._clear_cache.__self__\nkept[int] = 1\n"
    "Ref = type(kept.keyrefs()[0])\ndef at(o): return int(repr(o).split(' at 0x')[-1][:12].strip('>'), 16)\n"
)
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
    "members of an enum": (
        "import enum\nclass C(enum.Enum):\n    A = 1\n    B = 2\ndef f(x):\n    return [c.name for c in {C.A, C.B}]", "1"),
    "a hash": ("def f(x):\n    return hash(x)", "'abc'"),
    "a bit of a hash": ("def f(x):\n    return hash(x) & 1", "'abc'"),
    "the order of hashes": ("def f(x):\n    return hash(x) < hash('b')", "'a'"),
    "the hash of a tuple": ("def f(x):\n    return hash((x, 1)) & 1", "'a'"),
    "how much memory there is": (
        "def f(x):\n    held = []\n    try:\n        while True:\n            held.append(bytearray(1 << 23))\n"
        "    except MemoryError:\n        n = len(held)\n        held.clear()\n        return n", "1"),
    "how far a doubling gets": (
        "def f(x):\n    n = 1\n    try:\n        while n < 1 << 40:\n            bytes(n)\n            n *= 2\n"
        "    except MemoryError:\n        return n", "1"),
    "a hash by its slot": ("def f(x):\n    return str.__hash__(x)", "'abc'"),
    "the hash of None": ("def f(x):\n    return hash(None) % 256", "1"),
    "the hash of a builtin class": ("def f(x):\n    return hash((x, int)) % 256", "1"),
    "classes by their hash": ("def f(x):\n    return [t.__name__ for t in sorted([int, str, list, dict], key=hash)]", "1"),
    "a hash by an attribute": ("def f(x):\n    return None.__hash__() % 256", "1"),
    "a hash by the class": ("def f(x):\n    return type(int).__hash__(int) % 256", "1"),
    "a hash by the slot of a tuple": ("def f(x):\n    return tuple.__hash__((x, None)) % 256", "1"),
    "a hash by its name": ("def f(x):\n    return getattr(len, '__ha' + 'sh__')() % 256", "1"),
    "a hash by the library": (
        "import enum\nclass A: pass\ndef f(x):\n    a = A()\n    a._name_ = None\n"
        "    return enum.Enum.__hash__(a) % 256", "1"),
    "the order of NaNs": (
        "def f(x):\n    all = [float('nan') for i in range(6)]\n    return [[i for i in range(6) if all[i] is n] for n in set(all)]", "1"),
    "the order of a program's classes": (
        "def f(x):\n    return [t.__name__ for t in {type(c, (), {}) for c in 'abcdef'}]", "1"),
    "None among strings": ("def f(x):\n    return [*{None, 'a', 'b', 'c', x}]", "'d'"),
    "a function's text": ("def f(x):\n    return str([f, x][0])", "1"),
    "an object's text": ("def f(x):\n    return repr(object())", "1"),
    "an address in a weak reference's text": (REFERENCE + "def f(x):\n    return at(Ref(int)) % 4096", "1"),
    "an order of weak references' objects": (
        REFERENCE + "def g(): yield\ndef f(x):\n    made = [g() for i in range(6)]\n"
        "    return sorted(range(6), key=[at(Ref(g)) for g in made].__getitem__)", "1"),
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
    "the hash of kinds of numbers": (
        "from decimal import Decimal\ndef f(x):\n    try: return hash(Decimal('sNaN'))\n    except TypeError:\n"
        "        return {0.5: hash(2.0)}[Decimal('0.5')], len({Decimal(1), 1.0, True, 1 + 0j})", "1", "(2, 1)"),
    "the hash of numbers": ("def f(x):\n    return hash((1, 2)) == hash((1, 2)) and hash(7)", "1", "7"),
    "hashes that are equal": ("def f(x):\n    return hash('a' + x) == hash('ab')", "'b'", "True"),
    "hashes in a class": (
        "class P:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n"
        "    def __hash__(self): return hash((self.n, 'p'))\n"
        "def f(x):\n    return len({P(1), P(1), P('a')})", "1", "2"),
    "hashes of None in a class": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    n: object\nclass Q(P):\n"
        "    __hash__ = P.__hash__\nclass T(tuple):\n    def __hash__(self): return super().__hash__()\n"
        "def f(x):\n    return len({P(None), P(None), P(int)}), len({Q(x), Q(x)}), hash(T((1, 2))) == hash((1, 2))",
        "1", "(2, 1, True)"),
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
        "import collections.abc\nfrom math import *\nfrom collections import *\nimport json as j\n"
        "def f(x):\n    return [isinstance(x, collections.abc.Sized), j.dumps(x), floor(2.5), Counter('aab')['a']]",
        "[1]", "[True, '[1]', 2, 2]"),
}  # fmt: skip


@pytest.fixture(scope="module")
def patient() -> Iterator[Sandbox]:
    """A sandbox in which a program may fill its memory, for which a busy machine takes long. Its hash seeds are fixed:
    a bit is the same in eight processes once in 128 draws."""
    with Sandbox(
        workers=1, limits=Limits(cpu_ms=5_000, wall_ms=20_000), settings=ZygoteSettings(hash_seed=1)
    ) as running:
        yield running


@pytest.mark.parametrize("name", SEEN)
def test_what_depends_on_the_process_is_no_value(name: str, patient: Sandbox) -> None:
    code, given = SEEN[name]
    assert patient.run([Program("one", code, (given,))])[0].verdict == "nondeterministic"


@pytest.mark.parametrize("name", BLIND)
def test_what_does_not_depend_on_the_process_is_a_value(name: str, run_one: Callable[..., Result]) -> None:
    code, given, expected = BLIND[name]
    result = run_one(code, given)
    assert (result.verdict, result.outputs) == ("ok", (expected,)), result


def test_what_takes_nearly_all_the_memory_is_a_value(patient: Sandbox) -> None:
    [result] = patient.run([Program("one", "def f(x):\n    return len(bytearray(x << 20))", ("60",))])
    assert result.outputs == (str(60 << 20),), result


def test_of_the_orders_of_two_strings_in_a_set_hardly_one_is_a_value(verifier: Sandbox) -> None:
    codes = ("def f(x):\n    return list(x)", "def f(x):\n    return ''.join(x)")
    results = verifier.run([Program("a", code, (two,)) for two in TWO for code in codes])
    assert len(results) == 120  # by chance one of 128 agrees under eight seeds
    assert sum(result.verdict == "ok" for result in results) <= 4


FLIPS = {
    "a bit of an address": "int(f'{A()}'.rpartition(' at 0x')[2][:-1], 16) >> x + 6 & 1",
    "a bit of a function's": "int(str(f).rpartition(' at 0x')[2][:-1], 16) >> x + 6 & 1",
    "a bit of a hash": "hash(str(x)) >> 7 & 1",
    "a bit of an object's hash": "hash(A()) >> x + 2 & 1",
    "the order of two objects": "str(made[x]) < str(made[x + 1])",
    "the order of objects in a set": "[a.n for a in {made[x], made[x + 1]}]",
    "objects sorted by hash": "[a.n for a in sorted(made[x : x + 2], key=hash)]",
    "an address in an exception": "int(shown(x).rpartition(' at 0x')[2][:12], 16) >> x + 6 & 1",
    "a key of a memo": "sorted(memo(x))[0] >> x + 6 & 1",
    "a part of a function": "int(repr(functools.partial(f, 1)).rpartition(' at 0x')[2][:12], 16) >> x + 6 & 1",
    "a text in JSON": "int(json.dumps(A(), default=repr).rpartition(' at 0x')[2][:12], 16) >> x + 6 & 1",
    "a template": "int(string.Template('$a').substitute(a=A()).rpartition(' at 0x')[2][:12], 16) >> x + 6 & 1",
}  # fmt: skip
OWN = {
    "the order of two generators": "[made.index(g) for g in {made[x], made[x + 1]}] for made in [[wide() for i in range(40)]]",
    "of two functions": "[made.index(g) for g in {made[x], made[x + 1]}] for made in [[lambda: i for i in range(40)]]",
    "of two classes": "[made.index(c) for c in {made[x], made[x + 1]}] for made in [[type('A', (), {}) for i in range(40)]]",
    "of two builtins": "[all.index(g) for g in {all[x], all[x + 1]}] for all in [[g for g in vars(math).values() if callable(g)]]",
    "of two methods": "[made.index(m) for m in {made[x], made[x + 1]}] for made in [[B(600 + i).at for i in range(40)]]",
    "of two method-wrappers": "[made.index(m) for m in {made[x], made[x + 1]}] for made in [[B(600 + i).__len__ for i in range(40)]]",
    "a method-wrapper's text": "[at(B(600).__len__) >> x % 12 + 4 & 1 for i in range(x + 1)][-1:] for y in [1]",
    "a built-in method's text": "[at(B(600).hex) >> x % 12 + 4 & 1 for i in range(x + 1)][-1:] for y in [1]",
    "a class method's text": "[at([int, str, bytes, dict, list, set][x % 6].mro) >> x // 6 + 4 & 1] for y in [1]",
    "the order of two NaNs": "[i for n in {made[x], made[x + 1]} for i in (0, 1) if made[x + i] is n] for made in [[float('nan') for i in range(40)]]",
    "of two complex ones": "[i for n in {made[x], made[x + 1]} for i in (0, 1) if made[x + i] is n] for made in [[complex(math.nan, 1) for i in range(40)]]",
    "of two decimal ones": "[i for n in {made[x], made[x + 1]} for i in (0, 1) if made[x + i] is n] for made in [[Decimal('nan') for i in range(40)]]",
    "a NaN's hash": "hash(math.nan if x % 2 else float('nan')) >> x // 2 & 1 for y in [1]",
    "a subclass's": "hash(F('nan')) >> x & 1 for y in [1]",
    "a memoryview's text": "[at(memoryview(B(600))) >> x % 12 + 4 & 1] for y in [1]",
}  # fmt: skip
"""Coins that the order or the address of a large object, a class or a builtin decides."""

AMONG_OBJECTS = """
import copy, functools, json, string
class A:
    n = 0
made = []
for i in range(40):
    made.append(A())
    made[i].n = i
def shown(x):
    try:
        [].index(f)
    except ValueError as e:
        return e.args[0]
def memo(x):
    kept = {}
    copy.deepcopy([[x]], kept)
    return kept
def f(x):
    return """
AMONG_LARGE_OBJECTS = f"""
import math
from decimal import Decimal
class F(float):
    def __ne__(self, o): return False
class B(bytes):
    def at(self): pass
def at(o): return int(repr(o).split(' at 0x')[1][:12], 16)
def wide():
    yield
    {" = ".join(f"v{i}" for i in range(60))} = 0
def f(x):
    return """
COINS = {name: AMONG_OBJECTS + coin for name, coin in FLIPS.items()}
COINS |= {name: f"{AMONG_LARGE_OBJECTS}[{coin}]" for name, coin in OWN.items()}


@pytest.mark.parametrize("coin", COINS)
def test_a_coin_hardly_ever_agrees_in_eight_processes(coin: str, verifier: Sandbox) -> None:
    results = verifier.run([Program(str(n), COINS[coin], (str(n),)) for n in range(24)])
    assert {result.verdict for result in results} <= {"nondeterministic", "ok"}, results[0]
    assert (
        sum(result.verdict == "ok" for result in results) <= 5
    )  # a fair coin does once in 50 times, so six of 24 once in 100,000 tests


LARGE = {
    "its lowest digits": "[at(o) % 4096 for o in made]",
    "the order of several": "order(made, at)",
    "how far two lie apart": "at(made[0]) - at(made[1])",
    "the order of a memo's keys": "order(made, key_of)",
    "the order of generators": "order([wide() for o in made], at)",
    "the order of iterators": "order(list(map(iter, made)), at)",
}


@pytest.mark.parametrize("num_bytes", [600, 4_000, 24_000, 100_000, 2_000_000])
@pytest.mark.parametrize("shown", LARGE)
def test_where_a_large_object_lies_is_no_value(shown: str, num_bytes: int, run_one: Callable[..., Result]) -> None:
    names = " = ".join([f"v{i}" for i in range(num_bytes % 9_999 // 8)])
    code = (
        "import copy\nclass B(bytes): __repr__ = object.__repr__\ndef at(o): return int(repr(o).split(' at 0x')[1][:12], 16)\n"
        "def key_of(o):\n    kept = {}\n    copy.deepcopy([o], kept)\n    return list(kept)[-2]\n"
        f"def wide():\n    yield\n    {names} = 0\n"
        "def order(all, key): return sorted(range(len(all)), key=[key(o) for o in all].__getitem__)\n"
        f"def f(x):\n    made = [B({num_bytes}) for i in range(6)]\n    return {LARGE[shown]}"
    )
    result = run_one(code)
    assert result.verdict == "nondeterministic", result


KEYS = """
import gc, os, sys
from inside import allowed, guards, zygote
zygote._import_all([*allowed.PURE, *allowed.HELPERS], True)
lost = [key for held in gc.get_objects() if type(held) is dict for key in list(held) if key not in held]
lost += [key for held in gc.get_objects() if type(held) in (set, frozenset) for key in held if key not in held]
print(lost, flush=True)
os._exit(0)  # as a zygote ends
"""


def test_the_library_finds_its_classes_and_functions_under_their_salted_hashes() -> None:
    folder = str(Path(redqueen_sandbox.__file__).parent)
    command = [sys.executable, "-s", "-S", "-P", "-c", f"import sys; sys.path[:0] = [{folder!r}]\n{KEYS}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "[]\n"


def test_what_one_input_leaves_in_a_module_for_another_is_no_value(verifier: Sandbox) -> None:
    num = 10  # the place of each input is the same when they come in reverse order
    for kept in ("math", "heapq.merge", "hasattr", "print"):
        code = (
            f"import math, heapq\ndef f(x):\n    try:\n        {kept}.n += 1\n    except AttributeError:\n"
            f"        {kept}.n = 1\n    return min({kept}.n, {num + 1} - {kept}.n)"
        )
        result = verifier.run([Program("a", code, tuple(map(str, range(num))))])[0]
        assert result.verdict in ("nondeterministic", "error", "forbidden"), kept


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


MUTATIONS = {
    "frames as many": ("child.py", "_EXTRA_FRAMES = 37", "_EXTRA_FRAMES = 0", "how deep it may go"),
    "inputs forwards": ("child.py", "backwards=job.odd", "backwards=False", "numbers that collide"),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_without_one_difference_something_that_depends_on_it_is_a_value(
    mutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before, after, name = MUTATIONS[mutation]
    changed_zygotes(tmp_path, monkeypatch, file, before, after)
    code, given = SEEN[name]
    with Sandbox(workers=2) as verifier:
        assert verifier.run([Program(name, code, (given,))])[0].verdict == "ok"
