"""Beginning with earlier weights: rows by token text, the sharpness taken out again, and what is refused."""

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from redqueen.domains.compact import MARKS
from redqueen.errors import UserError
from redqueen.policy.base_shape import embedded_folder
from redqueen.tiny import train
from redqueen.tiny.recipe import RECIPES, Recipe, build_model
from redqueen.tiny.start import begin_with, carried_rows
from redqueen.tiny.tokenizer import build_tokenizer
from redqueen.tiny.train import Trainer

FIRST = Recipe(
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    intermediate_size=16,
    max_positions=320,
    num_steps=2,
    num_rows=2,
    row_tokens=256,
    warmup_steps=1,
    vocabulary_programs=40,
)
SECOND = dataclasses.replace(FIRST, continues="first", mixture={"basic": 1.0, "everyday": 1.0}, rng_seed=1)


@pytest.fixture(autouse=True)
def recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, "first", FIRST)
    monkeypatch.setitem(RECIPES, "second", SECOND)
    monkeypatch.setattr(train, "held_out_skeletons", lambda folder: frozenset())


def test_rows_are_carried_over_by_text_and_a_new_one_is_the_mean_of_its_bytes() -> None:
    known, wanted = build_tokenizer(["def ", "sum"]), build_tokenizer(["for ", "def "])
    rows = torch.randn(len(known), 4)
    result = carried_rows(rows, known, wanted, len(wanted) + 5)
    at, then = known.convert_tokens_to_ids, wanted.convert_tokens_to_ids
    assert torch.equal(result[then("defĠ")], rows[at("defĠ")])
    assert torch.equal(result[then("a")], rows[at("a")])
    spelled = (rows[at("f")] + rows[at("o")] + rows[at("r")] + rows[at("Ġ")]) / 4
    assert torch.allclose(result[then("forĠ")], spelled)
    assert torch.allclose(result[-1], rows.mean(0), atol=1e-6)


def test_a_mark_that_was_not_there_gets_the_mean_of_those_that_were() -> None:
    known, wanted = build_tokenizer([]), build_tokenizer(["sum"])
    earlier = {token: index for token, index in known.get_vocab().items() if token != MARKS[-1]}
    rows = torch.randn(len(known), 4)

    class Older:
        def get_vocab(self) -> dict[str, int]:
            return earlier

    result = carried_rows(rows, Older(), wanted, len(wanted))  # type: ignore[arg-type]
    assert torch.allclose(result[len(MARKS) - 1], rows[: len(MARKS) - 1].mean(0), atol=1e-6)


def test_a_training_that_goes_on_from_a_base_begins_with_its_weights_unsharpened(tmp_path: Path) -> None:
    train.train_base(tmp_path / "one", "first", None, "cpu", False, lambda line: None)
    trainer = Trainer(SECOND, tmp_path / "two", frozenset(), start=tmp_path / "one" / "base")
    trained = load_file(tmp_path / "one" / "checkpoint.safetensors")
    state = trainer.model.state_dict()
    for name, tensor in trained.items():
        if name != "model.embed_tokens.weight":
            assert torch.allclose(state[name], tensor, atol=2e-3), name  # fp16 on the way
    assert torch.equal(state["lm_head.weight"], state["model.embed_tokens.weight"])


def test_one_command_trains_the_earlier_recipe_first_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    lines: list[str] = []
    train.train_base(tmp_path, "second", None, "cpu", False, lines.append)
    assert [line for line in lines if line.startswith("wrote")] == [
        f"wrote {tmp_path}/first/base", f"wrote {tmp_path}/base",
    ]  # fmt: skip
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    lines.clear()
    train.train_base(tmp_path, "second", None, "cpu", False, lines.append)
    assert lines == [f"wrote {tmp_path}/base"]
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_with_a_start_the_earlier_recipe_is_not_trained_and_the_result_is_the_same(tmp_path: Path) -> None:
    train.train_base(tmp_path / "whole", "second", None, "cpu", False, lambda line: None)
    start = tmp_path / "whole" / "first" / "base"
    train.train_base(tmp_path / "parts", "second", None, "cpu", False, lambda line: None, start)
    assert not (tmp_path / "parts" / "first").exists()
    whole, parts = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(tensor, parts[name]) for name, tensor in whole.items())


def test_a_start_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    model, tokenizer = build_model(FIRST, build_tokenizer([])), build_tokenizer([])
    with pytest.raises(UserError, match=r"--start .*nowhere: there is no base"):
        begin_with(model, tokenizer, tmp_path / "nowhere", 1.0)
    with pytest.raises(UserError, match="another architecture"):
        begin_with(model, tokenizer, embedded_folder(), 1.0)
    with pytest.raises(UserError, match="the recipe first begins from nothing"):
        train.train_base(tmp_path, "first", None, "cpu", False, lambda line: None, embedded_folder())
    with pytest.raises(UserError, match="--start must name the folder"):
        Trainer(SECOND, tmp_path / "other", frozenset())


def test_a_recipe_can_go_on_from_the_weights_that_ship() -> None:
    recipe = RECIPES["broad"]
    tokenizer = build_tokenizer(["def ", "return "])
    model = build_model(recipe, tokenizer)
    begin_with(model, tokenizer, embedded_folder(), recipe.sharpness)
    norm = load_file(embedded_folder() / "model.safetensors")["model.norm.weight"].float()
    assert torch.allclose(model.state_dict()["model.norm.weight"] * recipe.sharpness, norm)
