"""Random exercises with their answer and the steps of the calculation.

They are for the lessons of the embedded base and the frozen suite. Steps are small: one operation on small numbers
each, written so that every number of a step occurs in the statement or in the previous step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from zlib import crc32

from redqueen.domains.maths.language import normal_form

LEVELS = (1, 2, 3)
HELD_OUT_SHARE = 16
"""One normal form in this many is held out of all lessons, for the frozen suite (ours)."""


@dataclass(frozen=True)
class Exercise:
    """A formal statement with its answer and the steps to it; ``text`` states it in words ("": formal only)."""

    code: str
    answer: str
    steps: str
    text: str = ""


def is_held_out(code: str) -> bool:
    """Return whether a statement belongs to the held-out share, independently of its names and order.

    Exception: the order of two ranges of a search matters, because names are numbered by it. So twelve of the 3,200
    items of the suite are in lessons in another order.
    """
    return crc32(normal_form(code).encode()) % HELD_OUT_SHARE == 0


def shown(value: int | Fraction) -> str:
    """Write a number as in answers: ``-3``, ``5/2``."""
    return str(Fraction(value))


def plus(term: str, number: int) -> str:
    """Write ``term + 3``, ``term - 3`` or only the term."""
    return f"{term} {'-' if number < 0 else '+'} {abs(number)}" if number else term


def times(factor: int, name: str) -> str:
    """Write ``3*x``, ``x`` or ``-x``."""
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}*{name}")


def divided(name: str, number: int, factor: int) -> str:
    """Write the last step of an equation: ``x = 15/3 = 5``, or nothing when there is nothing to divide by."""
    if factor == 1:
        return ""
    return f", {name} = {number}/{factor} = {shown(Fraction(number, factor))}"


def running(terms: Iterable[tuple[int, int]], add: Callable[[int, int], int], start: int) -> str:
    """Write (index, term) pairs each with the total so far: ``1 3 3, 2 5 8``."""
    steps, total = [], start
    for index, term in terms:
        total = add(total, term)
        steps.append(f"{index} {term} {total}")
    return ", ".join(steps)


def numbered(hits: Iterable[object]) -> str:
    """Write the counted values, each with its number: ``1 3, 2 6, 3 9``."""
    return ", ".join(f"{number} {hit}" for number, hit in enumerate(hits, start=1)) or "0"


def linear(r: Random, level: int) -> Exercise:
    """An equation in one unknown."""
    name = r.choice("xxxny")
    form = r.choice(("plain", "minus") if level == 1 else ("plain", "brackets", "minus", "over", "both"))
    top = (6, 9, 14)[level - 1]
    a, x, b = r.randint(2, top), r.randint(-3 * (level > 1), 4 + 4 * level), r.randint(1, 8 * level) * r.choice((1, -1))
    if form == "brackets":
        inner = f"{plus(name, b)}"
        total = a * (x + b)
        steps = f"{inner} = {total}/{a} = {x + b}, {name} = {plus(str(x + b), -b)} = {x}"
        return Exercise(f"{name} where {a}*({inner}) = {total}", shown(x), steps)
    if form == "minus":
        start = r.randint(a * abs(x), a * abs(x) + 10 * level)
        left = start - a * x
        steps = f"{a}*{name} = {plus(str(start), -left)} = {a * x}{divided(name, a * x, a)}"
        return Exercise(f"{name} where {start} - {a}*{name} = {left}", shown(x), steps)
    if form == "over":
        whole, c = a * x, x + b
        steps = f"{name}/{a} = {plus(str(c), -b)} = {x}, {name} = {x}*{a} = {whole}"
        return Exercise(f"{name} where {plus(f'{name}/{a}', b)} = {c}", shown(whole), steps)
    if form == "both":
        more = r.randint(1, 6)
        c = a * x + b
        code = f"{name} where {plus(times(a + more, name), b)} = {plus(times(more, name), c)}"
        return Exercise(code, shown(x), f"{a}*{name} = {plus(str(c), -b)} = {a * x}{divided(name, a * x, a)}")
    right = a * x + (r.randint(1, a - 1) if level > 1 and r.random() < 0.2 else 0)
    steps = f"{a}*{name} = {plus(str(right + b), -b)} = {right}{divided(name, right, a)}"
    return Exercise(f"{name} where {plus(f'{a}*{name}', b)} = {right + b}", shown(Fraction(right, a)), steps)


def sum_and_difference(s: int, d: int, asked: str) -> str:
    """The steps of ``x + y = s, x - y = d``."""
    both = f"{s} + {d} = {s + d}" if asked == "x" else f"{s} - {d} = {s - d}"
    value = s + d if asked == "x" else s - d
    return f"2*{asked} = {both}{divided(asked, value, 2)}"


def cramer(first: tuple[int, int, int], second: tuple[int, int, int], asked: str) -> str:
    """The steps for two equations ``a*x + b*y = c``: both determinants (Cramer's rule) and their quotient."""
    (a, b, c), (d, e, f) = first, second
    below = a * e - d * b
    above, (p, q, s, t) = (c * e - f * b, (c, e, f, b)) if asked == "x" else (a * f - d * c, (a, f, d, c))
    steps = f"{a}*{e} - {d}*{b} = {plus(str(a * e), -d * b)} = {below}, "
    steps += f"{p}*{q} - {s}*{t} = {plus(str(p * q), -s * t)} = {above}, "
    return f"{steps}{asked} = {above}/{below} = {shown(Fraction(above, below))}"


def system(r: Random, level: int) -> Exercise:
    """Two equations in two unknowns."""
    asked = r.choice("xy")
    x, y = r.randint(-2 * (level > 1), 5 + 3 * level), r.randint(-2 * (level > 1), 5 + 3 * level)
    if level == 1:
        steps = sum_and_difference(x + y, x - y, asked)
        return Exercise(f"{asked} where x + y = {x + y}, x - y = {x - y}", shown(x if asked == "x" else y), steps)
    if level == 2 or r.random() < 0.3:
        a, b = r.randint(1, 4), r.randint(-5, 9)
        y = a * x + b
        code = f"{asked} where y = {plus(times(a, 'x'), b)}, x + y = {x + y}"
        steps = f"{a + 1}*x = {plus(str(x + y), -b)} = {x + y - b}{divided('x', x + y - b, a + 1)}"
        if asked == "y":
            steps += f", y = {x + y} - {x} = {y}" if x >= 0 else f", y = {x + y} + {-x} = {y}"
        return Exercise(code, shown(x if asked == "x" else y), steps)
    while True:
        a, b, d, e = (r.randint(1, 4) * r.choice((1, 1, -1)) for _ in range(4))
        if a * e != d * b and a > 0 and d > 0:
            break
    first, second = (a, b, a * x + b * y), (d, e, d * x + e * y)
    sides = [
        f"{times(p, 'x')} {'-' if q < 0 else '+'} {times(abs(q), 'y')} = {value}" for p, q, value in (first, second)
    ]
    answer = shown(x if asked == "x" else y)
    return Exercise(f"{asked} where {sides[0]}, {sides[1]}", answer, cramer(first, second, asked))


def total(r: Random, level: int) -> Exercise:
    """A sum or a product over a range."""
    low, a, b = r.randint(1, 1 + 2 * level), r.randint(2, 3 + 2 * level), r.randint(1, 4 * level)
    if level > 1 and r.random() < 0.25:
        high, b = low + r.randint(2, 3), r.randint(0, 3)
        terms = [(k, k + b) for k in range(low, high + 1)]
        body = plus("k", b)
        steps = running(terms, lambda left, right: left * right, 1)
        return Exercise(f"prod(k in {low}..{high}, {body})", shown(math.prod(t for _, t in terms)), steps)
    high = low + r.randint(2, 2 + 2 * level)
    forms: list[tuple[str, Callable[[int], int]]] = [
        (plus("k", b), lambda k: k + b),
        (f"{a}*k", lambda k: a * k),
        (plus(f"{a}*k", b), lambda k: a * k + b),
        (plus(f"{a}*k", -1), lambda k: a * k - 1),
    ]
    if level > 1:
        forms += [("k^2", lambda k: k * k), (plus("k^2", b), lambda k: k * k + b), ("k*(k + 1)", lambda k: k * k + k)]
    if level > 2:
        forms += [
            ("2^k", lambda k: 2**k),
            (f"k^2 - {a}*k", lambda k: k * k - a * k),
            (f"{a}*k % 7", lambda k: a * k % 7),
        ]
    body, term = r.choice(forms)
    values = [(k, term(k)) for k in range(low, high + 1)]
    steps = running(values, lambda left, right: left + right, 0)
    return Exercise(f"sum(k in {low}..{high}, {body})", shown(sum(v for _, v in values)), steps)


_COUNTS = ("rest", "rest", "two", "two", "pairs", "pairs", "choose", "coprime")


def counting(r: Random, level: int) -> Exercise:
    """How many numbers, pairs or choices there are."""
    form = r.choice(("rest", "rest", "rest", "pairs", "choose") if level == 1 else _COUNTS)
    if form == "choose":
        n, k = r.randint(4, 4 + 5 * level), r.choice((2, 2, 3))
        return Exercise(f"choose({n}, {k})", shown(math.comb(n, k)), choosing(n, k))
    if form == "pairs":
        a, b = r.randint(3, 5 + level), r.randint(3, 5 + level)
        s = r.randint(3, a + b - 1)
        hits = [f"{j} {s - j}" for j in range(1, a + 1) if 1 <= s - j <= b]
        code = f"count(j in 1..{a}, k in 1..{b}, j + k = {s})"
        return Exercise(code, shown(len(hits)), numbered(hits))
    if form == "coprime":
        n = r.randint(6, 8 + 5 * level)
        found = [k for k in range(1, n) if math.gcd(k, n) == 1]
        return Exercise(f"count(k in 1..{n - 1}, gcd(k, {n}) = 1)", shown(len(found)), numbered(found))
    m, low = r.randint(3, 4 + 2 * level), r.randint(1, 6 * level)
    rest, high = r.randrange(m), low + m * r.randint(2, 3 + level) + r.randrange(m)
    if form == "two":
        n = r.choice([n for n in (2, 3, 4, 5) if n != m])
        other = r.randrange(n)
        found = [k for k in range(low, high + 1) if k % m == rest and k % n == other]
        first = [k for k in range(low, high + 1) if k % m == rest]
        steps = ", ".join(f"{k} {k % n}" for k in first)
        code = f"count(k in {low}..{high}, k % {m} = {rest}, k % {n} = {other})"
        return Exercise(code, shown(len(found)), f"{steps}, {numbered(found)}")
    found = [k for k in range(low, high + 1) if k % m == rest]
    return Exercise(f"count(k in {low}..{high}, k % {m} = {rest})", shown(len(found)), numbered(found))


def choosing(n: int, k: int) -> str:
    """The steps of ``choose(n, k)`` for k of 2 or 3."""
    above = f"{n}*{n - 1} = {n * (n - 1)}"
    if k == 3:
        above += f", {n * (n - 1)}*{n - 2} = {n * (n - 1) * (n - 2)}"
    below = math.factorial(k)
    return f"{above}, {math.perm(n, k)}/{below} = {math.comb(n, k)}"


def modular(r: Random, level: int) -> Exercise:
    """Remainders: of a product, of a power, of an unknown, of two at once."""
    form = r.choice(("product", "power", "solve") if level < 3 else ("product", "power", "solve", "two"))
    m = r.choice((5, 7, 9) if level == 1 else (7, 8, 9, 11, 13))
    if form == "product":
        a, b, c = r.randint(m, 8 + 12 * level), r.randint(m, 8 + 12 * level), r.randint(1, m - 1)
        steps = f"{a} % {m} = {a % m}, {b} % {m} = {b % m}, {a % m}*{b % m} = {a % m * (b % m)}"
        if level == 1:
            return Exercise(f"{a}*{b} % {m}", shown(a * b % m), f"{steps}, {a % m * (b % m)} % {m} = {a * b % m}")
        whole = a % m * (b % m) + c
        steps += f", {whole - c} + {c} = {whole}, {whole} % {m} = {whole % m}"
        return Exercise(f"({a}*{b} + {c}) % {m}", shown(whole % m), steps)
    if form == "power":
        a, e = r.randint(2, m - 2), r.randint(3, 3 + 2 * level)
        powers, value = [str(a)], a
        for _ in range(e - 1):
            powers.append(f"{value}*{a} = {value * a} {value * a % m}")
            value = value * a % m
        return Exercise(f"{a}^{e} % {m}", shown(value), ", ".join(powers))
    if form == "two":
        p, q = r.choice(((3, 4), (3, 5), (4, 5), (5, 6), (4, 7), (5, 7), (3, 7)))
        a, b = r.randrange(p), r.randrange(q)
        tried = [k for k in range(b, p * q, q)]
        hit = next(k for k in tried if k % p == a)
        steps = ", ".join(f"{k} {k % p}" for k in tried[: tried.index(hit) + 1])
        return Exercise(f"x where x % {p} = {a}, x % {q} = {b}, x in 0..{p * q - 1}", shown(hit), steps)
    a = r.choice([a for a in range(2, m) if math.gcd(a, m) == 1])
    x = r.randrange(1, m)
    steps = ", ".join(f"{k} {a * k} {a * k % m}" for k in range(1, x + 1))
    return Exercise(f"x where {a}*x % {m} = {a * x % m}, x in 0..{m - 1}", shown(x), steps)


def euclid(a: int, b: int) -> str:
    """The steps to the greatest common divisor."""
    steps = []
    while b:
        steps.append(f"{a} % {b} = {a % b}")
        a, b = b, a % b
    return ", ".join(steps)


def common_multiple(a: int, b: int) -> str:
    """The steps to the least common multiple."""
    g = math.gcd(a, b)
    return f"{euclid(a, b)}, {a}/{g} = {a // g}, {a // g}*{b} = {math.lcm(a, b)}"


def divisibility(r: Random, level: int) -> Exercise:
    """Common divisors and multiples, and the divisors of one number."""
    form = r.choice(("gcd", "gcd", "gcd", "lcm", "lcm", "divisors", "sigma"))
    g = r.randint(2, 4 + 5 * level)
    a, b = g * r.randint(2, 5 + 3 * level), g * r.randint(2, 5 + 3 * level)
    if form == "gcd":
        return Exercise(f"gcd({a}, {b})", shown(math.gcd(a, b)), euclid(a, b))
    if form == "lcm":
        a, b = r.randint(4, 8 + 5 * level), r.randint(4, 8 + 5 * level)
        return Exercise(f"lcm({a}, {b})", shown(math.lcm(a, b)), common_multiple(a, b))
    n = r.randint(6, 20 + 25 * level)
    found = [d for d in range(1, n + 1) if n % d == 0]
    if form == "divisors":
        return Exercise(f"divisors({n})", shown(len(found)), numbered(found))
    return Exercise(f"sigma({n})", shown(sum(found)), running(((i, d) for i, d in enumerate(found, 1)), int.__add__, 0))


def sequence(r: Random, level: int) -> Exercise:
    """A member of a sequence that is given by its first members and a rule."""
    a, n = r.randint(1, 4 + 3 * level), r.randint(4, 4 + level)
    form = r.choice(("add", "affine") if level == 1 else ("add", "affine", "index", "two", "rest"))
    d, p = r.randint(1, 4 * level), r.choice((2, 2, 3))
    second = r.randint(1, 6)
    rules: dict[str, tuple[str, Callable[[int, int, int], int]]] = {
        "add": (f"a(n - 1) + {d}", lambda k, one, two: one + d),
        "affine": (f"{p}*a(n - 1) - {d}", lambda k, one, two: p * one - d),
        "index": ("a(n - 1) + n", lambda k, one, two: one + k),
        "two": ("a(n - 1) + a(n - 2)", lambda k, one, two: one + two),
        "rest": (f"({p}*a(n - 1) + {d}) % 10", lambda k, one, two: (p * one + d) % 10),
    }
    rule, follow = rules[form]
    values, given = [a], f"a(1) = {a}"
    if form == "two":
        values.append(second)
        given += f", a(2) = {second}"
    if form == "affine":
        n = min(n, 5)
    while len(values) < n:
        values.append(follow(len(values) + 1, values[-1], values[-2] if len(values) > 1 else 0))
    return Exercise(f"a({n}) where {given}, a(n) = {rule}", shown(values[-1]), numbered(values))


def arithmetic(r: Random, level: int) -> Exercise:
    """An expression of numbers and operators."""
    a, c = r.randint(2, 6 + 6 * level), r.randint(2, 6 + 6 * level)
    b, d = r.randint(2, 9), r.randint(2, 9)
    if level == 1:
        return Exercise(f"{a}*{b} - {c}", shown(a * b - c), f"{a}*{b} = {a * b}, {a * b} - {c} = {a * b - c}")
    if level == 2 or r.random() < 0.5:
        s = a + c
        steps = f"{a} + {c} = {s}, {s}*{b} = {s * b}, {s * b} - {d} = {s * b - d}"
        return Exercise(f"({a} + {c})*{b} - {d}", shown(s * b - d), steps)
    steps = f"{a}*{b} = {a * b}, {c}*{d} = {c * d}, {plus(str(a * b), -c * d)} = {a * b - c * d}"
    return Exercise(f"{a}*{b} - {c}*{d}", shown(a * b - c * d), steps)


FAMILIES: tuple[Callable[[Random, int], Exercise], ...] = (
    linear, system, total, counting, modular, divisibility, sequence, arithmetic,
)  # fmt: skip
"""The families of formal exercises, drawn equally often."""


def draw(r: Random, level: int, held_out: bool = False) -> Exercise:
    """Draw one formal exercise from the training or the held-out share."""
    while True:
        exercise = r.choice(FAMILIES)(r, level)
        if is_held_out(exercise.code) == held_out:
            return exercise
