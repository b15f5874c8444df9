"""What a base cannot do is said before the run's folder is made; each base here is a real one, made small."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import redqueen
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from redqueen.policy.base_shape import embedded_folder

QUICK = Path(__file__).parents[1] / "quick.toml"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def small_base(folder: Path, positions: int = 4096, with_tokenizer: bool = True) -> Path:
    """A Llama of one layer with random weights and the embedded base's tokenizer."""
    vocabulary = json.loads((embedded_folder() / "config.json").read_text())["vocab_size"]
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=vocabulary, num_key_value_heads=1, max_position_embeddings=positions, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    for name in TOKENIZER if with_tokenizer else ():
        shutil.copy(embedded_folder() / name, folder / name)
    return folder


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


def masked(folder: Path) -> Path:
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertForMaskedLM(BertConfig(vocab_size=100, **sizes)).save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copy(embedded_folder() / name, folder / name)
    return folder


def gguf(folder: Path) -> Path:
    path = folder.with_suffix(".gguf")
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_tokenizer, "has no tokenizer that can be read: put its tokenizer.json"),
        (no_end_token, "has no end token, so that no text would ever end: set eos_token"),
        (broken_template, "cannot write a prompt (never): mend its chat template"),
        (no_room_for_a_prompt, "tokens, and there is room for 160: lower propose.max_new_tokens"),
        (masked, "is a BertForMaskedLM, which does not continue a text: give a causal language model"),
        (gguf, "is a GGUF file, whose weights are packed for inference: give the Hugging Face folder"),
    ],
)
def test_a_base_that_cannot_play_is_refused_in_a_sentence_and_leaves_no_folder(
    make: object, said: str, tmp_path: Path
) -> None:
    base = make(tmp_path / "base")  # type: ignore[operator]
    code, _, err = redqueen("train", QUICK, "--set", f"model.base={base}", "--run-dir", tmp_path / "run")
    line = err.strip().splitlines()[-1]
    assert code == 2 and line.startswith("redqueen: ") and said in line
    assert not (tmp_path / "run").exists()


def test_the_suite_must_have_room_too(tmp_path: Path) -> None:
    words = ["--set", "solve.max_new_tokens=500", "--set", "propose.max_new_tokens=16"]
    base = small_base(tmp_path / "base", positions=1000)
    code, _, err = redqueen("train", QUICK, "--set", f"model.base={base}", "--run-dir", tmp_path / "run", *words)
    assert code == 2 and "the longest question of the held-out suite has" in err
    assert not (tmp_path / "run").exists()


def test_a_name_that_the_hub_does_not_give_is_told_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, _, err = redqueen("train", QUICK, "--set", "model.base=nobody/nothing", "--run-dir", tmp_path / "run")
    assert code == 2 and "is no folder here and not in this machine's cache of the hub" in err
    assert not (tmp_path / "run").exists()
