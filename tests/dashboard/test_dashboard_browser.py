"""The dashboard in a real browser: every page draws without a complaint, on a desk and on a phone, by key and live."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROKEN, CUT, Browser, find_browser
from synthetic_run import build_run, founders

from redqueen.journal import Journal
from redqueen.run.now import BETWEEN_S, NowFile
from redqueen.run.store import JOURNAL, RunLock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (apt-get install chromium)"),
]

RUN = "/run/arms~population-0"
PAGES = ["/", RUN, f"{RUN}/lineage", f"{RUN}/members", f"{RUN}/member?id=T2", f"{RUN}/member?id=S2", f"{RUN}/tasks",
         f"{RUN}/task/1", "/run/hostile/task/2", "/run/hostile/tasks", "/run/early", "/run/thirty/lineage",
         "/compare?run=arms~population-0&run=single-0", "/nothing"]  # fmt: skip
SERVE = "import sys; from pathlib import Path; from redqueen.dashboard.serve import serve; serve(Path(sys.argv[1]), 0)"


@pytest.fixture(scope="module")
def runs_dir(runs_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the runs that the other tests share: here more are written beside them."""
    return Path(shutil.copytree(runs_dir, tmp_path_factory.mktemp("browser") / "runs"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path is not None
    with Browser(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def live_dir(runs_dir: Path) -> Path:
    return build_run(runs_dir / "live", 3, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=99)


@pytest.fixture(scope="module")
def more_runs(runs_dir: Path) -> None:
    """Write ``early``, a run in its step 0, and ``thirty``, with thirty teachers and students."""
    build_run(runs_dir / "early", 1, 1, 1, tasks_per_match=1, num_attempts=1)
    with Journal.open(runs_dir / "early" / JOURNAL) as journal:
        journal.truncate_after(-1)
    build_run(runs_dir / "thirty", 12, 30, 30, tasks_per_match=1, num_attempts=2, evolve_every=4)


@pytest.fixture(scope="module")
def site(runs_dir: Path, live_dir: Path, more_runs: None) -> Iterator[str]:
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_every_page_draws_all_its_charts_without_a_complaint_or_sideways_scrolling(
    browser: Browser, site: str, tmp_path: Path, width: int, height: int, dark: bool
) -> None:
    browser.look(width, height, dark)
    faults: dict[str, list[str]] = {}
    for page in PAGES:
        visit(browser, site + page)
        charts = browser.ask("[...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg path').length)")
        assert all(count > 5 for count in charts), page
        assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth"), page
        faults[page] = [*browser.ask(CUT), *browser.ask(BROKEN)]
        background = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(20, 18, 23)") is dark
        assert browser.screenshot(tmp_path / "page.png").stat().st_size > 10_000
        missing = [text for text in browser.complaints if not (page == "/nothing" and "404" in text)]
        assert missing == [], page
    assert {page: found for page, found in faults.items() if found} == {}


def test_a_header_with_a_long_name_and_the_live_controls_keeps_its_words_whole_at_500_pixels(
    browser: Browser, site: str, live_dir: Path
) -> None:
    browser.look(500, 900, dark=False)
    with RunLock(live_dir):
        visit(browser, f"{site}/run/live")
        assert browser.ask("document.querySelector('.top h1').getBoundingClientRect().width") > 230
        assert browser.ask("document.getElementById('live-status').getBoundingClientRect().height") < 60
        assert browser.ask("document.documentElement.scrollWidth") == 500


def test_on_a_phone_the_first_task_and_the_whole_lineage_are_seen_without_scrolling_far(
    browser: Browser, site: str
) -> None:
    browser.look(390, 844, dark=False)
    visit(browser, f"{site}{RUN}/tasks")
    assert browser.ask("document.querySelector('.tasks li').getBoundingClientRect().top") < 844
    browser.ask("document.querySelector('.more summary').click()")
    assert browser.ask("document.getElementById('kind').checkVisibility()")
    visit(browser, f"{site}/run/thirty/lineage")
    chart = "document.querySelector('#lineage-lineage .chart')"
    assert browser.ask(f"{chart}.getBoundingClientRect().height") < 500
    assert browser.ask(f"{chart}.getBoundingClientRect().right") <= 390
    assert browser.ask("document.documentElement.scrollHeight") < 5000


def test_a_run_in_step_0_shows_its_page_and_becomes_the_race_by_itself(
    browser: Browser, site: str, runs_dir: Path
) -> None:
    browser.look(1280, 900, dark=False)
    browser.complaints.clear()
    folder = runs_dir / "early"
    with RunLock(folder), NowFile(folder) as now:
        now.phase(0, "evaluate")
        visit(browser, f"{site}/run/early")
        assert "measuring on the frozen suite" in browser.ask("document.getElementById('doing').textContent")
        time.sleep(BETWEEN_S)
        now.count(320, 1200)
        browser.wait_for("document.getElementById('doing').textContent.includes('320 of 1,200')", timeout_s=120)
        assert browser.ask("document.querySelector('progress').max") == 1200
        with Journal.open(folder / JOURNAL) as journal, journal.step(0) as tx:
            tx.add_individuals(founders(1, 1))
        browser.wait_for("document.getElementById('tiles') !== null", timeout_s=120)
        assert "The race" in browser.ask("document.querySelector('.jump [aria-current]').textContent")
    assert browser.complaints == []
    with Journal.open(folder / JOURNAL) as journal:
        journal.truncate_after(-1)


def test_the_export_command_of_a_member_is_copied_by_a_button(browser: Browser, site: str) -> None:
    visit(browser, f"{site}{RUN}/members")
    browser.ask("document.querySelector('#members tbody a').click()")
    browser.wait_for("document.getElementById('export-command') !== null && document.readyState === 'complete'")
    command = browser.ask("document.getElementById('export-command').textContent")
    assert command.startswith("redqueen export ") and "--member=T" in command and "--out=population-0-T" in command
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.ask("document.querySelector('[data-copy]').click()")
    browser.wait_for("document.querySelector('[data-copy]').textContent !== 'Copy'")
    assert browser.ask("document.querySelector('[data-copy]').textContent").startswith(("Copied", "Selected"))


def test_texts_and_controls_stand_out_from_what_is_behind_them(browser: Browser, site: str) -> None:
    for dark in (False, True):
        browser.look(1280, 900, dark)
        for page in (
            "/",
            RUN,
            f"{RUN}/lineage",
            f"{RUN}/member?id=S2",
            f"{RUN}/tasks",
            f"{RUN}/task/1",
            "/run/early",
        ):
            visit(browser, site + page)
            assert browser.ask(CONTRAST) == [], f"{page} {'dark' if dark else 'light'}"


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


def test_hostile_texts_do_nothing(browser: Browser, site: str) -> None:
    for number in range(1, 13):
        visit(browser, f"{site}/run/hostile/task/{number}")
        assert browser.ask("document.title").startswith("Task 1.T1.")
        assert browser.ask("document.querySelectorAll('img, iframe, [onerror], [onmouseover], pre script').length") == 0
        assert browser.complaints == []


def test_the_policy_stops_a_script_that_is_not_ours(browser: Browser, site: str) -> None:
    visit(browser, site + RUN)
    browser.ask("void (window.foreign = document.createElement('script'))")
    browser.ask("void (foreign.textContent = 'document.title = 1')")
    browser.ask("void document.body.append(foreign)")
    assert "Red Queen" in browser.ask("document.title")
    assert len(browser.complaints) == 1 and "Content Security Policy" in browser.complaints[0]


def test_the_first_tab_skips_and_the_chosen_colours_stay_on_the_next_page(browser: Browser, site: str) -> None:
    browser.look(1280, 900, dark=False)
    visit(browser, site + RUN)
    browser.press("Tab")
    assert browser.ask("document.activeElement.textContent") == "Skip to the content"
    browser.ask("document.getElementById('theme').focus()")
    browser.press("Enter")
    browser.wait_for("getComputedStyle(document.body).backgroundColor === 'rgb(20, 18, 23)'")
    visit(browser, f"{site}{RUN}/tasks")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 18, 23)"
    browser.ask("localStorage.clear()")


def test_the_filter_is_used_by_keys_alone(browser: Browser, site: str) -> None:
    visit(browser, f"{site}{RUN}/tasks")
    browser.ask("document.getElementById('q').focus()")
    browser.call("Input.insertText", text="nowhere-at-all")
    browser.press("Enter")
    browser.wait_for("location.search.includes('q=nowhere-at-all') && document.readyState === 'complete'")
    assert "No task fits" in browser.ask("document.getElementById('main').textContent")
    assert browser.ask("document.getElementById('q').value") == "nowhere-at-all"


def test_a_running_run_is_redrawn_where_it_stands_when_a_step_is_added(
    browser: Browser, site: str, live_dir: Path
) -> None:
    with RunLock(live_dir):
        visit(browser, f"{site}/run/live")
        assert browser.ask("document.getElementById('live').textContent") == "Pause"
        browser.ask("void (window.stays = true)")
        browser.ask(
            "document.querySelectorAll('#race-solve-rate .legend button, #solve-rate .legend button')[1].click()"
        )
        browser.ask("window.scrollTo(0, 300)")
        with Journal.open(live_dir / JOURNAL) as journal, journal.step(4) as tx:
            tx.add_metrics({"solve/rate": 0.5, "solve/rate/code_o": 0.5})
        browser.wait_for("document.getElementById('where').textContent.includes('step 4')", timeout_s=120)
        browser.wait_for("document.getElementById('figures') && document.documentElement.dataset.drawn !== undefined")
        assert browser.ask("window.stays === true && window.scrollY > 200")
        assert "Updated" in browser.ask("document.getElementById('live-status').textContent")
        hidden = browser.ask("document.querySelectorAll('.legend [aria-pressed=false]').length")
        assert hidden == 1
    browser.wait_for("document.getElementById('live-status').textContent.includes('has ended')", timeout_s=120)
    assert browser.complaints == []
