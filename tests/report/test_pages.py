"""The report page: one file that fetches nothing, runs nothing but its own scripts, and shows hostile text as text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from synthetic_run import HOSTILE, build_run

from redqueen.display import visible
from redqueen.errors import UserError
from redqueen.evolve.health import Cycling, Disengagement, Diversity, Health, Stability, warnings
from redqueen.journal import AttemptRecord, Journal, RunRecord, TaskRecord
from redqueen.records import Attempt, Grade, Outcome, Task
from redqueen.report.pages import ASSETS, MAX_REPORT_CHARS, write_report
from redqueen.report.site import create_app
from redqueen.run.store import JOURNAL


class Page(HTMLParser):
    """Reads a page as a browser would: elements with their attributes, and the text of scripts and of <pre>."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.pres: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "pre":
            self.pres.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif "pre" in self.open:
            self.pres[-1] += data
        elif "style" not in self.open:
            self.words.append(data)


def read_page(path: Path) -> Page:
    """Read a page, its chart library left out: a megabyte of other people's script that needs no parsing here."""
    return Page(path.read_text(encoding="utf-8").replace((ASSETS / "echarts.min.js").read_text(encoding="utf-8"), ""))


@pytest.fixture(scope="module")
def page_text(population_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report([population_dir], tmp_path_factory.mktemp("out") / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(page_text: str) -> Page:
    return Page(page_text)


@pytest.fixture(scope="module")
def plain_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the run that a hostile run is compared with."""
    folder = tmp_path_factory.mktemp("plain")
    return read_page(write_report([hostile_run(folder / "run", "plain")], folder / "plain.html"))


def hostile_run(run_dir: Path, text: str) -> Path:
    """Write one step in which every field that a model fills holds ``text``."""
    run_dir.mkdir(parents=True)
    task = Task("t", "T1", "S1", "code_f", text, (text, "2"), (text, "2"), text, 1)
    run = RunRecord(text[:50], text[:50], 1, {"note": text}, {"v": text})
    with Journal.create(run_dir / JOURNAL, run) as journal, journal.step(1) as tx:
        tx.add_tasks([TaskRecord(task, None, "b")])
        tx.add_attempts([AttemptRecord(Outcome(Attempt("t", "S1", text, text, text), Grade(True, "ok")))])
    return run_dir


def test_nothing_is_fetched_from_anywhere(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "base", "img", "form"}
        assert not (attributes.get("src") or ""), tag
        assert (attributes.get("href") or "#").startswith(("#", "data:image/svg+xml,")), tag


def test_the_policy_allows_exactly_the_scripts_and_the_style_of_the_page(page_text: str, page: Page) -> None:
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    runnable = [text for attributes, text in page.scripts if attributes.get("type") != "application/json"]
    assert len(runnable) == 2

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    style = re.search(r"<style>(.*?)</style>", page_text, re.S)
    assert style is not None
    assert f"script-src {' '.join(digest(text) for text in runnable)};" in policy
    assert f"style-src {digest(style[1])};" in policy


def test_no_element_carries_a_style_or_a_handler_of_its_own(page: Page) -> None:
    names = {name for _, attributes in page.elements for name in attributes}
    assert "style" not in names and not [name for name in names if name.startswith("on")]


def test_every_figure_has_its_data_its_name_and_a_place_for_its_numbers(page: Page) -> None:
    [charts] = [json.loads(text) for attributes, text in page.scripts if attributes.get("type") == "application/json"]
    drawn = [attributes for _, attributes in page.elements if "data-figure" in attributes]
    tables = [attributes["data-table"] for _, attributes in page.elements if "data-table" in attributes]
    assert len(charts) == 21 and [one["data-figure"] for one in drawn] == tables and sorted(tables) == sorted(charts)
    assert all(one.get("role") == "img" and len(one.get("aria-label") or "") > 20 for one in drawn)


def figures_by_openness(page: str) -> tuple[int, int]:
    """Return how many figures a page opens with, and how many it has."""
    folds, num_open = [], 0
    for tag in re.findall(r"<details[^>]*>|</details>|<figure ", page):
        if tag == "</details>":
            folds.pop()
        elif tag == "<figure ":
            num_open += all(folds)
        else:
            folds.append(" open" in tag)
    return num_open, page.count("<figure ")


def test_a_report_of_one_run_or_several_opens_with_at_most_five_figures(
    population_dir: Path, single_dir: Path, page_text: str, tmp_path: Path
) -> None:
    assert figures_by_openness(page_text) == (5, 21)
    both = write_report([population_dir, single_dir, population_dir], tmp_path / "all.html").read_text(encoding="utf-8")
    assert figures_by_openness(both) == (4, 13 + 21 + 17 + 21)


def test_a_page_of_the_dashboard_opens_with_at_most_five_figures(client: TestClient) -> None:
    assert figures_by_openness(client.get("/run/arms~population-0").text) == (5, 20)
    assert figures_by_openness(client.get("/compare?run=arms~population-0&run=single-0").text) == (4, 13)


def test_every_link_leads_somewhere_and_no_id_stands_twice(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    links = [(attributes.get("href") or "")[1:] for tag, attributes in page.elements if tag == "a"]
    assert len(ids) == len(set(ids))
    assert links and set(links) <= set(ids)


def test_the_page_tells_that_ratings_are_zero_sum_and_what_happened(page: Page) -> None:
    words = " ".join(page.words)
    assert "zero-sum" in words
    assert "both cannot rise" in words
    assert "Better than the base model" in words
    assert "one run with one seed" in words


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(tmp_path: Path, plain_page: Page, text: str) -> None:
    path = write_report([hostile_run(tmp_path / "run", text)], tmp_path / "report.html")
    out, page = path.read_text(encoding="utf-8"), read_page(path)
    shape, plain_shape = ([(tag, set(attributes)) for tag, attributes in p.elements] for p in (page, plain_page))
    assert shape == plain_shape
    for character in "\x00\x1b\x07\x9b\u202e\u2066\u200b\ufeff\u2028":
        assert character not in out
    assert visible(text, max_chars=MAX_REPORT_CHARS) in page.pres


def test_a_line_of_a_megabyte_is_cut_on_the_page(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", "x" * 1_000_000)
    page = read_page(write_report([run], tmp_path / "report.html"))
    assert page.pres[0] == "x" * MAX_REPORT_CHARS + " … (996,000 more characters)"
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_several_runs_stand_side_by_side_with_names_of_their_own(
    population_dir: Path, single_dir: Path, tmp_path: Path
) -> None:
    twin = build_run(tmp_path / "elsewhere" / "population-seed0", 3, rng_seed=4)
    page = read_page(write_report([population_dir, twin, single_dir], tmp_path / "all.html"))
    headings = " ".join(page.words)
    assert "elsewhere/population-seed0" in headings and "single-seed0" in headings
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"all-compare", "run-0", "run-1", "run-2"} <= ids


def test_the_single_arm_has_a_report_without_ratings(single_dir: Path, tmp_path: Path) -> None:
    page = read_page(write_report([single_dir], tmp_path / "single.html"))
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert "run-0-figure-solve-rate" in ids and "run-0-figure-ratings-teacher" not in ids
    assert "no rating" in " ".join(page.words)


def test_the_same_journal_gives_the_same_page(population_dir: Path, page_text: str, tmp_path: Path) -> None:
    assert write_report([population_dir], tmp_path / "again.html").read_text(encoding="utf-8") == page_text


def test_a_folder_without_a_run_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no journal at .*nowhere"):
        write_report([tmp_path / "nowhere"], tmp_path / "report.html")
    with pytest.raises(UserError, match="Give at least one run directory"):
        write_report([], tmp_path / "report.html")


def test_a_run_without_a_step_is_told_so(tmp_path: Path) -> None:
    Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0)).close()
    with pytest.raises(UserError, match="no finished step yet"):
        write_report([tmp_path], tmp_path / "report.html")


def test_a_place_that_cannot_be_written_is_the_users_error(population_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the report cannot be written to .*report.html \(.*: name another file"):
        write_report([population_dir], tmp_path / "missing" / "report.html")


def test_the_chart_library_is_the_one_that_the_note_beside_it_names() -> None:
    library = (ASSETS / "echarts.min.js").read_bytes()
    assert hashlib.sha256(library).hexdigest() in (ASSETS / "README.md").read_text(encoding="utf-8")
    assert b'version="6.1.0"' in library and b"</script" not in library.lower()
    assert "Apache License" in (ASSETS / "echarts.LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["journal.sqlite", "journal.sqlite-wal", "config.json", "lock", "checkpoints/report.html"]
)
def test_a_report_does_not_take_the_place_of_a_file_that_the_run_needs(tmp_path: Path, name: str) -> None:
    folder = build_run(tmp_path / "run", 2, 1, 1, tasks_per_match=2, num_attempts=2)
    before = (folder / JOURNAL).read_bytes()
    with pytest.raises(UserError, match="is a file of the run itself: name another file"):
        write_report([folder], folder / name)
    assert (folder / JOURNAL).read_bytes() == before and not (folder / "config.json").exists()


def test_a_count_of_one_is_singular_on_every_page(tmp_path: Path) -> None:
    build_run(tmp_path / "run", 1, 1, 1, tasks_per_match=1, num_attempts=1, evolve_every=1, hostile=False, rng_seed=1)
    with Journal.open(tmp_path / "run" / JOURNAL) as journal:
        journal.add_session(1.0, 1)
        step = journal.tuples("SELECT max(step) FROM metric")[0][0] + 1
        with journal.step(step) as tx:
            tx.add_metrics({"distill/answers": 1.0})
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    pages = [client.get(f"/run/run{part}").text for part in ("", "/lineage", "/members", "/tasks?step=1", "/task/1")]
    pages.append(write_report([tmp_path / "run"], tmp_path / "report.html").read_text(encoding="utf-8"))
    words = " ".join(" ".join(Page(page).words) for page in pages)
    assert re.findall(r"(?<![\d.,−-])\b1 [a-z-]+s\b", words) == []
    for noun in ("attempt right", "attempt in all", "task found", "time"):
        assert f"1 {noun}" in words, noun


def test_an_example_says_how_many_of_its_attempts_are_shown(tmp_path: Path) -> None:
    for num, shown in ((2, ""), (5, ", 3 shown")):
        build_run(tmp_path / str(num), 1, 1, 1, tasks_per_match=1, num_attempts=num, hostile=False)
        page = write_report([tmp_path / str(num)], tmp_path / f"{num}.html").read_text(encoding="utf-8")
        assert re.search(rf"of {num} attempts right{shown}</summary>", page)


def test_pages_use_standard_terms_and_explain_them(tmp_path: Path) -> None:
    build_run(tmp_path / "run", 12, 2, 2, tasks_per_match=1, num_attempts=1, evolve_every=4, hostile=False)
    sick = Health(Disengagement(0.9, 0.1), Cycling(0.9, 0.9), 0.5, Diversity(0, 0), Diversity(0, 0), Stability(0, 0, 0))
    with Journal.open(tmp_path / "run" / JOURNAL) as journal, journal.step(13) as tx:
        tx.add_health(sick.numbers(), warnings(sick))
        tx.add_metrics({"learn/teacher/clip_frac": 0.1, "propose/entropy": 0.01})
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    pages = [client.get(f"/run/run{part}").text for part in ("", "/lineage", "/members", "/tasks", "/task/1")]
    words = " ".join(" ".join(Page(page).words) for page in pages)
    jargon = r"\bdW\b|\bmu\b|\bsigma\b|[Dd]isengage|[Mm]ediocre|\bladder\b|\bclip of\b"
    assert len(warnings(sick)) == 7 and re.findall(jargon, words) == []
    for term in ("nats per token", "PPO clipping, teachers"):
        assert re.search(rf'title="[^"]+\.">{term}<', pages[0]), term


def test_names_of_measures_have_tooltips(population_dir: Path, tmp_path: Path) -> None:
    page = write_report([population_dir], tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("External fitness", "Solve rate", "Coverage"):
        assert re.search(rf'<dt title="[^"]+\.">{name}</dt>', page), name
    assert re.search(r'<th scope="col" title="Skill from wins[^"]*">rating</th>', page)
