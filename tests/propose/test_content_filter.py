"""The policy filter: rules and a hook of the user's, refusals with their reason, faults named before a run."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from redqueen.config import ProposeConfig, VerifyConfig
from redqueen.domains.registry import check
from redqueen.errors import UserError
from redqueen.propose.filters import ContentFilter, check_allowed, load_content_filter, refuse
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox


def candidate(code: str = "def f(x):\n    return x\n", inputs: str = "1", error: str = "") -> Candidate:
    return Candidate("1-T1-0", "T1", "S1", "code_o", "text", code, (inputs,), "", error)


def not_a_password(asked: Candidate) -> str | None:
    return "it asks for a password" if "password" in asked.inputs[0] else None


def failing(asked: Candidate) -> str | None:
    raise RuntimeError("no list")


def test_nothing_is_refused_by_default() -> None:
    assert refuse([candidate(), candidate(inputs="'password'")], load_content_filter(ProposeConfig())) == [None, None]


def test_a_rule_refuses_what_it_is_found_in_wherever_it_stands() -> None:
    content_filter = load_content_filter(ProposeConfig(policy_rules=("(?i)weapon", r"\beval\b")))
    refused = refuse(
        [
            candidate(inputs="'a Weapon'"),
            candidate("def f(x):\n    return eval\n"),
            candidate(),
            replace(candidate(), message="Build a weapon."),
        ],
        content_filter,
    )
    assert [r and (r.reason, r.detail) for r in refused] == [
        ("policy", "matches the rule (?i)weapon"),
        ("policy", r"matches the rule \beval\b"),
        None,
        ("policy", "matches the rule (?i)weapon"),
    ]


def test_what_could_not_be_read_is_left_to_the_verifier() -> None:
    assert refuse(
        [candidate("weapon", error="unparsable")], load_content_filter(ProposeConfig(policy_rules=("weapon",)))
    ) == [None]


def test_a_hook_is_asked_and_its_words_are_the_detail() -> None:
    content_filter = load_content_filter(ProposeConfig(policy_hook=f"{__name__}:not_a_password"))
    allowed, refused = refuse([candidate(), candidate(inputs="'password'")], content_filter)
    assert allowed is None and refused is not None
    assert (refused.reason, refused.detail) == ("policy", "it asks for a password")


def test_a_hook_is_found_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules_of_this_folder.py").write_text("def refuse(candidate):\n    return 'no'\n")
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    monkeypatch.chdir(tmp_path)
    content_filter = load_content_filter(ProposeConfig(policy_hook="rules_of_this_folder:refuse"))
    assert [r and r.detail for r in refuse([candidate()], content_filter)] == ["no"]


def test_what_is_refused_is_never_run_and_the_rest_keeps_its_place(verifier: Sandbox) -> None:
    content_filter = load_content_filter(ProposeConfig(policy_rules=("secret",)))
    candidates = [candidate(), candidate(inputs="'secret'"), candidate(inputs="2")]
    before = verifier.num_jobs
    judged = check_allowed(candidates, content_filter, verifier, VerifyConfig(accept_cpu_ms=200))
    num_run = verifier.num_jobs - before
    check([candidates[0], candidates[2]], verifier)
    assert verifier.num_jobs == before + 2 * num_run > before
    assert [isinstance(v, Rejection) for v in judged] == [False, True, False]
    assert [v.inputs for v in judged if isinstance(v, Task)] == [("1",), ("2",)]


def test_a_hook_that_fails_lets_nothing_pass() -> None:
    with pytest.raises(UserError, match=r"policy_hook x:y failed on the proposal 1-T1-0 .*no list.*resume the run"):
        refuse([candidate()], ContentFilter(hook=failing, hook_name="x:y"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"policy_rules": ("(",)}, r"policy_rules: '\(' is not a regular expression"),
        ({"policy_hook": "nowhere_at_all:f"}, "policy_hook: nowhere_at_all:f cannot be imported"),
        ({"policy_hook": "json:nothing"}, "policy_hook: json:nothing cannot be imported"),
        (
            {"policy_hook": "json:__name__"},
            "policy_hook: json:__name__ is a str: name a function that takes a Candidate",
        ),
    ],
)
def test_a_wrong_rule_or_hook_is_named_before_anything_runs(fields: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_content_filter(ProposeConfig(**fields))
