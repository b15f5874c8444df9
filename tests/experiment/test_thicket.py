"""The thicket curve of a small run: its parents, and how far a child of each operator is from the first."""

import csv
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

from thicket import OPERATORS, main, parents_of


def test_a_parent_of_a_run_is_measured_with_a_child_of_each_operator(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, copies = (shutil.copytree(quick_run, tmp_path / name) for name in ("run", "copies"))
    found = Checkpoint.latest_valid(run / CHECKPOINTS)
    assert found is not None
    found.tensors[FACTORS][3] = found.tensors[FACTORS][2]  # the second student is the first
    Checkpoint.save(copies / CHECKPOINTS, found.step, found.tensors, found.state)
    with pytest.raises(UserError, match="one adapter alone, or copies of it"):
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
