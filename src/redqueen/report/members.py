"""The data of a member's page. Values go in as parameters, and each query uses an index or reads no texts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from redqueen.journal import Journal
from redqueen.journal.untrusted import Row

MAX_MATCHES, MAX_TASKS, MAX_CHILDREN = 20, 10, 20
MAX_ATTEMPTS_READ, MAX_ATTEMPTS = 60, 4
MATCHES_HEAD = ("against", "step", "tasks", "solved", "expected", "winner")


@dataclass(frozen=True)
class MemberPage:
    """All about one member; rows are those of the journal's tables, the latest first.

    ``won`` of ``num_matches`` matches, of which ``matches`` has the latest; ``export`` is the command that writes the
    member, "" when it is gone.
    """

    member: Row
    rating: Row | None
    birth: Row | None
    parents: list[str]
    children: list[Row]
    num_children: int
    matches: list[list[str]]
    num_matches: int
    won: int
    scores: list[Row]
    tasks: list[Row]
    attempts: list[Row]
    export: str


def member_page(journal: Journal, folder: Path, name: str) -> MemberPage | None:
    """Return all about the member of this name, None when there is none."""
    found = journal.query(
        "SELECT i.*, b.step AS left_step, b.child AS replaced_by FROM individual i "
        "LEFT JOIN birth b ON b.replaced = i.id WHERE i.id = ?",
        (name,),
    )
    if not found:
        return None
    member = found[0]
    ratings = journal.query("SELECT step, mu, sigma, fitness FROM rating WHERE individual = ? ORDER BY step", (name,))
    matches = journal.query("SELECT * FROM match WHERE teacher = ? OR student = ? ORDER BY step", (name, name))
    births = journal.query("SELECT * FROM birth WHERE child = ?", (name,))
    parents = journal.query("SELECT parent FROM parent WHERE child = ? ORDER BY position", (name,))
    children = journal.query(
        "SELECT b.child, b.step, b.operator, b.relative_change FROM parent p JOIN birth b ON b.child = p.child "
        "WHERE p.parent = ? ORDER BY b.step DESC, b.child",
        (name,),
    )
    export = shlex.join(["redqueen", "export", str(folder), f"--member={name}", f"--out={folder.name}-{name}"])
    return MemberPage(
        member=member,
        rating=ratings[-1] if ratings else None,
        birth=births[0] if births else None,
        parents=[row["parent"] for row in parents],
        children=children[:MAX_CHILDREN],
        num_children=len(children),
        matches=[_match_row(name, row) for row in matches[::-1][:MAX_MATCHES]],
        num_matches=len(matches),
        won=sum(row["winner"] in ("teacher", "student") and row[row["winner"]] == name for row in matches),
        scores=_scores(journal, name),
        tasks=_tasks(journal, name),
        attempts=_attempts(journal, name, matches[-1]["step"] if matches else 0),
        export="" if member["left_step"] is not None else export,
    )


def _match_row(name: str, row: Row) -> list[str]:
    other = row["student"] if row["teacher"] == name else row["teacher"]
    fracs = ["–" if row[column] is None else f"{row[column]:.2f}" for column in ("solve_frac", "expected_win_frac")]
    return [other, str(row["step"]), str(row["num_tasks"]), *fracs, row["winner"]]


def _scores(journal: Journal, name: str) -> list[Row]:
    """Return its aggregate scores at its last evaluation."""
    rows = journal.query(
        "SELECT step, suite, mode, mean_frac, low_frac, high_frac FROM evaluation WHERE individual = ? "
        "AND stratum = 'all' AND kind = 'all' AND mean_frac IS NOT NULL ORDER BY step DESC, suite, mode DESC LIMIT 40",
        (name,),
    )
    return [row for row in rows if None not in row.values() and row["step"] == rows[0]["step"]]


def _tasks(journal: Journal, name: str) -> list[Row]:
    return journal.query(
        "SELECT seq, step, kind, student, num_attempts, num_correct FROM task WHERE teacher = ? "
        f"ORDER BY step DESC, seq DESC LIMIT {MAX_TASKS}",
        (name,),
    )


def _attempts(journal: Journal, name: str, step: int) -> list[Row]:
    """Return some of its attempts in a step: right ones and wrong ones by turns."""
    rows = journal.query(
        "SELECT a.*, t.kind, t.teacher FROM task t JOIN attempt a ON a.task = t.seq "
        f"WHERE t.step = ? AND a.student = ? AND NOT a.lost ORDER BY a.seq LIMIT {MAX_ATTEMPTS_READ}",
        (step, name),
    )
    right, wrong = ([row for row in rows if bool(row["correct"]) is wanted] for wanted in (True, False))
    chosen = [*right[: max(2, MAX_ATTEMPTS - len(wrong))], *wrong[: max(2, MAX_ATTEMPTS - len(right))]]
    return sorted(chosen, key=lambda row: row["seq"])
