"""The worlds of programs that the embedded base learns from: how their programs and arguments are written, and bounds.

``basic`` composes operations evenly; ``everyday`` composes idioms over words, lists and dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from redqueen.tiny.everyday import write_everyday_program
from redqueen.tiny.everyday_values import write_everyday_value
from redqueen.tiny.generator import write_program
from redqueen.tiny.thought_traces import NARROW, Bounds
from redqueen.tiny.values import Type, write_value


@dataclass(frozen=True)
class World:
    """One source of programs. ``write_program`` draws one of a level, ``write_value`` an argument of a type."""

    name: str
    write_program: Callable[[Random, int], tuple[str, tuple[Type, ...]]]
    write_value: Callable[[Random, Type], object]
    bounds: Bounds = NARROW
    max_code_chars: int = 420


BASIC = World("basic", write_program, write_value)
EVERYDAY = World(
    "everyday",
    write_everyday_program,
    write_everyday_value,
    Bounds(events=44, trace_chars=340, text_chars=56, items=12, largest=9999, detailed=True),
)
WORLDS: dict[str, World] = {world.name: world for world in (BASIC, EVERYDAY)}
