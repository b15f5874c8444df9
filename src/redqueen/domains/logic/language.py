"""The language of the puzzles: the first line names the unknowns, each further line is a clue.

::

    order A B C            A, B and C are 1, 2 and 3 in some order
    order A B, P Q         two such orders of the same places: a grid of who has what
    number x y, 1 9        x and y are whole numbers from 1 to 9, equal ones allowed
    knights A B C          each is 1, a knight, whose statements are true, or 0, a knave, whose statements are false

    A < B                  a clue: comparisons (= != < > <= >=) of sums, differences, products and remainders (% by a
    |A - B| = 1            number above 0), and bars for the absolute value
    A = 1 or not (B > 2 and C != A)
    A: B and not C         a statement of A (knights only); a name alone means that it is a knight

Only the recursive descent parser below reads a text: text that a model wrote is never evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARS, MAX_NAMES, MAX_CLUES, MAX_NUMBER, MAX_RANGE, MAX_DEPTH = 2_000, 25, 24, 9_999, 100, 12
"""Limits (ours): characters, names, clues, largest written number, numbers in a range, depth of nesting."""
MAX_SIGNS = 160
"""Limit of words and signs in one clue (ours): a chain such as A + B + ... is a tree as deep as the chain is long, and
later functions may have less stack left than the check had."""

Node = tuple  # ("num", 3), ("var", 0), ("abs", e), ("+", e, e) ..., ("<", e, e) ..., ("not", f), ("says", 0, f)
RELATIONS = ("=", "!=", "<", ">", "<=", ">=")
SORTS = ("order", "number", "knights")

_NAME = re.compile(r"[A-Za-z]{1,8}", re.ASCII)
_TOKEN = re.compile(r"\s*(?:([A-Za-z]+)|([0-9]+)|(!=|<=|>=|[-=<>+*%|():]))", re.ASCII)
_RESERVED = {"and", "or", "not", *SORTS}


class PuzzleError(ValueError):
    """The text is not a puzzle; the message is one short reason."""


@dataclass(frozen=True)
class Puzzle:
    """The unknowns and the clues. ``groups``: the names; in an order, names of one group have different values."""

    sort: str
    groups: tuple[tuple[str, ...], ...]
    low: int
    high: int
    clues: tuple[Node, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the order of the first line; nodes refer to them by position."""
        return tuple(name for group in self.groups for name in group)

    @property
    def values(self) -> tuple[int, ...]:
        """The values that each name may have, ascending."""
        return tuple(range(self.low, self.high + 1))

    def spans(self) -> list[tuple[int, int]]:
        """Return the positions (start, end) of the groups whose members are all different."""
        if self.sort != "order":
            return []
        width = len(self.groups[0])
        return [(at, at + width) for at in range(0, len(self.names), width)]


def read_puzzle(text: str) -> Puzzle:
    """Read a puzzle. Raises PuzzleError with one reason; never evaluates anything."""
    if len(text) > MAX_CHARS:
        raise PuzzleError(f"longer than {MAX_CHARS} characters")
    lines = [line.strip() for line in text.strip().split("\n")]
    sort, groups, low, high = _read_first_line(lines[0])
    clues = [line for line in lines[1:] if line]
    if not 1 <= len(clues) <= MAX_CLUES:
        raise PuzzleError(f"1 to {MAX_CLUES} clues are needed")
    names = [name for group in groups for name in group]
    return Puzzle(sort, groups, low, high, tuple(_Reader(line, names, sort).clue() for line in clues))


def _read_first_line(line: str) -> tuple[str, tuple[tuple[str, ...], ...], int, int]:
    sort, _, rest = line.partition(" ")
    if sort not in SORTS:
        raise PuzzleError(f"the first line begins with one of {', '.join(SORTS)}")
    parts = [part.split() for part in rest.split(",")]
    low, high = 0, 1
    if sort == "number":
        bounds = parts.pop() if len(parts) == 2 else []
        if len(bounds) != 2 or not all(re.fullmatch("[0-9]{1,4}", bound, re.ASCII) for bound in bounds):
            raise PuzzleError("numbers need a range: number x y, 0 9")
        low, high = int(bounds[0]), int(bounds[1])
        if not low < high < low + MAX_RANGE:
            raise PuzzleError(f"a range has 2 to {MAX_RANGE} numbers")
    names = [name for part in parts for name in part]
    if not 2 <= len(names) <= MAX_NAMES or len(set(names)) != len(names):
        raise PuzzleError(f"2 to {MAX_NAMES} different names are needed")
    if not all(_NAME.fullmatch(name) and name not in _RESERVED for name in names):
        raise PuzzleError("a name is 1 to 8 letters")
    if sort == "order":
        if len({len(part) for part in parts}) != 1 or len(parts[0]) < 2:
            raise PuzzleError("the groups of an order are equally long, of 2 names at least")
        low, high = 1, len(parts[0])
    elif len(parts) != 1:
        raise PuzzleError("only orders have groups")
    return sort, tuple(tuple(part) for part in parts), low, high


