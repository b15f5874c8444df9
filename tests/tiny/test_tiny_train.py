"""Training the embedded base: a stopped training goes on exactly, and what comes out is a Hugging Face model."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from command_line import redqueen
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.policy.base_shape import embedded_folder
from redqueen.tiny import train
from redqueen.tiny.recipe import RECIPES, Recipe
from redqueen.tiny.train import Trainer, write_base

MICRO = Recipe(
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    intermediate_size=16,
    max_positions=320,
    num_steps=4,
    num_rows=2,
    row_tokens=256,
    warmup_steps=2,
    vocabulary_programs=40,
)


def train_in(folder: Path, stop_after_s: float = float("inf")) -> Trainer:
    trainer = Trainer(MICRO, folder, frozenset())
    trainer.run(lambda line: None, stop_after_s=stop_after_s)
    return trainer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the micro recipe was trained in one go."""
    folder = tmp_path_factory.mktemp("micro") / "whole"
    train_in(folder)
    return folder


def test_a_training_that_was_stopped_goes_on_exactly(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "CHECKPOINT_EVERY_S", -1.0)  # save after every step, and stop at the first
    assert train_in(tmp_path / "parts", stop_after_s=-1.0).step == 1
    assert train_in(tmp_path / "parts", stop_after_s=-1.0).step == 2
    assert train_in(tmp_path / "parts").step == 4
    for name in ("checkpoint.safetensors", "optimizer.safetensors"):
        whole, parts = load_file(trained / name), load_file(tmp_path / "parts" / name)
        assert whole.keys() == parts.keys()
        for key, tensor in whole.items():
            assert torch.equal(tensor, parts[key]), (name, key)
    counts = [json.loads((f / "progress.json").read_text())["tokens_seen"] for f in (trained, tmp_path / "parts")]
    assert counts[0] == counts[1] > 0


def test_a_training_that_is_over_does_nothing_more(trained: Path) -> None:
    before = (trained / "checkpoint.safetensors").read_bytes()
    trainer = Trainer(MICRO, trained, frozenset())
    assert trainer.step == MICRO.num_steps
    trainer.run(lambda line: None)
    assert (trained / "checkpoint.safetensors").read_bytes() == before


def test_another_recipe_in_the_same_folder_is_refused(trained: Path) -> None:
    with pytest.raises(UserError, match=r"recipe\.json differs .* choose another --out folder"):
        Trainer(dataclasses.replace(MICRO, muon_lr=1e-3), trained, frozenset())


def test_the_folder_that_comes_out_is_a_model_that_transformers_loads(trained: Path, tmp_path: Path) -> None:
    base = write_base(trained, tmp_path / "base")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base), AutoTokenizer.from_pretrained(base)
    logits = model(**tokenizer("<|bos|>def f(x):", return_tensors="pt", add_special_tokens=False)).logits
    assert logits.isfinite().all()
    weights = load_file(trained / "checkpoint.safetensors")
    assert torch.equal(model.get_input_embeddings().weight.float(), weights["model.embed_tokens.weight"].half().float())
    assert load_base(str(base))[0].config.vocab_size % 32 == 0
    sharp = weights["model.norm.weight"] * MICRO.sharpness
    assert torch.equal(model.model.norm.weight.float(), sharp.half().float())


def test_the_shipped_base_is_small_enough_and_in_the_form_the_recipe_makes() -> None:
    folder = embedded_folder()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 12e6
    model, tokenizer = load_base("embedded")
    recipe, config = Recipe(), model.config
    assert config.model_type == "qwen3"
    assert (config.hidden_size, config.num_hidden_layers) == (recipe.hidden_size, recipe.num_layers)
    assert config.max_position_embeddings == recipe.max_positions
    assert config.vocab_size >= len(tokenizer)
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


def test_a_recipe_that_does_not_exist_is_refused_with_the_names_of_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--recipe other: there is no such recipe; choose one of basic, everyday"):
        train.train_base(tmp_path, "other", 1, "cpu", False, lambda line: None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "foo"], "--device foo is unknown: choose cpu or cuda"),
        (["--steps", "0"], "--steps 0 trains nothing: give 1 or more"),
        (["--steps", "-5"], "--steps -5 trains nothing"),
        (["--recipe", "everyday", "--start", "nowhere"], "--start nowhere: there is no base"),
        pytest.param(
            ["--device", "cuda"],
            "--device cuda: this machine shows no CUDA device",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device"),
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_sentence_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.setattr(train, "held_out_skeletons", lambda suites: pytest.fail("it began"))
    monkeypatch.setattr(train, "Trainer", lambda *given: pytest.fail("it began"))
    code, _, err = redqueen("tiny", "train", "--recipe", "basic", "--out", tmp_path / "out", *words)
    assert code == 2 and said in err
    assert list(tmp_path.iterdir()) == []


def test_each_recipe_goes_on_from_the_one_before_it_and_keeps_its_shape_and_words() -> None:
    chain = {name: recipe for name, recipe in RECIPES.items() if name not in ("young", "maths")}
    assert [recipe.continues for recipe in chain.values()] == ["", *chain][: len(chain)]
    assert RECIPES["young"].continues == ""  # from nothing, and ends early
    assert RECIPES["maths"].continues == "broad"  # beside the chain: what a doubling is worth
    assert {recipe.teaching().think_habit_frac for recipe in list(RECIPES.values())[1:]} == {0.97}
    shapes = {(r.hidden_size, r.num_layers, r.num_heads, r.intermediate_size) for r in RECIPES.values()}
    assert len(shapes) == len({r.vocabulary_seed for r in RECIPES.values()}) == 1
