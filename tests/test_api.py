"""redqueen from Python: what ``import redqueen`` brings in, and that it plays, reads, breeds and loads."""

import json
import shutil
import subprocess
import sys
from html import unescape
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from small_bases import small_base

import redqueen
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.peft import plain_config, write_adapter
from redqueen.commands.export import export_member
from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.run.store import JOURNAL

QUICK = Path(__file__).parent / "quick.toml"
PROBE = """
import sys
before = set(sys.modules)
import redqueen
{more}
heavy = {{"torch", "transformers", "numpy", "pydantic", "typer", "rich", "jinja2", "safetensors", "sqlite3"}}
new = sys.modules.keys() - before
print(sorted(heavy & new), sorted(name for name in new if name.startswith("redqueen.")))
"""


def imported(more: str = "") -> str:
    command = [sys.executable, "-c", PROBE.format(more=more)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_nothing_else() -> None:
    assert imported() == "[] []"


def test_importing_the_package_takes_less_than_50_ms_of_cpu_time() -> None:
    timed = "import time; began = time.process_time(); import redqueen; print(time.process_time() - began)"
    runs = [subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(done.stdout) for done in runs) < 0.05


def test_looking_at_what_it_offers_imports_nothing_either() -> None:
    assert imported("assert {'Config', 'train', 'Run', 'reward_fn'} <= set(dir(redqueen))") == "[] []"


def test_the_verifier_and_reading_a_run_need_no_torch() -> None:
    assert "torch" not in imported("redqueen.Sandbox; redqueen.Run; redqueen.reward_fn; redqueen.Config")


@pytest.mark.parametrize(
    "place",
    [
        "evaluate.maths.MathsJudge",
        "evaluate.judging.bare",
        "evaluate.livecode.ContestJudge",
        "evaluate.questions.Case",
        "evaluate.questions.ContestQuestion",
    ],
)
def test_a_judge_is_where_other_projects_import_it_from(place: str) -> None:
    module, name = place.rsplit(".", 1)
    assert callable(getattr(import_module(f"redqueen.{module}"), name))


def test_everything_that_is_offered_is_there_and_nothing_else_is() -> None:
    for name in redqueen.__all__:
        assert getattr(redqueen, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        redqueen.trian  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (Path(redqueen.__file__).parent / "py.typed").is_file()


# Configs ---------------------------------------------------------------------------------------------------------


def test_a_config_is_read_from_a_preset_a_file_plain_values_or_made() -> None:
    assert redqueen.load_config("smoke").run.name == "smoke"
    assert redqueen.load_config(QUICK).run.name == "quick"
    assert redqueen.load_config({"run": {"num_steps": 3}}) == redqueen.Config(run={"num_steps": 3})
    assert redqueen.load_config() == redqueen.Config()
    assert redqueen.load_config("smoke", {"run.num_steps": 9, "evolve.operators": ["M1"]}).evolve.operators == ("M1",)


def test_mistakes_are_told_in_terms_of_arguments(quick_run: Path, tmp_path: Path) -> None:
    def told(call: object, *arguments: object, **more: object) -> str:
        with pytest.raises(redqueen.UserError) as caught:
            call(*arguments, **more)  # type: ignore[operator]
        assert "--" not in str(caught.value)
        return str(caught.value)

    assert "did you mean num_steps?" in told(redqueen.load_config, "smoke", {"run.steps": 9})
    assert 'as "section.field"' in told(redqueen.load_config, "smoke", {"steps": 9})
    assert "choose another run_dir, or continue it: `redqueen.resume(...)`" in told(redqueen.train, QUICK, quick_run)
    assert told(redqueen.breed, "X1", [tmp_path], tmp_path / "out").startswith("parents: X1 takes 2")
    assert told(redqueen.load_member, quick_run, "S9").startswith("member S9 is not a present member of")
    assert "is a run: name one of its members, member='T" in told(redqueen.load_member, quick_run)
    assert "has 4 finished steps" in told(redqueen.resume, shutil.copytree(quick_run, tmp_path / "run"), num_steps=1)
    assert told(redqueen.load_config, ["smoke"]) == (
        "config: give a preset's name, a TOML file or plain values, not a list"
    )
    wanted = 'overrides: give a dict such as {"run.num_steps": 2}, not a list'
    assert told(redqueen.load_config, "smoke", ["run.num_steps=2"]) == wanted
    assert 'as "section.field"' in told(redqueen.load_config, "smoke", {3: 9})
    for folder in ("maths", tmp_path):
        assert "is one folder: give a list of folders" in told(redqueen.breed, "M1", folder, tmp_path / "out")
    two = [tmp_path / "a", tmp_path / "b"]
    array = np.array([1.0, 2.0, 3.0])
    assert "fitness: give one number per parent, 2" in told(redqueen.breed, "X1", two, tmp_path / "out", fitness=array)
    assert "is not a list of numbers" in told(redqueen.breed, "X1", two, tmp_path / "out", fitness=["best", "worst"])
    assert told(redqueen.load_member, "nowhere").startswith("source nowhere is not a folder")
    assert "There is no journal at" in told(redqueen.Run, tmp_path)


# Runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_played_and_goes_on(tmp_path: Path) -> None:
    small = {"run.num_steps": 1, "evaluate.control": False, "run.product": "none"}
    run = redqueen.train(QUICK, tmp_path / "run", small)
    assert (run.num_steps, run.config.run.num_steps) == (1, 1) and (run.folder / "report.html").is_file()
    assert redqueen.resume(run.folder, num_steps=2).num_steps == 2


@pytest.fixture(scope="module")
def run(quick_run: Path) -> redqueen.Run:
    return redqueen.Run(quick_run)


def test_a_run_of_another_version_is_read_and_its_config_alone_is_refused(quick_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(quick_run / JOURNAL, folder)
    with Journal.open(folder / JOURNAL) as journal:
        journal.connection.execute("UPDATE run SET config = json_set(config, '$.run.an_old_field', 1)")
    run = redqueen.Run(folder)
    assert run.num_steps == 4 and run.metrics()
    with pytest.raises(UserError, match=r"there is no field run\.an_old_field"):
        _ = run.config


def test_metrics_are_one_record_a_step(run: redqueen.Run) -> None:
    records = run.metrics()
    assert [record["step"] for record in records] == [1, 2, 3, 4]
    assert all(0 <= record["propose/valid_frac"] <= 1 for record in records)


def test_members_are_told_with_parents_and_ratings(run: redqueen.Run) -> None:
    members = {record["id"]: record for record in run.members()}
    assert {"T1", "T2", "S1", "S2"} <= members.keys()
    born = [record for record in members.values() if record["born_step"]]
    assert born and all(set(record["parents"]) <= members.keys() and record["parents"] for record in born)
    assert all(record["mu"] > 0 for record in members.values())


def test_tasks_and_attempts_are_plain_records(run: redqueen.Run) -> None:
    tasks = run.tasks()
    assert tasks and json.loads(json.dumps(tasks)) == tasks
    assert isinstance(tasks[0]["inputs"], list) and {task["step"] for task in run.tasks(step=2)} <= {2}
    assert {task["kind"] for task in run.tasks(kind="code_o")} <= {"code_o"}
    attempts = run.attempts(tasks[0]["id"])
    assert len(attempts) == 3 and sum(a["correct"] for a in attempts) == tasks[0]["num_correct"]
    assert tasks[0]["solve_frac"] == tasks[0]["num_correct"] / tasks[0]["num_attempts"]
    assert {record["individual"] for record in run.evaluations()} >= {"base", "students"}


def test_records_become_a_frame_where_pandas_is(run: redqueen.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pandas", None)
        with pytest.raises(redqueen.UserError, match="needs the package pandas"):
            run.metrics().frame()
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = run.metrics().frame()
    assert list(frame["step"]) == [1, 2, 3, 4] and "propose/valid_frac" in frame.columns


def test_a_notebook_shows_the_scores_and_the_figures_of_a_run(run: redqueen.Run, tmp_path: Path) -> None:
    shown = run._repr_html_()
    assert "4 steps<br>held-out tasks solved, greedy: base" in shown and "product compared with" in shown
    figures = run.plot()
    page = unescape(figures._repr_html_().partition('srcdoc="')[2].removesuffix('"></iframe>'))
    assert page == figures.html and 'id="run-0-figure-solve-rate"' in page
    early = shutil.copytree(run.folder, tmp_path / "<i>early", ignore=shutil.ignore_patterns("lock"))
    with Journal.open(early / JOURNAL) as journal:
        journal.truncate_after(-1)
    told = redqueen.Run(early)._repr_html_()
    assert "has no finished step yet" in told and "&lt;i&gt;early" in told and "<i>" not in told
    with pytest.raises(redqueen.UserError, match="has no finished step yet"):
        redqueen.Run(early).plot()


# Members ---------------------------------------------------------------------------------------------------------


def test_a_member_is_loaded_from_its_run_its_adapter_and_its_merged_model_alike(
    quick_run: Path, run: redqueen.Run, tmp_path: Path
) -> None:
    name = next(r["id"] for r in run.members() if r["role"] == "teacher" and r["left_step"] is None)
    run.export(tmp_path / "adapter", name)
    assert run.export(tmp_path / "merged", name, merge=True) == tmp_path / "merged"
    with pytest.raises(redqueen.UserError, match="merged exists already: choose a new folder"):
        run.export(tmp_path / "merged")
    sources = [(quick_run, name), (tmp_path / "adapter", ""), (tmp_path / "merged", "")]
    members = [redqueen.load_member(*source) for source in sources]
    assert [member.name for member in members] == [name, "adapter", "merged"]
    tokens = torch.arange(5, 37)[None]
    with torch.no_grad():
        first, *others = [member.model(tokens).logits for member in members]
        base = load_base("embedded")[0](tokens).logits
    assert all(torch.equal(first, other) for other in others) and not torch.equal(first, base)


def test_adapters_breed(quick_run: Path, run: redqueen.Run, tmp_path: Path) -> None:
    alive = [r["id"] for r in run.members() if r["role"] == "student" and r["left_step"] is None]
    parents = [export_member(quick_run, name, tmp_path / name) for name in alive]
    told = redqueen.breed("X2", parents, tmp_path / "child", seed=3)
    assert (told["operator"], told["seed"]) == ("X2", 3)
    assert redqueen.load_member(tmp_path / "child").name == "child"


def test_a_section_that_is_none_and_a_path_with_dashes_are_named_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(redqueen.UserError, match="run"):
        redqueen.load_config({"run": 5})
    with pytest.raises(redqueen.UserError, match="a--bc/x"):
        redqueen.resume(tmp_path / "a--bc" / "x")


def test_a_name_that_no_folder_can_have_is_refused_in_a_sentence() -> None:
    for name in ("a\0b", "a" * 5_000, "/" + "a" * 5_000):
        with pytest.raises(UserError, match=r"source is .{1,99}, and there is no such folder: give "):
            redqueen.load_member(name)


@pytest.mark.parametrize(
    ("a_type", "b_type", "shapes", "said"),
    [
        (torch.float16, torch.float32, (16, 16), ""),
        (torch.bfloat16, torch.float16, (16, 16), ""),
        (torch.float32, torch.float32, (8, 16), r"make a matrix of \(16, 8\), but the module of .* has \(16, 16\)"),
        (torch.float32, torch.float32, (16, 24), r"make a matrix of \(24, 16\)"),
    ],
    ids=["half and single", "two halves", "narrow", "tall"],
)
def test_a_member_of_mixed_precision_is_loaded_and_one_of_another_width_is_refused(
    a_type: torch.dtype, b_type: torch.dtype, shapes: tuple[int, int], said: str, tmp_path: Path
) -> None:
    base, folder, module = small_base(tmp_path / "base"), tmp_path / "adapter", "model.layers.0.self_attn.q_proj"
    a, b = torch.ones(2, shapes[0]).to(a_type), torch.ones(shapes[1], 2).to(b_type)
    genotype = Genotype({module: (a, b)}, alpha=4.0)
    write_adapter(folder, plain_config(genotype, str(base), ["q_proj"]), genotype)
    if said:
        with pytest.raises(UserError, match=said):
            redqueen.load_member(folder)
    else:
        before = redqueen.load_member(base).model.get_parameter(f"{module}.weight")
        assert torch.allclose(redqueen.load_member(folder).model.get_parameter(f"{module}.weight"), before + 4.0)
