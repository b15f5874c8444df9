"""The command line: one clear sentence and exit code 2 for a mistake, nothing written; help and plan without torch."""

import html
import json
import os
import shutil
from importlib.metadata import PackageNotFoundError, metadata, version
from itertools import takewhile
from pathlib import Path

import pytest
import torch
from command_line import redqueen, redqueen_afresh
from small_adapters import adapter

from redqueen import __version__
from redqueen.adapters.peft import plain_config, write_adapter
from redqueen.commands.doctor import UNLISTED_EXTRAS, examine
from redqueen.config import Config
from redqueen.config.training import OPERATORS
from redqueen_sandbox.pool import Pool

QUICK = Path(__file__).parent / "quick.toml"
CONFIGS = Path(__file__).parent.parent / "configs"


def refusal(outcome: tuple[int, str, str]) -> str:
    """Check that it was refused as a mistake of the user's, in one line without a traceback; return the line."""
    code, out, err = outcome
    assert code == 2
    assert "Traceback" not in out + err
    lines = err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("redqueen: ")
    return lines[0].removeprefix("redqueen: ")


def test_help_and_plan_import_no_torch(tmp_path: Path) -> None:
    lines = [["--help"], ["--version"], ["train", "--help"]]
    lines += [["train", str(CONFIGS / "paper-7b.toml"), "--dry-run"], ["train", "--set", "run.steps=1"]]
    unreachable = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}
    empty_cache = {**os.environ, **unreachable, "HF_HOME": str(tmp_path)}  # the plan may read no model's config
    told = redqueen_afresh(*lines, cwd=tmp_path, env=empty_cache)
    assert [one.code for one in told] == [0, 0, 0, 2, 2]
    assert "4T+4S: 200 steps" in told[3].out, "the plan, then that the hub cannot be reached"
    assert [one.heavy for one in told] == [[]] * len(lines)
    assert not (tmp_path / "runs").exists()


def test_the_plan_shows_the_resolved_config_and_the_work_of_a_step_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = redqueen("train", QUICK, "--set", "run.num_steps=7", "--run-dir", tmp_path / "run", "--dry-run")
    assert code == 0
    assert "num_steps = 7" in out and "[evolve]" in out
    assert "2T+2S: 7 steps" in out and "10 proposals (5 a teacher), at most 30 attempts" in out
    assert "temperature: proposals 1, attempts 1\n" in out, "propose.temperature = 0.0 stands for that of attempts"
    assert list(tmp_path.iterdir()) == []


def test_the_plan_counts_the_generations_that_a_run_plays() -> None:
    _, out, _ = redqueen("train", QUICK, "--dry-run")
    assert "4 steps, 1 generation\n" in out  # after step 2; none after the last
    assert "1 step, 0 generations\n" in redqueen("train", QUICK, "--set", "run.num_steps=1", "--dry-run")[1]
    numbers = (f"population.{name}=1" for name in ("num_teachers", "num_students"))
    alone = [word for field in ("population.single=true", *numbers) for word in ("--set", field)]
    assert "4 steps, 0 generations\n" in redqueen("train", QUICK, *alone, "--dry-run")[1]


def test_the_version_is_that_of_the_package() -> None:
    assert redqueen("--version") == (0, f"redqueen {__version__}\n", "")


# Mistakes ------------------------------------------------------------------------------------------------------


