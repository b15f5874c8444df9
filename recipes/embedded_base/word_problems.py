"""Random word problems: a text, the equivalent formal exercise, and the steps of the calculation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

from recipes.embedded_base.exercises import (
    Exercise,
    choosing,
    common_multiple,
    cramer,
    divided,
    euclid,
    is_held_out,
    numbered,
    running,
    shown,
    sum_and_difference,
)

_NAMES = ("Ann", "Ben", "Eva", "Ida", "Leo", "Max", "Mia", "Tom")
_THINGS = ("apple", "book", "card", "coin", "egg", "pen", "shell", "stone")


def _more_and_less(r: Random, level: int) -> Exercise:
    who, what = r.choice(_NAMES), r.choice(_THINGS)
    a, b, c = r.randint(6, 10 + 12 * level), r.randint(2, 5), r.randint(2, 6 + 8 * level)
    text = f"{who} has {a} {what}s, gives {b} of them away and buys {c} more. How many {what}s does {who} have now?"
    return Exercise(f"{a} - {b} + {c}", shown(a - b + c), f"{a} - {b} = {a - b}, {a - b} + {c} = {a - b + c}", text)


def _boxes(r: Random, level: int) -> Exercise:
    who, what = r.choice(_NAMES), r.choice(_THINGS)
    a, b = r.randint(2, 4 + 3 * level), r.randint(2, 9)
    c = r.randint(2, min(a * b, 6 + 6 * level))
    text = f"{who} buys {a} boxes with {b} {what}s in each box"
    if r.random() < 0.5:
        text += f" and finds {c} more. How many {what}s does {who} have in all?"
        code, value = f"{a}*{b} + {c}", a * b + c
    else:
        text += f" and loses {c} of the {what}s. How many {what}s are left?"
        code, value = f"{a}*{b} - {c}", a * b - c
    return Exercise(code, shown(value), f"{a}*{b} = {a * b}, {code.replace(f'{a}*{b}', str(a * b))} = {value}", text)


def _shares(r: Random, level: int) -> Exercise:
    who, what = r.choice(_NAMES), r.choice(_THINGS)
    b, each, c = r.randint(2, 4 + level), r.randint(2, 4 + 3 * level), r.randint(2, 6 + 4 * level)
    a = b * each + c
    text = (
        f"{who} has {a} {what}s, gives {c} away and shares the rest equally between {b} friends. "
        f"How many {what}s does each friend get?"
    )
    return Exercise(f"({a} - {c})/{b}", shown(each), f"{a} - {c} = {a - c}, {a - c}/{b} = {each}", text)


def _price(r: Random, level: int) -> Exercise:
    what = r.choice(_THINGS)
    a, x, b = r.randint(2, 4 + 2 * level), r.randint(2, 4 + 4 * level), r.randint(1, 6 * level)
    total = a * x + b
    if r.random() < 0.5:
        text = f"{a} {what}s and a bag for {b} coins cost {total} coins in all. How many coins does one {what} cost?"
    else:
        who = r.choice(_NAMES)
        text = f"{who} multiplies a number by {a}, adds {b} and gets {total}. What is the number?"
    steps = f"{a}*x = {total} - {b} = {a * x}{divided('x', a * x, a)}"
    return Exercise(f"x where {a}*x + {b} = {total}", shown(x), steps, text)


def _two_numbers(r: Random, level: int) -> Exercise:
    y, d = r.randint(2, 6 + 8 * level), r.randint(2, 5 + 5 * level)
    x, asked = y + d, r.choice("xy")
    if r.random() < 0.5:
        wanted = "larger" if asked == "x" else "smaller"
        text = f"The sum of two numbers is {x + y} and their difference is {d}. What is the {wanted} number?"
        code = f"{asked} where x + y = {x + y}, x - y = {d}"
    else:
        one, other = r.sample(_NAMES, 2)
        who = one if asked == "x" else other
        text = f"{one} is {d} years older than {other}. Together they are {x + y} years old. How old is {who}?"
        code = f"{asked} where x - y = {d}, x + y = {x + y}"
    return Exercise(code, shown(x if asked == "x" else y), sum_and_difference(x + y, d, asked), text)


def _legs(r: Random, level: int) -> Exercise:
    x, y, asked = r.randint(2, 5 + 5 * level), r.randint(2, 5 + 5 * level), r.choice("xy")
    heads, legs, who = x + y, 4 * x + 2 * y, "rabbits" if asked == "x" else "hens"
    text = (
        f"Rabbits with 4 legs and hens with 2 legs live on a farm. Together they have {heads} heads and {legs} legs. "
        f"How many {who} are there?"
    )
    steps = cramer((1, 1, heads), (4, 2, legs), asked)
    return Exercise(f"{asked} where x + y = {heads}, 4*x + 2*y = {legs}", shown(x if asked == "x" else y), steps, text)


def _every_week(r: Random, level: int) -> Exercise:
    who, what = r.choice(_NAMES), r.choice(_THINGS)
    a, d, n = r.randint(2, 2 + 6 * level), r.randint(2, 3 + 3 * level), r.randint(4, 4 + level)
    if r.random() < 0.5:
        text = (
            f"{who} finds {a} {what}s on the first day and every day {d} more than the day before. "
            f"How many {what}s does {who} find on day {n}?"
        )
        values = [a + d * k for k in range(n)]
        code = f"a({n}) where a(1) = {a}, a(n) = a(n - 1) + {d}"
        return Exercise(code, shown(values[-1]), numbered(values), text)
    text = (
        f"A hall has {n} rows. The first row has {a} seats and every row has {d} seats more than the row before. "
        "How many seats are there in all?"
    )
    terms = [(k, a + d * (k - 1)) for k in range(1, n + 1)]
    code = f"sum(k in 1..{n}, {a} + {d}*(k - 1))"
    return Exercise(code, shown(sum(t for _, t in terms)), running(terms, int.__add__, 0), text)


def _left_over(r: Random, level: int) -> Exercise:
    what = r.choice(_THINGS)
    a, b = r.randint(10, 20 + 25 * level), r.randint(3, 5 + 3 * level)
    if r.random() < 0.5:
        text = f"{a} {what}s are packed into boxes of {b}. How many {what}s are left over?"
        steps = f"{a // b}*{b} = {a // b * b}, {a} - {a // b * b} = {a % b}"
        return Exercise(f"{a} % {b}", shown(a % b), steps, text)
    rest, low = r.randrange(b), r.randint(1, 6 * level)
    high = low + b * r.randint(2, 2 + level) + r.randrange(b)
    text = f"How many whole numbers from {low} to {high} leave the remainder {rest} when they are divided by {b}?"
    found = [k for k in range(low, high + 1) if k % b == rest]
    return Exercise(f"count(k in {low}..{high}, k % {b} = {rest})", shown(len(found)), numbered(found), text)


def _common(r: Random, level: int) -> Exercise:
    if r.random() < 0.5:
        first, second = r.sample(_THINGS, 2)
        g = r.randint(2, 4 + 4 * level)
        a, b = g * r.randint(2, 5 + 3 * level), g * r.randint(2, 5 + 3 * level)
        text = (
            f"{a} {first}s and {b} {second}s are shared equally among as many children as possible and nothing is "
            "left over. How many children are there?"
        )
        return Exercise(f"gcd({a}, {b})", shown(math.gcd(a, b)), euclid(a, b), text)
    a, b = r.randint(3, 8 + 4 * level), r.randint(3, 8 + 4 * level)
    text = (
        f"One lamp flashes every {a} seconds and another every {b} seconds. Now they flash together. "
        "After how many seconds do they flash together again?"
    )
    return Exercise(f"lcm({a}, {b})", shown(math.lcm(a, b)), common_multiple(a, b), text)


def _choices(r: Random, level: int) -> Exercise:
    who, what = r.choice(_NAMES), r.choice(_THINGS)
    n, k = r.randint(4, 4 + 5 * level), r.choice((2, 2, 3))
    text = f"In how many ways can {who} choose {k} of {n} {what}s?"
    return Exercise(f"choose({n}, {k})", shown(math.comb(n, k)), choosing(n, k), text)


STORIES: dict[Callable[[Random, int], Exercise], int] = {
    _more_and_less: 3, _boxes: 3, _shares: 3, _price: 3, _two_numbers: 3, _legs: 3, _every_week: 3, _left_over: 3,
    _common: 3, _choices: 1,
}  # fmt: skip
"""The stories with their sampling weights; stories with few variants have a smaller weight."""


def draw_words(r: Random, level: int, held_out: bool = False) -> Exercise:
    """Draw one word problem from the training or the held-out share; its steps begin with the formal exercise."""
    while True:
        exercise = r.choices(list(STORIES), list(STORIES.values()))[0](r, level)
        if is_held_out(exercise.code) == held_out:
            return replace(exercise, steps=f"{exercise.code}\n{exercise.steps}")
