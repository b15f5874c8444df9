"""One text for puzzles that are equal up to names and the order of clues.

Names are coloured by the clues that they stand in, a few rounds of it, and renamed in the order of their colours. Names
that no colour tells apart keep the order of the first line, so two writings of a very symmetric puzzle may stay apart.
"""

from __future__ import annotations

from redqueen.domains.logic.language import Node, Puzzle, first_line, write_clue

_ROUNDS = 2
_SWAPPED = {">": "<", ">=": "<="}
_SYMMETRIC = {"=", "!=", "+", "*", "and", "or"}


def normal_form(puzzle: Puzzle) -> str:
    """Return the text that equal puzzles share."""
    clues = [_upright(clue) for clue in puzzle.clues]
    num = len(puzzle.names)
    colours = ["0"] * num
    for _ in range(_ROUNDS):
        colours = [
            "|".join(sorted(_coloured(clue, colours, at) for clue in clues if _mentions(clue, at))) for at in range(num)
        ]
        ranks = {colour: str(rank) for rank, colour in enumerate(sorted(set(colours)))}
        colours = [ranks[colour] for colour in colours]
    width = len(puzzle.groups[0])
    groups = sorted(
        (sorted(range(at, at + width), key=lambda i: (int(colours[i]), i)) for at in range(0, num, width)),
        key=lambda group: [int(colours[i]) for i in group],
    )
    order = [at for group in groups for at in group]
    place = {at: new for new, at in enumerate(order)}
    names = tuple(tuple(f"v{i}" for i in range(start, start + width)) for start in range(0, num, width))
    renamed = Puzzle(puzzle.sort, names, puzzle.low, puzzle.high, ())
    texts = sorted(write_clue(renamed, _sorted(_placed(clue, place))) for clue in clues)
    return "\n".join((first_line(renamed), *texts))


def _upright(node: Node) -> Node:
    """Write > as < and >= as <=, with the sides swapped."""
    if node[0] in ("num", "var"):
        return node
    if node[0] == "says":
        return ("says", node[1], _upright(node[2]))
    parts = [_upright(part) for part in node[1:]]
    return (_SWAPPED[node[0]], *parts[::-1]) if node[0] in _SWAPPED else (node[0], *parts)


def _mentions(node: Node, at: int) -> bool:
    if node[0] == "num":
        return False
    if node[0] in ("var", "says") and node[1] == at:
        return True
    return any(_mentions(part, at) for part in node[1:] if isinstance(part, tuple))


def _coloured(node: Node, colours: list[str], own: int) -> str:
    """Return a clue with each name as its colour, and the name in question as itself."""
    if node[0] == "num":
        return str(node[1])
    if node[0] == "var":
        return "me" if node[1] == own else f"c{colours[node[1]]}"
    parts = [_coloured(part, colours, own) for part in node[1:] if isinstance(part, tuple)]
    if node[0] == "says":
        parts.insert(0, "me" if node[1] == own else f"c{colours[node[1]]}")
    return f"({node[0]} {' '.join(sorted(parts) if node[0] in _SYMMETRIC else parts)})"


def _placed(node: Node, place: dict[int, int]) -> Node:
    if node[0] == "num":
        return node
    if node[0] in ("var", "says"):
        return (node[0], place[node[1]], *(_placed(part, place) for part in node[2:]))
    return (node[0], *(_placed(part, place) for part in node[1:]))


def _sorted(node: Node) -> Node:
    """Put the two sides of what is symmetric in one order."""
    if node[0] in ("num", "var"):
        return node
    if node[0] == "says":
        return ("says", node[1], _sorted(node[2]))
    parts = [_sorted(part) for part in node[1:]]
    return (node[0], *(sorted(parts, key=repr) if node[0] in _SYMMETRIC else parts))