def test_a_run_directory_that_exists_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    told = [redqueen("train", QUICK, "--run-dir", tmp_path, *dry) for dry in ([], ["--dry-run"])]
    assert [out for _, out, _ in told] == ["", ""], "no plan is printed first"
    lines = set(map(refusal, told))
    assert len(lines) == 1 and f"redqueen resume {tmp_path}" in min(lines)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "model.base=./nowhere"], "model.base is ./nowhere, and there is no such folder"),
        (["--set", "model.base=./nowhere", "--dry-run"], "model.base is ./nowhere, and there is no such folder"),
        (["--set", "model.base=a..b"], "model.base is a..b, and there is no such folder"),
        (["--set", "model.base=models/x.gguf", "--dry-run"], "model.base is models/x.gguf, and there is no such file"),
        (["--set", "model.base=./empty"], "empty is a folder without config.json"),
        (["--set", "population.founders=./empty"], "population.founders: empty/adapter_config.json: No such file"),
        (["--set", "model.base=./damaged"], "damaged/config.json is not a JSON object"),
        (["--set", "run.steps=3"], "there is no field run.steps"),
        (["--set", "population.num_students=0"], "a student has to solve the tasks"),
        (["--set", "evolve.operators=['M1', 'M99']"], "M99"),
        (["--set", "learn.estimator=ppo"], "learn.estimator"),
        (["--set", "nonsense"], "write it as section.field=value"),
        (["--set", "population.lora_targets=['no_such_module']"], "choose from down_proj, gate_proj, k_proj"),
    ],
    ids=lambda value: value[1].split("=")[0] if isinstance(value, list) else "",
)
def test_a_config_that_cannot_be_played_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.json").write_text("[1, 2")
    monkeypatch.chdir(tmp_path)
    assert said in refusal(redqueen("train", QUICK, "--run-dir", "run", *words))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["damaged", "empty"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("evolve.constants.M4.mutation_std=-1", "evolve.constants: operator M4: mutation_std"),
        ("evolve.constants.M4.nope=1", "evolve.constants: operator M4 has no constant 'nope'"),
        ("evolve.constants.X3.num_leading=99", "evolve.constants.X3.num_leading is 99, and an adapter has"),
        ("propose.policy_hook=nowhere:refuse", "propose.policy_hook: nowhere:refuse cannot be imported"),
        ("propose.policy_rules=['(']", "propose.policy_rules: '(' is not a regular expression"),
        ("propose.domains=['code', 'maths']", "have no prompts in the format fewshot"),
        ("population.founders=nowhere", "nowhere/adapter_config.json: No such file"),
        ("propose.domains=['code', 'file:nowhere.jsonl']", "nowhere.jsonl"),
    ],
)
def test_a_plan_that_cannot_start_is_refused_by_the_dry_run_and_by_the_start_in_the_same_words(
    tmp_path: Path, asked: str, said: str
) -> None:
    words = ["train", QUICK, "--run-dir", tmp_path / "run", "--set", "model.prompt_format=fewshot", "--set", asked]
    lines = {refusal(redqueen(*words, *dry)) for dry in (["--dry-run"], [])}
    assert len(lines) == 1 and said in min(lines)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_refuses_a_cluster_without_ray_and_a_sandbox_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", QUICK, "--run-dir", tmp_path / "run", "--dry-run")
    monkeypatch.setattr("redqueen.cluster.sharded.find_spec", lambda name: None)
    assert "--cluster needs Ray" in refusal(redqueen(*words, "--cluster", "nowhere:1"))
    monkeypatch.setattr(Pool, "observed", lambda self: {"seccomp": False})
    assert "verify.allow_weak = true" in refusal(redqueen(*words))
    assert not (tmp_path / "run").exists()


def test_a_dry_run_refuses_founders_that_do_not_fit_the_runs_adapters(tmp_path: Path) -> None:
    write_adapter(tmp_path / "large", plain_config(adapter(1), "base", ["q_proj"]), adapter(1))
    words = ("train", QUICK, "--run-dir", tmp_path / "run", "--set", f"population.founders={tmp_path / 'large'}")
    lines = {refusal(redqueen(*words, *dry)) for dry in ([], ["--dry-run"])}
    assert len(lines) == 1 and f"population.founders: {tmp_path / 'large'}" in min(lines)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_asking_for_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    line = refusal(redqueen("train", QUICK, "--run-dir", tmp_path / "run", "--set", "run.device=cuda"))
    assert "set run.device = cpu" in line
    assert not (tmp_path / "run").exists()


def test_a_config_file_that_is_not_there_is_named_with_the_presets_that_are(tmp_path: Path) -> None:
    line = refusal(redqueen("train", tmp_path / "no.toml"))
    assert f"no config file at {tmp_path / 'no.toml'}" in line
    assert "qwen-coder, gym-mix, paper, paper-7b" in line and "maths" in line
    assert "did you mean smoke?" in refusal(redqueen("train", "smok", "--dry-run"))


def test_a_preset_is_named_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = redqueen("train", "smoke", "--dry-run")
    assert code == 0 and 'name = "smoke"' in out
    (tmp_path / "smoke").write_text('[run]\nname = "mine"\n')
    assert 'name = "mine"' in redqueen("train", "smoke", "--dry-run")[1]


