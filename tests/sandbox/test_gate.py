"""The static gate: what it refuses, with which reason, and what it lets through."""

import ast
from collections.abc import Callable

import pytest

from redqueen_sandbox import Result
from redqueen_sandbox.inside import gate, syntax


def reason(code: str) -> str:
    return gate.screen(syntax.group(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "import os", "import sys\nsys.modules", "from sys import _getframe", "import socket",
        "import time", "import threading", "import ctypes",
        "import os.path", "import importlib", "import builtins", "import gc", "import inspect", "import uuid",
        "from os import path", "from . import x", "from typing import sys", "from random import SystemRandom",
        "from random import *", "import json\njson.decoder.scanner", "import typing\ntyping.sys.modules",
        "import random\nrandom._os", "import statistics\nstatistics.random", "import io\nio.open('x')",
        "import calendar\ncalendar.datetime.datetime.now()",
        "open('x')", "eval('1')", "exec('1')", "compile('1', '', 'eval')", "__import__('os')", "input()", "id(3)",
        "breakpoint()", "help()", "__builtins__", "__loader__", "f = open",
        "().__class__.__base__.__subclasses__()", "f.__globals__", "f.__code__", "print.__self__", "e.__traceback__",
        "g.gi_frame", "x.f_back", "import types\ntypes.FunctionType",
        "import array", "import pprint", "import hashlib", "import zlib", "import weakref", "import json.decoder",
        "from contextlib import redirect_stdout",
        "import random\nrandom.seed(1)", "from random import Random", "import io\nio.open_code",
        "import types\ntypes.CodeType",
        "import datetime\ndatetime.datetime.now()", "from datetime import date\ndate.today()",
        "from operator import attrgetter\nattrgetter('__globals__')(attrgetter and (lambda: 0))",
        "import operator\noperator.methodcaller('__subclasses__')(object)",
    ],
)  # fmt: skip
def test_what_is_impure_is_refused_with_a_reason(code: str, run_one: Callable[..., Result]) -> None:
    result = run_one(f"{code}\ndef f(x):\n    return 1")
    assert result.verdict == "forbidden" and result.detail


@pytest.mark.parametrize(
    "code",
    [
        "import math, re, json\nfrom collections import Counter, defaultdict\nfrom functools import reduce",
        "import collections.abc\nfrom typing import *\nfrom __future__ import annotations",
        "s = 'import os; eval(open(1))'  # os.system('rm')\n'''__import__'''",
        "def f(id, input):\n    return id + input",
        "for id in range(3):\n    print(id)",
        "def open(x):\n    return x\nopen(3)",
        "class A:\n    def __init__(self):\n        self.__x = 1\n        self.name = self.__class__.__name__",
        "import datetime\ndatetime.datetime(2020, 1, 1).isoformat()", "x.now()",
        "import json\ntry:\n    json.loads('')\nexcept json.decoder.JSONDecodeError:\n    pass",
        "import math as m\nm.sqrt(2)", "getattr(x, name)", "x.__dict__", "__name__ == '__main__'",
        "from operator import attrgetter, itemgetter\nattrgetter('a.b')", "import math\nmath.pi = 3",
        "import sys",
        "import operator\noperator.attrgetter(x)", "import sys\nsys.maxsize", "from sys import maxsize, float_info",
        "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n    return inner",
    ],
)  # fmt: skip
def test_honest_programs_pass(code: str) -> None:
    assert reason(code) == ""


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return getattr(f, '__glo' + 'bals__')",
        "def f(x):\n    try:\n        getattr(f, '__co' + 'de__')\n    except BaseException:\n        return 1",
        "def f(x):\n    return hasattr(f, '__clo' + 'sure__')",
        "def f(x):\n    return list(map(getattr, [f], ['__glo' + 'bals__']))",
    ],
)
def test_what_syntax_cannot_show_is_refused_when_it_happens_even_if_it_is_caught(
    code: str, run_one: Callable[..., Result]
) -> None:
    assert run_one(code).verdict == "forbidden"


def test_the_detail_of_a_refusal_is_its_reason(run_one: Callable[..., Result]) -> None:
    assert run_one("import os\ndef f(x):\n    return 1").detail == "import of os"
