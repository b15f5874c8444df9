"""The members of a run: the list, page by page, and all about one of them.

Values always go in as parameters, and each question uses an index or reads a table without texts.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.dashboard.thin import mean_series, stretch_steps
from redqueen.journal import Journal
from redqueen.journal.read import Series
from redqueen.journal.write import Row
from redqueen.report.figure import Figure, line
from redqueen.report.tables import member_rows
from redqueen.report.view import RunView

PAGE_MEMBERS = 50
MAX_MATCHES, MAX_TASKS, MAX_CHILDREN = 20, 10, 20
MAX_ATTEMPTS_READ, MAX_ATTEMPTS = 60, 4
LAST_STEPS = 20
"""Proposals are counted over so many of a teacher's last steps."""


@dataclass(frozen=True)
class MemberList:
    """A page of the members, the living ones first; pages count from 1."""

    rows: list[list[str]]
    num_members: int
    page: int
    num_pages: int


@dataclass(frozen=True)
class MemberPage:
    """All about one member. Rows are those of the journal's tables, the latest first.

    ``verdicts`` count the proposals of the last steps; ``export`` is the command that writes it, "" when it is gone;
    ``won`` of ``played`` matches.
    """

    member: Row
    rating: Row | None
    birth: Row | None
    parents: list[str]
    children: list[Row]
    num_children: int
    hall: list[Row]
    matches: list[Row]
    played: int
    won: int
    figures: list[Figure]
    scores: list[Row]
    tasks: list[Row]
    verdicts: list[Row]
    attempts: list[Row]
    export: str


def list_members(view: RunView, page: int) -> MemberList:
    """Return one page of all members that ever were; the last one for a number beyond it."""
    num = len(view.individuals)
    num_pages = max(1, -(-num // PAGE_MEMBERS))
    page = min(max(1, page), num_pages)
    rows = member_rows(view, PAGE_MEMBERS, skip=(page - 1) * PAGE_MEMBERS, living_only=False)
    return MemberList(rows, num, page, num_pages)


def member_page(journal: Journal, folder: Path, name: str, last_step: int) -> MemberPage | None:
    """Return all about the member of this name, None when there is none. ``last_step``: of the run."""
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
    last_played = matches[-1]["step"] if matches else 0
    return MemberPage(
        member=member,
        rating=ratings[-1] if ratings else None,
        birth=births[0] if births else None,
        parents=[row["parent"] for row in parents],
        children=children[:MAX_CHILDREN],
        num_children=len(children),
        hall=journal.query("SELECT id, step FROM hall WHERE member = ? ORDER BY step", (name,)),
        matches=matches[::-1][:MAX_MATCHES],
        played=len(matches),
        won=sum(row["winner"] in ("teacher", "student") and row[row["winner"]] == name for row in matches),
        figures=_figures(name, ratings, matches, stretch_steps(last_step)),
        scores=_scores(journal, name),
        tasks=_tasks(journal, name),
        verdicts=_verdicts(journal, name, last_played),
        attempts=_attempts(journal, name, last_played),
        export="" if member["left_step"] is not None else export_command(folder, name),
    )


def export_command(folder: Path, name: str) -> str:
    """Return the command that writes a living member as a PEFT folder, quoted for a shell."""
    return shlex.join(["redqueen", "export", str(folder), f"--member={name}", f"--out={folder.name}-{name}"])


def _figures(name: str, ratings: list[Row], matches: list[Row], size: int) -> list[Figure]:
    figures = []
    if ratings:
        kept = [row for at, row in enumerate(ratings, start=1) if at % size == 0 or at == len(ratings)]
        band = [[row["step"], row["mu"] - row["sigma"], row["mu"] + row["sigma"]] for row in kept]
        mu = {**line("rating", [(row["step"], row["mu"]) for row in kept], 0), "bands": [band]}
        fitness = line("fitness", [(row["step"], row["fitness"]) for row in kept], 1, 1)
        text = "Rating (mu, with one sigma to either side) after each step, and the fitness that selection reads."
        chart: dict[str, Any] = {"type": "lines", "series": [mu, fitness]}
        figures.append(Figure("member-rating", "Rating", "rating points", text, chart))
    rated = [row for row in matches if row["solve_frac"] is not None and row["teacher"] != row["student"]]
    if rated:
        as_teacher = rated[0]["teacher"] == name
        solved = mean_series(_by_step(rated, "solve_frac"), size)
        expected = mean_series(_by_step(rated, "expected_win_frac"), size)
        drawn = [line("solved", solved, 0), line("expected from the ratings", expected, "quiet", 1)]
        what = "that this teacher set" if as_teacher else "that this student was asked"
        text = f"Share of attempts at the tasks {what} that were right, and the student's expected win."
        chart = {"type": "lines", "series": drawn, "low": 0, "high": 1}
        figures.append(Figure("member-solved", "Its matches", "share (0 to 1)", text, chart))
    return figures


def _by_step(rows: list[Row], column: str) -> Series:
    values: dict[int, list[float]] = {}
    for row in rows:
        if row[column] is not None:
            values.setdefault(row["step"], []).append(row[column])
    return [(step, sum(found) / len(found)) for step, found in values.items()]


def _scores(journal: Journal, name: str) -> list[Row]:
    rows = journal.query(
        "SELECT step, suite, mode, num_items, mean_frac, low_frac, high_frac FROM evaluation WHERE individual = ? "
        "AND stratum = 'all' AND kind = 'all' AND mean_frac IS NOT NULL ORDER BY step DESC, suite, mode DESC LIMIT 40",
        (name,),
    )
    return [row for row in rows if None not in row.values()]


def _tasks(journal: Journal, name: str) -> list[Row]:
    return journal.query(
        "SELECT seq, step, kind, student, num_attempts, num_correct FROM task WHERE teacher = ? "
        f"ORDER BY step DESC, seq DESC LIMIT {MAX_TASKS}",
        (name,),
    )


def _verdicts(journal: Journal, name: str, last_played: int) -> list[Row]:
    return journal.query(
        "SELECT verdict, count(*) AS num FROM candidate WHERE step > ? AND step <= ? AND teacher = ? "
        "GROUP BY verdict ORDER BY num DESC, verdict",
        (last_played - LAST_STEPS, last_played, name),
    )


def _attempts(journal: Journal, name: str, last_played: int) -> list[Row]:
    """Return some attempts of the last step that the member played: right ones and wrong ones by turns."""
    rows = journal.query(
        "SELECT a.*, t.id AS task_id, t.kind, t.step, t.teacher FROM task t JOIN attempt a ON a.task = t.seq "
        f"WHERE t.step = ? AND a.student = ? AND NOT a.lost ORDER BY a.seq LIMIT {MAX_ATTEMPTS_READ}",
        (last_played, name),
    )
    seen: dict[int, int] = {0: 0, 1: 0}
    ranked = []
    for row in rows:
        ranked.append((seen[row["correct"]], row["seq"], row))
        seen[row["correct"]] += 1
    chosen = sorted(ranked, key=lambda item: item[:2])[:MAX_ATTEMPTS]
    return [row for _, _, row in sorted(chosen, key=lambda item: item[1])]