@pytest.mark.parametrize("preset", ["smoke", "population", "single", "paper"])
def test_the_kinds_of_domains_that_are_set_take_the_place_of_a_presets(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("train", preset, "--dry-run", "--set", "propose.domains=maths")
    code, out, _ = redqueen(*words)
    assert code == 0 and "num_proposals = {}" in out
    assert (
        "# propose.num_proposals: left out code_f, code_i, code_o, not kinds of maths; a kind without a number" in out
    )
    assert 'num_proposals = {"maths_word": 3}' in redqueen(*words, "--set", "propose.num_proposals.maths_word=3")[1]
    for mistake in ("propose.num_proposals.code_o=3", "propose.num_code_o=3", "propose.num_proposals={code_o = 3}"):
        assert "propose.num_proposals names code_o" in refusal(redqueen(*words, "--set", mistake))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("run.steps=3", "num_steps"),
        ("learn.lr=1", ""),
        ("populaton.single=true", "population"),
        ("run.seed=1", "rng_seed"),
    ],
)
def test_a_misspelt_field_is_answered_with_the_one_that_was_meant(asked: str, meant: str) -> None:
    line = refusal(redqueen("train", "--set", asked, "--dry-run"))
    assert (f"(did you mean {meant}?)" in line) == bool(meant)


def test_a_fault_between_sections_is_said_after_the_files_name_alone(tmp_path: Path) -> None:
    line = refusal(redqueen("train", "smoke", "--set", "cluster.num_shards=99", "--dry-run"))
    assert line.startswith("smoke: cluster.num_shards is 99, and there are")


def test_a_runs_config_and_an_experiment_are_told_from_each_other(tmp_path: Path) -> None:
    line = refusal(redqueen("experiment", CONFIGS / "smoke.toml"))
    assert (
        f"holds the config of one run, not an experiment: start it with `redqueen train {CONFIGS / 'smoke.toml'}`"
        in line
    )
    plan = CONFIGS.parent / "experiments" / "smoke.toml"
    assert f"holds an experiment, not the config of a run: start it with `redqueen experiment {plan}`" in refusal(
        redqueen("train", plan, "--dry-run")
    )


@pytest.mark.parametrize("command", ["resume", "report", "diff", "export"])
def test_a_folder_that_is_no_run_is_refused_by_every_command_that_reads_one(tmp_path: Path, command: str) -> None:
    more = {"diff": [tmp_path], "export": ["--member", "S1", "--out", tmp_path / "out"]}.get(command, [])
    line = refusal(redqueen(command, tmp_path, *more))
    assert str(tmp_path) in line
    assert list(tmp_path.iterdir()) == []


def test_exporting_a_member_that_does_not_live_names_those_who_do(quick_run: Path, tmp_path: Path) -> None:
    line = refusal(redqueen("export", quick_run, "--member", "S9", "--out", tmp_path / "out"))
    assert "--member S9 is not a present member of" in line and "T1" in line and "S" in line.split("choose one of")[1]
    assert not (tmp_path / "out").exists()


def test_exporting_into_a_folder_that_exists_is_refused(quick_run: Path, tmp_path: Path) -> None:
    assert "exists already" in refusal(redqueen("export", quick_run, "--member", "S1", "--out", tmp_path))


def test_a_report_in_an_unknown_format_is_refused(quick_run: Path, tmp_path: Path) -> None:
    line = refusal(redqueen("report", quick_run, "--format", "pdf", "--out", tmp_path / "x"))
    assert line == "--format pdf is the format of a table: name one with --table, or leave it out"


def test_the_pages_of_the_documentation_are_listed_with_their_titles_own_models_first() -> None:
    folder = Path(__file__).parents[1] / "docs"
    code, out, err = redqueen("docs")
    lines = out.splitlines()
    assert code == 0 and str(folder) in err
    titles = {page.stem: page.read_text(encoding="utf-8").splitlines()[0] for page in folder.glob("*.md")}
    assert {name: f"# {title}" for name, title in (line.split(maxsplit=1) for line in lines)} == titles
    assert lines[0].startswith("real-models ")


@pytest.mark.parametrize(
    ("asked", "name"), [("faq", "faq"), ("runs", "runs"), ("own-model", "real-models"), ("Own domain", "own-domain")]
)
def test_a_page_of_the_documentation_is_printed_by_its_name_or_words_of_its_title(asked: str, name: str) -> None:
    folder = Path(__file__).parents[1] / "docs"
    code, out, _ = redqueen("docs", asked)
    assert code == 0 and out.rstrip() == (folder / f"{name}.md").read_text(encoding="utf-8").rstrip()


def test_a_page_that_is_not_there_or_not_the_only_one_is_refused_with_those_that_are() -> None:
    assert "no page fqa (did you mean faq?): choose one of real-models, " in refusal(redqueen("docs", "fqa"))
    assert refusal(redqueen("docs", "own")).endswith("no page own: choose one of real-models, own-domain")


def test_a_command_that_is_not_there_exits_with_two() -> None:
    code, _, err = redqueen("evolve")
    assert code == 2 and "No such command" in err


# What the commands do ------------------------------------------------------------------------------------------


