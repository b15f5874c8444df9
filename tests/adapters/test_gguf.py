"""A GGUF file is a base: transformers reads and dequantises it."""

import hashlib
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tiny_models import tiny_bank
from transformers import AutoModelForCausalLM

from redqueen.adapters.base_shape import BaseIdentity, base_shape, identify_base
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.commands.export import write_merged
from redqueen.config.training import LearnConfig
from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Request, Rollout
from redqueen.report.model_card import _loading

WIDTH, INNER, LAYERS, HEADS = 64, 128, 2, 4
LETTERS = [chr(ord("a") + i) for i in range(26)]
VOCABULARY = ["<unk>", "<s>", "</s>", *LETTERS, "Ġ", "Ċ", "ab", "<|endoftext|>"]  # transformers adds the last


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


def test_the_shape_is_read_from_the_header(file: Path) -> None:
    shape = base_shape(str(file))
    assert shape is not None and (shape["hidden_size"], shape["num_hidden_layers"]) == (WIDTH, LAYERS)


def test_weights_are_those_of_the_file_up_to_its_rounding(file: Path, weights: dict[str, np.ndarray]) -> None:
    model, tokenizer = load_base(str(file))
    assert model.dtype == torch.bfloat16 and tokenizer.eos_token == "</s>"
    down = model.model.layers[1].mlp.down_proj.weight.float().detach().numpy()
    assert np.abs(down - weights["blk.1.ffn_down.weight"]).max() < 0.01


def test_a_member_on_it_is_sampled_trained_and_merged_into_a_plain_model(file: Path, tmp_path: Path) -> None:
    model, tokenizer = load_base(str(file))
    bank = tiny_bank(model=model, num_members=1)
    [[written]] = TorchSampler(bank, 4, [tokenizer.eos_token_id]).sample([Request(0, (5, 6, 7), 1, 0)])
    learner = TorchLearner(bank, LearnConfig(), temperature=1.0, pad_id=0)
    [stats] = learner.update([Rollout(0, (5, 6, 7), (written,), (1.0,))])
    assert stats.stepped
    write_merged(str(file), bank.genotype(0), tmp_path / "merged")
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype="auto")
    assert merged.config.vocab_size == len(VOCABULARY) and merged.dtype == torch.bfloat16
    assert not torch.equal(
        merged.model.layers[0].mlp.up_proj.weight, load_base(str(file))[0].model.layers[0].mlp.up_proj.weight
    )


def test_its_identity_is_the_digest_of_the_file_and_the_card_of_an_adapter_loads_it(file: Path) -> None:
    identity = identify_base(str(file))
    assert identity == BaseIdentity(str(file.resolve()), hashlib.sha256(file.read_bytes()).hexdigest())
    code = (
        _loading(identity.name, merged=False, is_local=True, folder="'.'").partition("model =")[0].partition("\n")[2]
    )  # no peft
    found: dict = {}
    exec(code, found)
    expected, _ = load_base(str(file))
    pairs = zip(found["base"].parameters(), expected.parameters(), strict=True)
    assert all(torch.allclose(a.float(), b.float(), atol=0.01) for a, b in pairs)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(UserError, match=r"one\.gguf cannot be read as a GGUF model"):
        load_base(str(tmp_path / "one.gguf"))


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_without_a_package_that_reads_it_the_extra_is_named(
    package: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.adapters.base_shape.find_spec", lambda name: None if name == package else name)
    with pytest.raises(UserError, match=rf"is a GGUF file, which needs {package}: pip install 'redqueen\[gguf\]'"):
        load_base(str(file))
