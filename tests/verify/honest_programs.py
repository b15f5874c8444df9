"""Honest programs of many kinds, each with an argument list and the output it must give."""

PROGRAMS = [
    (
        """
from dataclasses import dataclass
@dataclass(order=True)
class P:
    a: int
    b: int = 2
def f(x):
    return str(P(x)), P(1) < P(2)
""",
        "3",
        "('P(a=3, b=2)', True)",
    ),
    (
        """
from __future__ import annotations
from dataclasses import dataclass, field
@dataclass
class P:
    a: list[int] = field(default_factory=list)
def f(x):
    return P([x]).a
""",
        "3",
        "[3]",
    ),
    (
        """
from collections import namedtuple, Counter, deque, OrderedDict, defaultdict
P = namedtuple('P', 'a b')
def f(x):
    return [tuple(P(1, x)), dict(Counter('aab')), list(deque([1, 2], 1)), P(1, 2).b]
""",
        "3",
        "[(1, 3), {'a': 2, 'b': 1}, [2], 2]",
    ),
    (
        """
from enum import Enum, auto
class C(Enum):
    R = auto()
    G = auto()
def f(x):
    return C.G.name, C.R.value
""",
        "3",
        "('G', 1)",
    ),
    (
        """
from functools import lru_cache, reduce, partial, cmp_to_key
@lru_cache(None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def f(x):
    return fib(x), reduce(lambda a, b: a * b, [1, 2, 3])
""",
        "30",
        "(832040, 6)",
    ),
    (
        """
from abc import ABC, abstractmethod
class S(ABC):
    @abstractmethod
    def area(self): ...
class Q(S):
    def area(self):
        return 4
def f(x):
    try:
        S()
    except TypeError:
        return Q().area()
""",
        "3",
        "4",
    ),
    (
        """
from typing import NamedTuple, Optional, List
class P(NamedTuple):
    a: int
def f(x: Optional[int]) -> List[int]:
    return list(P(x))
""",
        "3",
        "[3]",
    ),
    (
        """
from contextlib import contextmanager
@contextmanager
def c():
    yield 5
def f(x):
    with c() as v:
        return v
""",
        "3",
        "5",
    ),
    (
        """
def f(x):
    match x:
        case {'a': [first, *_]}:
            return first
    return None
""",
        "{'a': [1, 2]}",
        "1",
    ),
    (
        """
import string, textwrap, difflib, calendar, base64, binascii, struct, zlib, hashlib, array, cmath, unicodedata
def f(x):
    return [string.digits[:2], calendar.isleap(2024), base64.b64encode(b'a').decode(),
            hashlib.md5(b'a').hexdigest()[:4],
            struct.unpack('<H', b'\\x01\\x00')[0], unicodedata.name('a'), '\\N{BULLET}']
""",
        "3",
        "['01', True, 'YQ==', '0cc1', 1, 'LATIN SMALL LETTER A', '•']",
    ),
    (
        """
import datetime
def f(x):
    d = datetime.date(2024, 2, 28) + datetime.timedelta(days=x)
    return d.strftime('%Y-%m-%d %A')
""",
        "2",
        "'2024-03-01 Friday'",
    ),
    (
        """
def f(x):
    return [x.encode('utf-16-le').hex(), x.encode('cp1252').hex(), bytes(x, 'latin-1').hex()]
""",
        "'é'",
        "['e900', 'e9', 'e9']",
    ),
    (
        """
def f(x):
    def g():
        got = yield 1
        yield got
    it = g()
    return [next(it), it.send(x)]
""",
        "3",
        "[1, 3]",
    ),
    (
        """
def f(x):
    print('noise' * x)
    return x
""",
        "3",
        "3",
    ),
    (
        """
import copy
def f(x):
    y = copy.deepcopy(x)
    y[0].append(1)
    return x, y
""",
        "[[0]]",
        "([[0]], [[0, 1]])",
    ),
    (
        """
def f(*, a, b=2):
    return a + b
""",
        "a=1",
        "3",
    ),
]
