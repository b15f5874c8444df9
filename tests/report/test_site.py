"""The dashboard's pages show what the journal holds, and nothing that a model wrote does anything."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import unicodedata
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile_run import TEXTS
from starlette.testclient import TestClient
from synthetic_run import build_run

from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.evaluate.external import Examiner
from redqueen.evaluate.fitness_suite import Score
from redqueen.journal import EvaluationRecord, Journal
from redqueen.journal.schema import CHOSEN, PRODUCT
from redqueen.locking import is_locked
from redqueen.report.pages import ASSETS, report_html
from redqueen.report.runs import find_runs, status_of
from redqueen.report.serve import serve
from redqueen.report.site import create_app
from redqueen.report.view import read_run
from redqueen.run.interruption import Stopped
from redqueen.run.lifecycle import start
from redqueen.run.status import STATUS
from redqueen.run.store import JOURNAL

RUN = "/run/arms~population-0"
PAGES = ["/", RUN, f"{RUN}/lineage", f"{RUN}/members", f"{RUN}/tasks",
         f"{RUN}/task/1", "/run/single-0", "/run/single-0/members",
         "/run/single-0/lineage", "/run/hostile", "/run/hostile/lineage", "/run/hostile/tasks", "/compare",
         "/compare?run=arms~population-0&run=single-0"]  # fmt: skip


def charts(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def query(runs_dir: Path, sql: str, values: tuple = ()) -> list[dict]:
    with Journal.open(runs_dir / "arms" / "population-0" / JOURNAL, read_only=True) as journal:
        return journal.query(sql, values)


def shown_tasks(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<h3><a href="/run/[^"]*/task/(\d+)"', page)]


def page_by_page(client: TestClient, address: str) -> list[str]:
    """Return a page and all that follow it."""
    pages = [client.get(address).text]
    while following := re.search(r'rel="next" href="([^"]+)"', pages[-1]):
        pages.append(client.get(following[1].replace("&amp;", "&")).text)
    return pages


def test_runs_are_found_in_folders_of_folders_by_the_path_below_the_root(runs_dir: Path, tmp_path: Path) -> None:
    assert list(find_runs(runs_dir)) == ["arms~population-0", "damaged", "hostile", "single-0"]
    assert list(find_runs(runs_dir / "single-0")) == ["single-0"] and find_runs(runs_dir / "notes") == {}
    for name in ("a~b", "a/b"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / JOURNAL).touch()
    assert sorted(run.label for run in find_runs(tmp_path).values()) == ["a/b", "a~b"]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_answers(client: TestClient, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.count("<h1>") == 1 and 'class="skip"' in answer.text
    ids = re.findall(r' id="([^"]+)"', answer.text)
    assert len(ids) == len(set(ids))


def test_the_list_shows_each_run_and_why_one_cannot_be_read(client: TestClient, tmp_path: Path) -> None:
    page = client.get("/").text
    assert page.count('<th scope="row"') == 4 and "2T+2S, seed 0" in page
    assert "is not a journal; give the run directory of a redqueen run" in page
    assert page.count('type="checkbox"') == 3  # what cannot be read cannot be compared
    assert client.get("/run/damaged").status_code == 409
    assert "There is no run here yet" in TestClient(create_app(tmp_path), base_url="http://localhost").get("/").text


def test_a_run_has_the_figures_of_its_report_and_the_lineage_a_page_of_its_own(client: TestClient) -> None:
    names = set(charts(client.get(RUN).text))
    assert names >= {"run-solve-rate", "run-ratings-teacher", "run-matchups", "run-coverage", "run-rejections"}
    assert "run-lineage" not in names and list(charts(client.get(f"{RUN}/lineage").text)) == ["run-lineage"]


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ("kind=code_i&teacher=T1", "kind = 'code_i' AND teacher = 'T1'"),
        ("student=S2&step=3", "student = 'S2' AND step = 3"),
        ("min_solved=1", "num_correct = num_attempts"),
        ("max_solved=.0&min_depth=3", "num_correct = 0 AND ast_depth >= 3"),
        ("contains=ONERROR", "(code || message || inputs || outputs) LIKE '%onerror%'"),
        ("contains=%7B%25", "instr(code || message || inputs || outputs, '{%') > 0"),
        ("contains=_", "instr(code || message || inputs || outputs, '_') > 0"),
        ("contains=nowhere-at-all", "0"),
        ("", "1"),
    ],
)
def test_filters_find_what_sql_finds_page_by_page(client: TestClient, runs_dir: Path, asked: str, where: str) -> None:
    wanted = [row["seq"] for row in query(runs_dir, f"SELECT seq FROM task WHERE {where} ORDER BY seq DESC")]
    pages = page_by_page(client, f"{RUN}/tasks?{asked}")
    assert [seq for page in pages for seq in shown_tasks(page)] == wanted
    assert all(len(shown_tasks(page)) <= 25 for page in pages)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("step=x", "step: give a whole number"),
        ("max_solved=1e9", "max_solved: give a share from 0 to 1"),
        ("kind=code_z", "choose one of code_o, code_i, code_f"),
        ("after=" + "9" * 30, "after: give a whole number"),
    ],
)
def test_a_value_that_cannot_be_meant_is_named(client: TestClient, asked: str, said: str) -> None:
    answer = client.get(f"{RUN}/tasks?{asked}")
    assert answer.status_code == 400 and said in answer.text


def test_sql_in_a_field_is_only_text(client: TestClient, runs_dir: Path) -> None:
    before = query(runs_dir, "SELECT count(*) AS num FROM task")
    for field in ("contains", "teacher", "student"):
        answer = client.get(f"{RUN}/tasks", params={field: "'; DROP TABLE task; --"})
        assert answer.status_code == 200 and shown_tasks(answer.text) == []
    assert query(runs_dir, "SELECT count(*) AS num FROM task") == before


def test_a_task_shows_every_attempt_with_its_verdict(client: TestClient, runs_dir: Path) -> None:
    page = client.get(f"{RUN}/task/1").text
    attempts = query(runs_dir, "SELECT correct, lost FROM attempt WHERE task = 1")
    assert page.count('<article class="attempt"') == len(attempts) == 3
    assert page.count("✓ right") == sum(row["correct"] for row in attempts)
    assert "The teacher's text" in page and 'rel="next"' in page and 'rel="prev"' not in page


def test_no_text_of_a_model_is_markup_or_moves_the_reader(client: TestClient) -> None:
    addresses = ["/", "/run/hostile", "/run/hostile/tasks", "/run/hostile/lineage"]
    addresses += [f"/run/hostile/task/{number + 1}" for number in range(len(TEXTS))]
    for address in addresses:
        page = client.get(address).text
        assert "<script>document" not in page and "<img" not in page and "<b>" not in page
        assert not re.search(r"<[^>]*\sonmouseover=", page)
        hidden = {c for c in page if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n", "\t"}
        assert hidden == set(), address
        assert len(page) < 300_000
    assert "{{ 7 * 7 }} {% for x in range(9) %}x{% endfor %}" in client.get("/run/hostile/task/3").text
    assert "more characters" in client.get(f"/run/hostile/task/{len(TEXTS)}").text


@pytest.mark.parametrize(
    "address",
    ["/run/nobody", "/run/..%2F..%2Fetc", "/run/notes",
     f"{RUN}/task/999999", f"{RUN}/task/{10**30}", f"{RUN}/task/{'9' * 5_000}", f"{RUN}/task/-1", f"{RUN}/task/x",
     "/assets/..%2Fsite.py", "/assets/site.py", "/compare?run=nobody",
     "/journal.sqlite"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404 and 'href="/"' in answer.text


def test_more_runs_than_can_be_told_apart_are_not_compared(tmp_path: Path) -> None:
    for number in range(9):
        build_run(tmp_path / f"r{number}", 1, 1, 1, tasks_per_match=1, num_attempts=1)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    answer = client.get("/compare?" + "&".join(f"run=r{number}" for number in range(9)))
    assert answer.status_code == 400 and "at most 8 runs" in answer.text


def test_the_assets_are_the_packages_own_and_may_be_kept(client: TestClient) -> None:
    page = client.get(RUN).text
    links = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)
    assert len(links) == 3 and not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for link in links:
        answer = client.get(link)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]


# What a run is at the moment -----------------------------------------------------------------------------------------


def test_looking_leaves_every_byte_of_a_run_as_it_was(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 3, 2, 2, tasks_per_match=2, num_attempts=2)

    def state() -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    before = state()
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    for address in ("/", "/run/run", "/run/run/lineage", "/run/run/tasks?contains=x", "/run/run/task/1"):
        assert client.get(address).status_code == 200
    assert state() == before


def test_a_new_step_a_resume_that_replays_one_and_a_product_that_was_owed_are_seen(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")

    def last_rate() -> list:
        return charts(client.get("/run/run").text)["run-solve-rate"]["series"][0]["points"][-1]

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
        score = EvaluationRecord(PRODUCT, "all", "all", "greedy", 10, 0.8125, 0.5, 0.9)
        journal.set_evaluations(5, [score], {f"{CHOSEN}S1": 1.0})
    assert "81.2" in client.get("/run/run").text


def test_a_run_is_finished_at_its_last_step_or_limit_whatever_reports_lie_there(tmp_path: Path) -> None:
    folder = build_run(tmp_path / "run", 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    (folder / "report.html").write_text("")

    def status(**run: float) -> str:
        with Journal.open(folder / JOURNAL, read_only=True) as journal:
            return status_of(folder, journal, {"run": run}, 4)

    assert status(num_steps=5) == "stopped" and status(num_steps=4) == "finished"
    assert status(num_steps=5, max_tokens=1) == "finished" and status(num_steps=5, max_tokens=10**9) == "stopped"
    assert status(num_steps=-1) == "stopped" and status(num_steps=4, a_field_of_another_version=1) == "finished"


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
    assert {name for name in charts(page) if "health" in name} == {"run-health-disengagement", "run-health-forgetting"}


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
    assert not is_locked(folder) and "data-refresh" not in client.get("/run/run").text
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": "1"}}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], **pipes) as holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert 'data-refresh="5"' in client.get("/run/run").text and "running" in client.get("/").text
        holder.stdin.close()
        holder.wait(60)
    assert not is_locked(folder) and "data-refresh" not in client.get("/run/run").text


def test_a_real_run_in_step_0_says_what_it_does_and_once_it_is_stopped_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, seen = TestClient(create_app(tmp_path), base_url="http://localhost"), {}

    def look_and_stop(_: Examiner) -> list[Score]:
        for address in ("/", "/run/run", "/run/run/lineage", "/run/run/members", "/run/run/tasks"):
            seen[address] = client.get(address)
        raise Stopped

    monkeypatch.setattr(Examiner, "base", look_and_stop)
    assert not start(load_config(Path(__file__).parents[1] / "quick.toml"), tmp_path / "run")
    assert {address: answer.status_code for address, answer in seen.items()} == dict.fromkeys(seen, 200)
    page = seen["/run/run"].text
    assert "step 0: evaluating the base, for" in page and 'data-refresh="5"' in page
    assert "starting" in seen["/"].text and "There is no valid task yet" in seen["/run/run/tasks"].text
    assert not (tmp_path / "run" / STATUS).exists()
    after = client.get("/run/run").text
    assert "Ended before its first step" in after and f"redqueen resume {tmp_path / 'run'}" in after


# Large runs ----------------------------------------------------------------------------------------------------------

MAX_BYTES, MAX_ELEMENTS = 300_000, 2_500


class Counter(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.num = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.num += 1


def test_every_page_of_a_thousand_members_is_bounded_and_each_member_is_reached(tmp_path: Path) -> None:
    for name, num in (("many", 500), ("other", 1)):
        build_run(tmp_path / name, 3, num, num, tasks_per_match=1, num_attempts=1, evolve_every=2, hostile=False)
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    for path in ("", "/lineage", "/members", "/tasks", "/task/1"):
        answer = client.get(f"/run/many{path}")
        assert answer.status_code == 200 and len(answer.content) < MAX_BYTES and Counter(answer.text).num < MAX_ELEMENTS
    assert len(client.get("/compare?run=many&run=other").content) < MAX_BYTES
    pages = page_by_page(client, "/run/many/members")
    names = {name for page in pages for name in re.findall(r'<th scope="row"[^>]*>([^<]+)</th>', page)}
    assert len(names) == 1002 and {"T1", "T500", "S500"} <= names
    assert client.get("/run/many/members?page=999").status_code == 200
    report = report_html([read_run(tmp_path / "many")])
    assert Counter(report).num < MAX_ELEMENTS
    assert len(report) < MAX_BYTES + (ASSETS / "echarts.min.js").stat().st_size + 60_000
    assert "950 more are in the journal" in report and "The last row represents 998 slots" in report


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_serves_the_runs_on_loopback_until_ctrl_c(runs_dir: Path) -> None:
    # Where the tests themselves run in the background, the interrupt is ignored from birth.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{heard}; from redqueen.cli import main; main()"
    command = [sys.executable, "-c", start, "dashboard", str(runs_dir), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as server:
        assert server.stdout is not None and server.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=60) as answer:
            assert b"arms/population-0" in answer.read() and "server" not in answer.headers
        foreign = urllib.request.Request(address[0], headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=60)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130 and "Traceback" not in server.stderr.read()


def test_what_the_command_cannot_serve_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="/nowhere/at/all is not a folder"):
        serve(Path("/nowhere/at/all"), 0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port} cannot be used .*; choose another one, or 0"):
            serve(tmp_path, port)
    with pytest.raises(UserError, match="--port 99999 is not a port"):
        serve(tmp_path, 99999)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UserError, match="The dashboard needs uvicorn, which is not installed; run: pip install"):
        serve(tmp_path, 0)
