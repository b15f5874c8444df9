"""The task browser's questions to the journal: filter, search, one page at a time, and all about one task.

Values always go in as parameters; the SQL text is put together from this file's own pieces alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.steps import SqlValue
from redqueen.journal.values import json_pairs
from redqueen.journal.write import Row
from redqueen.report.task_list import BY_STUDENT

PAGE_TASKS = 25
MAX_SEARCH_CHARS = 200
MAX_WORDS = 8
PREVIEW_CHARS = 600
"""How much of a program the list shows."""

SEARCHED = ("code", "message", "inputs", "outputs")
WORD = re.compile(r'"([^"]*)"|(\S+)')
ORDERS = {"newest": ("DESC", "<"), "oldest": ("ASC", ">")}


@dataclass(frozen=True)
class Measure:
    """A number of a task that can be filtered by: its SQL, and how it is called and explained."""

    sql: str
    title: str
    unit: str
    text: str


RANGES = {
    "step": Measure("step", "Step", "", "The step in which the task was set."),
    "solve": Measure(
        "CASE WHEN num_attempts > 0 THEN 100.0 * num_correct / num_attempts END",
        "Solve rate",
        "%",
        "Share of judged attempts that were right.",
    ),
    "cyclomatic": Measure("cyclomatic", "Cyclomatic", "paths", "One more than the decisions in the program."),
    "depth": Measure("ast_depth", "Tree depth", "levels", "Longest path in the program's syntax tree."),
    "lines": Measure("num_lines", "Lines", "", "Lines that are neither blank nor comment."),
}


@dataclass(frozen=True)
class Wanted:
    """Which tasks are asked for. ``ranges`` maps a name of RANGES to its least and greatest value (None: open)."""

    text: str = ""
    kind: str = ""
    teacher: str = ""
    student: str = ""
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    order: str = "newest"
    after: int | None = None

    @property
    def num_set(self) -> int:
        """How many filters are set, the search and the order apart."""
        return len(self.ranges) + sum(map(bool, (self.kind, self.teacher, self.student)))

    @property
    def is_filtered(self) -> bool:
        return bool(self.text or self.num_set)

    def query(self, after: int | None = None) -> dict[str, str]:
        """Return the parameters of an address that asks for this, going on after the task ``after``."""
        words = {"q": self.text, "kind": self.kind, "teacher": self.teacher, "student": self.student}
        for name, ends in self.ranges.items():
            named = zip(("min", "max"), ends, strict=True)
            words |= {f"{name}_{end}": f"{value:.10g}" for end, value in named if value is not None}
        words["order"] = self.order if self.order != "newest" else ""
        words["after"] = "" if after is None else str(after)
        return {name: value for name, value in words.items() if value}


@dataclass(frozen=True)
class TaskPage:
    """A page of the list. ``num_found`` is None after a search, where counting would mean reading every task."""

    tasks: list[Row]
    num_found: int | None
    next_after: int | None


@dataclass(frozen=True)
class TaskDetail:
    """All about one task. ``pairs`` holds input, output and whether the student saw it, in a word.

    Neighbours are ``seq`` s.
    """

    task: Row
    candidate: Row | None
    pairs: list[tuple[str, str, str]]
    attempts: list[Row]
    groups: list[Group]
    solvers: list[Row]
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Group:
    """The attempts of one student at a task, in order, each with ``bar``: its advantage, -50 to 50 within the task.

    ``mean_reward`` is None when none was rewarded.
    """

    student: str
    attempts: list[Row]
    num_correct: int
    mean_reward: float | None


def groups_of(attempts: Sequence[Row]) -> list[Group]:
    """Return the attempts at a task by student."""
    largest = max((abs(row["advantage"]) for row in attempts if row["advantage"] is not None), default=0.0) or 1.0
    of: dict[str, list[Row]] = defaultdict(list)
    for row in attempts:
        of[row["student"]].append({**row, "bar": round(50 * (row["advantage"] or 0.0) / largest, 1)})
    groups = []
    for student, rows in of.items():
        rewards = [row["reward"] for row in rows if row["reward"] is not None]
        mean = sum(rewards) / len(rewards) if rewards else None
        groups.append(Group(student, rows, sum(row["correct"] and not row["lost"] for row in rows), mean))
    return groups


def parse_wanted(parameters: Mapping[str, str], kinds: Collection[str]) -> Wanted:
    """Read a query string; ``kinds`` are those there are. Raises UserError that names a field that cannot be meant."""
    text = parameters.get("q", "").strip()
    if len(text) > MAX_SEARCH_CHARS:
        raise UserError(f"The search has {len(text):,} characters; use at most {MAX_SEARCH_CHARS}.")
    kind, order = parameters.get("kind", ""), parameters.get("order", "") or "newest"
    if kind and kind not in kinds:
        raise UserError(f"The kind is unknown; choose one of {', '.join(kinds)}.")
    if order not in ORDERS:
        raise UserError(f"The order is unknown; choose {' or '.join(ORDERS)}.")
    ranges = {}
    for name, measure in RANGES.items():
        ends = (
            _number(parameters.get(f"{name}_min", ""), measure.title),
            _number(parameters.get(f"{name}_max", ""), measure.title),
        )
        if ends != (None, None):
            ranges[name] = ends
    after = _number(parameters.get("after", ""), "The page")
    names = (parameters.get("teacher", "").strip(), parameters.get("student", "").strip())
    return Wanted(text, kind, *names, ranges, order, None if after is None else int(after))


def _number(text: str, title: str) -> float | None:
    if not text.strip():
        return None
    if not re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", text.strip()):
        raise UserError(f"{title}: give a plain number, for instance 12, or leave the field empty.")
    return float(text)


def search_words(text: str) -> list[str]:
    """Return the words of a search, what stands in double quotes being one."""
    words = [quoted or bare for quoted, bare in WORD.findall(text)]
    return [word for word in words if word][:MAX_WORDS]


def _conditions(wanted: Wanted) -> tuple[list[str], list[SqlValue]]:
    conditions: list[str] = []
    values: list[SqlValue] = []
    for column in ("kind", "teacher"):
        if getattr(wanted, column):
            conditions.append(f"{column} = ?")
            values.append(getattr(wanted, column))
    if wanted.student:
        conditions.append(BY_STUDENT)
        values.append(wanted.student)
    for name, (least, greatest) in wanted.ranges.items():
        for sign, value in ((">=", least), ("<=", greatest)):
            if value is not None:
                conditions.append(f"{RANGES[name].sql} {sign} ?")
                values.append(value)
    for word in search_words(wanted.text):
        pattern = "%" + re.sub(r"([\\%_])", r"\\\1", word) + "%"
        conditions.append("(" + " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in SEARCHED) + ")")
        values += [pattern] * len(SEARCHED)
    return conditions, values


def find_tasks(journal: Journal, wanted: Wanted) -> TaskPage:
    """Return one page of the tasks that are wanted, paged by key: the next page begins after the last one's ``seq``."""
    direction, beyond = ORDERS[wanted.order]
    conditions, values = _conditions(wanted)
    where = " AND ".join(conditions) or "1"
    num_found = None
    if not wanted.text:
        num_found = journal.query(f"SELECT count(*) AS num FROM task WHERE {where}", values)[0]["num"]
    if wanted.after is not None:
        where, values = f"{where} AND seq {beyond} ?", [*values, wanted.after]
    rows = journal.query(
        f"SELECT seq, id, step, teacher, student, kind, substr(code, 1, {PREVIEW_CHARS}) AS code, "
        f"length(code) AS num_chars, cyclomatic, ast_depth, num_lines, num_attempts, num_correct "
        f"FROM task WHERE {where} ORDER BY seq {direction} LIMIT {PAGE_TASKS + 1}",
        values,
    )
    tasks = rows[:PAGE_TASKS]
    _add_solvers(journal, tasks)
    return TaskPage(tasks, num_found, tasks[-1]["seq"] if len(rows) > PAGE_TASKS else None)


