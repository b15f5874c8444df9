"""The config of a run that another version began: read without fields that are unknown here, but not resumed."""

import json

import pytest

from redqueen.config import Config, parse_recorded
from redqueen.errors import UserError


def test_a_recorded_config_is_read_without_unknown_fields_and_sections_and_not_gone_on_with() -> None:
    data = json.loads(Config().model_dump_json())
    data["learn"]["temper"] = 3
    assert parse_recorded(data, "config.json") == Config()
    with pytest.raises(UserError) as refused:
        parse_recorded(data, "config.json", to_go_on=True)
    assert str(refused.value) == (
        "config.json sets what this version of redqueen does not have, learn.temper: resume the run with the version "
        "that began it, or begin a new run"
    )
    with pytest.raises(UserError, match="there is no section heat"):
        parse_recorded({"heat": {"x": 1}}, "config.json")
    with pytest.raises(UserError, match=r"config\.json: learn must be a table of fields"):
        parse_recorded({"learn": 3}, "config.json")
