"""The tables of the journal, for readers who query it, and the records that are written to them.

A journal is one SQLite file (``journal.sqlite`` in the run directory). Any SQLite client opens it, also during the run.
All text in it is plain text, all structured values are JSON text, and there is no binary data. Text that a model wrote
(``candidate.text``, ``task.code``, ``task.message``, ``attempt.text`` and the columns cut from it) is untrusted.

docs/runs.md explains every table and column.

``attempt.answer`` and ``attempt.thought`` are generated columns: if they are substrings of ``text``, as almost always,
only their position is stored. Row numbers (``seq``) continue from the last row, so a journal that was truncated and
continued equals one that was not. Deleting a step deletes everything that belongs to it. The ``teacher`` and
``student`` columns hold ids of ``individual``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from redqueen.records import Candidate, Crowding, Match, Outcome, Task

APPLICATION_ID = 0x5251_4A4E
"""Marks the SQLite file as a journal of redqueen ("RQJN")."""

SCHEMA_VERSION = 2
"""Stored in ``PRAGMA user_version``; incremented with every change of the tables."""

TIME_TABLES = ("timing", "session")
"""Tables that hold wall-clock times: two equal runs differ in them."""

IDENTITY_COLUMNS = {"run": ("name",)}
"""Columns that only name a run: two equal runs may differ in them."""

TABLES = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL,
    arm TEXT NOT NULL, rng_seed TEXT NOT NULL,
    config TEXT NOT NULL, versions TEXT NOT NULL
) STRICT;

CREATE TABLE step (
    step INTEGER PRIMARY KEY CHECK (step >= 0)
) STRICT;

CREATE TABLE metric (
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    name TEXT NOT NULL, value REAL,
    PRIMARY KEY (step, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE individual (
    id TEXT PRIMARY KEY,
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('teacher', 'student', 'both')),
    slot INTEGER NOT NULL, born_step INTEGER NOT NULL, operator TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX individual_step ON individual (step);

CREATE TABLE birth (
    child TEXT PRIMARY KEY REFERENCES individual ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    replaced TEXT NOT NULL REFERENCES individual ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    operator TEXT NOT NULL, constants TEXT NOT NULL, rng_seed TEXT NOT NULL, relative_change REAL,
    space TEXT NOT NULL CHECK (space IN ('delta', 'factor', 'none')),
    layer_changes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX birth_step ON birth (step);
CREATE INDEX birth_replaced ON birth (replaced);

CREATE TABLE parent (
    child TEXT NOT NULL REFERENCES birth (child) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    position INTEGER NOT NULL,
    parent TEXT NOT NULL REFERENCES individual ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (child, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX parent_parent ON parent (parent);

CREATE TABLE hall (
    id TEXT PRIMARY KEY,
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES individual ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    slot INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hall_step ON hall (step);
CREATE INDEX hall_member ON hall (member);

CREATE TABLE health (
    step INTEGER PRIMARY KEY REFERENCES step ON DELETE CASCADE,
    won_frac REAL, lost_frac REAL, residual_frac REAL,
    reversal_frac REAL, forgetting_frac REAL,
    teacher_weight_diversity REAL, student_weight_diversity REAL,
    teacher_behaviour_diversity REAL, student_behaviour_diversity REAL,
    solve_mean_frac REAL, solve_spread REAL, progress_frac REAL,
    warnings TEXT NOT NULL
) STRICT;

CREATE TABLE match (
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    teacher TEXT NOT NULL, student TEXT NOT NULL,
    expected_win_frac REAL, num_tasks INTEGER NOT NULL, solve_frac REAL,
    winner TEXT NOT NULL CHECK (winner IN ('teacher', 'student', 'draw', 'none')),
    PRIMARY KEY (step, teacher, student)
) STRICT, WITHOUT ROWID;

CREATE TABLE candidate (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    teacher TEXT NOT NULL, student TEXT NOT NULL, kind TEXT NOT NULL,
    text TEXT NOT NULL, verdict TEXT NOT NULL, detail TEXT NOT NULL,
    reward REAL, advantage REAL, num_tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX candidate_step ON candidate (step, verdict);

CREATE TABLE task (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    teacher TEXT NOT NULL, student TEXT NOT NULL, kind TEXT NOT NULL,
    code TEXT NOT NULL, inputs TEXT NOT NULL, outputs TEXT NOT NULL,
    message TEXT NOT NULL, num_shown INTEGER NOT NULL, protection TEXT NOT NULL,
    ast_depth INTEGER, cyclomatic INTEGER, num_lines INTEGER, num_variables INTEGER, halstead_volume REAL,
    behaviour TEXT NOT NULL, behaviour_class TEXT NOT NULL,
    novelty REAL, crowd_frac REAL, size_hardness REAL,
    num_attempts INTEGER NOT NULL DEFAULT 0, num_correct INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX task_step ON task (step, teacher, kind);
CREATE INDEX task_teacher ON task (teacher, step);
CREATE INDEX task_student ON task (student, step);
-- Covers the queries of the curriculum's curves: the rows themselves hold programs and are slow to scan.
CREATE INDEX task_kind ON task (kind, step, behaviour, ast_depth, cyclomatic, num_lines, num_variables);

CREATE TABLE attempt (
    seq INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    student TEXT NOT NULL, text TEXT NOT NULL,
    answer_at INTEGER, answer_chars INTEGER, answer_apart TEXT,
    thought_at INTEGER, thought_chars INTEGER, thought_apart TEXT,
    verdict TEXT NOT NULL, detail TEXT NOT NULL,
    correct INTEGER NOT NULL CHECK (correct IN (0, 1)),
    lost INTEGER NOT NULL CHECK (lost IN (0, 1)),
    reward REAL, advantage REAL, num_tokens INTEGER NOT NULL,
    answer TEXT GENERATED ALWAYS AS (coalesce(answer_apart, substr(text, answer_at, answer_chars))) VIRTUAL,
    thought TEXT GENERATED ALWAYS AS (coalesce(thought_apart, substr(text, thought_at, thought_chars), '')) VIRTUAL
) STRICT;
CREATE INDEX attempt_task ON attempt (task);

CREATE TABLE rating (
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    individual TEXT NOT NULL REFERENCES individual ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    mu REAL NOT NULL, sigma REAL NOT NULL, fitness REAL NOT NULL,
    PRIMARY KEY (step, individual)
) STRICT, WITHOUT ROWID;
CREATE INDEX rating_individual ON rating (individual);

CREATE TABLE evaluation (
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    individual TEXT NOT NULL, suite TEXT NOT NULL, stratum TEXT NOT NULL, kind TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('sampled', 'greedy')),
    num_items INTEGER NOT NULL, mean_frac REAL, low_frac REAL, high_frac REAL,
    thought_frac REAL, mean_tokens REAL,
    PRIMARY KEY (step, individual, suite, stratum, kind, mode)
) STRICT, WITHOUT ROWID;

CREATE TABLE timing (
    step INTEGER NOT NULL REFERENCES step ON DELETE CASCADE,
    phase TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (step, phase)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    seq INTEGER PRIMARY KEY, started_at_s REAL NOT NULL, after_step INTEGER
) STRICT;
"""

