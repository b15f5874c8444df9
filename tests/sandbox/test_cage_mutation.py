"""Cage mutation: leave out any one protection, and a program of the hostile corpus that was right comes out wrong.

The walls overlap: where the filter stands, most others are never reached. So each protection is tried with those
taken away (``without``) that would stop the program before it: first the program must be right, then, with the
protection left out as well, wrong. The static gate is off throughout.
"""

import os
from pathlib import Path

import pytest
from test_hostile_corpus import as_program, is_right
from verify_data import HOST_MODULES

from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.inside.cage import PROTECTIONS
from redqueen_sandbox.zygotes import ZygoteSettings

MUTATIONS: dict[str, tuple[frozenset[str], str]] = {
    "seccomp": (frozenset(), "filesystem/stat-oracle"),
    "landlock": (frozenset({"seccomp", "rlimits"}), "filesystem/write-tmp"),
    "rlimits": (frozenset({"seccomp"}), "process/fork-bomb"),
    "cpu-timer": (frozenset(), "infinite-loop/while-true"),
    "non-dumpable": (frozenset({"seccomp", "landlock", "rlimits"}), "hack-find-gold/proc-parent-mem"),
    "no-new-privileges": (frozenset(), "honest/unicode"),
    "nobody": (frozenset({"seccomp"}), "process/fork-bomb"),
    "namespaces": (frozenset({"seccomp", "rlimits"}), "network/udp-send"),
}
"""For each protection: what to take away first, and the program that then depends on it."""

MARKER = Path("/tmp/rq_hostile_marker")  # what filesystem/write-tmp leaves behind where it gets through


def test_every_protection_has_its_mutation() -> None:
    assert set(MUTATIONS) == set(PROTECTIONS)


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_without_one_protection_a_program_of_the_corpus_fails(
    protection: str, hostile_rows: list[dict[str, object]]
) -> None:
    without, program = MUTATIONS[protection]
    row = next(row for row in hostile_rows if row["id"] == program)
    if protection == "nobody" and os.getuid() != 0:
        pytest.skip("an unprivileged user has nothing to drop")
    existed = MARKER.exists()
    try:
        observed, right = try_cage(row, without)
        if not observed[protection]:
            pytest.skip(f"{protection} is not to be had on this machine")
        assert right
        assert not existed and not MARKER.exists()
        observed, right = try_cage(row, without | {protection})
        assert not observed[protection]
        assert not right
    finally:
        if not existed:
            MARKER.unlink(missing_ok=True)


def try_cage(row: dict[str, object], leave_out: frozenset[str]) -> tuple[dict[str, bool], bool]:
    """What the canaries see without these protections, and whether the program comes out right."""
    with Sandbox(
        workers=1,
        limits=Limits(wall_ms=60_000),  # so that CPU time alone decides, on a crowded machine too
        num_seeds=1,
        gated=False,
        allow_weak=True,
        warn=False,
        settings=ZygoteSettings(leave_out=leave_out, preload=HOST_MODULES),
    ) as verifier:
        result = verifier.run([as_program(row)])[0]
        # An endless loop that is stopped, but only after many times its share of the CPU, was not stopped in time.
        in_time = result.cpu_ms < 3 * verifier.limits.cpu_ms
        return verifier.protections(), is_right(row, result) and in_time
