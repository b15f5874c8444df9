"""`redqueen init`: a config that is whole, explained field by field, and reads back as what it says."""

import tomllib
from pathlib import Path

import pytest
from command_line import redqueen

from redqueen.commands.init import WIDTH, config_text
from redqueen.config import Config, load_config
from redqueen.config.presets import presets


@pytest.mark.parametrize("preset", ["", *presets()])
def test_what_is_written_reads_back_as_the_preset(preset: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(config_text(preset))
    assert load_config(tmp_path / "my.toml") == load_config(Path(preset) if preset else None)


def test_every_field_is_there_behind_its_own_docstring() -> None:
    code, text, _ = redqueen("init", "smoke")
    assert code == 0
    words = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
    for section, field in Config.model_fields.items():
        assert f"\n[{section}]\n" in text
        for name, about in field.annotation.model_fields.items():  # type: ignore[union-attr]
            assert name in tomllib.loads(text)[section]
            assert " ".join((about.description or "").replace("``", "`").split()) in words
    assert max(map(len, (line for line in text.splitlines() if line.startswith("#")))) <= WIDTH


def test_a_preset_that_is_not_there_is_refused_with_those_that_are() -> None:
    code, out, err = redqueen("init", "smok")
    assert (code, out) == (2, "")
    assert "did you mean smoke?" in err and all(name in err for name in presets())
