"""A run of which no proposal was ever valid says that it learned nothing, and has no product."""

from pathlib import Path

import pytest
from small_bases import small_base
from starlette.testclient import TestClient

from redqueen.commands.export import export_member
from redqueen.commands.train import run_and_report
from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.report.site import create_app
from redqueen.report.summary import summary
from redqueen.report.view import read_run
from redqueen.run.lifecycle import resume, start

QUICK = Path(__file__).parents[1] / "quick.toml"


def test_a_run_without_a_valid_task_ends_red_without_a_product_and_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, base = tmp_path / "runs" / "run", small_base(tmp_path / "base")
    config = load_config(QUICK, [f"model.base={base}", "run.num_steps=2", "evaluate.max_items=4"])
    for play in (lambda: start(config, run), lambda: resume(run)):
        with pytest.raises(SystemExit) as end:
            run_and_report(run, play)
        out, err = capsys.readouterr()
        assert end.value.code == 1 and "report:" in out
        assert "no proposal of the run was ever valid, so nothing was learned and there is no product: choose" in err
    found = summary(read_run(run))
    assert (found["product"], found["gain"], found["steps"]) == (None, None, 2)
    with pytest.raises(UserError, match=r"run cannot be exported: no proposal of the run was ever valid"):
        export_member(run, "", tmp_path / "out")
    page = (run / "report.html").read_text()
    assert 'class="standing nothing"' in page and "Nothing was learned: none of 20 proposals was valid" in page
    with TestClient(create_app(run.parent), base_url="http://127.0.0.1:8470") as client:
        assert '<span class="tag nothing-learned">nothing learned</span>' in client.get("/").text
        assert 'class="standing nothing"' in client.get("/run/run").text
