"""A member's page tells its life from the journal, and how to take it out of the run."""

import re
from pathlib import Path

from starlette.testclient import TestClient

from redqueen.dashboard.members import export_command
from redqueen.journal import Journal
from redqueen.run.store import JOURNAL

RUN = "arms~population-0"


def query(runs_dir: Path, sql: str, values: tuple = ()) -> list[dict]:
    with Journal.open(runs_dir / "arms" / "population-0" / JOURNAL, read_only=True) as journal:
        return journal.query(sql, values)


def test_every_member_has_a_page_with_its_matches_and_its_end(client: TestClient, runs_dir: Path) -> None:
    left = {row["replaced"]: row for row in query(runs_dir, "SELECT replaced, child, step FROM birth")}
    for row in query(runs_dir, "SELECT id FROM individual"):
        name = row["id"]
        page = client.get(f"/run/{RUN}/member?id={name}").text
        num = query(runs_dir, "SELECT count(*) AS n FROM match WHERE teacher = ? OR student = ?", (name, name))[0]["n"]
        assert f"<dt>Matches</dt><dd>{num}<" in page
        if name in left:
            assert f"replaced in step {left[name]['step']} by" in page and "export-command" not in page
            assert f"member?id={left[name]['child']}" in page
        else:
            assert f"--member={name}" in page


def test_a_child_names_its_parents_and_they_name_it(client: TestClient, runs_dir: Path) -> None:
    births = query(runs_dir, "SELECT child, parent FROM parent")
    assert births
    for birth in births:
        family = client.get(f"/run/{RUN}/member?id={birth['child']}").text.split('id="family-title"')[1]
        assert f"member?id={birth['parent']}" in family.split("</p>")[0]
        assert f"member?id={birth['child']}" in client.get(f"/run/{RUN}/member?id={birth['parent']}").text


def test_a_teacher_shows_its_tasks_and_a_student_right_and_wrong_attempts(client: TestClient, runs_dir: Path) -> None:
    teacher = query(runs_dir, "SELECT teacher FROM task ORDER BY seq DESC LIMIT 1")[0]["teacher"]
    tasks = query(runs_dir, "SELECT seq FROM task WHERE teacher = ? ORDER BY seq DESC LIMIT 10", (teacher,))
    page = client.get(f"/run/{RUN}/member?id={teacher}").text
    assert re.findall(r'<li><a href="[^"]*/task/(\d+)"', page) == [str(row["seq"]) for row in tasks]
    assert "Some of its attempts" not in page
    student = query(runs_dir, "SELECT student FROM attempt ORDER BY seq DESC LIMIT 1")[0]["student"]
    page = client.get(f"/run/{RUN}/member?id={student}").text
    shown = page.split('id="attempts-title"')[1]
    of_step = query(
        runs_dir,
        "SELECT DISTINCT correct FROM attempt a JOIN task t ON t.seq = a.task WHERE a.student = ? AND t.step = "
        "(SELECT max(step) FROM match WHERE student = ?)",
        (student, student),
    )
    assert ("✓ right" in shown) == ({"correct": 1} in of_step)
    assert "✗" in shown and 0 < shown.count('<article class="attempt"') <= 4


def test_the_list_leads_to_all_members_and_its_pages_are_bounded(client: TestClient, runs_dir: Path) -> None:
    listed = re.findall(r'<th scope="row"><a href="[^"]*id=([^"]+)"', client.get(f"/run/{RUN}/members").text)
    assert sorted(listed) == sorted(row["id"] for row in query(runs_dir, "SELECT id FROM individual"))
    assert client.get(f"/run/{RUN}/members?page=99").status_code == 200
    assert client.get(f"/run/{RUN}/members?page=x'--").status_code == 200


def test_the_export_command_is_safe_to_paste() -> None:
    folder, name = Path("/runs/my run; rm -rf ~"), "$(touch x)"
    assert export_command(folder, name) == (
        "redqueen export '/runs/my run; rm -rf ~' '--member=$(touch x)' '--out=my run; rm -rf ~-$(touch x)'"
    )


def test_the_attempts_of_a_group_stand_beside_each_other_with_their_advantages(
    client: TestClient, runs_dir: Path
) -> None:
    rows = query(runs_dir, "SELECT seq, student, reward, advantage FROM attempt WHERE task = 1 ORDER BY seq")
    page = client.get(f"/run/{RUN}/task/1").text
    groups = re.findall(r'<section class="group".*?</section>', page, re.DOTALL)
    assert len(groups) == len({row["student"] for row in rows})
    assert page.count('class="advantage"') == len(rows)
    widths = [float(text) for text in re.findall(r'<rect class="(?:up|down)" x="[^"]*" y="0" width="([^"]*)"', page)]
    largest = max(abs(row["advantage"]) for row in rows)
    assert widths == [round(50 * abs(row["advantage"]) / largest, 1) for row in rows]
    mean = sum(row["reward"] for row in rows) / len(rows)
    assert f"mean reward {mean:.3f}" in page
