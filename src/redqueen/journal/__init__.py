"""The journal of a run: one SQLite file, one transaction a step, numbers and plain text that users can query.

``schema`` has the tables and the records that are written, ``write`` writes them, ``read`` returns plain rows,
``compare`` compares two journals row by row, ``untrusted`` checks every file, schema and value that is read.
"""

from redqueen.journal import read
from redqueen.journal.compare import diff
from redqueen.journal.read import Row
from redqueen.journal.schema import AttemptRecord, CandidateRecord, EvaluationRecord, MatchRecord, RunRecord, TaskRecord
from redqueen.journal.write import Journal, StepWriter

__all__ = [
    "AttemptRecord", "CandidateRecord", "EvaluationRecord", "Journal", "MatchRecord", "Row", "RunRecord", "StepWriter",
    "TaskRecord", "diff", "read",
]  # fmt: skip
