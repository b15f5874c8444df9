"""Training the embedded base: a stopped training continues exactly, and the result is a Hugging Face model."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from recipes.embedded_base import stages, train
from recipes.embedded_base.stages import SHARPNESS, STAGES, build_model
from recipes.embedded_base.tokenizer import build_tokenizer
from recipes.embedded_base.train import Trainer, carried_rows, main
from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains.frames import MARKS
from redqueen.engine import load_base
from redqueen.errors import UserError

SMALL = {"HIDDEN_SIZE": 16, "NUM_LAYERS": 1, "NUM_HEADS": 2, "NUM_KV_HEADS": 1, "INTERMEDIATE_SIZE": 16}
NUM_STEPS = 3


@pytest.fixture(scope="module", autouse=True)
def small() -> None:
    """A model of a few thousand parameters, and batches of two rows."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(stages, name, value)
        patch.setattr(train, "STAGES", tuple(replace(stage, num_rows=2) for stage in STAGES))
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three stages, trained in one go."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    main(["--out", str(folder), "--steps", str(NUM_STEPS), "--vocabulary", "40"])
    return folder


def test_each_stage_writes_a_model_that_loads(trained: Path) -> None:
    for stage in STAGES:
        model, tokenizer = load_base(str(trained / stage.name))
        logits = model(**tokenizer("<|bos|>def f(x):", return_tensors="pt", add_special_tokens=False)).logits
        assert logits.isfinite().all() and model.config.vocab_size % 32 == 0
        state = torch.load(trained / f"{stage.name}.pt", weights_only=True)["model"]
        sharp = state["model.norm.weight"] * SHARPNESS
        assert torch.equal(model.model.norm.weight.float(), sharp.half().float())


def test_a_stopped_training_continues_exactly(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    save, limit = Trainer._save, [1]

    def stop_after_one(self: Trainer) -> None:
        save(self)
        if limit and self.step == limit[0] and self.stage.name == "everyday":
            limit.clear()
            raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_save", stop_after_one)
    arguments = ["--out", str(tmp_path), "--steps", str(NUM_STEPS), "--vocabulary", "40"]
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    main(arguments)
    for stage in STAGES:
        whole, parts = (load_file(folder / stage.name / "model.safetensors") for folder in (trained, tmp_path))
        assert whole.keys() == parts.keys() and all(torch.equal(whole[name], parts[name]) for name in whole)
    before = (tmp_path / "broad" / "model.safetensors").stat().st_mtime_ns
    capsys.readouterr()
    main(arguments)
    assert capsys.readouterr().out == f"wrote {tmp_path}/broad\n"
    assert (tmp_path / "broad" / "model.safetensors").stat().st_mtime_ns == before


def test_a_checkpoint_of_other_settings_is_refused(trained: Path) -> None:
    tokenizer = build_tokenizer([])
    with pytest.raises(UserError, match=r"basic\.pt has other settings: choose another --out"):
        Trainer(train.STAGES[0], tokenizer, trained / "basic.pt", None, "cpu")


def test_a_stage_starts_from_the_weights_of_the_one_before_without_their_sharpness(trained: Path) -> None:
    tokenizer = load_base(str(trained / "everyday"))[1]
    trainer = Trainer(train.STAGES[1], tokenizer, trained / "none.pt", trained / "basic", "cpu")
    before = torch.load(trained / "basic.pt", weights_only=True)["model"]
    state = trainer.model.state_dict()
    for name, tensor in before.items():
        if name not in ("model.embed_tokens.weight", "lm_head.weight"):
            assert torch.allclose(state[name], tensor, atol=2e-3), name  # fp16 on the way
    assert torch.equal(state["lm_head.weight"], state["model.embed_tokens.weight"])


def test_embedding_rows_are_carried_over_by_text_and_a_new_one_is_the_mean_of_its_bytes() -> None:
    known, wanted = build_tokenizer(["def ", "sum"]), build_tokenizer(["for ", "def "])
    rows = torch.randn(len(known), 4)
    result = carried_rows(rows, known, wanted, len(wanted) + 5)
    at, then = known.convert_tokens_to_ids, wanted.convert_tokens_to_ids
    assert torch.equal(result[then("defĠ")], rows[at("defĠ")])
    assert torch.equal(result[then("a")], rows[at("a")])
    assert torch.allclose(result[then("forĠ")], (rows[at("f")] + rows[at("o")] + rows[at("r")] + rows[at("Ġ")]) / 4)
    assert torch.allclose(result[-1], rows.mean(0), atol=1e-6)


def test_a_new_mark_gets_the_mean_row_of_the_marks_that_were_there() -> None:
    known, wanted = build_tokenizer([]), build_tokenizer(["sum"])
    earlier = {token: index for token, index in known.get_vocab().items() if token != MARKS[-1]}
    rows = torch.randn(len(known), 4)

    class Older:
        def get_vocab(self) -> dict[str, int]:
            return earlier

    result = carried_rows(rows, Older(), wanted, len(wanted))  # type: ignore[arg-type]
    assert torch.allclose(result[len(MARKS) - 1], rows[: len(MARKS) - 1].mean(0), atol=1e-6)


def test_the_shipped_weights_have_the_shape_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HIDDEN_SIZE", 256), ("NUM_LAYERS", 4), ("NUM_HEADS", 8), ("NUM_KV_HEADS", 4)):
        monkeypatch.setattr(stages, name, value)
    monkeypatch.setattr(stages, "INTERMEDIATE_SIZE", 640)
    model, tokenizer = load_base("embedded")
    made = build_model(tokenizer).state_dict()
    assert {name: tensor.shape for name, tensor in model.state_dict().items()} == {
        name: tensor.shape for name, tensor in made.items()
    }
    assert sum(path.stat().st_size for path in embedded_folder().iterdir()) < 12e6
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "foo"], "invalid choice: 'foo'"),
        (["--steps", "0"], "--steps 0: give 1 or more"),
        (["--vocabulary", "0"], "--vocabulary 0: give 1 or more"),
        pytest.param(
            ["--device", "cuda"],
            "--device cuda: PyTorch finds no CUDA device here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device"),
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "out"), *words])
    assert message in capsys.readouterr().err and list(tmp_path.iterdir()) == []
