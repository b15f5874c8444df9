"""What a pure function may not see differs from world to world, so that no value that depends on it agrees in all.

A world is one zygote, under a hash seed of its own. Worlds come in pairs that reverse each other wherever possible:
sets of anything but numbers are iterated in one order and in its reverse, new objects lie at rising and at falling
addresses, hashes are complements. So whatever takes the first of two, or the greater, differs with certainty between
the two, and not by the chance of a hash seed. From the third pair on, sets keep the hash seed's own order.

Going through a set is what counts, wherever the set came from: an input, a view of a dict, a reader of literals. It is
detected at the type's iterator slot, through which all such ways go; and a program that did it is reported, so that it
runs in more worlds. Only while a gated program runs: benchmarks get the interpreter as it is.
"""

from __future__ import annotations

import ctypes
import gc
import operator

from .encode import NotPlain, TooLarge, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Where things lie in CPython's type and slot wrapper objects on a 64-bit machine.
_TP_ITER, D_WRAPPED = 216, 48
_NUMBERS = frozenset(map(id, (int, bool, float)))  # by id: to hash or compare a class asks its metaclass
_SORTED_BY_THEMSELVES = ({str}, {bytes})
_MAX_SORTED = 4_096  # elements: more are left in the order of the hash seed, which is dear enough to go through
_MAX_POP_SORTED = 64
_MAX_TEXT_CHARS = 65_536
_MODULUS = (1 << 61) - 1
_COMMON_BYTES = tuple(size - 33 for size in (48, 64, 80, 96, 112, 128, 144, 160, 208, 224))
_second = operator.itemgetter(1)
_set_length = set.__len__
_frozenset_length = frozenset.__len__
_set_pop = set.pop
_set_remove = set.remove
_set_iter = set.__iter__  # what the world makes of it: a subclass may have another
_dict_fromkeys = dict.__dict__["fromkeys"].__get__


class _World:
    """Which world this process is, whether a gated program is running, and whether it has seen what differs."""

    number = 0
    pair = 0
    is_running = False
    was_seen = False


def note() -> None:
    """The program has seen something that differs from world to world."""
    _World.was_seen = True


def was_seen() -> bool:
    """Whether a program in this process has seen such a thing."""
    return _World.was_seen


def is_running() -> bool:
    """Whether a gated program is running."""
    return _World.is_running


def number_and_pair() -> tuple[int, int]:
    """Which world this process is, and which pair of worlds it belongs to."""
    return _World.number, _World.pair


def watch(is_running: bool) -> None:
    """A gated program begins, or ends."""
    _World.is_running = is_running


def enter(number: int) -> None:
    """Make this process that world, once, before it forks anything."""
    global _set_iter
    _World.number, _World.pair = number, number // 2
    _hook(set, lambda original: _ordered(original, _set_length))
    _hook(frozenset, lambda original: _ordered(original, _frozenset_length))
    _set_iter = set.__iter__
    attributes_of(set)["pop"] = _pop
    attributes_of(dict)["fromkeys"] = classmethod(_fromkeys)
    for kind in (set, frozenset, dict):
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def attributes_of(kind: type) -> dict[str, Any]:
    """The dict behind a type's attributes, which a builtin type does not let go of."""
    found: dict[str, Any] = gc.get_referents(kind.__dict__)[0]
    return found


_kept: list[object] = []


class _Iterable:
    """A class whose ``__iter__`` is a Python function: its slot holds the interpreter's own way to call one."""

    def __iter__(self) -> Iterator[object]:
        return iter(())


