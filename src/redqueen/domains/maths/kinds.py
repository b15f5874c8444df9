"""The domain of mathematics: find the number that a formal statement, or a text with a formal twin, asks for."""

from __future__ import annotations

from redqueen.domains.domain import Domain
from redqueen.domains.maths.lessons import SEED, lessons
from redqueen.domains.maths.prompts_compact import FORMAL
from redqueen.nouns import Task

MATHS = Domain("maths", (), seed=Task("seed", "seed", "", FORMAL, SEED, ("",), ("2",)), lessons=lessons)
