"""The dashboard's pages show what the journal holds, and nothing that a model wrote does anything."""

import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hostile_run import TEXTS
from starlette.testclient import TestClient
from synthetic_run import build_run, founders

from redqueen.dashboard.app import create_app
from redqueen.dashboard.find import find_runs, is_running
from redqueen.dashboard.listing import status_of
from redqueen.journal import EvaluationRecord, Journal
from redqueen.journal.records import CHOSEN, PRODUCT
from redqueen.run.store import JOURNAL

RUN = "arms~population-0"
PAGES = ["/", f"/run/{RUN}", f"/run/{RUN}/lineage", f"/run/{RUN}/members", f"/run/{RUN}/member?id=T1",
         f"/run/{RUN}/member?id=S2", "/run/single-0/member?id=A1", "/run/single-0/members", f"/run/{RUN}/tasks",
         f"/run/{RUN}/task/1", "/run/single-0", "/run/single-0/lineage", "/run/hostile", "/run/hostile/lineage",
         "/run/hostile/tasks", "/compare", f"/compare?run={RUN}&run=single-0"]  # fmt: skip


def figures(page: str) -> list[dict]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def query(runs_dir: Path, sql: str) -> list[dict]:
    with Journal.open(runs_dir / "arms" / "population-0" / JOURNAL, read_only=True) as journal:
        return journal.query(sql)


def shown_tasks(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<h3><a href="/run/[^"]*/task/(\d+)"', page)]