# Values of evaluation.individual other than a member's id.
BASE = "base"  # the bare base model
CONTROL = "control"  # the base with every thought begun in the prompt: the effect of prompting alone
PRODUCT = "product"  # the adapter a run produces
STUDENTS = "students"  # the mean over all students; its interval accounts for the shared items
CHANGE = "change"  # the students' mean minus the base, with the interval of the paired difference
GAIN = "gain"  # the product minus the better of base and control, paired by item
NO_MEMBERS = frozenset({BASE, CONTROL, PRODUCT, STUDENTS, CHANGE, GAIN})

ALL = "all"
"""The stratum and the kind of an aggregate."""

DISTILLED = "distilled"
"""The name of the adapter that was distilled from the correct answers of all students."""

EXAMPLE, SHARE, CHOSEN = "product/example", "product/share/", "product/chosen/"
"""Metrics of the last step. The share on the product's probe and the 1 of the product end with a candidate's name. The
example is the number of the first held-out item that the product solves greedily and the base does not."""

UNLISTED_TOKENS = ("evolve/probe_tokens", "solve/anchor_tokens", "solve/replay_tokens")
"""Metrics of sampled tokens that no row of ``candidate`` or ``attempt`` counts; the third is of earlier versions."""

MEASURES = ("ast_depth", "cyclomatic", "num_lines", "num_variables")
"""The measures of a task that have a column: depth, paths, lines and names of its program.

Only earlier versions wrote ``halstead_volume``."""


@dataclass(frozen=True)
class RunRecord:
    """A run: its name, its arm (``4T+4S``, ``single``), the seed, the resolved config, library versions.

    ``config`` must be plain (JSON): it is stored as text with sorted keys.
    """

    name: str
    arm: str
    rng_seed: int
    config: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MatchRecord:
    """A match and its result. ``solve_frac`` (0..1) is None when the teacher made no valid task."""

    match: Match
    num_tasks: int
    solve_frac: float | None
    winner: Literal["teacher", "student", "draw", "none"]


@dataclass(frozen=True)
class CandidateRecord:
    """A proposal with ``verdict``: ``ok`` or the reason of its rejection."""

    candidate: Candidate
    verdict: str
    detail: str = ""
    reward: float | None = None
    advantage: float | None = None
    num_tokens: int = 0


@dataclass(frozen=True)
class TaskRecord:
    """A valid task with its measures by name (those of ``MEASURES`` are stored) and a signature of its behaviour.

    ``behaviour`` is a text that is equal for equivalent tasks (a normalised program, a digest of inputs and outputs);
    coverage counts the distinct ones.
    """

    task: Task
    measures: Mapping[str, float] | None
    behaviour: str
    crowding: Crowding | None = None


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
    aggregate. ``thought_frac`` is the share of attempts with a thought, ``mean_tokens`` the attempts' mean length.
    """

    individual: str
    stratum: str
    kind: str
    mode: Literal["sampled", "greedy"]
    num_items: int
    mean_frac: float
    low_frac: float
    high_frac: float
    thought_frac: float | None = None
    mean_tokens: float | None = None
