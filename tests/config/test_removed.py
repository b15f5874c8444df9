"""Removed fields: a config that names one is refused with the reason, and an earlier run is read without them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import redqueen

from redqueen.config import Config, load_config, parse_config, parse_recorded
from redqueen.config.removed import REMOVED
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.run.store import CONFIG, JOURNAL


def another(value: object) -> Any:
    """Return a value of the same type that is not ``value``."""
    if isinstance(value, bool):
        return not value
    return f"not {value}" if isinstance(value, str) else value + 1 if isinstance(value, int | float) else ["other"]


def old(field: str, value: object) -> dict[str, Any]:
    """Return the plain config of an earlier run in which ``field`` has ``value``."""
    section, name = field.split(".")
    data = json.loads(Config().model_dump_json())
    data.setdefault(section, {})[name] = value
    return data


@pytest.mark.parametrize("field", REMOVED)
def test_a_config_with_a_removed_field_is_refused_with_the_reason(field: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_config(old(field, REMOVED[field].neutral), "my.toml")
    assert str(refused.value) == f"my.toml: {field} was removed ({REMOVED[field].reason}): leave it out"


@pytest.mark.parametrize("field", REMOVED)
def test_the_config_of_an_earlier_run_is_read_without_its_removed_field(field: str) -> None:
    for value in (REMOVED[field].neutral, another(REMOVED[field].neutral)):
        assert parse_recorded(old(field, value), "config.json") == Config()


@pytest.mark.parametrize("field", REMOVED)
def test_an_earlier_run_goes_on_only_where_its_removed_field_had_no_effect(field: str) -> None:
    assert parse_recorded(old(field, REMOVED[field].neutral), "config.json", to_resume=True) == Config()
    with pytest.raises(UserError, match=rf"config\.json .*{field} = .*resume the run with the version that began it"):
        parse_recorded(old(field, another(REMOVED[field].neutral)), "config.json", to_resume=True)


def test_a_set_option_with_a_removed_field_is_refused() -> None:
    field = next(iter(REMOVED))
    with pytest.raises(UserError, match=rf"the defaults: {field} was removed \("):
        load_config(None, [f"{field}=true"])


def test_a_run_with_removed_fields_is_reported_listed_and_exported_but_not_resumed(
    quick_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(quick_run, folder)
    data = json.loads((folder / CONFIG).read_text())
    for field, removed in REMOVED.items():
        section, name = field.split(".")
        data.setdefault(section, {})[name] = another(removed.neutral)
    (folder / CONFIG).write_text(json.dumps(data))
    with Journal.open(folder / JOURNAL) as journal:
        journal.connection.execute("UPDATE run SET config = ?", (json.dumps(data),))
    (folder / "report.html").unlink()
    assert redqueen("report", folder)[0] == 0 and (folder / "report.html").is_file()
    code, listed, _ = redqueen("tasks", folder, "--limit", "1")
    assert code == 0 and listed
    assert redqueen("export", folder, "--out", tmp_path / "adapter")[0] == 0
    code, _, told = redqueen("resume", folder)
    assert code == 2 and "no longer has" in told
