"""Mixtures of domains: shares of proposals, numbers for each; and domains that other packages bring."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import BASIC, Scripted, Teacher, either, half

from redqueen.commands.domains import domain_rows, domains_table
from redqueen.commands.tasks import judge_again, task_text
from redqueen.config import Config, ProposeConfig, parse_config
from redqueen.domains.frames import new
from redqueen.domains.registry import DOMAINS, apportioned, num_proposals, open_domain
from redqueen.engine import Adapters, load_adapters
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL

MIXED = {"code": 0.6, "maths": 0.4}
OTHER_PACKAGE = """
from redqueen.domains.code.kinds import CODE
from dataclasses import replace

DOMAIN = replace(CODE, name="riddles", kinds=(replace(CODE.kinds[0], name="riddle"),), suite=list,
                 seed=replace(CODE.seed, kind="riddle"))
"""


# Shares ------------------------------------------------------------------------------------------------------------


def test_a_number_is_split_by_weights_into_whole_parts() -> None:
    assert apportioned(10, {"a": 0.6, "b": 0.2, "c": 0.2}) == {"a": 6, "b": 2, "c": 2}
    assert apportioned(7, {"a": 1, "b": 1, "c": 1}) == {"a": 3, "b": 2, "c": 2}
    assert apportioned(5, {"a": 0.5, "b": 0.25, "c": 0.25}) == {"a": 3, "b": 1, "c": 1}


def test_shares_move_proposals_between_domains_and_leave_their_number() -> None:
    plain = num_proposals(ProposeConfig(domains=("code", "maths"), num_of_each_kind=4))
    mixed = num_proposals(ProposeConfig(domains=MIXED, num_of_each_kind=4))
    assert sum(plain.values()) == sum(mixed.values()) == 20
    assert mixed == {"code_o": 4, "code_i": 4, "code_f": 4, "maths_formal": 4, "maths_word": 4}
    heavy = num_proposals(ProposeConfig(domains={"code": 1, "maths": 3}, num_of_each_kind=4))
    assert heavy == {"code_o": 2, "code_i": 2, "code_f": 1, "maths_formal": 8, "maths_word": 7}


def test_within_a_domain_the_kinds_keep_their_proportions() -> None:
    asked = {"code_o": 6, "code_i": 2, "code_f": 0, "maths_formal": 3, "maths_word": 1}
    found = num_proposals(ProposeConfig(domains={"code": 0.5, "maths": 0.5}, num_proposals=asked))
    assert found == {"code_o": 5, "code_i": 1, "maths_formal": 5, "maths_word": 1}


def test_both_forms_are_read_and_kept() -> None:
    for form in (("code", "maths"), MIXED):
        config = parse_config({"propose": {"domains": form}}, "test")
        assert parse_config(config.model_dump(mode="json"), "again") == config
        assert list(config.propose.domains) == ["code", "maths"]


@pytest.mark.parametrize(
    ("propose", "reason"),
    [
        ({"domains": {}}, "at least one domain"),
        ({"domains": []}, "at least one domain"),
        ({"domains": {"code": 0}}, "finite number above 0"),
        ({"domains": {"code": -1.0}}, "finite number above 0"),
    ],
)
def test_a_mixture_that_is_none_is_refused(propose: dict[str, object], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        parse_config({"propose": propose}, "test")


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"gives maths a share, and .* asks for none of its kinds"):
        num_proposals(ProposeConfig(domains=MIXED, num_proposals={"maths_formal": 0, "maths_word": 0}))
    with pytest.raises(UserError, match="gives maths none of 10 proposals"):
        num_proposals(ProposeConfig(domains={"code": 99, "maths": 1}, num_of_each_kind=2))


def test_names_that_would_be_imported_are_told_apart_in_one_place() -> None:
    assert ProposeConfig(domains={"code": 1, "mine:DOMAIN": 1}).domains_to_import == ("mine:DOMAIN",)
    assert ProposeConfig(domains=("code", "maths")).domains_to_import == ()


# A run -------------------------------------------------------------------------------------------------------------

SMALL = {
    **BASIC,
    "run": {"num_steps": 2, "num_threads": 1, "device": "cpu", "checkpoint_every_steps": 1},
    "propose": {
        "domains": MIXED,
        "num_of_each_kind": 2,
        "num_seed_proposals": 1,
        "num_check_proposals": 0,
        "max_new_tokens": 64,
    },
    "solve": {"num_attempts": 4, "max_rows": 32, "max_new_tokens": 64},
    "evaluate": {"num_samples": 1, "max_items": 24, "control": False},
}


class Mixed:
    """Writes programs that add, sums, and stories of sums; ``solve`` is right every other time."""

    def __init__(self) -> None:
        self.programs = Teacher()
        self.num_written = 0

    def teach(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        n = 10 + self.num_written
        if prompt.endswith(new("maths_formal")):
            return f"{n} + {n}*2"
        if prompt.endswith(new("maths_word")):
            return f"Tom has {n} apples and buys 3 more. How many apples does Tom have?<|in|>{n} + 3"
        return self.programs(prompt, slot, sample)

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        return "-1" if "maths" in prompt or "<|f|>" in prompt else half(prompt, slot, sample)


@pytest.fixture(scope="module")
def load() -> Iterator[object]:
    script = Mixed()

    def adapters(config: Config) -> Adapters:
        loaded = load_adapters(config)
        writer = Scripted(loaded.tokenizer, either(script.teach, script.solve))
        return replace(loaded, proposer=writer, solver=writer, sampler=lambda *wishes: writer)

    yield adapters


def test_a_mixture_is_played_and_its_domains_are_counted_apart(load, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert start(parse_config(SMALL, "test"), folder, load)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        last = {row["name"]: row["value"] for row in journal.query("SELECT name, value FROM metric WHERE step = 2")}
        kinds = {row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task")}
        suites = {row["stratum"] for row in journal.query("SELECT DISTINCT stratum FROM evaluation")}
    assert {"code_o", "maths_formal", "maths_word"} <= kinds
    assert last["curriculum/coverage"] == last["curriculum/coverage/code"] + last["curriculum/coverage/maths"]
    assert last["curriculum/classes"] == last["curriculum/classes/code"] + last["curriculum/classes/maths"]
    assert last["curriculum/share/code"] + last["curriculum/share/maths"] == pytest.approx(1)
    assert last["curriculum/solve_rate/maths"] == 0 < last["curriculum/solve_rate/code"]
    assert any("exercises" in stratum for stratum in suites)
    shown = read_task(folder, find_tasks(folder, TaskFilter(kind="maths_word"))[0]["id"])
    assert "How many apples does Tom have?" in task_text(shown)
    judged = judge_again(shown, parse_config(SMALL, "test"))
    assert (judged.num_judged, judged.differences) == (4, ())


# Other packages ----------------------------------------------------------------------------------------------------


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that brings a domain under the name riddles, and one whose domain cannot be imported."""
    (tmp_path / "riddle_package.py").write_text(OTHER_PACKAGE, encoding="utf-8")
    about = tmp_path / "riddle_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: riddle-package\nVersion: 1.0\n", encoding="utf-8")
    points = {"riddles": "riddle_package:DOMAIN", "code": "riddle_package:DOMAIN", "lost": "no_such_package:DOMAIN"}
    lines = ["[redqueen.domains]", *(f"{name} = {value}" for name, value in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    DOMAINS.pop("riddles", None)
    sys.modules.pop("riddle_package", None)


def test_an_installed_package_brings_a_domain_under_its_name(other_package: None) -> None:
    assert open_domain("riddles").kinds[0].name == "riddle"
    assert num_proposals(ProposeConfig(domains={"riddles": 1}, num_of_each_kind=3)) == {"riddle": 3}
    assert open_domain("code").kinds[0].name == "code_o", "a package cannot take the name of one of ours"


def test_the_list_of_domains_says_what_they_have_and_where_they_come_from(other_package: None) -> None:
    rows = {row["name"]: row for row in domain_rows()}
    assert rows["maths"]["from"] == "redqueen" and rows["maths"]["items"] == 3_200
    assert [kind["name"] for kind in rows["maths"]["kinds"]] == ["maths_formal", "maths_word"]
    assert {"compact", "chat"} <= set(rows["maths"]["kinds"][0]["formats"])
    assert rows["riddles"]["from"] == "riddle-package (riddle_package:DOMAIN)"
    assert "cannot be imported" in rows["lost"]["error"] and rows["lost"]["kinds"] == []
    assert "riddles, from riddle-package" in domains_table()


def test_an_unknown_domain_is_refused_with_those_there_are(other_package: None) -> None:
    with pytest.raises(UserError, match=r"chess is not a domain; choose from code, maths.* riddles"):
        open_domain("chess")
