"""Programs that reach for what the gate refuses, one for each road. Each is ``forbidden``, or the tuple says what else.

Every program ends in ``f(x)`` and would return "REACHED" if the road were open.
"""
# ruff: noqa: E501 (a program a line)

CATCH = "def caught():\n    try:\n        1 / 0\n    except Exception as e:\n        return e\n"

FRAMES = [
    CATCH + "def f(x):\n    match caught():\n        case object(__traceback__=tb):\n            return 'REACHED'",
    CATCH + "def f(x):\n    match caught():\n        case Exception(__traceback__=object(tb_frame=fr)):\n            return 'REACHED'",
    "class C:\n    def __enter__(self): return self\n    def __exit__(self, k, e, tb):\n        match tb:\n"
    "            case object(tb_frame=object(f_back=b)):\n                self.b = 'REACHED'\n        return True\n"
    "def f(x):\n    c = C()\n    with c:\n        1 / 0\n    return c.b",
    CATCH + "class M(type):\n    def __instancecheck__(c, o): return True\n"
    "class X(metaclass=M):\n    __match_args__ = ('__trace' + 'back__',)\n"
    "def f(x):\n    match caught():\n        case X(tb): return 'REACHED'",
    CATCH + "class X(Exception):\n    __match_args__ = ('__traceback__',)\n"
    "def f(x):\n    try:\n        raise X\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "class M(type):\n    def __instancecheck__(c, o): return True\n    def __getattr__(c, n): return ('__trace' + 'back__',)\n"
    "class X(metaclass=M): pass\n" + CATCH + "def f(x):\n    match caught():\n        case X(tb): return 'REACHED'",
    CATCH + "X = type('X', (Exception,), {'__match' + '_args__': ('__trace' + 'back__',)})\n"
    "def f(x):\n    try:\n        raise X\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "class X(Exception):\n    locals()['__match' + '_args__'] = ('__trace' + 'back__',)\n"
    "def f(x):\n    try:\n        raise X\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "class X(Exception): pass\nsetattr(X, '__match' + '_args__', ('__trace' + 'back__',))\n"
    "def f(x):\n    try:\n        raise X\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "class X(Exception): pass\ntype.__setattr__(X, '__match' + '_args__', ('__trace' + 'back__',))\n"
    "def f(x):\n    try:\n        raise X\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "from dataclasses import dataclass\n@dataclass\nclass X(Exception):\n    __annotations__['__trace' + 'back__'] = object\n"
    "def f(x):\n    try:\n        raise X(None)\n    except X as e:\n        match e:\n            case X(tb): return 'REACHED'",
    "def deco(c):\n    return type('Y', (c,), {'__match' + '_args__': ('__trace' + 'back__',)})\n"
    "@deco\nclass X(Exception): pass\n"
    "def f(x):\n    try:\n        raise X\n    except Exception as e:\n        match e:\n            case X(tb): return 'REACHED'",
    CATCH + "def f(x):\n    return 'REACHED' if getattr(caught(), '__trace' + 'back__') else 0",
    CATCH + "class S(str):\n    def __eq__(s, o): return False\n    __hash__ = None\n"
    "class H(str):\n    def __eq__(s, o): return False\n    def __hash__(s): return 1\n"
    "def f(x):\n    return 'REACHED' if getattr(caught(), H('__traceback__' [:0] + '__trace' + 'back__')) else 0",
    CATCH + "def f(x):\n    return 'REACHED' if BaseException.__dict__['__trace' + 'back__'].__get__(caught()) else 0",
    CATCH + "def f(x):\n    return 'REACHED' if vars(BaseException)['__trace' + 'back__'].__get__(caught()) else 0",
    CATCH + "def f(x):\n    return 'REACHED' if getattr(BaseException, '__di' + 'ct__')['__trace' + 'back__'].__get__(caught()) else 0",
    CATCH + "def f(x):\n    return 'REACHED' if type(caught()).mro()[-2].__dict__['__trace' + 'back__'].__get__(caught()) else 0",
    CATCH + "def f(x):\n    return ('{0.__trace' + 'back__.tb_frame}').format(caught()) and 'REACHED'",
    CATCH + "def f(x):\n    return ('{e.__trace' + 'back__}').format_map({'e': caught()}) and 'REACHED'",
    CATCH + "def f(x):\n    return str.format('{0.__trace' + 'back__}', caught()) and 'REACHED'",
    CATCH + "def f(x):\n    g = str.format\n    return list(map(g, ['{0.__trace' + 'back__}'], [caught()])) and 'REACHED'",
    CATCH + "def f(x):\n    return getattr('{0.__trace' + 'back__}', 'format')(caught()) and 'REACHED'",
    CATCH + "class S(str): pass\ndef f(x):\n    return S('{0.__trace' + 'back__}').format(caught()) and 'REACHED'",
    CATCH + "class S(str):\n    def format(self, *a): return super().format(*a)\n"
    "def f(x):\n    return S('{0.__trace' + 'back__}').format(caught()) and 'REACHED'",
    CATCH + "def f(x):\n    return '{0:{1.__traceback__}}'.format('', caught()) and 'REACHED'",
    CATCH + "def f(x):\n    return ('{0:{1.__trace' + 'back__}}').format('', caught()) and 'REACHED'",
    CATCH + "import string\ndef f(x):\n    return string.Formatter().format('{0.__trace' + 'back__}', caught()) and 'REACHED'",
    CATCH + "import string\ndef f(x):\n    return string.Formatter().get_field('0.__trace' + 'back__', [caught()], {}) and 'REACHED'",
    CATCH + "import operator\ndef f(x):\n    return operator.attrgetter('__trace' + 'back__')(caught()) and 'REACHED'",
    CATCH + "import operator\ndef f(x):\n    return operator.attrgetter('args', '__trace' + 'back__')(caught()) and 'REACHED'",
    CATCH + "import operator as o\ndef f(x):\n    return getattr(o, 'attr' + 'getter')('__trace' + 'back__')(caught()) and 'REACHED'",
    CATCH + "import operator\ndef f(x):\n    g = operator.methodcaller('form' + 'at', caught())\n    return g('{0.__trace' + 'back__}') and 'REACHED'",
    CATCH + "from functools import partial\ndef f(x):\n    return partial(getattr, caught())('__trace' + 'back__') and 'REACHED'",
    CATCH + "from functools import reduce\ndef f(x):\n    return reduce(getattr, ['__trace' + 'back__', 'tb_' + 'frame'], caught()) and 'REACHED'",
    CATCH + "def f(x):\n    return [*map(getattr, [caught()], ['__trace' + 'back__'])] and 'REACHED'",
    CATCH + "def f(x):\n    return object.__getattribute__(caught(), '__trace' + 'back__') and 'REACHED'",
    CATCH + "class E(Exception):\n    def get(self): return super().__getattribute__('__trace' + 'back__')\n"
    "def f(x):\n    try:\n        raise E\n    except E as e:\n        return e.get() and 'REACHED'",
    CATCH + "import functools\ndef g(): pass\ndef f(x):\n    functools.update_wrapper(g, f, assigned=('__co' + 'de__',))\n    return 'REACHED'",
    "import functools\nclass O: pass\ndef f(x):\n    o = O()\n    functools.update_wrapper(o, f, assigned=('__glo' + 'bals__',), updated=())\n    return 'REACHED' if vars(o) else 0",
    CATCH + "import functools\nclass O: pass\ndef f(x):\n    o = O()\n    functools.update_wrapper(o, BaseException, assigned=())\n    return 'REACHED' if vars(o)['__trace' + 'back__'].__get__(caught()) else 0",
    "import typing\ndef f(x):\n    return typing.List.__getattr__('x') and 'REACHED'",
    "def gen():\n    yield 1\ndef f(x):\n    match gen():\n        case object(gi_frame=fr): return 'REACHED'",
    "async def co(): pass\ndef f(x):\n    match co():\n        case object(cr_frame=fr): return 'REACHED'",
    "async def ag():\n    yield 1\ndef f(x):\n    match ag():\n        case object(ag_frame=fr): return 'REACHED'",
    "def f(x):\n    match f:\n        case object(__globals__=g): return 'REACHED'",
    "def f(x):\n    match f:\n        case object(__closure__=g) | object(__code__=g): return 'REACHED'",
    "def f(x):\n    match print:\n        case object(__self__=g): return 'REACHED'",
    "def f(x):\n    return f.__builtins__ and 'REACHED'",
    "def f(x):\n    return (lambda: x).__closure__[0].cell_contents and 'REACHED'",
    "def f(x):\n    return f.__ｇlobals__ and 'REACHED'",
    "def f(x):\n    match object:\n        case object(__subclasses__=s): return 'REACHED'",
    "def f(x):\n    return type.__dict__['__sub' + 'classes__'](object) and 'REACHED'",
    CATCH + "def f(x):\n    match BaseException:\n        case object(__dict__=d): return d['__trace' + 'back__'].__get__(caught()) and 'REACHED'",
    CATCH + "def f(x):\n    match '{0.__trace' + 'back__}':\n        case str(format=g): return g(caught()) and 'REACHED'",
    CATCH + "class S(str):\n    __match_args__ = ('format',)\ndef f(x):\n    match S('{0.__trace' + 'back__}'):\n        case S(g): return g(caught()) and 'REACHED'",
    "import operator\ndef f(x):\n    return type(operator.attrgetter('a'))('__glo' + 'bals__')(f) and 'REACHED'",
    "import operator\ndef f(x):\n    return type(operator.methodcaller('a'))('form' + 'at', f)('{0.__glo' + 'bals__}') and 'REACHED'",
    "import enum\nclass X(enum.Enum): A = 1\ndef f(x):\n    return enum.pickle_by_enum_name(X.A, 4)[0](f, '__glo' + 'bals__') and 'REACHED'",
    "from dataclasses import dataclass, fields, replace\n@dataclass\nclass E(Exception):\n    a: int = 1\n    def __init__(self, *a, **k): self.k = k\n"
    "fields(E)[0].name = '__trace' + 'back__'\ndef f(x):\n    try: raise E(1)\n    except E as e: return replace(e).k and 'REACHED'",
    "from collections import UserString\n" + CATCH + "def f(x):\n    return UserString('{0.__trace' + 'back__}').format(caught()) and 'REACHED'",
    "from collections import UserString\n" + CATCH + "def f(x):\n    return UserString('{e.__trace' + 'back__}').format_map({'e': caught()}) and 'REACHED'",
    "import copy\nclass C:\n    def __reduce_ex__(self, p): return (getattr, ((lambda: 0), '__glo' + 'bals__'))\ndef f(x):\n    return copy.copy(C()) and 'REACHED'",
    "import copy\nclass C:\n    def __reduce_ex__(self, p): return (globals, ())\ndef f(x):\n    return copy.copy(C()) and 'REACHED'",
    "def dataclass(c): return type('X', (Exception,), dict([('__match' + '_args__', ('__trace' + 'back__',))]))\n@dataclass\nclass A(Exception): pass\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class Generic:\n    def __class_getitem__(c, i): return i\nX = type('X', (Exception,), dict([('__match' + '_args__', ('__trace' + 'back__',))]))\nclass A(Generic[X]): pass\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class M:\n    def dataclass(self, c): return type('X', (Exception,), dict([('__match' + '_args__', ('__trace' + 'back__',))]))\nm = M()\n@m.dataclass\nclass A(Exception): pass\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "namedtuple = lambda *a: type('X', (Exception,), dict([('__match' + '_args__', ('__trace' + 'back__',))]))\nA = namedtuple('A', 'a')\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class H:\n    ValueError = type('X', (Exception,), dict([('__match' + '_args__', ('__trace' + 'back__',))]))\nclass A(H.ValueError): pass\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class A(Exception):\n    for __match_args__ in [('__trace' + 'back__',)]: pass\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class A(Exception):\n    (__match_args__ := ('__trace' + 'back__',))\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a): return 'REACHED'",
    "class A(Exception):\n    __match_args__: tuple = ('args',)\n    __match_args__ += ('__trace' + 'back__',)\ndef f(x):\n    try: raise A\n    except Exception as e:\n        match e:\n            case A(a, b): return 'REACHED'",
]  # fmt: skip
"""Frames, tracebacks, code, closures, globals."""