class _Reader:
    """Recursive descent parser of one clue."""

    def __init__(self, line: str, names: list[str], sort: str) -> None:
        self.names, self.sort = names, sort
        self.tokens: list[str] = []
        self.at = self.depth = 0
        place = 0
        while place < len(line):
            found = _TOKEN.match(line, place)
            if found is None:
                raise PuzzleError("a sign that is not of the language")
            self.tokens.append(found.group(1) or found.group(2) or found.group(3))
            place = found.end()
        if len(self.tokens) > MAX_SIGNS:
            raise PuzzleError(f"a clue of more than {MAX_SIGNS} words and signs")

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """Take the next token if it is one of these, else return ""."""
        if self.next() in wanted and self.next():
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def clue(self) -> Node:
        if self.sort == "knights":
            speaker = self.name()
            if not self.take(":"):
                raise PuzzleError("a clue about knights is a statement: A: not B")
            node: Node = ("says", speaker, self.formula())
        else:
            node = self.formula()
        if self.next():
            raise PuzzleError("a clue goes on where it should end")
        return node

    def formula(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PuzzleError(f"nested deeper than {MAX_DEPTH}")
        node = self.conjunction()
        while self.take("or"):
            node = ("or", node, self.conjunction())
        self.depth -= 1
        return node

    def conjunction(self) -> Node:
        node = self.unit()
        while self.take("and"):
            node = ("and", node, self.unit())
        return node

    def unit(self) -> Node:
        if self.take("not"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise PuzzleError(f"nested deeper than {MAX_DEPTH}")
            node = ("not", self.unit())
            self.depth -= 1
            return node
        if self.take("("):
            node = self.formula()
            if not self.take(")"):
                raise PuzzleError("a bracket is not closed")
            return node
        left = self.sum()
        relation = self.take(*RELATIONS)
        if relation:
            return (relation, left, self.sum())
        if self.sort == "knights" and left[0] == "var":
            return ("=", left, ("num", 1))
        raise PuzzleError("a clue compares: one of = != < > <= >= is needed")

    def sum(self) -> Node:
        node = self.product()
        while sign := self.take("+", "-"):
            node = (sign, node, self.product())
        return node

    def product(self) -> Node:
        node = self.factor()
        while sign := self.take("*", "%"):
            right = self.factor()
            if sign == "%" and (right[0] != "num" or right[1] == 0):
                raise PuzzleError("% needs a number above 0 behind it")
            node = (sign, node, right)
        return node

    def factor(self) -> Node:
        if self.take("|"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise PuzzleError(f"nested deeper than {MAX_DEPTH}")
            node = ("abs", self.sum())
            self.depth -= 1
            if not self.take("|"):
                raise PuzzleError("a bar is not closed")
            return node
        token = self.next()
        if token.isdigit():
            self.at += 1
            if len(token) > 4:
                raise PuzzleError(f"a number above {MAX_NUMBER}")
            return ("num", int(token))
        return ("var", self.name())

    def name(self) -> int:
        token = self.next()
        if token not in self.names:
            raise PuzzleError("a name that the first line does not have" if token.isalpha() else "a name is missing")
        self.at += 1
        return self.names.index(token)


_PRECEDENCE = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(RELATIONS, 4), "+": 5, "-": 5, "*": 6, "%": 6}


def write_puzzle(puzzle: Puzzle) -> str:
    """Return the text of a puzzle in the normal layout of tasks."""
    return "\n".join((first_line(puzzle), *(write_clue(puzzle, clue) for clue in puzzle.clues)))


def first_line(puzzle: Puzzle) -> str:
    """Return the first line, which names the unknowns."""
    names = ", ".join(" ".join(group) for group in puzzle.groups)
    return f"{puzzle.sort} {names}" + (f", {puzzle.low} {puzzle.high}" if puzzle.sort == "number" else "")


def write_clue(puzzle: Puzzle, node: Node, above: int = 0) -> str:
    """Return the text of a clue, with brackets only where they are needed."""
    match node[0]:
        case "num":
            return str(node[1])
        case "var":
            return puzzle.names[node[1]]
        case "abs":
            return f"|{write_clue(puzzle, node[1])}|"
        case "says":
            return f"{puzzle.names[node[1]]}: {write_clue(puzzle, node[2])}"
        case "not":
            return f"not {write_clue(puzzle, node[1], 4)}"
    if _is_knight(puzzle, node):
        return puzzle.names[node[1][1]]
    level = _PRECEDENCE[node[0]]
    text = f"{write_clue(puzzle, node[1], level)} {node[0]} {write_clue(puzzle, node[2], level + 1)}"
    return f"({text})" if level < above and level < 5 else text


def _is_knight(puzzle: Puzzle, node: Node) -> bool:
    return puzzle.sort == "knights" and node[0] == "=" and node[1][0] == "var" and node[2] == ("num", 1)


def write_answer(puzzle: Puzzle, values: tuple[int, ...]) -> str:
    """Return the text of an assignment, in the order of the names."""
    return ", ".join(f"{name} = {value}" for name, value in zip(puzzle.names, values, strict=True))
