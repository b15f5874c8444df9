"""The command: JSON lines in, JSON lines out, in order; bad lines and bad flags."""

import io
import json
import sys
from pathlib import Path

import pytest

from redqueen.commands.validate import validate_kind
from redqueen.commands.verify import protections, verify_file
from redqueen.domains.registry import open_domain
from redqueen.errors import UserError
from redqueen_sandbox import Program, Sandbox
from redqueen_sandbox.zygotes import ZygoteSettings


def write(path: Path, lines: list[object]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def output_of(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_verify_answers_every_line_in_order_and_names_the_bad_ones(tmp_path: Path) -> None:
    path = write(
        tmp_path / "programs.jsonl",
        [
            {"id": "a", "code": "\ufeffdef f(x, y):\n    return {x, y}", "input": "2, 'z'"},
            "not json",
            {"id": 7, "code": "def f():\n    return '\\ud800'", "input": ""},
            "",
            {"id": "no-input", "code": "def f(x): return x"},
            "[1, 2]",
            {"id": "loop", "code": "def f(x):\n    while True: pass", "input": "1"},
            '{"id": "deep", "code": ' + "[" * 5000,
            {"code": "def f(x): return x", "input": "1"},
            {"id": "z", "code": "import os\ndef f(x): return x", "input": "1"},
        ],
    )
    out = io.StringIO()
    verify_file(path, out, workers=1, cpu_ms=50)
    assert output_of(out) == [
        {"id": "a", "verdict": "ok", "output": "{'z', 2}", "detail": ""},
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 2: not JSON"},
        {"id": 7, "verdict": "ok", "output": "'\\ud800'", "detail": ""},
        {
            "id": "no-input",
            "verdict": "invalid-input",
            "output": None,
            "detail": 'line 5: the field "input" must be a text',
        },
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 6: not a JSON object"},
        {"id": "loop", "verdict": "timeout", "output": None, "detail": "cpu"},
        {"id": None, "verdict": "invalid-input", "output": None, "detail": "line 8: not JSON"},
        {
            "id": None,
            "verdict": "invalid-input",
            "output": None,
            "detail": 'line 9: the field "id" must be a text or a number',
        },
        {"id": "z", "verdict": "forbidden", "output": None, "detail": "import of os"},
    ]


@pytest.mark.parametrize("name", ["[" * 990 + "]" * 990, "NaN", "1e999", '{"a": []}', "null"])
def test_a_name_that_is_none_is_not_repeated(name: str, tmp_path: Path) -> None:
    out = io.StringIO()
    verify_file(write(tmp_path / "programs.jsonl", [f'{{"id": {name}, "code": "", "input": ""}}']), out, workers=1)
    assert [(line["id"], line["verdict"]) for line in output_of(out)] == [(None, "invalid-input")]


@pytest.mark.parametrize(
    ("flags", "named"),
    [({"workers": 0}, "--workers"), ({"cpu_ms": 1}, "--cpu-ms"), ({"num_seeds": 99}, "--seeds")],
)
def test_a_bad_flag_is_named_in_one_sentence(flags: dict[str, int], named: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=named):
        verify_file(write(tmp_path / "p.jsonl", []), io.StringIO(), **flags)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.jsonl"):
        verify_file(tmp_path / "missing.jsonl", io.StringIO())


def test_the_protections_are_reported_as_observed() -> None:
    report = protections()
    assert report.level != "none", report.remarks
    assert report.observed["seccomp"] and report.observed["no-new-privileges"]
    assert report.machine and report.kernel.startswith("Linux")


def test_without_the_filter_it_refuses_to_start_unless_told_to_and_then_warns() -> None:
    settings = ZygoteSettings(leave_out=frozenset({"seccomp"}))
    with pytest.raises(UserError, match="allow_weak"):
        Sandbox(workers=1, settings=settings)
    with (
        pytest.warns(RuntimeWarning, match="weak: no seccomp"),
        Sandbox(workers=1, allow_weak=True, settings=settings) as weak,
    ):
        result = weak.run([Program("a", "def f(x):\n    return x", ("1",))])[0]
    assert (result.verdict, result.protection) == ("ok", "weak: no seccomp")


def test_another_system_is_refused_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="container"):
        Sandbox()
    assert protections().level == "none"


@pytest.mark.parametrize("domain", ["code", "logic", pytest.param("maths", marks=pytest.mark.slow)])
def test_validate_finds_nothing_in_the_domains_of_this_package(domain: str, verifier: Sandbox) -> None:
    kinds = open_domain(domain).kinds
    assert [validate_kind(open_domain(domain), kind, 4, verifier).failures for kind in kinds] == [[] for _ in kinds]
