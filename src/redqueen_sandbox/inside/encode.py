"""Values to canonical text, in the child: exact types only, within bounds, in the order that the judge expects.

The contents of a value are read only through the methods of its builtin type, so that no code of a program is called.
In addition to the builtin types, the classes in ``equal.py`` (Counter, namedtuple and the like) count as the plain
values that they equal.
"""

from __future__ import annotations

from . import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 100
_CONTAINERS = frozenset(map(id, (list, tuple, dict, set, frozenset)))
"""Ids of classes: comparing classes would call the metaclass of a program's class."""
_MAX_INT_BITS = 14_285  # 10**4300 has 14,285 bits: a cheap check before counting digits


class NotPlain(Exception):
    """The value contains a value that is not a plain literal."""


class TooLarge(Exception):
    """The value is plain but exceeds a bound."""


def encode(value: object, max_chars: int, number_of: Callable[[object], int] | None = None) -> str:
    """Return the canonical text of ``value``. Raises ``NotPlain`` or ``TooLarge``.

    With ``number_of`` (only for unit tests) NaN and the values in ``equal.VALUES`` are plain, and dicts and sets keep
    their order. Any other value is written as ``Held(number_of(value))``.
    """
    return _Encoder(max_chars, number_of).text(value, 0)


class _Encoder:
    """Counts the characters it has written, so that shared substructures cannot expand beyond the bound."""

    def __init__(self, max_chars: int, number_of: Callable[[object], int] | None) -> None:
        self.left_chars = max_chars
        self.number_of = number_of
        self.open: set[int] = set()  # ids of the containers being written

    def spend(self, text: str) -> str:
        self.left_chars -= len(text) + 2
        if self.left_chars < -2:
            raise TooLarge
        return text

    def text(self, value: object, depth: int) -> str:
        kind = type(value)
        if kind is int:
            return self.spend(_int_text(value))  # type: ignore[arg-type, call-overload]
        if kind is str or kind is bytes:
            if len(value) > self.left_chars:  # type: ignore[arg-type]
                raise TooLarge
            return self.spend(repr(value))
        if kind is bool or value is None:
            return self.spend(repr(value))
        if kind is float:
            if value != value and self.number_of is None:
                raise NotPlain
            return self.spend(repr(value))
        if id(kind) not in _CONTAINERS:
            return self.other_text(value, depth)
        return self.container_text(kind, value, depth, id(value))

    def other_text(self, value: object, depth: int) -> str:
        """Return the text of a value whose type is not builtin."""
        held = equal.plain_value(value, allow_named_tuples=self.number_of is not None)
        if held is None and self.number_of is not None:
            name, given = equal.arguments_of(value)
            name, given = (name, given) if name else ("Held", (self.number_of(value),))
            return f"{name}({', '.join([self.text(item, depth + 1) for item in given])})"
        if held is None:
            raise NotPlain
        kind, inside = held
        if id(kind) not in _CONTAINERS:
            return self.text(inside, depth)
        return self.container_text(kind, inside, depth, id(value))

    def container_text(self, kind: type, value: object, depth: int, container_id: int) -> str:
        """Return the text of a container. ``container_id``: the ``id`` of the original object, to detect cycles."""
        if container_id in self.open:
            raise NotPlain  # it contains itself
        depth += kind is frozenset  # its text has two pairs of brackets
        if depth >= MAX_DEPTH:
            raise TooLarge
        self.spend("")
        self.open.add(container_id)
        inside = self.dict_text if kind is dict else self.sequence_text
        text = inside(kind, value, depth + 1)  # type: ignore[arg-type]
        self.open.discard(container_id)
        return text

    def sequence_text(self, kind: type, value: list[object], depth: int) -> str:
        parts = [self.text(item, depth) for item in kind.__iter__(value)]  # type: ignore[attr-defined]
        if kind is list:
            return "[" + ", ".join(parts) + "]"
        if kind is tuple:
            return f"({parts[0]},)" if len(parts) == 1 else "(" + ", ".join(parts) + ")"
        if self.number_of is None:
            parts.sort()
        text = "{" + ", ".join(parts) + "}"
        if kind is frozenset:
            return f"frozenset({text if parts else ''})"
        return text if parts else "set()"

    def dict_text(self, kind: type, value: dict[object, object], depth: int) -> str:
        pairs = [(self.text(key, depth), self.text(item, depth)) for key, item in dict.items(value)]
        if self.number_of is None:
            pairs.sort()
        return "{" + ", ".join([f"{key}: {item}" for key, item in pairs]) + "}"


def _int_text(value: int) -> str:
    if value.bit_length() > _MAX_INT_BITS:
        raise TooLarge
    try:
        return repr(value)
    except ValueError:  # more digits than the interpreter converts
        raise TooLarge from None