def test_runs_are_found_in_folders_of_folders_by_the_path_below_the_root(runs_dir: Path) -> None:
    assert list(find_runs(runs_dir)) == [RUN, "damaged", "hostile", "single-0"]
    assert list(find_runs(runs_dir / "single-0")) == ["single-0"]
    assert find_runs(runs_dir / "notes") == {}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_answers(client: TestClient, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.count("<h1>") == 1 and 'class="skip"' in answer.text


def test_the_overview_shows_each_run_and_why_one_cannot_be_read(client: TestClient) -> None:
    page = client.get("/").text
    assert page.count('<th scope="row"') == 4
    assert "2T+2S, seed 0" in page and "is no journal; give the run directory of a redqueen run" in page
    assert page.count('type="checkbox"') == 3  # what cannot be read cannot be compared


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    page = TestClient(create_app(tmp_path), base_url="http://localhost").get("/").text
    assert "There is no run here yet" in page


def test_a_run_that_ended_before_its_first_step_says_how_to_go_on(tmp_path: Path) -> None:
    build_run(tmp_path / "early", 1, 1, 1, tasks_per_match=1, num_attempts=1)
    with Journal.open(tmp_path / "early" / JOURNAL) as journal:
        journal.truncate_after(-1)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    assert "starting" in client.get("/").text
    for part in ("", "/lineage", "/members"):
        answer = client.get(f"/run/early{part}")
        assert answer.status_code == 200 and "Ended before its first step" in answer.text
    assert f"redqueen resume {tmp_path / 'early'}" in answer.text
    assert "There is no valid task yet" in client.get("/run/early/tasks").text


def test_a_run_shows_every_figure_that_was_promised(client: TestClient) -> None:
    names = {figure["id"] for figure in figures(client.get(f"/run/{RUN}").text)}
    assert names >= {"solve-rate", "ratings-teacher", "ratings-student", "matchups", "rate-teacher", "rate-student"}
    assert names >= {"ast-depth", "cyclomatic", "coverage", "entropy", "phase-times", "rejections"}
    assert "lineage" not in names


def test_the_rate_of_a_student_is_the_mean_of_its_matches_weighted_by_tasks(client: TestClient, runs_dir: Path) -> None:
    figure = next(f for f in figures(client.get(f"/run/{RUN}").text) if f["id"] == "rate-student")
    rows = query(runs_dir, "SELECT step, solve_frac, num_tasks FROM match WHERE student = 'S1' ORDER BY step")
    points = next(line["points"] for line in figure["chart"]["series"] if line["name"] == "S1")
    assert points[0] == [rows[0]["step"], pytest.approx(rows[0]["solve_frac"])]
    assert len(figure["chart"]["series"]) == 2


def test_the_lineage_names_every_member_once_in_its_tree(client: TestClient, runs_dir: Path) -> None:
    page = client.get(f"/run/{RUN}/lineage").text
    tree = page[page.index('id="tree"') : page.index('id="births-title"')]
    members = [row["id"] for row in query(runs_dir, "SELECT id FROM individual")]
    assert sorted(re.findall(r'member\?id=([^"]+)"', tree)) == sorted(members)
    assert [figure["id"] for figure in figures(page)] == ["lineage"]


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ("kind=code_i", "kind = 'code_i'"),
        ("teacher=T1", "teacher = 'T1'"),
        ("student=S2&kind=code_o", "student = 'S2' AND kind = 'code_o'"),
        ("step_min=3&step_max=5", "step BETWEEN 3 AND 5"),
        ("solve_min=100", "num_correct = num_attempts"),
        ("solve_max=0", "num_correct = 0"),
        ("cyclomatic_min=3&depth_max=9&lines_min=5", "cyclomatic >= 3 AND ast_depth <= 9 AND num_lines >= 5"),
        ("q=onerror", "(code || message || inputs || outputs) LIKE '%onerror%'"),
        ("q=ONERROR+return", "(code || message || inputs || outputs) LIKE '%onerror%'"),
        ('q="return+%5By"', "code LIKE '%return [y%'"),
        ("q=%25+%7B%25", "instr(code || message || inputs || outputs, '{%') > 0"),
        ("q=_", "instr(code || message || inputs || outputs, '_') > 0"),
        ("q=nowhere-at-all", "0"),
    ],
)
def test_filters_and_search_find_what_sql_finds(client: TestClient, runs_dir: Path, asked: str, where: str) -> None:
    wanted = [row["seq"] for row in query(runs_dir, f"SELECT seq FROM task WHERE {where} ORDER BY seq DESC")]
    found, address = [], f"/run/{RUN}/tasks?{asked}"
    while address:
        page = client.get(address).text
        found += shown_tasks(page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert found == wanted


def test_the_oldest_first_order_pages_through_all_tasks_once(client: TestClient, runs_dir: Path) -> None:
    wanted = [row["seq"] for row in query(runs_dir, "SELECT seq FROM task ORDER BY seq")]
    first = client.get(f"/run/{RUN}/tasks?order=oldest").text
    second = client.get(f"/run/{RUN}/tasks?order=oldest&after={shown_tasks(first)[-1]}").text
    assert len(shown_tasks(first)) == 25
    assert (shown_tasks(first) + shown_tasks(second))[:40] == wanted[:40]
    assert f"{len(wanted)} tasks" in first


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("step_min=x", "Step: give a plain number"),
        ("solve_max=1e9", "Solve rate: give a plain number"),
        ("kind=code_z", "choose one of code_o, code_i, code_f"),
        ("order=random", "choose newest or oldest"),
        ("q=" + "a" * 201, "at most 200"),
        ("after=" + "9" * 30, "The page: give a plain number"),
    ],
)
def test_a_value_that_cannot_be_meant_is_named(client: TestClient, asked: str, said: str) -> None:
    answer = client.get(f"/run/{RUN}/tasks?{asked}")
    assert answer.status_code == 400 and said in answer.text


def test_sql_in_a_field_is_only_text(client: TestClient, runs_dir: Path) -> None:
    before = query(runs_dir, "SELECT count(*) AS num FROM task")
    for field in ("q", "teacher", "student"):
        answer = client.get(f"/run/{RUN}/tasks", params={field: "'; DROP TABLE task; --"})
        assert answer.status_code == 200 and shown_tasks(answer.text) == []
    assert query(runs_dir, "SELECT count(*) AS num FROM task") == before


