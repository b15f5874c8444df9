"""The programs that few-shot prompts show: the seeds, and a dozen of ours with ten inputs each and a sentence about it.

They are short and unlike each other (loops, branches, recursion, slices; numbers, texts, lists, dicts), so that what a
model continues is neither one type nor one construct. None is an item of the held-out suite. Ground: ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.nouns import Task


@dataclass(frozen=True)
class Trace:
    """What a solver might think of the first pair of an example: going from input to output, and back."""

    forward: str
    back: str


def _example(message: str, code: str, pairs: str) -> Task:
    """``pairs``: lines of an argument list, an arrow, and the output."""
    inputs, outputs = zip(*(line.split(" -> ") for line in pairs.splitlines()), strict=True)
    return Task("seed", "seed", "", "code_f", code, inputs, outputs, message)


EXAMPLES: tuple[Task, ...] = (
    _example(
        "Squares of the even numbers.",
        """def f(items):
    return [x * x for x in items if x % 2 == 0]
""",
        """[1, 2, 3, 4] -> [4, 16]
[6] -> [36]
[] -> []
[5, 7] -> []
[10, 11, 12] -> [100, 144]
[0, 1] -> [0]
[-2, -3] -> [4]
[8, 8] -> [64, 64]
[3, 4, 5, 6] -> [16, 36]
[1, 100] -> [10000]""",
    ),
    _example(
        "The words in reverse order.",
        """def f(text):
    words = text.split()
    return " ".join(reversed(words))
""",
        """'red green blue' -> 'blue green red'
'one' -> 'one'
'' -> ''
'a b' -> 'b a'
'to be or not' -> 'not or be to'
'x y z x' -> 'x z y x'
'the end' -> 'end the'
'good morning all' -> 'all morning good'
'1 2 3' -> '3 2 1'
'cat  dog' -> 'dog cat'""",
    ),
    _example(
        "How many times a number is cut to a third until at most one is left.",
        """def f(n):
    steps = 0
    while n > 1:
        n //= 3
        steps += 1
    return steps
""",
        """20 -> 3
1 -> 0
3 -> 1
8 -> 2
9 -> 2
27 -> 3
100 -> 4
0 -> 0
2 -> 1
500 -> 6""",
    ),
    _example(
        "How often a letter stands in the text.",
        """def f(text, letter):
    count = 0
    for c in text:
        if c == letter:
            count += 1
    return count
""",
        """'banana', 'a' -> 3
'moon', 'o' -> 2
'tree', 'x' -> 0
'', 'a' -> 0
'zebra', 'z' -> 1
'level', 'l' -> 2
'aaaa', 'a' -> 4
'book', 'k' -> 1
'queen', 'e' -> 2
'hello', 'l' -> 2""",
    ),
    _example(
        "Adds up the values of each key.",
        """def f(pairs):
    result = {}
    for key, value in pairs:
        result[key] = result.get(key, 0) + value
    return result
""",
        """[('a', 1), ('b', 2), ('a', 3)] -> {'a': 4, 'b': 2}
[('x', 5)] -> {'x': 5}
[] -> {}
[('k', 1), ('k', 1)] -> {'k': 2}
[('m', 2), ('n', 0)] -> {'m': 2, 'n': 0}
[(1, 4), (2, 6)] -> {1: 4, 2: 6}
[('u', -1), ('u', 1)] -> {'u': 0}
[('p', 7), ('q', 7), ('p', 7)] -> {'p': 14, 'q': 7}
[('y', 20), ('z', 10)] -> {'y': 20, 'z': 10}
[(True, 3)] -> {True: 3}""",
    ),
    _example(
        "The difference if the first is larger, else the product.",
        """def f(a, b):
    if a > b:
        return a - b
    return a * b
""",
        """3, 5 -> 15
9, 2 -> 7
4, 4 -> 16
0, 8 -> 0
10, 1 -> 9
-1, 3 -> -3
7, 6 -> 1
2, 2 -> 4
6, 9 -> 54
12, 30 -> 360""",
    ),
    _example(
        "Moves the first n items to the end.",
        """def f(items, n):
    return items[n:] + items[:n]
""",
        """[1, 2, 3, 4, 5], 2 -> [3, 4, 5, 1, 2]
['a', 'b', 'c'], 1 -> ['b', 'c', 'a']
[7], 0 -> [7]
[], 3 -> []
[4, 5], 2 -> [4, 5]
[1, 1, 2], 1 -> [1, 2, 1]
[9, 8, 7, 6], 3 -> [6, 9, 8, 7]
['x', 'y'], 1 -> ['y', 'x']
[0, 1, 2], 5 -> [0, 1, 2]
[3, 6, 9], 2 -> [9, 3, 6]""",
    ),
    _example(
        "Counts every letter of the text.",
        """def f(text):
    return {c: text.count(c) for c in sorted(set(text))}
""",
        """'hello' -> {'e': 1, 'h': 1, 'l': 2, 'o': 1}
'aab' -> {'a': 2, 'b': 1}
'' -> {}
'noon' -> {'n': 2, 'o': 2}
'xyz' -> {'x': 1, 'y': 1, 'z': 1}
'zzz' -> {'z': 3}
'tata' -> {'a': 2, 't': 2}
'b' -> {'b': 1}
'moss' -> {'m': 1, 'o': 1, 's': 2}
'abcabc' -> {'a': 2, 'b': 2, 'c': 2}""",
    ),
    _example(
        "The longest word; the first of several.",
        """def f(words):
    best = words[0]
    for word in words:
        if len(word) > len(best):
            best = word
    return best
