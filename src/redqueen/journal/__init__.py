"""The journal of a run: one SQLite file, one transaction a step, numbers and plain text that users can query.

``schema`` documents the tables, ``records`` says what is written, ``write`` writes it, ``read`` hands plain rows to
the report, ``compare`` compares two journals row by row, except times. A journal may be untrusted: ``opening``
opens it without touching anything, ``known`` lets only our tables pass, ``connection`` limits what may be asked and how
long it may take, ``values`` checks what comes out.
"""

from redqueen.journal import read
from redqueen.journal.compare import diff
from redqueen.journal.records import (
    AttemptRecord,
    CandidateRecord,
    EvaluationRecord,
    MatchRecord,
    RunRecord,
    TaskRecord,
)
from redqueen.journal.write import Journal, StepWriter

__all__ = [
    "AttemptRecord",
    "CandidateRecord",
    "EvaluationRecord",
    "Journal",
    "MatchRecord",
    "RunRecord",
    "StepWriter",
    "TaskRecord",
    "diff",
    "read",
]
