"""The report in a real browser: every chart is drawn, nothing is complained of, keys and fingers get along with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROKEN, CUT, Browser, find_browser

from redqueen.report.html import write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path is not None
    with Browser(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(population_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([population_dir], tmp_path_factory.mktemp("out") / "report.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_every_chart_is_drawn_without_a_complaint_and_the_page_never_scrolls_sideways(
    browser: Browser, report: Path, tmp_path: Path, width: int, height: int, dark: bool
) -> None:
    browser.complaints.clear()
    browser.look(width, height, dark)
    browser.open(report)
    assert browser.ask("document.documentElement.dataset.drawn") == "24"
    strokes = browser.ask("[...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg path').length)")
    assert len(strokes) == 24 and min(strokes) > 5
    assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
    assert [*browser.ask(CUT), *browser.ask(BROKEN)] == []
    assert browser.ask("document.querySelector('#run-0-card .chart').getBoundingClientRect().bottom") < 1000
    background = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 18, 23)") is dark
    assert browser.screenshot(tmp_path / "page.png").stat().st_size > 100_000
    assert browser.complaints == []


def test_hostile_texts_do_nothing_when_they_are_unfolded(browser: Browser, report: Path) -> None:
    browser.complaints.clear()
    browser.open(report)
    title = browser.ask("document.title")
    browser.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.wait_for("document.querySelectorAll('.numbers table').length === 24")
    assert title == "Red Queen: population-seed0" and browser.ask("document.title") == title
    assert browser.ask("document.querySelectorAll('img, iframe, [onmouseover], [onerror]').length") == 0
    assert browser.ask("document.querySelectorAll('pre script').length") == 0
    assert browser.complaints == []


def test_the_policy_stops_a_script_that_is_not_ours(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.complaints.clear()
    browser.ask("void (window.foreign = document.createElement('script'))")
    browser.ask("void (foreign.textContent = 'document.title = 1')")
    browser.ask("void document.body.append(foreign)")
    assert browser.ask("document.title") == "Red Queen: population-seed0"
    assert len(browser.complaints) == 1 and "Content Security Policy" in browser.complaints[0]


def test_the_numbers_behind_a_chart_open_with_a_key(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.ask("document.querySelector('#run-0-race-solve-rate summary').focus()")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#run-0-race-solve-rate table') !== null")
    rows = browser.ask("document.querySelectorAll('#run-0-race-solve-rate tbody tr').length")
    head = browser.ask("[...document.querySelectorAll('#run-0-race-solve-rate th')].map(c => c.textContent)")
    assert rows == 36
    assert head == ["step", "all kinds", "all kinds, each step", "code_o", "code_i", "code_f"]


def test_a_line_is_hidden_and_shown_again_from_the_legend_with_a_key(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.ask("document.querySelectorAll('#run-0-race-solve-rate .legend button')[1].focus()")
    count = "document.querySelectorAll('#run-0-race-solve-rate .chart svg path').length"
    before = browser.ask(count)
    browser.press(" ")
    assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == "false"
    browser.wait_for(f"{count} < {before}")
    browser.press(" ")
    browser.wait_for(f"{count} === {before}")


def test_the_first_tab_offers_to_skip_and_the_colours_switch_with_a_key(browser: Browser, report: Path) -> None:
    browser.look(1280, 900, dark=False)
    browser.open(report)
    browser.press("Tab")
    assert browser.ask("document.activeElement.textContent") == "Skip to the report"
    browser.press("Tab")
    assert browser.ask("document.activeElement.getAttribute('aria-label')") == "Switch to dark colours"
    browser.press("Enter")
    browser.wait_for("getComputedStyle(document.body).backgroundColor === 'rgb(20, 18, 23)'")
    assert browser.ask("document.activeElement.textContent") == "Light"


def test_several_runs_and_the_single_arm_are_drawn_too(
    browser: Browser, population_dir: Path, single_dir: Path, tmp_path: Path
) -> None:
    browser.complaints.clear()
    browser.look(1280, 900, dark=False)
    browser.open(write_report([population_dir, single_dir], tmp_path / "both.html"))
    num_charts = browser.ask("document.querySelectorAll('.chart').length")
    assert browser.ask("document.documentElement.dataset.drawn") == str(num_charts)
    assert browser.ask("[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))")
    assert browser.complaints == []
