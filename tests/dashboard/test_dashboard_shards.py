"""A run's page shows where its shards stand, what travelled and what was lost."""

from pathlib import Path

from starlette.testclient import TestClient
from synthetic_run import build_run

from redqueen.dashboard.app import create_app
from redqueen.nouns import ShardEvent, ShardNews
from redqueen.run.cluster_log import write_news
from redqueen.run.store import CLUSTER_LOG


def page_of(folder: Path) -> str:
    answer = TestClient(create_app(folder.parent), base_url="http://localhost").get(f"/run/{folder.name}")
    assert answer.status_code == 200
    return answer.text


def divided(folder: Path) -> Path:
    build_run(folder, 3, 1, 1, tasks_per_match=2, num_attempts=2)
    write_news(folder, 0, ShardNews((ShardEvent(0, "opened", "left"), ShardEvent(1, "opened", "<b>right</b>"))))
    write_news(folder, 1, ShardNews((), {"asked": 10, "answered": 20, "backup": 30}))
    lost = (ShardEvent(1, "lost", "<b>right</b>", "<script>alert(1)</script>"), ShardEvent(1, "opened", "left"))
    write_news(folder, 2, ShardNews(lost))
    return folder


def test_the_page_shows_places_losses_and_bytes_with_everything_escaped(tmp_path: Path) -> None:
    page = page_of(divided(tmp_path / "run"))
    assert "2 shards on 1 machine" in page and "&lt;b&gt;right&lt;/b&gt;" in page and 'id="shards-moved-bytes"' in page
    assert "<b>right" not in page and "<script>alert" not in page


def test_a_run_that_was_never_divided_shows_nothing_of_shards(tmp_path: Path) -> None:
    assert "hards" not in page_of(
        build_run(tmp_path / "run", 2, 1, 1, tasks_per_match=1, num_attempts=1, hostile=False)
    )


def test_news_of_the_shards_is_seen_although_the_journal_is_the_same(tmp_path: Path) -> None:
    folder = divided(tmp_path / "run")
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    assert "1 lost, 0 moved" in client.get("/run/run").text
    write_news(folder, 3, ShardNews((ShardEvent(0, "moved", "left"), ShardEvent(0, "opened", "new"))))
    assert "1 lost, 1 moved" in client.get("/run/run").text


def test_a_log_that_cannot_be_read_leaves_the_page_with_a_sentence(tmp_path: Path) -> None:
    folder = divided(tmp_path / "run")
    (folder / CLUSTER_LOG).unlink()
    (folder / CLUSTER_LOG).symlink_to("/etc/passwd")
    page = page_of(folder)
    assert "is a link; put the file itself there" in page and "shards-moved-bytes" not in page
    assert 'id="members-title"' in page