def _hook(kind: type, wrap: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> None:
    """Have a type iterate by a function of ours, through the slot that classes written in Python have.

    So what our function raises, at the recursion limit for one, gets to the program as it should.
    """
    original = kind.__dict__["__iter__"]
    slot = ctypes.c_void_p.from_address(id(kind) + _TP_ITER)
    if slot.value != ctypes.c_void_p.from_address(id(original) + D_WRAPPED).value:
        raise OSError(f"this interpreter keeps {kind.__name__}.__iter__ elsewhere")
    attributes_of(kind)["__iter__"] = wrap(original)
    slot.value = ctypes.c_void_p.from_address(id(_Iterable) + _TP_ITER).value


def _ordered(original: Callable[[Any], Iterator[object]], length: Callable[[Any], int]) -> Callable[[Any], Any]:
    """The iterator slot of a kind of set, for this world."""

    def iterate(items: Any) -> Iterator[object]:
        if not _World.is_running or length(items) < 2:
            return original(items)
        listed = [*original(items)]
        are_numbers = {*map(id, map(type, listed))} <= _NUMBERS
        if are_numbers and not any(map(operator.ne, listed, listed)):
            return original(items)
        _World.was_seen = True
        if are_numbers:
            listed.sort(key=_is_nan)  # the hash of nan is its address
        elif _World.pair > 1 or len(listed) > _MAX_SORTED or not _sort(listed):
            return original(items)
        if _World.pair == 1:
            listed.append(listed.pop(0))
        if _World.number % 2:
            listed.reverse()
        # The interpreter's own iterator comes along, for it knows when the set has changed under it.
        return map(_second, zip(original(items), listed))  # noqa: B905

    return iterate


def _is_nan(number: object) -> bool:
    return number != number


def _sort(listed: list[Any]) -> bool:
    """Sort by what the elements are, never by what a program says of them. False: they are no plain values."""
    if {*map(type, listed)} in _SORTED_BY_THEMSELVES:
        listed.sort()
        return True
    try:
        texts = [encode(item, _MAX_TEXT_CHARS) for item in listed]
    except (NotPlain, TooLarge):
        return False
    order = sorted(range(len(listed)), key=texts.__getitem__)
    listed[:] = [listed[i] for i in order]
    return True


def _pop(items: set[Any], /) -> object:
    """``set.pop`` for this world."""
    if _World.is_running and _set_length(items) > 1:
        first = next(_set_iter(items)) if _set_length(items) <= _MAX_POP_SORTED and _World.pair < 2 else None
        if isinstance(first, str | bytes):
            _set_remove(items, first)
            return first
        _World.was_seen = True
    return _set_pop(items)


def _fromkeys(cls: type, iterable: Any, value: object = None, /) -> object:
    """``dict.fromkeys``, which goes through a set without its iterator."""
    return _dict_fromkeys(None, cls)([*iterable] if isinstance(iterable, set | frozenset) else iterable, value)


def hash_of(value: object) -> int:
    """``hash`` for this world: of what has no hash of its own, one that the other world has the complement of."""
    native = hash(value)
    if id(type(value)) in _NUMBERS and value == value:
        return native
    if type(value) is tuple and {*map(id, map(type, value))} <= _NUMBERS:  # type: ignore[arg-type]
        return native
    _World.was_seen = True
    try:
        text = encode(value, _MAX_TEXT_CHARS)
    except (NotPlain, TooLarge):
        return native
    stable = int.from_bytes(text.encode("utf-8", "surrogatepass"), "little") * (2 * _World.pair + 1) % _MODULUS
    return ~stable if _World.number % 2 else stable


_places: dict[int, int] = {}


def place_of(value: object) -> int:
    """In place of ``id``, where the order of objects shows: when the object was first asked for, or its complement."""
    _World.was_seen = True
    place = _places.setdefault(id(value), len(_places))
    return ~place if _World.number % 2 else place


def salt_heap(number: int) -> None:
    """Arrange free memory so that new objects lie at rising addresses in world 0 and at falling ones in world 1, in the
    others in no order, and at places that no two worlds share."""
    for size in range(16, 513, 16):
        made: list[object] = [_fill(size, i) for i in range(100)]
        made.sort(key=id if number < 2 else _place_in(number), reverse=number % 2 == 1)
        offset = 3 + number * 5
        _kept.append(made[offset::64])  # no pool of memory falls empty, and is then begun afresh
        del made[offset::64]
        while made:  # what is freed last is taken first
            made.pop()
    for size in range(528, 2_048, 16):  # of the C library, which keeps seven of each size at hand
        blocks = sorted([bytes(size - 33) for _ in range(9)], key=id, reverse=number % 2 == 1)
        _kept.append((blocks[0], blocks.pop(-1)))
        while blocks:
            blocks.pop()
    containers: list[list[Any]] = [[[] for _ in range(90)], [{} for _ in range(90)], [(i,) for i in range(90)]]
    for group in containers:
        group.sort(key=id, reverse=number % 2 == 1)
        while group:
            group.pop()


def salt_again() -> None:
    """The same for the few objects of each common size that come next: what a child has done to read and compile its
    program depends on more than the world."""
    falling = _World.number % 2 == 1
    made: list[object] = [object(), object(), object(), object(), object(), object()]
    made.sort(key=id, reverse=falling)
    for size in _COMMON_BYTES:  # each list goes before the next one is bound: its last element first
        made = [bytes(size), bytes(size), bytes(size), bytes(size), bytes(size), bytes(size)]
        made.sort(key=id, reverse=falling)


def _place_in(number: int) -> Callable[[object], int]:
    """A key by which objects are shuffled, in each world otherwise."""
    return lambda block: id(block) // 16 * (2_654_435_761 + 2 * number) % 4_294_967_291


def _fill(size: int, number: int) -> object:
    """A new object that takes ``size`` bytes."""
    if size <= 32:
        return object() if size == 16 else number + 0.5
    return bytes(size - 33)


def without_clocks(datetime: Any) -> None:
    """Take from the classes of ``datetime`` the methods that read the clock, in whatever way they are asked for."""
    for kind, names in ((datetime.datetime, ("now", "utcnow")), (datetime.date, ("today",))):
        attributes = attributes_of(kind)
        for name in names:
            attributes.pop(name, None)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
