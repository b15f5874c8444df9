"""What a base cannot do is said before the run's folder is made; each base here is a real one, made small."""

import json
from pathlib import Path

import pytest
from command_line import redqueen
from small_bases import masked_base, small_base

QUICK = Path(__file__).parents[1] / "quick.toml"


def changed_tokenizer(folder: Path, **fields: object) -> Path:
    path = folder / "tokenizer_config.json"
    kept = {name: value for name, value in json.loads(path.read_text()).items() if fields.get(name, 0) is not None}
    path.write_text(json.dumps(kept | {name: value for name, value in fields.items() if value is not None}))
    return folder


def no_tokenizer(folder: Path) -> Path:
    return small_base(folder, with_tokenizer=False)


def no_end_token(folder: Path) -> Path:
    return changed_tokenizer(small_base(folder), eos_token=None, pad_token=None)


def broken_template(folder: Path) -> Path:
    return changed_tokenizer(small_base(folder), chat_template="{{ raise_exception('never') }}")


def no_room_for_a_prompt(folder: Path) -> Path:
    return small_base(folder, positions=256)


def gguf(folder: Path) -> Path:
    path = folder.with_suffix(".gguf")
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_tokenizer, "has no tokenizer that can be read: put its tokenizer.json"),
        (no_end_token, "has no end token, so completions would not end: set eos_token"),
        (broken_template, "cannot write a prompt (never): repair its chat template"),
        (no_room_for_a_prompt, "tokens, but at most 212 fit: lower propose.max_new_tokens"),
        (masked_base, "is a BertForMaskedLM, which does not continue a text: give a causal language model"),
        (gguf, "cannot be read as a GGUF model"),
    ],
)
def test_a_base_that_cannot_play_is_refused_in_a_sentence_and_leaves_no_folder(
    make: object, said: str, tmp_path: Path
) -> None:
    base = make(tmp_path / "base")  # type: ignore[operator]
    options = ("--set", f"model.base={base}", "--set", "model.prompt_format=chat")
    lines = []
    for dry in ([], ["--dry-run"]):
        code, _, err = redqueen("train", QUICK, *options, "--run-dir", tmp_path / "run", *dry)
        lines.append(err.strip().splitlines()[-1])
        assert code == 2
    assert lines[0] == lines[1] and lines[0].startswith("redqueen: ") and said in lines[0]
    assert not (tmp_path / "run").exists()


def test_the_suite_must_have_room_too(tmp_path: Path) -> None:
    words = [
        "--set",
        "solve.max_new_tokens=500",
        "--set",
        "propose.max_new_tokens=16",
        "--set",
        "evaluate.max_items=400",
        "--set",
        "model.prompt_format=fewshot",
    ]
    base = small_base(tmp_path / "base", positions=1000)
    code, _, err = redqueen("train", QUICK, "--set", f"model.base={base}", "--run-dir", tmp_path / "run", *words)
    assert code == 2 and "the longest question of the held-out suite has" in err
    assert not (tmp_path / "run").exists()


def test_a_name_that_the_hub_does_not_give_is_told_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("nobody/nothing", "models/nofolder", "qwen-typo"):
        words = ("train", QUICK, "--set", f"model.base={name}", "--run-dir", tmp_path / "run")
        told = [redqueen(*words, *dry) for dry in ([], ["--dry-run"])]
        refusals = {err.strip().splitlines()[-1] for _, _, err in told}
        assert [code for code, _, _ in told] == [2, 2] and len(refusals) == 1
        assert f"{name} is not a folder, is not in the hub's cache on this machine" in min(refusals)
    assert not (tmp_path / "run").exists()
