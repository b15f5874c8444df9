"""A run has a page from its first second: what it does, and when nobody plays it, how to go on."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from redqueen.config import load_config
from redqueen.dashboard.app import create_app
from redqueen.dashboard.starting import doing
from redqueen.evaluate.external import Examiner
from redqueen.evaluate.fitness_suite import Score
from redqueen.run.interruption import Stopped
from redqueen.run.lifecycle import start
from redqueen.run.now import NOW, Now, NowFile

QUICK = Path(__file__).parents[1] / "quick.toml"


def test_a_real_run_in_step_0_shows_what_it_does_and_looks_for_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = TestClient(create_app(tmp_path), base_url="http://localhost")
    seen = {}

    counts: list[tuple[int, int]] = []
    count = NowFile.count
    monkeypatch.setattr(
        NowFile, "count", lambda now, done, total: (counts.append((done, total)), count(now, done, total))
    )

    def look_and_stop(_: Examiner) -> list[Score]:
        for address in ("/", "/run/run", "/run/run/lineage", "/run/run/members", "/run/run/tasks"):
            seen[address] = client.get(address)
        raise Stopped

    monkeypatch.setattr(Examiner, "base", look_and_stop)
    assert not start(load_config(QUICK), tmp_path / "run")
    assert {address: answer.status_code for address, answer in seen.items()} == dict.fromkeys(seen, 200)
    page = seen["/run/run"].text
    assert "step 0: measuring on the frozen suite, for" in page and 'data-refresh="5"' in page
    assert '<li aria-current="step">The base model is measured' in page
    assert "step 0: measuring" in seen["/"].text
    assert not (tmp_path / "run" / NOW).exists()
    assert max(done for done, _ in counts) == max(total for _, total in counts) > 0  # of the first tasks' proposals
    after = client.get("/run/run").text
    assert "Ended before its first step" in after and "data-refresh" not in after


def test_what_a_run_does_is_told_in_words() -> None:
    assert doing(Now(0, "evaluate", 100.0, 320, 1200), lambda: 165.0) == (
        "step 0: measuring on the frozen suite, 320 of 1,200, for 1 min 5 s"
    )
    assert doing(Now(1234, "solve", 100.0), lambda: 99.0) == "step 1,234: solving, for 0 s"
    assert doing(None) == ""
