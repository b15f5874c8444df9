"""The split of the suite was made once, and stays as it is."""

import hashlib

from redqueen.config import ProposeConfig
from redqueen.domains.registry import load_suites
from redqueen.evaluate.external import is_for_development, part_of

ITEMS = load_suites(ProposeConfig(domains=("code",)))["code"]


def digest(part: str) -> str:
    return hashlib.sha256("\n".join(item.id for item in part_of(ITEMS, part)).encode()).hexdigest()[:16]


def test_the_parts_are_those_that_were_written_down() -> None:
    sizes = {part: len(part_of(ITEMS, part)) for part in ("all", "development", "decision")}
    assert sizes == {"all": 2346, "development": 552, "decision": 1794}
    assert (digest("development"), digest("decision")) == ("62ac1a8be13c3567", "7ef802e0f01a3b86")


def test_no_function_stands_in_both_parts_and_none_is_lost() -> None:
    development, decision = ({item.cluster for item in part_of(ITEMS, part)} for part in ("development", "decision"))
    assert not development & decision
    assert development | decision == {item.cluster for item in ITEMS}
    assert all(map(is_for_development, development)) and not any(map(is_for_development, decision))


def test_both_parts_have_every_kind_and_level() -> None:
    for part in ("development", "decision"):
        own = part_of(ITEMS, part)
        assert {(item.stratum, item.kind) for item in own} == {(item.stratum, item.kind) for item in ITEMS}
