"""The thicket curve of a small run: its parents, and how far a child of each operator is from the first."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.evolve.operators import apply, find
from redqueen.learn.torch_learner import FACTORS
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS, load_run_config

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from thicket import OPERATORS, items_of_benchmark, main, parents_of


def test_a_parent_of_a_run_is_measured_with_a_child_of_each_operator(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, copies = (shutil.copytree(quick_run, tmp_path / name) for name in ("run", "copies"))
    found = Checkpoint.latest_valid(run / CHECKPOINTS)
    assert found is not None
    found.tensors[FACTORS][3] = found.tensors[FACTORS][2]  # the second student is the first
    Checkpoint.save(copies / CHECKPOINTS, found.step, found.tensors, found.state)
    with pytest.raises(UserError, match="only one adapter, or copies of it"):
        parents_of(copies, load_run_config(copies))
    words = [str(run), "--children", "1", "--strengths", "1.0", "--out", str(tmp_path / "thicket.csv")]
    monkeypatch.setattr(sys, "argv", ["thicket.py", *words])
    main()
    with (tmp_path / "thicket.csv").open(encoding="utf-8", newline="") as file:
        parent, *children = csv.DictReader(file)
    assert (parent["operator"], parent["change"]) == ("parent", "0.000")
    assert [child["operator"] for child in children] == list(OPERATORS)
    made = apply(find(OPERATORS[0]), parents_of(run, load_run_config(run))[:1], [1.0], 1000)
    assert children[0]["change"] == f"{made.change.overall:.3f}" and made.change.overall > 0
    assert len(capsys.readouterr().out.splitlines()) == 4 + len(OPERATORS)


def test_items_of_a_benchmark_take_the_place_of_the_runs_own(tmp_path: Path) -> None:
    rows = [
        {"id": f"sample_{i}", "code": f"def f(x):\n    return x + {i}", "input": "1", "output": f"{i + 1}"}
        for i in range(3)
    ]
    (tmp_path / "crux.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    items = items_of_benchmark("cruxeval-o", tmp_path / "crux.jsonl", 2)
    assert [(item.id, item.kind, item.task.outputs) for item in items] == [
        ("sample_0", "code_o", ("1",)), ("sample_1", "code_o", ("2",))
    ]  # fmt: skip
    (tmp_path / "gsm.jsonl").write_text(json.dumps({"question": "1 + 1?", "answer": "#### 2"}) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="--suite gsm8k does not consist of tasks: choose cruxeval-o or cruxeval-i"):
        items_of_benchmark("gsm8k", tmp_path / "gsm.jsonl", 1)
