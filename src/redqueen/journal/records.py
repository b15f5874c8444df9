"""What is written to the journal beside the nouns: small frozen records that add a number or a verdict to a noun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from redqueen.records import Candidate, Match, Outcome, Task

Winner = Literal["teacher", "student", "draw", "none"]
EvaluationMode = Literal["sampled", "greedy"]

BASE = "base"
"""The name under which the bare base model's external fitness stands."""

CONTROL = "control"
"""The name of the bare base with every thought begun in the prompt: what it reaches by being told to think."""

PRODUCT = "product"
"""The name of the one adapter that a run ends with."""

DISTILLED = "distilled"
"""The name of the adapter that has read the right answers of all students."""

SHARE, CHOSEN = "product/share/", "product/chosen/"
"""Metrics of the last step, before a candidate's name: its share of the last probe, and a 1 for the product."""

STUDENTS = "students"
"""The name under which the mean over all students stands, with an interval that knows they shared the items."""

CHANGE = "change"
"""The name under which the students' mean less the base model's stands, with the interval of the paired difference."""

GAIN = "gain"
"""The name of the product's score less the best control's (the better of ``base`` and ``control``), paired by item."""

NO_MEMBERS = frozenset({BASE, CONTROL, PRODUCT, STUDENTS, CHANGE, GAIN})
"""Names of scores that are no member's."""

UNLISTED_TOKENS = ("evolve/probe_tokens", "solve/replay_tokens")
"""Metrics that count tokens sampled for learning that stand in no row of their own."""

ALL = "all"
"""The stratum and the kind of an aggregate."""


MEASURES = ("ast_depth", "cyclomatic", "num_lines", "num_variables", "halstead_volume")
"""The measures of a task that have a column of their own: depth, paths, lines and names of what it is about, bits."""


class TaskPressure(Protocol):
    """What the journal reads from ``redqueen.propose.curriculum.Crowding``."""

    @property
    def behaviour_class(self) -> str: ...
    @property
    def novelty(self) -> float: ...
    @property
    def crowd_frac(self) -> float: ...
    @property
    def size_hardness(self) -> float: ...


@dataclass(frozen=True)
class RunRecord:
    """What a run is: its name, its arm (``4T+4S``, ``single``), the seed, the resolved config, library versions.

    ``config`` must be plain (JSON): it is stored as text with sorted keys.
    """

    name: str
    arm: str
    rng_seed: int
    config: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MatchRecord:
    """A match and how it ended. ``solve_frac`` (0..1) is None when the teacher made no valid task."""

    match: Match
    num_tasks: int
    solve_frac: float | None
    winner: Winner


@dataclass(frozen=True)
class CandidateRecord:
    """A proposal and what became of it. ``verdict`` is ``ok`` or the reason of the rejection."""

    candidate: Candidate
    verdict: str
    detail: str = ""
    reward: float | None = None
    advantage: float | None = None
    num_tokens: int = 0


@dataclass(frozen=True)
class TaskRecord:
    """A valid task with its measures by name (those of ``MEASURES`` are stored) and a signature of its behaviour.

    ``behaviour`` is any text that is equal for two tasks that ask the same thing (a normalised program, a digest of
    inputs and outputs); coverage counts the distinct ones. ``pressure`` is its class against what was posed before.
    """

    task: Task
    measures: Mapping[str, float] | None
    behaviour: str
    pressure: TaskPressure | None = None


@dataclass(frozen=True)
class AttemptRecord:
    """An attempt with its grade, the student's reward and the advantage it was trained with (None: not trained on)."""

    outcome: Outcome
    reward: float | None = None
    advantage: float | None = None


@dataclass(frozen=True)
class EvaluationRecord:
    """External fitness of one individual on one part of a suite: mean and 95 % interval as fractions (0..1).

    ``individual`` is a member's id or one of ``NO_MEMBERS``; ``stratum`` and ``kind`` are ``all`` for the
    aggregate. ``thought_frac`` is the share of attempts that thought first, ``mean_tokens`` the attempts' mean length.
    """

    individual: str
    suite: str
    stratum: str
    kind: str
    mode: EvaluationMode
    num_items: int
    mean_frac: float
    low_frac: float
    high_frac: float
    thought_frac: float | None = None
    mean_tokens: float | None = None