def _add_solvers(journal: Journal, tasks: list[Row]) -> None:
    marks = ", ".join("?" * len(tasks))
    rows = journal.query(
        "SELECT task, student, sum(correct) AS num_correct, count(*) AS num_attempts FROM attempt "
        f"WHERE task IN ({marks}) AND NOT lost GROUP BY task, student ORDER BY task, student",
        [task["seq"] for task in tasks],
    )
    of_task: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of_task[row["task"]].append(row)
    for task in tasks:
        task["solvers"] = of_task[task["seq"]]


def task_detail(journal: Journal, seq: int) -> TaskDetail | None:
    """Return all about the task with this row number, None when there is none."""
    found = journal.query("SELECT * FROM task WHERE seq = ?", (seq,))
    if not found:
        return None
    task = found[0]
    candidates = journal.query("SELECT * FROM candidate WHERE id = ?", (task["id"],))
    num_shown = task["num_shown"]
    pairs = [
        (left, right, ("# shown" if at < num_shown else "# hidden") if num_shown else "")
        for at, (left, right) in enumerate(zip(*json_pairs(task), strict=True))
    ]
    around = journal.query(
        "SELECT (SELECT max(seq) FROM task WHERE seq < ?) AS before, "
        "(SELECT min(seq) FROM task WHERE seq > ?) AS after",
        (seq, seq),
    )[0]
    holder = [task]
    _add_solvers(journal, holder)
    attempts = read.attempts_of_task(journal, seq)
    return TaskDetail(
        task,
        candidates[0] if candidates else None,
        pairs,
        attempts,
        groups_of(attempts),
        task["solvers"],
        **around,
    )
