"""A GGUF file is a base: unpacked once, into a cache that has a name, and read from there."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.policy.base_shape import base_shape
from redqueen.policy.gguf import CACHE_VARIABLE, cache_folder, gguf_file, how_read, unpack

WIDTH, INNER, LAYERS, HEADS = 64, 128, 2, 4
LETTERS = [chr(ord("a") + i) for i in range(26)]
VOCABULARY = ["<unk>", "<s>", "</s>", *LETTERS, "Ġ", "Ċ", "ab"]


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.2).astype(np.float32)

    found = {"token_embd.weight": draw(len(VOCABULARY), WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    for i in range(LAYERS):
        square = {f"blk.{i}.attn_{name}.weight": draw(WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        found |= square | {f"blk.{i}.ffn_{name}.weight": draw(INNER, WIDTH) for name in ("gate", "up")}
        found[f"blk.{i}.ffn_down.weight"] = draw(WIDTH, INNER)
        found |= {f"blk.{i}.{name}_norm.weight": np.ones(WIDTH, np.float32) for name in ("attn", "ffn")}
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, np.ndarray]) -> Path:
    """A Llama of two layers, its matrices in eight bits."""
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(VOCABULARY))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(VOCABULARY)
    writer.add_token_types([3, 3, 3, *[1] * (len(VOCABULARY) - 3)])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    eight = gguf.GGMLQuantizationType.Q8_0
    for name, array in weights.items():
        if array.ndim == 2:
            writer.add_tensor(name, gguf.quants.quantize(array, eight), raw_dtype=eight)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_shape_is_read_from_the_header_and_nothing_is_written(file: Path, cache: Path) -> None:
    shape = base_shape(str(file))
    assert shape is not None and (shape["hidden_size"], shape["num_hidden_layers"]) == (WIDTH, LAYERS)
    assert list(cache.iterdir()) == []
    assert f"will be unpacked once (dequantised to bfloat16) into {cache}" in how_read(str(file))


def test_weights_are_those_of_the_file_up_to_its_rounding(
    file: Path, cache: Path, weights: dict[str, np.ndarray]
) -> None:
    model, tokenizer = load_base(str(file))
    assert model.dtype == torch.bfloat16 and tokenizer.eos_token == "</s>"
    down = model.model.layers[1].mlp.down_proj.weight.float().detach().numpy()
    assert np.abs(down - weights["blk.1.ffn_down.weight"]).max() < 0.01
    assert "was unpacked" in how_read(str(file))


def test_a_folder_with_one_such_file_means_the_file_and_the_second_time_reads_the_cache(
    file: Path, cache: Path
) -> None:
    first, _ = load_base(str(file.parent))
    written = cache_folder(file) / "model.safetensors"
    before = written.stat().st_mtime_ns
    again, _ = load_base(str(file))
    assert written.stat().st_mtime_ns == before
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert AutoModelForCausalLM.from_pretrained(cache_folder(file)).config.vocab_size == len(VOCABULARY)


def test_another_file_of_the_same_name_has_another_place(file: Path, tmp_path: Path, cache: Path) -> None:
    other = tmp_path / file.name
    data = file.read_bytes()
    for at in (len(data) - 1, len(data) // 2):  # also one module in its middle
        other.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert cache_folder(other) != cache_folder(file)


def test_a_damaged_file_and_a_folder_with_several_are_refused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(UserError, match=r"one\.gguf cannot be read as a GGUF model"):
        load_base(str(tmp_path / "one.gguf"))
    (tmp_path / "two.gguf").write_bytes(b"")
    with pytest.raises(UserError, match="has 2 GGUF files: name one of them"):
        gguf_file(str(tmp_path))


def test_without_the_package_the_extra_is_named(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redqueen.policy.gguf.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"the package that reads it is missing: pip install .*gguf"):
        unpack(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_that_another_process_has_just_unpacked_is_taken(file: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "config.json").write_text("{}")
    unpack(file, tmp_path / "there")
    assert (tmp_path / "there" / "config.json").read_text() == "{}"