MODULES = [
    "import random\ndef f(x):\n    return vars(random)['_o' + 's'] and 'REACHED'",
    "import random\ndef f(x):\n    return getattr(random, '_o' + 's') and 'REACHED'",
    "import random\ndef f(x):\n    m = random\n    return m._os and 'REACHED'",
    "import random\ndef f(x):\n    return [m._os for m in [random]] and 'REACHED'",
    "import random\ndef f(x):\n    match random:\n        case object(_os=o): return 'REACHED'\n    return getattr(random, '_o' + 's')",
    "import enum\ndef f(x):\n    return getattr(enum, 's' + 'ys').modules and 'REACHED'",
    "import typing as t\ndef f(x):\n    return [m.sys for m in [t]] and 'REACHED'",
    "import functools\ndef f(x):\n    return [m.RLock for m in [functools]] and 'REACHED'",
    "from enum import Enum\ndef f(x):\n    return Enum._convert_('X', 'sys', lambda n: n == 'modules') and 'REACHED'",
    "from enum import Enum\ndef f(x):\n    return getattr(Enum, '_conv' + 'ert_')('X', 'sys', lambda n: n == 'modules') and 'REACHED'",
    "import contextlib\nclass R(contextlib.redirect_stdout):\n    _stream = '_getframe'\ndef f(x):\n    R(None).__enter__()\n    return 'REACHED'",
    "import contextlib\nR = type('R', (contextlib.redirect_stdout,), {'_str' + 'eam': 'modules'})\ndef f(x):\n    R(None).__enter__()\n    return 'REACHED'",
    "import contextlib\ndef f(x):\n    return contextlib.contextmanager(globals)().gen and 'REACHED'",
    "import contextlib\ndef f(x):\n    return contextlib.contextmanager(vars)().gen and 'REACHED'",
    "def f(x):\n    return globals()['__buil' + 'tins__'] and 'REACHED'",
    "def f(x):\n    globals()['__buil' + 'tins__'] = {}\n    return 'REACHED'",
    "from dataclasses import dataclass\n@dataclass\nclass X:\n    __annotations__ = {'a: int = [].__class__.__sub' + 'classes__, b': int}\ndef f(x):\n    return 'REACHED'",
    "from dataclasses import dataclass\n@dataclass\nclass X:\n    __module__ = 'random'\n    __annotations__ = {'a: int = _os, b': int}\ndef f(x):\n    return X.__init__.__defaults__ and 'REACHED'",
    "import typing\nclass X:\n    a: '().__class__'\ndef f(x):\n    return typing.get_type_hints(X) and 'REACHED'",
    "import functools, random\ndef f(x):\n    @functools.singledispatch\n    def g(a): return 1\n    def h(a): return 2\n    functools.update_wrapper(h, random.shuffle)\n    h.__annotations__ = {'a': '_o' + 's.DirEntry'}\n    g.register(h)\n    return 'REACHED'",
    "import enum\n@enum.global_enum\nclass X(enum.Enum):\n    A = 1\ndef f(x):\n    return 'REACHED'",
    "import sys\ndef f(x):\n    return sys.modules and 'REACHED'", "import sys as s\ndef f(x):\n    return getattr(s, '_get' + 'frame')() and 'REACHED'",
    "import sys\ndef f(x):\n    return sys.argv and 'REACHED'", "from sys import *\ndef f(x):\n    return modules and 'REACHED'",
    "import sys\ndef f(x):\n    return sys.getsizeof([]) and 'REACHED'",
    "import sys\ndef f(x):\n    match sys:\n        case object(modules=m): return 'REACHED'\n    return sys.modules",
]  # fmt: skip
"""Other modules, and text that is run."""

