"""Report and dashboard in a real browser: every chart is drawn without a complaint, on a desk and a phone, and live."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROKEN, CUT, Browser, find_browser
from synthetic_run import build_run, founders

from redqueen.journal import Journal
from redqueen.report.pages import write_report
from redqueen.run.status import StatusFile
from redqueen.run.store import JOURNAL, RunLock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (apt-get install chromium)"),
]

RUN = "/run/arms~population-0"
PAGES = ["/", RUN, f"{RUN}/lineage", f"{RUN}/members", f"{RUN}/tasks",
         f"{RUN}/task/1", "/run/hostile/task/2", "/run/hostile/tasks", "/run/thirty/lineage",
         "/compare?run=arms~population-0&run=single-0", "/nothing"]  # fmt: skip
SERVE = "import sys; from pathlib import Path; from redqueen.report.serve import serve; serve(Path(sys.argv[1]), 0)"
NUM_CHARTS = 21


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path is not None
    with Browser(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(population_dir: Path, single_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    write_report([population_dir, single_dir], folder / "both.html")
    return write_report([population_dir], folder / "report.html")


@pytest.fixture(scope="module")
def site(runs_dir: Path) -> Iterator[str]:
    build_run(runs_dir / "live", 3, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)
    build_run(runs_dir / "early", 1, 1, 1, tasks_per_match=1, num_attempts=1)
    with Journal.open(runs_dir / "early" / JOURNAL) as journal:
        journal.truncate_after(-1)
    build_run(runs_dir / "thirty", 8, 30, 30, tasks_per_match=1, num_attempts=1, evolve_every=2, hostile=False)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(runs_dir)], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert address is not None
        yield address[0]
        server.terminate()


def visit(browser: Browser, address: str) -> None:
    browser.complaints.clear()
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=address)
    drawn = "document.documentElement.dataset.drawn !== undefined"
    browser.wait_for(f"location.href !== 'about:blank' && document.readyState === 'complete' && {drawn}")


def open_all(browser: Browser) -> None:
    """Open every folded part and wait until its charts have their size and its tables their rows."""
    browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.wait_for("[...document.querySelectorAll('.numbers .table')].every(table => table.firstChild)")
    browser.wait_for("[...document.querySelectorAll('.chart')].every(c => c.clientWidth && c.checkVisibility())")
    fits = "[...document.querySelectorAll('.chart')].every(c => Math.abs(c.firstChild.clientWidth - c.clientWidth) < 2)"
    browser.wait_for(fits)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_every_page_draws_its_charts_without_a_complaint_or_sideways_scrolling_and_can_be_read(
    browser: Browser, site: str, report: Path, tmp_path: Path, width: int, height: int, dark: bool
) -> None:
    browser.look(width, height, dark)
    faults: dict[str, list[str]] = {}
    reports = [path.resolve().as_uri() for path in (report, report.parent / "both.html")]
    for page in (*(site + page for page in PAGES), *reports):
        visit(browser, page)
        charts = browser.ask("[...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg path').length)")
        assert all(count > 5 for count in charts), page
        assert page not in reports[:1] or len(charts) == NUM_CHARTS
        open_all(browser)
        assert browser.ask("document.documentElement.scrollWidth") <= width, page
        faults[page] = [*browser.ask(CUT), *browser.ask(BROKEN), *browser.ask(CONTRAST)]
        assert (browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 18, 23)") is dark
        assert browser.screenshot(tmp_path / "page.png").stat().st_size > 10_000
        assert [text for text in browser.complaints if not (page.endswith("/nothing") and "404" in text)] == [], page
    assert {page: found for page, found in faults.items() if found} == {}


CONTRAST = """
(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, part, at) => sum + part * linear(rgb[at] / 255), 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  const texts = "p, a, button, h1, h2, h3, h4, td, th, small, label, legend, dt, dd, li, summary, .tag";
  for (const element of document.querySelectorAll(texts)) {
    if (!element.textContent.trim() || !element.checkVisibility()) continue;
    if (element.getAttribute("aria-pressed") === "false" && element.closest(".legend")) continue;
    const [one, two] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (two + 0.05) < 4.5) bad.add(element.tagName + "." + element.className);
  }
  return [...bad];
})()
"""
"""The elements whose text contrasts with its background by less than 4.5 to 1 (WCAG AA)."""


@pytest.mark.parametrize("num_steps", [12, 3])
def test_each_of_eight_runs_with_the_same_values_is_seen_in_their_comparison(
    browser: Browser, tmp_path: Path, num_steps: int
) -> None:
    folders = [tmp_path / f"run{at}" for at in range(8)]
    runs = [build_run(folder, num_steps, 1, 1, tasks_per_match=3, num_attempts=2) for folder in folders]
    browser.look(1280, 900, dark=False)
    browser.open(write_report(runs, tmp_path / "eight.html"))
    figure = "#all-figure-compare-solve-rate"
    buttons = f"[...document.querySelectorAll('{figure} .legend button')]"
    assert len(set(browser.ask(f"{buttons}.map(b => b.querySelector('svg').outerHTML)"))) == 8
    whole = browser.picture(f"{figure} .chart")
    for at in range(8):
        browser.ask(f"{buttons}[{at}].click()")
        assert browser.num_changed(whole, browser.picture(f"{figure} .chart")) >= 10, f"run {at} is hidden by others"
        browser.ask(f"{buttons}[{at}].click()")
    assert browser.num_changed(whole, browser.picture(f"{figure} .chart")) == 0


def test_hostile_texts_do_nothing_and_the_policy_stops_a_script_that_is_not_ours(
    browser: Browser, site: str, report: Path
) -> None:
    tasks = [f"{site}/run/hostile/task/{number}" for number in range(1, 13)]
    for page in (report.resolve().as_uri(), *tasks):
        visit(browser, page)
        title = browser.ask("document.title")
        browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert browser.ask("document.querySelectorAll('img, iframe, [onerror], [onmouseover], pre script').length") == 0
        assert title == browser.ask("document.title") and title.endswith("Red Queen") and browser.complaints == []
        browser.ask("void (window.foreign = document.createElement('script'))")
        browser.ask("void (foreign.textContent = 'document.title = 1')")
        browser.ask("void document.body.append(foreign)")
        assert browser.ask("document.title") == title
        assert len(browser.complaints) == 1 and "Content Security Policy" in browser.complaints[0]


def test_keys_skip_to_the_content_open_the_numbers_hide_a_line_and_use_the_filter(
    browser: Browser, site: str, report: Path
) -> None:
    browser.look(1280, 900, dark=False)
    browser.open(report)
    browser.press("Tab")
    assert browser.ask("document.activeElement.textContent") == "Skip to the content"
    figure = "document.querySelector('#run-0-figure-solve-rate"
    browser.ask(f"{figure} summary').focus()")
    browser.press("Enter")
    browser.wait_for(f"{figure} table') !== null")
    rows = browser.ask(f"{figure} tbody').rows.length")
    head = browser.ask(f"[...{figure} thead tr').cells].map(c => c.textContent)")
    assert rows == 36 and head == ["step", "all kinds", "all kinds, each step", "code_o", "code_i", "code_f"]
    count = f"{figure} .chart').querySelectorAll('svg path').length"
    before = browser.ask(count)
    browser.ask(f"{figure} .legend button:nth-child(2)').focus()")
    browser.press(" ")
    assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == "false"
    browser.wait_for(f"{count} < {before}")
    browser.press(" ")
    browser.wait_for(f"{count} === {before}")
    visit(browser, f"{site}{RUN}/tasks")
    browser.ask("document.getElementById('contains').focus()")
    browser.call("Input.insertText", text="nowhere-at-all")
    browser.press("Enter")
    browser.wait_for("location.search.includes('contains=nowhere-at-all') && document.readyState === 'complete'")
    assert "No task matches" in browser.ask("document.getElementById('main').textContent")


def test_a_run_in_step_0_shows_its_page_and_becomes_the_race_by_itself(
    browser: Browser, site: str, runs_dir: Path
) -> None:
    folder = runs_dir / "early"
    with RunLock(folder), StatusFile(folder) as now:
        now.phase(0, "evaluate")
        visit(browser, f"{site}/run/early")
        assert "step 0: evaluating" in browser.ask("document.getElementById('start').textContent")
        with Journal.open(folder / JOURNAL) as journal, journal.step(0) as tx:
            tx.add_individuals(founders(1, 1))
        browser.wait_for("document.getElementById('run-tiles') !== null", timeout_s=120)
    assert browser.complaints == []


def test_a_running_run_is_redrawn_where_it_stands_when_a_step_is_added(
    browser: Browser, site: str, runs_dir: Path
) -> None:
    folder = runs_dir / "live"
    with RunLock(folder):
        visit(browser, f"{site}/run/live")
        assert browser.ask("document.getElementById('live').textContent") == "Pause"
        browser.ask("void (window.stays = true)")
        browser.ask("document.querySelectorAll('#run-figure-solve-rate .legend button')[1].click()")
        browser.ask("window.scrollTo(0, 300)")
        with Journal.open(folder / JOURNAL) as journal, journal.step(4) as tx:
            tx.add_metrics({"solve/rate": 0.5, "solve/rate/code_o": 0.5})
        browser.wait_for("document.getElementById('where').textContent.includes('step 4')", timeout_s=120)
        assert browser.ask("window.stays === true && window.scrollY > 200")
        assert "Updated" in browser.ask("document.getElementById('live-status').textContent")
        assert browser.ask("document.querySelectorAll('.legend [aria-pressed=false]').length") == 1
    browser.wait_for("document.getElementById('live-status').textContent.includes('has ended')", timeout_s=120)
