"""What one command writes another reads, also after the folder has moved: export, breed, evaluate, the card's code."""

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import redqueen
from safetensors.torch import load_file, save_file

from redqueen.adapters.base_shape import embedded_folder, weights_sha256
from redqueen.adapters.peft import BASE_SHA256, WEIGHTS_FILE, read_adapter
from redqueen.commands.breed import breed_folders
from redqueen.commands.evaluate import evaluate, table
from redqueen.commands.examinees import Examinee, open_examination
from redqueen.commands.export import export_member
from redqueen.errors import UserError
from redqueen.records import BASE_SLOT
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.store import CHECKPOINTS
from redqueen.state import state_from_plain

SHORT = ("solve.max_new_tokens=16", "run.num_threads=1", "verify.num_workers=1", "run.device=cpu")


def students_of(run_dir: Path) -> list[str]:
    found = Checkpoint.latest_valid(run_dir / CHECKPOINTS)
    assert found is not None
    return [student.id for student in state_from_plain(found.state["state"]).students]


@pytest.fixture(scope="module")
def siblings(quick_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two students of one run, exported side by side and then moved to another folder."""
    made, moved = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("moved")
    for name in students_of(quick_run):
        export_member(quick_run, name, made / name)
        shutil.move(made / name, moved / name)
    return sorted(moved.iterdir())


def code_of(card: Path) -> str:
    blocks = re.findall(r"```python\n(.*?)```", card.read_text(), re.DOTALL)
    assert len(blocks) == 2  # to load the model, and to prompt it
    return "\n".join(blocks)


def test_siblings_of_one_run_breed_and_the_child_is_evaluated(siblings: list[Path], tmp_path: Path) -> None:
    breed_folders("X2", siblings, 0, None, tmp_path / "child")
    child = read_adapter(tmp_path / "child")
    assert child.base_sha256 == weights_sha256(embedded_folder())
    with open_examination(str(tmp_path / "child"), SHORT) as examination:
        assert examination.engine.config.model.base == "embedded"
        assert examination.engine.prompt_format.name == "compact"


def test_the_cards_code_runs_in_a_folder_that_was_moved(siblings: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("peft")
    code = code_of(siblings[0] / "README.md") + "\nassert model.peft_config['default'].r == 2 and len(tokenizer) > 100"
    monkeypatch.chdir(siblings[0].parent)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})


def test_the_card_of_an_export_names_no_folder_of_the_machine_it_was_made_on(siblings: list[Path]) -> None:
    assert str(siblings[0].parent) not in (siblings[0] / "README.md").read_text()


def test_adapters_are_compared_by_the_weights_of_their_bases_and_not_by_names(
    siblings: list[Path], tmp_path: Path
) -> None:
    renamed = shutil.copytree(siblings[1], tmp_path / "renamed")
    fields = json.loads((renamed / "adapter_config.json").read_text()) | {"base_model_name_or_path": "elsewhere/base"}
    (renamed / "adapter_config.json").write_text(json.dumps(fields))
    breed_folders("X2", [siblings[0], renamed], 0, None, tmp_path / "child")
    foreign = shutil.copytree(siblings[1], tmp_path / "foreign")
    tensors = load_file(foreign / WEIGHTS_FILE)
    save_file(tensors, foreign / WEIGHTS_FILE, metadata={"format": "pt", BASE_SHA256: "0" * 64})
    with pytest.raises(UserError, match=r"weights 000000000000\); only adapters of one base can be crossed"):
        breed_folders("X2", [siblings[0], foreign], 0, None, tmp_path / "none")


def test_an_export_of_earlier_versions_breeds_by_the_base_that_lies_beside_it(
    siblings: list[Path], tmp_path: Path
) -> None:
    """They had no hash, and named their base by a path that depended on where the command ran."""
    old = []
    for sibling in siblings:
        folder = shutil.copytree(sibling, tmp_path / sibling.name)
        save_file(load_file(folder / WEIGHTS_FILE), folder / WEIGHTS_FILE, metadata={"format": "pt"})
        fields = json.loads((folder / "adapter_config.json").read_text())
        fields["base_model_name_or_path"] = f"exports/{sibling.name}/base"
        (folder / "adapter_config.json").write_text(json.dumps(fields))
        old.append(folder)
    breed_folders("X2", old, 0, None, tmp_path / "child")
    assert read_adapter(tmp_path / "child").base_sha256 == weights_sha256(embedded_folder())


def test_an_adapter_of_another_embedded_base_is_not_put_on_this_one(siblings: list[Path], tmp_path: Path) -> None:
    folder = shutil.copytree(siblings[0], tmp_path / "other", ignore=shutil.ignore_patterns("base"))
    tensors = load_file(folder / WEIGHTS_FILE)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt", BASE_SHA256: "0" * 64})
    fields = json.loads((folder / "adapter_config.json").read_text()) | {"base_model_name_or_path": "embedded@0.1"}
    (folder / "adapter_config.json").write_text(json.dumps(fields))
    with (
        pytest.raises(UserError, match="whose weights differ from those of this version"),
        open_examination(str(folder), SHORT),
    ):
        pass


def test_a_merged_model_is_evaluated_and_its_cards_code_runs(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = export_member(quick_run, students_of(quick_run)[0], tmp_path / "merged", merge=True)
    with open_examination(str(merged), SHORT) as examination:
        assert examination.examinees == (Examinee("merged", "base", BASE_SLOT),)
        assert examination.engine.prompt_format.name == "compact"
    monkeypatch.chdir(tmp_path)
    exec(compile(code_of(merged / "README.md"), "README.md", "exec"), {"__name__": "__main__"})


def test_any_hugging_face_folder_is_evaluated(tmp_path: Path) -> None:
    folder = shutil.copytree(embedded_folder(), tmp_path / "somebody")
    with open_examination(str(folder), SHORT) as examination:
        assert examination.examinees == (Examinee("somebody", "base", BASE_SLOT),)


def test_a_damaged_config_is_refused_in_one_short_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["A"], "hidden_size": 3}')
    code, _, err = redqueen("evaluate", tmp_path, "--suite", "mini")
    assert code == 2 and err.count("\n") == 1 and len(err) < 300


def test_evaluating_without_out_writes_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.jsonl").write_text(
        json.dumps({"id": "a", "code": "def f(x):\n    return x", "input": "1", "output": "1"}) + "\n"
    )
    found = evaluate("base", "cruxeval-o", Path("items.jsonl"), overrides=SHORT)
    assert found["answers"] is None and "not kept; --out FILE keeps them" in table(found)
    assert [path.name for path in tmp_path.iterdir()] == ["items.jsonl"]