CLOCKS = [
    "import datetime\ndef f(x):\n    return datetime.datetime.__dict__['n' + 'ow'].__get__(None, datetime.datetime)() and 'REACHED'",
    "import datetime\ndef f(x):\n    return vars(datetime.date)['tod' + 'ay'].__get__(None, datetime.date)() and 'REACHED'",
    "import datetime\ndef f(x):\n    return datetime.datetime.fromtimestamp(0).astimezone().now() and 'REACHED'",
    "import datetime\ndef f(x):\n    return getattr(datetime.datetime, 'n' + 'ow')() and 'REACHED'",
    "import datetime\ndef f(x):\n    return getattr(datetime.datetime(2000, 1, 1), 'utc' + 'now')() and 'REACHED'",
    "import datetime, operator\ndef f(x):\n    return operator.methodcaller('tod' + 'ay')(datetime.date) and 'REACHED'",
    "import datetime, operator\ndef f(x):\n    return operator.methodcaller('today')(datetime.date) and 'REACHED'",
    "import datetime, operator\ndef f(x):\n    return operator.attrgetter('datetime.n' + 'ow')(datetime)() and 'REACHED'",
    "import datetime\ndef f(x):\n    match datetime.date:\n        case object(today=t): return t() and 'REACHED'",
    "from datetime import date as d\ndef f(x):\n    match d(2000, 1, 1):\n        case d(today=t): return t() and 'REACHED'",
    "from datetime import datetime\nclass D(datetime): pass\ndef f(x):\n    return D.now() and 'REACHED'",
    "from datetime import datetime\nclass D(datetime):\n    def get(self): return super().today()\ndef f(x):\n    return D(2000, 1, 1).get() and 'REACHED'",
    "import datetime\ndef f(x):\n    return [k.now() for k in [datetime.datetime]] and 'REACHED'",
    "import random\ndef f(x):\n    return getattr(random, 'Sys' + 'temRandom')().random() and 'REACHED'",
    "import random\ndef f(x):\n    return getattr(random, 'ran' + 'dom')() < 2 and 'REACHED'",
    "import random\ndef f(x):\n    random.seed(1)\n    getattr(random, 'se' + 'ed')()\n    return 'REACHED'",
    "import random\ndef f(x):\n    return [m.choice([1]) for m in [random]] and 'REACHED'",
    "from statistics import NormalDist\ndef f(x):\n    return NormalDist(0, 1).samples(1)[0] < 99 and 'REACHED'",
]  # fmt: skip
"""Clocks and entropy."""
