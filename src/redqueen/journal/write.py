"""The journal file: create or open it, one transaction a step, cut it back when a run is resumed, ask it questions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from redqueen.errors import UserError
from redqueen.journal.connection import Patience, naming_the_journal, restrain, restrain_reader
from redqueen.journal.known import check_schema, statements
from redqueen.journal.opening import look_at, open_to_read, open_to_write, refuse_leftovers, writing_here
from redqueen.journal.records import EvaluationRecord, RunRecord
from redqueen.journal.schema import APPLICATION_ID, SCHEMA_VERSION
from redqueen.journal.steps import SqlValue, StepWriter, json_text
from redqueen.journal.values import check_rows

Row = dict[str, Any]
"""A row by column name; every value is text, a number or None."""

ROWS_AT_A_TIME = 1_000
MAX_ROWS = 2_000_000
MAX_CHARS = 256_000_000
"""Most rows and characters that a reader takes from one question: a small file can hold one text a million times."""

SLACK_BYTES = 1 << 20
"""What a table that is read in portions may hold beyond eight times its file and log: live runs grow, and columns are
computed."""


class Journal:
    """One open journal. ``create`` or ``open`` it; it closes with ``close`` or at the end of a ``with`` block.

    SQLite runs with a write-ahead log and ``synchronous = FULL``: a step that was committed survives a power cut, and
    readers are never in the way of the writer. One commit a step makes the price (one fsync) immaterial.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        patience: Patience | None = None,
        private_folder: TemporaryDirectory[str] | None = None,
    ):
        """Take an open connection: to read with ``patience``, to write without it."""
        self.path = path
        self.connection = connection
        self._patience, self._private_folder = patience, private_folder
        if patience is None:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            writing_here[path.resolve()] += 1

    @classmethod
    def create(cls, path: Path, run: RunRecord) -> Journal:
        """Make a new journal at ``path`` and write the run's row. Raises UserError when something is there already."""
        path = Path(path)
        refuse_leftovers(path)
        with naming_the_journal(path):
            connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(
                "INSERT INTO run VALUES (1, ?, ?, ?, ?, ?)",
                (run.name, run.arm, str(run.rng_seed), json_text(run.config), json_text(run.versions)),
            )
            connection.execute("COMMIT")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path, read_only: bool = False, patience: Patience | None = None) -> Journal:
        """Open an existing journal, to write or (``read_only``) to read while another process writes.

        A reader changes nothing in the folder, whoever made it, and waits for an answer as long as its ``patience``.
        Raises UserError when there is none, when the file is no journal, when its schema is of another version, or
        when it holds anything but the tables that a run makes.
        """
        path = Path(path)
        if not path.is_file():
            raise UserError(f"There is no journal at {path}; give the run directory of a run that was started.")
        waiting = patience or Patience()
        with naming_the_journal(path):
            connection, folder = open_to_read(path) if read_only else (open_to_write(path), None)
            try:
                with waiting.limiting(connection, path):
                    (restrain_reader if read_only else restrain)(connection)
                    _check_version(connection, path)
                    check_schema(connection, path)
                return cls(path, connection, waiting if read_only else None, folder)
            except BaseException:
                connection.close()
                if folder is not None:
                    folder.cleanup()
                raise

    def close(self) -> None:
        """Close the file; a writer empties its log first, so that whoever reads later finds all in one file."""
        if self._patience is None:
            self._leave_no_log()
            writing_here[self.path.resolve()] -= 1
            self._patience = Patience()
        self.connection.close()
        if self._private_folder is not None:
            self._private_folder.cleanup()

    def _leave_no_log(self) -> None:
        with suppress(sqlite3.Error):  # another process is reading: then the log stays, and readers use it
            self.connection.execute("PRAGMA busy_timeout = 500")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def step(self, step: int) -> Iterator[StepWriter]:
        """Open the transaction of one step (0: the state before the first). All of it is stored, or nothing.

        Raises ValueError when the step is in the journal already: resuming cuts the journal back first.
        """
        with naming_the_journal(self.path), self._transaction():
            known = self.connection.execute("SELECT 1 FROM step WHERE step = ?", (step,)).fetchone()
            if known is not None:
                raise ValueError(f"step {step} is in {self.path} already; truncate_after({step - 1}) first")
            self.connection.execute("INSERT INTO step VALUES (?)", (step,))
            yield StepWriter(self.connection, step)

    def truncate_after(self, step: int) -> int:
        """Delete every step after ``step`` with all that belongs to it, and return how many were deleted.

        Done on resume: what the checkpoint has not seen is played again, and then stands in the same rows.
        """
        with naming_the_journal(self.path), self._transaction():
            return self.connection.execute("DELETE FROM step WHERE step > ?", (step,)).rowcount

    def add_session(self, started_at_s: float, after_step: int | None) -> None:
        """Note that a process starts to write now (Unix seconds): ``after_step`` is None for a run's first."""
        with naming_the_journal(self.path), self._transaction():
            self.connection.execute(
                "INSERT INTO session (started_at_s, after_step) VALUES (?, ?)", (started_at_s, after_step)
            )

    def add_timings(self, step: int, seconds: Mapping[str, float]) -> None:
        """Add wall-clock seconds by phase to a step that is stored already (its checkpoint comes after its commit)."""
        with naming_the_journal(self.path), self._transaction():
            StepWriter(self.connection, step).add_timings(seconds)

    def set_evaluations(
        self, step: int, records: Iterable[EvaluationRecord], metrics: Mapping[str, float] | None = None
    ) -> None:
        """Give a stored step its evaluation, which a stop had cut short, and its metrics, instead of what it has.

        The metrics take the place of all that begin as they do (``product/``), which a process that was killed after
        this, and before its checkpoint, has left.
        """
        metrics = metrics or {}
        beginnings = sorted({f"{name.partition('/')[0]}/%" for name in metrics})
        with naming_the_journal(self.path), self._transaction():
            self.connection.execute("DELETE FROM evaluation WHERE step = ?", (step,))
            for beginning in beginnings:
                self.connection.execute("DELETE FROM metric WHERE step = ? AND name LIKE ?", (step, beginning))
            StepWriter(self.connection, step).add_evaluations(records)
            StepWriter(self.connection, step).add_metrics(metrics)

    def lengthen(self, config: Mapping[str, object], metrics: Mapping[str, float], step: int) -> None:
        """Give the run's record another config, and note what became of it as metrics of ``step``, in one piece."""
        with naming_the_journal(self.path), self._transaction():
            self.connection.execute("UPDATE run SET config = ?", (json_text(config),))
            names = [(step, name) for name in metrics]
            self.connection.executemany("DELETE FROM metric WHERE step = ? AND name = ?", names)
            StepWriter(self.connection, step).add_metrics(metrics)

    def query(self, sql: str, values: Sequence[SqlValue] = ()) -> list[Row]:
        """Run a SELECT and return its rows as plain dicts, every value checked against its column.

        Values go in as parameters, never into the text. Raises UserError for a value that no run writes, and when
        there are more rows or text than a reader can hold.
        """
        names, rows = self._all(sql, values)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def tuples(self, sql: str, values: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """Run a SELECT and return its rows as tuples, checked as those of ``query``."""
        return self._all(sql, values)[1]

    def portions(self, sql: str) -> Iterator[list[tuple[Any, ...]]]:
        """Run a SELECT and yield its rows some thousands at a time, checked as those of ``query``."""
        with self._asking():
            cursor = self.connection.execute(sql)
        names = [column[0] for column in cursor.description]
        sizes = look_at(self.path)
        left_bytes = 8 * ((sizes[""] or 0) + (sizes["-wal"] or 0)) + SLACK_BYTES
        while True:
            with self._asking():
                rows = cursor.fetchmany(ROWS_AT_A_TIME)
            if not rows:
                return
            left_bytes -= 4 * len(rows) + check_rows(self.path, names, rows)
            if left_bytes < 0:  # a row of an honest file takes its place in it
                raise UserError(f"The journal {self.path} holds more rows than its size allows: it was prepared.")
            yield rows

    def _all(self, sql: str, values: Sequence[SqlValue]) -> tuple[list[str], list[tuple[Any, ...]]]:
        found: list[tuple[Any, ...]] = []
        num_chars = 0
        with self._asking():
            cursor = self.connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(ROWS_AT_A_TIME if len(names) < 5 else 100):
                num_chars += check_rows(self.path, names, rows)
                found += rows
                if self._patience is not None and (len(found) > MAX_ROWS or num_chars > MAX_CHARS):
                    raise UserError(
                        f"The journal {self.path} holds more than can be shown at once: ask for one step or one "
                        "kind, or for fewer rows."
                    )
        return names, found

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with naming_the_journal(self.path):
            if self._patience is None:
                yield
            else:
                with self._patience.limiting(self.connection, self.path):
                    yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application_id != APPLICATION_ID:
        raise UserError(f"{path} is an SQLite file but no journal of redqueen; give the run directory of a run.")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} has journal schema {version}, and this redqueen reads schema {SCHEMA_VERSION}; "
            "use the version of redqueen that wrote it (it stands in the table `run`)."
        )
