"""`redqueen init`: a config that is whole, explained field by field, and reads back as what it says."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from command_line import redqueen
from tiny_models import CONFIGS

from redqueen.commands.init import WIDTH, config_text
from redqueen.config import Config, load_config
from redqueen.config.load import presets
from redqueen.fitting import fit_to_base


@pytest.mark.parametrize("preset", ["", *presets()])
def test_what_is_written_reads_back_as_the_preset(preset: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(config_text(preset))
    assert load_config(tmp_path / "my.toml") == load_config(Path(preset) if preset else None)


@pytest.mark.parametrize("base", ["", "a base of a few parameters"])
@pytest.mark.parametrize("preset", ["", *presets()])
def test_what_is_written_is_fitted_to_a_base_as_the_preset_is(preset: str, base: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(config_text(preset))
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text(json.dumps(CONFIGS["qwen2"].to_dict()))
    on_it = [f"model.base={tmp_path / 'base'}"]
    if not base and not load_config(Path(preset) if preset else None).model.base.startswith("./"):
        on_it = []
    written = fit_to_base(load_config(tmp_path / "my.toml", on_it))
    plain = fit_to_base(load_config(Path(preset) if preset else None, on_it))
    assert (written.config, written.reasons) == (plain.config, plain.reasons)


def test_a_field_from_which_its_mark_is_taken_is_set() -> None:
    text = config_text("").replace("#lora_rank = 32", "lora_rank = 3")
    assert tomllib.loads(text)["population"] == {"lora_rank": 3}


def test_every_field_is_there_behind_its_own_docstring() -> None:
    code, text, _ = redqueen("init", "smoke")
    assert code == 0
    whole = tomllib.loads(re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE))
    words = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
    for section, field in Config.model_fields.items():
        assert f"\n[{section}]\n" in text
        for name, about in field.annotation.model_fields.items():  # type: ignore[union-attr]
            assert name in whole[section]
            assert " ".join((about.description or "").replace("``", "`").split()) in words
    assert max(map(len, (line for line in text.splitlines() if line.startswith("#")))) <= WIDTH


def test_a_preset_that_is_not_there_is_refused_with_those_that_are() -> None:
    code, out, err = redqueen("init", "smok")
    assert (code, out) == (2, "")
    assert "did you mean smoke?" in err and all(name in err for name in presets())