def test_a_task_shows_every_attempt_with_its_verdict(client: TestClient, runs_dir: Path) -> None:
    page = client.get(f"/run/{RUN}/task/1").text
    attempts = query(runs_dir, "SELECT correct, lost FROM attempt WHERE task = 1")
    assert page.count('<article class="attempt"') == len(attempts) == 3
    assert page.count("✓ right") == sum(row["correct"] for row in attempts)
    assert "As the teacher wrote it" in page and 'rel="next"' in page and 'rel="prev"' not in page


def test_no_text_of_a_model_is_markup_or_moves_the_reader(client: TestClient) -> None:
    addresses = ["/", "/run/hostile", "/run/hostile/tasks", "/run/hostile/lineage"]
    addresses += [f"/run/hostile/task/{number + 1}" for number in range(len(TEXTS))]
    for address in addresses:
        page = client.get(address).text
        assert "<script>document" not in page and "<img" not in page and "<b>" not in page
        assert not re.search(r"<[^>]*\sonmouseover=", page)
        hidden = {c for c in page if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n", "\t"}
        assert hidden == set(), address
        assert len(page) < 1_500_000
    assert "{{ 7 * 7 }} {% for x in range(9) %}x{% endfor %}" in client.get("/run/hostile/task/3").text


def test_a_text_of_a_megabyte_is_cut_on_the_page(client: TestClient) -> None:
    assert "more characters" in client.get(f"/run/hostile/task/{len(TEXTS)}").text


@pytest.mark.parametrize(
    "address",
    [
        "/run/nobody",
        "/run/..%2F..%2Fetc",
        "/run/notes",
        f"/run/{RUN}/member",
        f"/run/{RUN}/member?id=T1'%20OR%201=1",
        f"/run/{RUN}/task/999999",
        f"/run/{RUN}/task/{10**30}",
        "/assets/..%2Fapp.py",
        "/assets/app.py",
        "/compare?run=nobody",
        "/journal.sqlite",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404 and 'href="/"' in answer.text


def test_a_damaged_journal_is_a_page_that_says_so(client: TestClient) -> None:
    answer = client.get("/run/damaged")
    assert answer.status_code == 409 and "is no journal" in answer.text


def test_more_runs_than_anybody_can_tell_apart_are_not_compared(client: TestClient, tmp_path: Path) -> None:
    for number in range(7):
        build_run(tmp_path / f"r{number}", 1, 1, 1, tasks_per_match=1, num_attempts=1)
    many = TestClient(create_app(tmp_path), base_url="http://localhost")
    answer = many.get("/compare?" + "&".join(f"run=r{number}" for number in range(7)))
    assert answer.status_code == 400 and "at most 6 runs" in answer.text


def test_the_assets_are_the_packages_own_and_may_be_kept(client: TestClient) -> None:
    page = client.get(f"/run/{RUN}").text
    links = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)
    assert len(links) == 6
    for link in links:
        answer = client.get(link)
        assert answer.status_code == 200 and len(answer.content) > 300
        assert "immutable" in answer.headers["cache-control"]
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_looking_leaves_every_byte_of_a_run_as_it_was(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 3, 2, 2, tasks_per_match=2, num_attempts=2)

    def state() -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    before = state()
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    for address in ("/", "/run/run", "/run/run/lineage", "/run/run/tasks?q=x", "/run/run/task/1"):
        assert client.get(address).status_code == 200
    assert state() == before


def test_a_new_step_and_a_resume_that_replays_one_are_seen(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")

    def last_rate() -> list:
        figure = next(f for f in figures(client.get("/run/run").text) if f["id"] == "solve-rate")
        return figure["chart"]["series"][0]["points"][-1]

    assert last_rate()[0] == 4
    with Journal.open(folder / JOURNAL) as journal:
        with journal.step(5) as tx:
            tx.add_metrics({"solve/rate": 0.25})
        assert last_rate() == [5, 0.25]
        journal.truncate_after(4)
        journal.add_session(1.0, 4)
        with journal.step(5) as tx:
            tx.add_metrics({"solve/rate": 0.75})
        assert last_rate() == [5, 0.75]


def test_a_product_that_was_owed_is_seen_on_a_page_that_was_looked_at_before(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    before = client.get("/run/run").text
    with Journal.open(folder / JOURNAL) as journal:
        score = EvaluationRecord(PRODUCT, "mini", "all", "all", "greedy", 10, 0.8125, 0.5, 0.9)
        journal.set_evaluations(4, [score], {f"{CHOSEN}S1": 1.0})
    assert client.get("/run/run").text != before


def test_a_run_is_finished_at_its_last_step_or_limit_whatever_reports_lie_there(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    (folder / "report.html").write_text("")

    def status(**run: float) -> str:
        with Journal.open(folder / JOURNAL, read_only=True) as journal:
            return status_of(folder, journal, {"run": run}, 4)

    assert status(num_steps=5) == "stopped" and status(num_steps=4) == "finished"
    assert status(num_steps=5, max_tokens=1) == "finished" and status(num_steps=5, max_tokens=10**9) == "stopped"
    assert status(num_steps=-1) == "stopped"
    assert status(num_steps=4, a_field_of_another_version=1) == "finished"


def test_the_latest_check_up_warns_on_the_page_and_earlier_ones_stand_in_the_timeline(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2)
    with Journal.open(folder / JOURNAL) as journal:
        for step, said in ((5, "Cycling: an old warning."), (6, "Forgetting: <b>what</b> was learned is lost.")):
            with journal.step(step) as tx:
                tx.add_health({"won_frac": 0.1 * step, "forgetting_frac": 0.3}, [said])
    page = TestClient(create_app(tmp_path), base_url="http://localhost").get("/run/run").text
    now, timeline = page.split('<ol class="timeline">')
    assert "Forgetting: &lt;b&gt;what" in now and "an old warning" not in now
    assert timeline.index("<b>Step 6</b>") < timeline.index("<b>Step 5</b>") < timeline.index("an old warning")
    health = {f["id"]: f["chart"]["series"] for f in figures(page) if f["id"].startswith("health-")}
    assert {name: [line["name"] for line in series] for name, series in health.items()} == {
        "health-disengagement": ["solved by all"],
        "health-forgetting": ["lost score"],
    }
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


HOLD = """
import sys
from pathlib import Path
from redqueen.run.store import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_is_live_exactly_while_another_process_holds_its_lock(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 2, 2, 2, tasks_per_match=2, num_attempts=2)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    assert not is_running(folder) and "data-refresh" not in client.get("/run/run").text
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": "1"}}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], **pipes) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert is_running(folder)
        assert 'data-refresh="5"' in client.get("/run/run").text and "running" in client.get("/").text
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(60)
    assert not is_running(folder) and "data-refresh" not in client.get("/run/run").text


def test_the_members_of_a_hall_of_fame_do_not_count_as_places(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 2, 1, 1, tasks_per_match=2, num_attempts=2)
    with Journal.open(folder / JOURNAL) as journal:
        journal.connection.execute("UPDATE match SET student = 'S1@1' WHERE step = 2")
    page = TestClient(create_app(tmp_path), base_url="http://localhost").get("/run/run")
    figure = next(f for f in figures(page.text) if f["id"] == "rate-student")
    assert [line["name"] for line in figure["chart"]["series"]] == [founders(1, 1)[1].id]


def test_a_match_with_a_copy_in_the_hall_of_fame_links_to_the_member_it_is_of(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 2, 1, 1, tasks_per_match=2, num_attempts=2)
    with Journal.open(folder / JOURNAL) as journal:
        journal.connection.execute("UPDATE match SET student = student || '@1' WHERE step = 2")
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    teacher = founders(1, 1)[0].id
    links = set(re.findall(r'href="(/run/run/member\?id=[^"]+)"', client.get(f"/run/run/member?id={teacher}").text))
    assert links and {client.get(link).status_code for link in links} == {200}


def test_a_run_with_a_tilde_in_its_name_is_listed_and_is_no_other(tmp_path: Path) -> None:
    for name in ("a~b", "a/b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / JOURNAL).touch()
    runs = find_runs(tmp_path)
    assert sorted(run.label for run in runs.values()) == ["a/b", "a~b"]
