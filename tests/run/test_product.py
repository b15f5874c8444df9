"""A run ends with its product: in the journal, in the object for scripts, and exported by default."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from command_line import redqueen
from cut_run import play

from redqueen.adapters.peft import read_adapter
from redqueen.commands.export import export_member, sources_of
from redqueen.commands.report import report
from redqueen.errors import UserError
from redqueen.evolve.spectrum import MERGED, mean_of
from redqueen.journal import Journal
from redqueen.journal.schema import CHOSEN, DISTILLED, SHARE
from redqueen.records import Individual, Rating
from redqueen.report.series import ends
from redqueen.report.summary import product_name, summary
from redqueen.report.view import read_run
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.product import candidates, preferred
from redqueen.run.store import CHECKPOINTS, JOURNAL
from redqueen.state import State, state_from_plain

QUICK = Path(__file__).parents[1] / "quick.toml"


def students_of(run: Path) -> list[str]:
    found = Checkpoint.latest_valid(run / CHECKPOINTS)
    assert found is not None
    return [i.id for i in state_from_plain(found.state["state"]).students]


def test_the_journal_names_the_product_and_what_each_candidate_solved(quick_run: Path) -> None:
    with Journal.open(quick_run / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT * FROM metric WHERE name LIKE 'product/%'")
    assert {row["step"] for row in rows} == {4}
    shares = {row["name"].removeprefix(SHARE): row["value"] for row in rows if row["name"].startswith(SHARE)}
    (chosen,) = [row["name"].removeprefix(CHOSEN) for row in rows if row["name"].startswith(CHOSEN)]
    assert set(shares) == {*students_of(quick_run), MERGED}
    assert shares[chosen] == max(shares.values())


def test_one_object_for_scripts_says_how_everybody_did(quick_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report([quick_run], None, "", "", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(summary(read_run(quick_run))))
    assert (found["arm"], found["steps"], found["seed"]) == ("2T+2S", 4, 4) and found["seconds"] > 0
    assert set(found["members"]) == set(students_of(quick_run))
    for one in (found["base"], found["control"], found["product"], *found["members"].values()):
        for mode in ("greedy", "sampled"):
            assert 0 <= one[mode]["low"] <= one[mode]["mean"] <= one[mode]["high"] <= 1
    for name in ("valid_frac", "solve_rate", "new_frac"):
        assert set(found[name]) == {"first", "last"}
        assert all(value is None or 0 <= value <= 1 for value in found[name].values())
    assert found["new_frac"]["first"] == 1.0
    for mode, gain in found["gain"].items():
        best = max(found[one][mode]["mean"] for one in ("base", "control"))
        assert gain["mean"] == pytest.approx(found["product"][mode]["mean"] - best)
        assert -1 <= gain["low"] <= gain["mean"] <= gain["high"] <= 1
    name = found["product"].pop("name")
    assert name == MERGED or found["product"] == found["members"][name]


def test_the_first_and_the_last_tenth_are_means_of_what_is_defined() -> None:
    series = [(step, float(step)) for step in range(21)] + [(21, None)]
    # 21 steps: a tenth is 3 of them; step 0 is none, and the last one is not defined.
    assert ends(series, 21) == {"first": 2.0, "last": 19.5}
    assert ends([], 21) == {"first": None, "last": None}


def test_of_a_run_that_was_continued_the_product_of_its_new_end_counts_and_before_it_none() -> None:
    metrics = {f"{CHOSEN}S1": [(40, 1.0)], f"{CHOSEN}merged": [(80, 1.0)], f"{SHARE}S1": [(40, 0.5), (80, 0.6)]}
    assert product_name(metrics, 80) == "merged" and product_name(metrics, 40) == "S1"
    assert product_name(metrics, 60) is None and product_name({}, 0) is None


def test_a_run_that_goes_on_has_no_product_until_its_new_end(quick_run: Path, tmp_path: Path) -> None:
    going_on = shutil.copytree(quick_run, tmp_path / "going-on")
    shutil.rmtree(going_on / CHECKPOINTS / "step-000004")  # the newest checkpoint is of a step that chose none
    with pytest.raises(UserError, match=rf"no product after step 2, .*: finish the run \(`redqueen resume {going_on}"):
        export_member(going_on, "", tmp_path / "out")
    with Journal.open(going_on / JOURNAL) as journal, journal.step(5) as writer:
        writer.add_metrics({"solve/rate": 0.5})
    assert summary(read_run(going_on))["product"] is None


def test_a_run_that_wants_no_product_does_not_say_that_it_comes(tmp_path: Path, quick_run: Path) -> None:
    run = shutil.copytree(quick_run, tmp_path / "run")
    path = run / "config.json"
    path.write_text(path.read_text().replace('"product": "probe"', '"product": "none"'))
    shutil.rmtree(run / CHECKPOINTS / "step-000004")
    with pytest.raises(UserError, match=r"at its end\): choose a member with --member"):
        export_member(run, "", tmp_path / "out")


def test_without_a_name_the_product_is_exported_and_the_students_mean_by_its_name(
    quick_run: Path, tmp_path: Path
) -> None:
    with Journal.open(quick_run / JOURNAL, read_only=True):
        product = summary(read_run(quick_run))["product"]["name"]
    default, members = export_member(quick_run, "", tmp_path / "product"), students_of(quick_run)
    mean = export_member(quick_run, MERGED, tmp_path / "mean")
    genotypes = [read_adapter(export_member(quick_run, m, tmp_path / m)).genotype for m in members]
    expected = mean_of(genotypes)
    for name, (a, b) in read_adapter(mean).genotype.factors.items():
        assert torch.allclose(b @ a, expected.factors[name][1] @ expected.factors[name][0], atol=1e-6)
    same = mean if product == MERGED else tmp_path / product
    assert (default / "adapter_model.safetensors").read_bytes() == (same / "adapter_model.safetensors").read_bytes()
    card = (mean / "README.md").read_text()
    assert f"a mean in delta space of {', '.join(members)}" in card.replace("\\", "") and "## Lineage" in card


def test_of_many_students_the_best_rated_whole_ones_may_become_the_product() -> None:
    students = [Individual(f"S{i}", "student", i, Rating(mu, 8.0)) for i, mu in enumerate((20.0, 30.0, 25.0, 40.0))]
    state = cast(State, SimpleNamespace(students=students, broken={"S3"}))
    assert [i.id for i in candidates(state, 0)] == ["S0", "S1", "S2"]
    assert [i.id for i in candidates(state, 2)] == ["S1", "S2"]
    state = cast(State, SimpleNamespace(students=students[:1], broken={"S0"}))
    assert [i.id for i in candidates(state, 2)] == ["S0"]  # better a broken one than none


def test_the_mean_that_was_chosen_is_exported_as_that_of_its_candidates() -> None:
    students = tuple(Individual(f"S{i}", "student", i, Rating(mu, 8.0)) for i, mu in enumerate((20.0, 30.0, 25.0)))
    state = cast(State, SimpleNamespace(students=students, broken={"S1"}, by_id=lambda: {s.id: s for s in students}))
    assert [i.id for i in sources_of(MERGED, state, 1)] == ["S2"]
    assert [i.id for i in sources_of(MERGED, state, 32)] == ["S0", "S2"]
    assert sources_of(MERGED, state, None) == sources_of(DISTILLED, state, 1) == students  # asked for by name: of all
    assert sources_of("S1", state, 1) == (students[1],)


def test_who_solves_most_is_preferred_and_of_equals_the_distilled_one_then_the_mean_then_the_first() -> None:
    assert preferred({"S1": 0.5, "S2": 0.6, MERGED: 0.5, DISTILLED: 0.5}) == "S2"
    assert preferred({"S1": 0.5, "S2": 0.5, MERGED: 0.5, DISTILLED: 0.5}) == DISTILLED
    assert preferred({"S1": 0.5, "S2": 0.5, MERGED: 0.5}) == MERGED
    assert preferred({"S2": 0.5, "S1": 0.5}) == "S2"
    assert preferred({}) == MERGED


def test_of_many_students_a_few_are_scored_and_the_product_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redqueen.config.load.MOST_SCORED", 1)
    monkeypatch.setattr("redqueen.run.product.NUM_CANDIDATES", 1)
    run = play(("run.num_steps=2", "evaluate.every_steps=1", "evaluate.control=false"), tmp_path / "run")
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT DISTINCT step, individual FROM evaluation")
        product = journal.query("SELECT DISTINCT mode FROM evaluation WHERE individual = 'product'")
        shares = journal.query("SELECT name FROM metric WHERE name LIKE ?", (f"{SHARE}%",))
    assert [row["step"] for row in rows if row["individual"].startswith("S")] == [1, 2]
    assert {row["mode"] for row in product} == {"greedy", "sampled"}
    assert len(shares) == 1


def test_where_no_students_are_scored_base_and_product_are_and_reports_are_written(tmp_path: Path) -> None:
    run = play(("run.num_steps=2", "evaluate.students=false", "evaluate.every_steps=1"), tmp_path / "run")
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT DISTINCT step, individual FROM evaluation")
    assert {(row["step"], row["individual"]) for row in rows} == {
        (0, "base"),
        (0, "control"),
        (2, "product"),
        (2, "gain"),
    }
    told = json.loads(json.dumps(summary(read_run(run))))
    assert told["members"] == {} and 0 <= told["product"]["greedy"]["mean"] <= 1
    report([run], None, "", "", as_json=False)


def test_a_product_that_was_never_trained_is_reported_as_the_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["run.num_steps=1", "learn.train_students=false", "evolve.enabled=false", "population.num_students=1"]
    run = tmp_path / "run"
    code, _, said = redqueen("train", QUICK, "--run-dir", run, *(word for one in settings for word in ("--set", one)))
    assert code == 0 and "product: S1, which was never trained: it answers as the base" in said
    export_member(run, "", tmp_path / "product")
    assert "S1 was never updated" in capsys.readouterr().err
