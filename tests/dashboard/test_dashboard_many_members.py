"""Pages of a run with a thousand members: small enough for a browser, and every member is reached."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from synthetic_run import build_run

from redqueen.dashboard.app import create_app
from redqueen.report.html import ASSETS, report_html
from redqueen.report.view import read_run

MAX_BYTES, MAX_ELEMENTS = 300_000, 2_500
PAGES = ("/", "/run/many", "/run/many/lineage", "/run/many/members", "/run/many/member?id=T1", "/run/many/tasks",
         "/run/many/task/1", "/compare?run=many&run=other")  # fmt: skip


class Counter(HTMLParser):
    """Counts the elements of a page."""

    num = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.num += 1


def num_elements(page: str) -> int:
    counter = Counter()
    counter.feed(page)
    return counter.num


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 500T+500S over three steps, with births after the second, and a small one beside it."""
    root = tmp_path_factory.mktemp("many")
    for name, num in (("many", 500), ("other", 1)):
        build_run(root / name, 3, num, num, tasks_per_match=1, num_attempts=1, evolve_every=2, hostile=False)
    return root


def test_every_page_of_a_thousand_members_is_bounded(root: Path) -> None:
    client = TestClient(create_app(root), base_url="http://localhost")
    sizes = {}
    for address in PAGES:
        answer = client.get(address)
        assert answer.status_code == 200
        sizes[address] = (len(answer.content), num_elements(answer.text))
    assert {a: size for a, size in sizes.items() if size[0] > MAX_BYTES or size[1] > MAX_ELEMENTS} == {}


def test_all_of_them_are_reached_page_by_page(root: Path) -> None:
    client = TestClient(create_app(root), base_url="http://localhost")
    names: set[str] = set()
    address: str | None = "/run/many/members"
    while address:
        page = client.get(address).text
        names |= set(re.findall(r'<th scope="row"><a href="[^"]*id=([^"]+)"', page))
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following and following[1]
    assert len(names) == 1002 and {"T1", "T500", "S500"} <= names


def test_the_report_of_a_thousand_members_is_bounded_and_counts_those_it_leaves_out(root: Path) -> None:
    page = report_html([read_run(root / "many")])
    assert num_elements(page) < MAX_ELEMENTS
    assert len(page) < MAX_BYTES + (ASSETS / "echarts.min.js").stat().st_size + 60_000
    assert "900 more are in the journal" in page
    assert "The last row stands for 998 slots" in page and "The best 12 and the worst 12 are drawn" in page
