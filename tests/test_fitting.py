"""A config is fitted to its base: only what was left open, with a reason, and never for a run that has every field."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_models import CONFIGS

from redqueen.adapters.base_shape import embedded_folder
from redqueen.config import Config, load_config, parse_config
from redqueen.errors import UserError
from redqueen.fitting import fit_to_base
from redqueen.run.dry_run import plan_text

LLAMA = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
}
BILLIONS = LLAMA | {"vocab_size": 128000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 20}


def folder(path: Path, shape: dict[str, object], template: bool = True) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(shape))
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x"} if template else {}))
    return path


def config_on(path: Path, **sections: dict[str, object]) -> Config:
    return parse_config({**sections, "model": {"base": str(path), **sections.get("model", {})}}, "test")


@pytest.mark.parametrize(
    ("shape", "template", "chosen", "why"),
    [
        (LLAMA, True, "fewshot", "continues examples better than it follows rules"),
        (BILLIONS, True, "chat", "has a chat template"),
        (BILLIONS, False, "fewshot", "has no chat template"),
    ],
)
def test_auto_chooses_a_format_and_says_why(
    tmp_path: Path, shape: dict[str, object], template: bool, chosen: str, why: str
) -> None:
    fitted = fit_to_base(config_on(folder(tmp_path / "base", shape, template)))
    assert fitted.config.model.prompt_format == chosen
    assert why in fitted.reasons[0]


def test_the_embedded_base_keeps_its_own_format_and_a_given_one_is_kept(tmp_path: Path) -> None:
    assert fit_to_base(Config()).config.model.prompt_format == "auto"
    asked = config_on(folder(tmp_path / "base", LLAMA), model={"prompt_format": "chat"})
    assert fit_to_base(asked).config.model.prompt_format == "chat"


def test_a_small_base_gets_a_smaller_rank_shorter_texts_and_a_lower_temperature(tmp_path: Path) -> None:
    base = folder(tmp_path / "base", LLAMA)
    fitted = fit_to_base(config_on(base, run={"device": "cpu"})).config
    assert (fitted.population.lora_rank, fitted.solve.max_rows) == (16, 64)
    for given, expected in (({}, 512), ({"prompt_format": "chat"}, 64)):
        assert fit_to_base(config_on(base, run={"device": "cuda"}, model=given)).config.solve.max_rows == expected
    assert fitted.propose.max_new_tokens < 200 and fitted.solve.temperature == 0.7
    large = fit_to_base(config_on(folder(tmp_path / "large", BILLIONS))).config
    assert (large.population.lora_rank, large.solve.temperature, large.learn.gradient_checkpointing) == (32, 1, True)
    on_a_gpu = fit_to_base(config_on(tmp_path / "large", run={"device": "cuda"})).config
    assert on_a_gpu.solve == large.solve


def test_a_distillation_takes_the_rate_of_the_bases_size_where_it_is_left_open(tmp_path: Path) -> None:
    base, every = folder(tmp_path / "base", BILLIONS), {"every_steps": 4}
    run: dict[str, object] = {"product": "distilled"}
    config = fit_to_base(config_on(base, run=run, distill=every)).config
    assert config.distill.learning_rate == config.learn.learning_rate == 2e-5
    asked = config_on(base, run=run, distill=every | {"learning_rate": 5e-4})
    assert fit_to_base(asked).config.distill.learning_rate == 5e-4


def test_what_a_config_sets_is_never_changed(tmp_path: Path) -> None:
    asked = config_on(
        folder(tmp_path / "base", LLAMA), population={"lora_rank": 3}, solve={"temperature": 1.0}, learn={"clip": 0.3}
    )
    fitted = fit_to_base(asked)
    assert (fitted.config.population.lora_rank, fitted.config.population.lora_alpha) == (3, 6.0), "the paper's scale, 2"
    assert fitted.config.solve.temperature == 1.0, "one policy, one temperature"
    assert fitted.config.learn.clip == 0.3
    assert "population.lora_rank" not in fitted.reasons[-1] and "population.lora_alpha" in fitted.reasons[-1]


def test_the_config_of_a_run_is_left_as_it_is(tmp_path: Path) -> None:
    whole = config_on(folder(tmp_path / "base", LLAMA), model={"prompt_format": "chat"}).model_dump(mode="json")
    old = parse_config(whole, "config.json")
    assert fit_to_base(old).config == old


def test_the_shipped_configs_of_the_embedded_base_are_left_as_they_are() -> None:
    for name in ("population", "single", "smoke"):
        config = load_config(Path(__file__).parents[1] / "configs" / f"{name}.toml")
        assert fit_to_base(config).config == config


def test_a_base_that_is_not_here_yet_is_fitted_as_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    fitted = fit_to_base(parse_config({"model": {"base": "nobody/there"}}, "test"))
    assert fitted.config.model.prompt_format == "chat" and fitted.config.population.lora_rank == 32
    assert "not on this machine yet" in fitted.reasons[0]


def test_the_plan_prints_the_reasons(tmp_path: Path) -> None:
    base = folder(tmp_path / "base", CONFIGS["qwen2"].to_dict())
    printed = plan_text(fit_to_base(load_config(None, [f"model.base={base}"])))
    assert "# prompt format fewshot: a base of 0 million parameters continues examples" in printed
    assert 'prompt_format = "fewshot"' in printed and "# left open and fitted to the base" in printed


def test_a_decay_that_begins_beyond_the_end_is_told_as_one_that_does_nothing() -> None:
    learn = {"decay": "linear", "decay_from_step": 10}
    told = fit_to_base(parse_config({"run": {"num_steps": 10}, "learn": learn}, "test")).reasons[-1]
    assert told.startswith("learn.decay = linear does nothing here: the rate falls after step 10")
    for run, other in (({"num_steps": 11}, learn), ({"num_steps": 10}, {"decay_from_step": 10})):
        reasons = fit_to_base(parse_config({"run": run, "learn": other}, "test")).reasons
        assert "does nothing" not in " ".join(reasons)


def test_one_attempt_a_task_is_told_as_teaching_students_nothing() -> None:
    def told(**sections: dict[str, object]) -> bool:
        reasons = fit_to_base(parse_config({"solve": {"num_attempts": 1}, **sections}, "test")).reasons
        return any("solve.num_attempts = 1" in reason for reason in reasons)

    assert told() and told(learn={"estimator": "grpo"})
    assert not told(learn={"estimator": "trr_pp"}) and not told(learn={"train_students": False})
    assert not told(solve={"num_attempts": 2})


def test_a_base_that_is_nowhere_is_refused() -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        fit_to_base(parse_config({"model": {"base": "./nowhere"}}, "test"))


def test_a_config_of_ones_own_on_the_embedded_base_is_told_of_the_papers_values() -> None:
    fitted = fit_to_base(parse_config({"evolve": {"every_steps": 5}}, "test"))
    assert (
        fitted.config.solve.max_new_tokens == 8096 and "begin with a config for the embedded base" in fitted.reasons[0]
    )
    for name in ("smoke", "population", "maths", "logic", "mixture"):
        assert fit_to_base(load_config(Path(name))).reasons == ()
    assert "begin with a config" not in " ".join(fit_to_base(Config()).reasons)


def test_a_model_made_from_the_embedded_base_is_asked_in_its_notation_and_fitted_as_it_is(tmp_path: Path) -> None:
    merged = folder(tmp_path / "merged", LLAMA)
    shutil.copy(embedded_folder() / "tokenizer.json", merged)
    fitted = fit_to_base(config_on(merged))
    assert fitted.config.model.prompt_format == "compact" and "the embedded base's vocabulary" in fitted.reasons[0]
    embedded = fit_to_base(Config()).config
    assert fitted.config.model_copy(update={"model": embedded.model}) == embedded
    assert fit_to_base(config_on(merged, model={"prompt_format": "fewshot"})).config.model.prompt_format == "fewshot"