def test_a_living_member_is_exported_as_a_whole_peft_folder(quick_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "member"
    _, _, err = redqueen("export", quick_run, "--member", "nobody", "--out", out)
    member = err.split("choose one of")[1].split(",")[-1].strip()
    code, printed, err = redqueen("export", quick_run, "--member", member, "--out", out)
    assert (code, printed.strip()) == (0, str(out))
    assert err.splitlines()[-1] == f"how to load and prompt it (pip install peft): {out / 'README.md'}"
    assert (out / "adapter_model.safetensors").is_file()
    adapter = json.loads((out / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"]) == (2, 4.0)
    assert adapter["base_model_name_or_path"] == "base"  # where AutoPeftModel looks for it
    assert (out / "base" / "model.safetensors").is_file()
    _, _, err = redqueen("export", quick_run, "--member", member, "--merge", "--out", tmp_path / "whole")
    assert err.splitlines()[-1] == f"how to load and prompt it: {tmp_path / 'whole' / 'README.md'}"


def test_runs_are_compared_by_their_journals(quick_run: Path, tmp_path: Path) -> None:
    shutil.copytree(quick_run, tmp_path / "copy")
    assert redqueen("diff", quick_run, tmp_path / "copy")[:2] == (0, "equal\n")
    from redqueen.journal import Journal

    with Journal.open(tmp_path / "copy" / "journal.sqlite") as journal:
        journal.connection.execute("UPDATE candidate SET reward = 0.123 WHERE seq = 1")
    code, out, _ = redqueen("diff", quick_run, tmp_path / "copy")
    assert code == 1 and "table candidate, row seq=1: reward" in out


def test_a_report_can_be_written_anew(quick_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert redqueen("report", quick_run, "--out", out)[:2] == (0, f"{out}\n")
    assert "2T+2S" in out.read_text()


def test_the_doctor_says_for_each_thing_whether_it_is_well() -> None:
    extras = set(metadata("redqueen").get_all("Provides-Extra", [])) - set(UNLISTED_EXTRAS)
    code, out, _ = redqueen("doctor")
    lines = out.strip().splitlines()
    assert {line[:3] for line in lines} <= {"ok ", "BAD", "-  "}
    assert all((line[:3] == "-  ") == (": missing " in line) for line in lines)
    assert code == (1 if any(line.startswith("BAD") for line in lines) else 0)
    for name in ("python", "torch", "embedded base: sampled", "sandbox", *map("extra {}: ".format, extras)):
        assert any(f"  {name}" in line for line in lines)
    assert sum("  extra " in line for line in lines) == len(extras), "extras that users do not need are listed"


def test_the_doctor_names_the_command_for_an_extra_of_which_something_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_z3(name: str) -> str:
        if name == "z3-solver":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("redqueen.commands.doctor.version", without_z3)
    lines = list(takewhile(lambda line: line[0] != "cores", examine()))
    assert ("extra logic", "missing z3-solver: pip install 'redqueen[logic]'", True) in lines
    client = f"httpx2 {version('httpx2')}"  # vLLM itself has an environment of its own
    assert ("extra vllm", client, True) in lines


def test_the_doctor_fails_in_one_sentence_where_sampling_or_learning_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other_signature(*_: object) -> None:
        raise TypeError("got an unexpected\nkeyword argument")

    monkeypatch.setattr("redqueen.learn.torch_learner.TorchLearner.update", other_signature)
    code, out, _ = redqueen("doctor")
    assert code == 1
    assert "BAD  embedded base: sampling and learning failed (TypeError: got an unexpected keyword argument)" in out


def test_all_operators_that_a_config_may_name_are_listed() -> None:
    code, out, _ = redqueen("operators")
    assert code == 0
    assert set(OPERATORS) <= set(out.replace("|", " ").split())


def test_operators_and_the_doctors_lines_come_as_json_too() -> None:
    _, out, _ = redqueen("operators", "--json")
    assert {row["id"] for row in json.loads(out)} == set(OPERATORS)
    _, out, _ = redqueen("doctor", "--json")
    assert {"name", "value", "ok"} == set(json.loads(out)[0])


def test_the_operators_of_the_config_are_those_of_evolution() -> None:
    from redqueen.evolve.operators import OPERATORS as BY_NAME

    assert set(OPERATORS) == set(BY_NAME)


def test_the_resolved_config_is_whole_on_the_report(quick_run: Path) -> None:
    page = html.unescape((quick_run / "report.html").read_text())
    config = page.split("<summary>Resolved config</summary>")[1].split("</details>")[0]
    assert "more characters" not in config
    assert all(f'"{section}": {{' in config for section in Config.model_fields)