""",
        """['fig', 'cherry', 'plum'] -> 'cherry'
['a', 'bb', 'cc'] -> 'bb'
['only'] -> 'only'
['sun', 'moon', 'star'] -> 'moon'
['x', 'y'] -> 'x'
['four', 'three', 'ten'] -> 'three'
['', 'z'] -> 'z'
['kiwi', 'pear', 'lemon'] -> 'lemon'
['up', 'down'] -> 'down'
['red', 'green'] -> 'green'""",
    ),
    _example(
        "The binary digits of a number.",
        """def f(n):
    if n < 2:
        return [n]
    return f(n // 2) + [n % 2]
""",
        """10 -> [1, 0, 1, 0]
0 -> [0]
1 -> [1]
2 -> [1, 0]
3 -> [1, 1]
7 -> [1, 1, 1]
8 -> [1, 0, 0, 0]
13 -> [1, 1, 0, 1]
21 -> [1, 0, 1, 0, 1]
32 -> [1, 0, 0, 0, 0, 0]""",
    ),
    _example(
        "Leaves out every third letter.",
        """def f(text):
    out = ""
    for i, c in enumerate(text):
        if i % 3 != 2:
            out += c
    return out
""",
        """'python' -> 'pyho'
'a' -> 'a'
'' -> ''
'abc' -> 'ab'
'queen' -> 'quen'
'x1y2' -> 'x12'
'rubies' -> 'ruie'
'ok' -> 'ok'
'lower' -> 'loer'
'seven' -> 'seen'""",
    ),
    _example(
        "How far apart the numbers of each row are.",
        """def f(rows):
    return [max(row) - min(row) for row in rows]
""",
        """[[1, 5], [7, 2, 4]] -> [4, 5]
[[3]] -> [0]
[] -> []
[[0, 10], [5, 5]] -> [10, 0]
[[2, 9, 4]] -> [7]
[[-1, 1]] -> [2]
[[8, 3], [1], [6, 0]] -> [5, 0, 6]
[[4, 4, 4]] -> [0]
[[100, 1]] -> [99]
[[1, 2], [3, 4], [5, 6]] -> [1, 1, 1]""",
    ),
)
"""Each as a task of pairs; the outputs are those of the programs, which a test holds them to."""

SHORT = (0, 3, 5)
"""The places of the examples that a buffer begins with."""

TRACES: dict[int, Trace] = {
    0: Trace(
        "1 is odd, 2 is even and gives 4, 3 is odd, 4 is even and gives 16.",
        "To get [4, 16] the even numbers must be 2 and 4.",
    ),
    2: Trace(
        "20 becomes 6, 6 becomes 2, 2 becomes 0: 3 steps.",
        "For 3 steps: 20 becomes 6, then 2, then 0.",
    ),
    6: Trace(
        "items[2:] is [3, 4, 5] and items[:2] is [1, 2].",
        "With n = 2 the last two, [1, 2], were the first two.",
    ),
}
"""By the place of the example: the ones that solving shows."""

_SEEDS = """
text.upper() | text | 'river' | 'RIVER'
a + "-" + b | a, b | 'sun', 'set' | 'sun-set'
items[0] | items | [4, 7, 1] | 4
len(items) * 2 | items | ['a', 'b', 'c'] | 6
[text, text] | text | 'ok' | ['ok', 'ok']
text.split(",") | text | 'red,green,blue' | ['red', 'green', 'blue']
items[2:] + [0] | items | [1, 2, 3] | [3, 0]
d[key] | d, key | {'x': 5, 'y': 9}, 'y' | 9
text[1:4] | text | 'planet' | 'lan'
[x + 1 for x in items] | items | [2, 5, 9] | [3, 6, 10]
text.count(letter) | text, letter | 'banana', 'a' | 3
text.replace("o", "0") | text | 'tomato' | 't0mat0'
" ".join(words) | words | ['to', 'the', 'sea'] | 'to the sea'
(b, a) | a, b | 1, 'one' | ('one', 1)
[x for x in items if x > 2] | items | [1, 4, 2, 6] | [4, 6]
text.startswith("a") | text | 'apple' | True
list(d.keys()) | d | {'cat': 2, 'dog': 1} | ['cat', 'dog']
list(range(n)) | n | 4 | [0, 1, 2, 3]
text[-1] + text[:-1] | text | 'moon' | 'nmoo'
sorted(items) | items | [3, 1, 2] | [1, 2, 3]
text.strip() | text | '  tea ' | 'tea'
"""


def _seed(i: int, line: str) -> Task:
    value, names, given, output = (part.strip() for part in line.split(" | "))
    return Task(f"seed-{i}", "seed", "", "code_o", f"def f({names}):\n    return {value}\n", (given,), (output,))


def _first_pair(i: int) -> Task:
    one = EXAMPLES[i]
    return Task(f"seed-example-{i}", "seed", "", "code_o", one.code, one.inputs[:1], one.outputs[:1])


SEEDS = (
    *(_seed(i, line) for i, line in enumerate(_SEEDS.strip().splitlines(), start=1)),
    *(_first_pair(i) for i in SHORT),
)
"""What a buffer begins with where proposals are shown as examples: one step each, which a small model can follow, and
the shortest loops and branches of ``EXAMPLES`` (ours)."""
