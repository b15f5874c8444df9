"""The hostile corpus: every program gets the verdict it must get, behind the gate and in the bare cage.

A run is right when the verdict is expected or accepted, an ``ok`` value equals the recorded one in type and value,
and the word PWNED is nowhere in the result.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from verify_data import HOST_MODULES

from redqueen.domains.registry import grade
from redqueen.records import Task
from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside.cage import NOBODY
from redqueen_sandbox.literals import canonical
from redqueen_sandbox.zygotes import ZygoteSettings

SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""


def expected_text(value: str) -> str:
    return str(10**4000) if value == "10**4000 literal" else canonical(value, wide=True)


def is_right(row: dict[str, object], result: Result) -> bool:
    if "PWNED" in repr(result):
        return False
    if result.verdict != row["expected"] and result.verdict not in list(row["accept"]):  # type: ignore[call-overload]
        return False
    value = row["value"]
    if result.verdict == "ok" and value is not None:
        return result.outputs[-1] == expected_text(str(value))
    return not (row["expected"] == result.verdict == "error" and value is not None) or repr(result.detail) == value


def as_program(row: dict[str, object]) -> Program:
    inputs = row.get("inputs", [row["input"]])
    return Program(str(row["id"]), str(row["code"]), tuple(inputs))  # type: ignore[arg-type]


def wrong_ones(verifier: Sandbox, rows: list[dict[str, object]]) -> list[Result]:
    results = verifier.run([as_program(row) for row in rows])
    return [result for row, result in zip(rows, results, strict=True) if not is_right(row, result)]


def assert_right(verifier: Sandbox, rows: list[dict[str, object]], gated: bool = True) -> None:
    wrong = {result.id: result.detail for result in wrong_ones(verifier, rows)}
    # What a seed gives can only be guessed.
    assert wrong == ({"honest/seeded-random": "import of random"} if gated else {})


def test_every_program_is_right_behind_the_gate(verifier: Sandbox, hostile_rows: list[dict[str, object]]) -> None:
    assert_right(verifier, hostile_rows)


def test_every_program_is_right_in_the_bare_cage(bare_verifier: Sandbox, hostile_rows: list[dict[str, object]]) -> None:
    assert wrong_ones(bare_verifier, hostile_rows) == []


def test_programs_that_leak_leave_nothing_for_the_program_after_them(hostile_rows: list[dict[str, object]]) -> None:
    by_id = {row["id"]: row for row in hostile_rows}
    pairs = [row for first in hostile_rows if first.get("next") for row in (first, by_id[first["next"]])]
    assert len(pairs) == 10
    # One worker and one hash seed: each reader runs in the very next child of the zygote that ran the writer.
    settings = ZygoteSettings(preload=HOST_MODULES)
    with Sandbox(workers=1, num_seeds=1, gated=False, settings=settings) as single:
        assert wrong_ones(single, pairs) == []


@pytest.mark.slow
@pytest.mark.parametrize("gated", [True, False])
def test_the_corpus_is_right_three_times_in_a_row(gated: bool, hostile_rows: list[dict[str, object]]) -> None:
    settings = ZygoteSettings(preload=() if gated else HOST_MODULES)
    with Sandbox(workers=2, gated=gated, settings=settings) as verifier:
        for _ in range(3):
            assert_right(verifier, hostile_rows, gated)


def readable_by_nobody(executable: str) -> bool:
    """Whether an unprivileged user can start that interpreter, of this version, and read the package with it."""
    folder = Path(__file__).resolve().parents[2] / "src" / "redqueen_sandbox" / "inside"
    check = f"import os, sys; os.listdir({str(folder)!r}); print(sys.version_info[:2])"
    try:
        done = subprocess.run([executable, "-S", "-c", check], user=NOBODY, group=NOBODY, cwd="/", capture_output=True)
    except OSError:
        return False
    return done.stdout.decode().strip() == str(tuple(sys.version_info[:2]))


def test_the_corpus_is_right_for_an_unprivileged_user_too(hostile_rows: list[dict[str, object]]) -> None:
    if os.getuid() != 0:
        pytest.skip("this user is unprivileged already")
    if not SYSTEM_PYTHON or not readable_by_nobody(SYSTEM_PYTHON):
        pytest.skip("no interpreter of this version that an unprivileged user could start")
    settings = ZygoteSettings(preload=HOST_MODULES, executable=SYSTEM_PYTHON, user=NOBODY)
    with Sandbox(workers=2, num_seeds=2, gated=False, settings=settings) as verifier:
        assert verifier.protection == "full"
        assert wrong_ones(verifier, hostile_rows[::3]) == []


@pytest.mark.slow
def test_the_whole_corpus_is_right_for_an_unprivileged_user(hostile_rows: list[dict[str, object]]) -> None:
    if os.getuid() != 0 or not SYSTEM_PYTHON or not readable_by_nobody(SYSTEM_PYTHON):
        pytest.skip("needs root, and an interpreter of this version that an unprivileged user could start")
    for gated in (True, False):
        preload = () if gated else HOST_MODULES
        settings = ZygoteSettings(preload=preload, executable=SYSTEM_PYTHON, user=NOBODY)
        with Sandbox(workers=2, gated=gated, settings=settings) as verifier:
            assert_right(verifier, hostile_rows, gated)


def test_no_cheat_of_the_corpus_earns_credit(verifier: Sandbox, hostile_rows: list[dict[str, object]]) -> None:
    cheats = [row for row in hostile_rows if row.get("gold")]
    assert len(cheats) >= 12
    pairs = []
    for row in cheats:
        name, code, given = str(row["id"]), str(row["code"]), str(row["input"])
        gold = canonical(str(row["gold"])) if str(row["gold"])[0].isdigit() else repr(row["gold"])
        pairs.append((Task(name, "T", "S", "code_f", "", (given,), (gold,)), code))
        # The task's own program must not decide either: its author would choose the input that counts as right.
        pairs.append((Task(name, "T", "S", "code_i", code, (given,), (gold,)), given))
    square = "def f(x):\n    return x * x"
    for answer in (
        "0) or (True",
        "type('', (), {'__eq__': lambda *a: True})()",
        "9 if True else 0",
        "9.0",
        "True",
        "f(3)",
    ):
        pairs.append((Task("o", "T", "S", "code_o", square, ("3",), ("9",)), answer))
        pairs.append((Task("i", "T", "S", "code_i", square, ("3",), ("10",)), answer))
    pairs.append((Task("honest", "T", "S", "code_f", "", ("3",), ("9",)), square))
    assert len(pairs) > 36
    assert [task.id for (task, _), one in zip(pairs, grade(pairs, verifier), strict=True) if one.correct] == ["honest"]
