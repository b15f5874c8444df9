"""The engine: what its samplers have in common, and which bases it does not load."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from small_bases import small_base

from redqueen.config import load_config
from redqueen.engine import load_adapters, load_base
from redqueen.errors import UserError

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_base(tmp_path / "base")


def rewritten(folder: Path, leave: Callable[[str], bool]) -> None:
    tensors = {name: tensor for name, tensor in load_file(folder / WEIGHTS).items() if leave(name)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def set_in_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_base_that_lacks_weights_is_refused_and_not_filled_with_random_ones(folder: Path) -> None:
    load_base(str(folder))
    rewritten(folder, lambda name: "layers.0.mlp.up_proj" not in name)
    with pytest.raises(UserError, match=r"lacks 1 of its tensors \(model\.layers\.0\.mlp\.up_proj\.weight"):
        load_base(str(folder))


def test_code_that_a_model_folder_brings_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()")
    classes = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.T", None]}
    set_in_config(folder, auto_map=classes, model_type="evil")
    of_tokenizer = folder / "tokenizer_config.json"
    of_tokenizer.write_text(json.dumps(json.loads(of_tokenizer.read_text()) | {"auto_map": classes}))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question was asked"))
    with pytest.raises(UserError, match=r"model\.base"):
        load_base(str(folder))
    assert not (folder / "ran").exists()


def test_a_base_with_tied_weights_lacks_nothing() -> None:
    load_base("embedded")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:200]),
        lambda folder: (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        lambda folder: (folder / WEIGHTS).write_bytes(b""),
        lambda folder: (folder / WEIGHTS).unlink(),
        lambda folder: set_in_config(folder, hidden_size=48),
        lambda folder: set_in_config(folder, hidden_size=47),
        lambda folder: set_in_config(folder, num_hidden_layers=9),
        lambda folder: (folder / "tokenizer.json").write_text('{"a": 1}'),
    ],
    ids=["cut", "pointer", "empty", "gone", "other shape", "odd shape", "more layers", "other tokenizer"],
)
def test_a_damaged_base_is_refused_in_a_sentence(folder: Path, damage: Callable[[Path], object]) -> None:
    damage(folder)
    with pytest.raises(UserError, match=r"model\.base .* (cannot be loaded: \w|lacks \d+ of its tensors|has no token)"):
        load_base(str(folder))


@pytest.mark.parametrize(("given", "expected"), [(0.0, 0.8), (1.1, 1.1)])
def test_proposals_have_a_temperature_of_their_own_or_the_solvers(given: float, expected: float) -> None:
    overrides = ["solve.temperature=0.8", f"propose.temperature={given}", "run.device=cpu"]
    adapters = load_adapters(load_config(Path(__file__).parent / "quick.toml", overrides))
    assert (adapters.proposer.temperature, adapters.solver.temperature) == (expected, 0.8)  # type: ignore[attr-defined]
