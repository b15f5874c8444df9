"""`redqueen retention` from the command line: the miniature, its three files, and what it refuses."""

import csv
import json
from pathlib import Path

import pytest
from command_line import redqueen

from redqueen.commands.retention import measure_retention
from redqueen.experiment.retention.lineup import lineup


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A finished miniature and the lines that it said."""
    folder, said = tmp_path_factory.mktemp("retention") / "out", []
    measure_retention(folder, 1, True, 1, said.append)
    return folder, said


def test_every_step_says_how_far_it_is_and_how_long_it_will_take(finished: tuple[Path, list[str]]) -> None:
    said = finished[1]
    assert len(said) == 4 and said[0].startswith("seed 1/1: parents 1/2, solved ") and said[0].endswith(" left")
    assert said[-1].startswith("seed 1/1: children 2/2") and said[-1].endswith(", 0 s left")


def test_the_curves_have_a_row_for_every_child_and_measured_update(finished: tuple[Path, list[str]]) -> None:
    with (finished[0] / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    measured = [(row["operator"], row["space"], row["update"]) for row in rows if row["space"]]
    assert measured == [(e.operator, e.space, update) for e in lineup() for update in "012"]
    assert [row["operator"] for row in rows if not row["space"]] == ["base", "parent_1", "parent_2"]
    assert all(0 <= float(row["score"]) <= 1 for row in rows)


def test_the_record_is_strict_json_with_a_verdict_for_every_entry(finished: tuple[Path, list[str]]) -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(name)

    record = json.loads((finished[0] / "retention.json").read_text(), parse_constant=no_constant)
    assert [(one["operator"], one["space"]) for one in record["operators"]] == [
        (entry.operator, entry.space) for entry in lineup()
    ]
    assert {one["verdict"] for one in record["operators"]} <= {"keeps", "loses", "undecided", "control"}
    assert record["command"] == "redqueen retention --seeds 1 --quick" and len(record["base_sha256"]) == 64
    assert record["seeds"][0]["parent_distance"] > 0


def test_the_report_has_a_row_and_a_sentence_for_every_entry(finished: tuple[Path, list[str]]) -> None:
    lines = (finished[0] / "report.md").read_text().splitlines()
    for entry in lineup():
        assert sum(line.startswith(f"| {entry.label} |") for line in lines) == 1
        assert sum(line.startswith(f"- {entry.label} ") for line in lines) == 1


def test_asking_again_reads_what_was_found(finished: tuple[Path, list[str]]) -> None:
    folder = finished[0]
    before = (folder / "report.md").read_text()
    code, out, err = redqueen("retention", "--out", folder, "--seeds", "1", "--quick", "--threads", "1")
    assert code == 0 and out.strip() == str(folder / "report.md") and "seed 1" not in err
    assert (folder / "report.md").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "0"], "--seeds 0 is too few"),
        (["--threads", "-1"], "--threads -1 is below 0"),
        (["--seeds", "1"], "was begun with other settings"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence_and_nothing_is_written(
    finished: tuple[Path, list[str]], arguments: list[str], message: str
) -> None:
    folder = finished[0]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    code, _, error = redqueen("retention", "--out", folder, *arguments)
    assert code == 2 and message in error and error.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    code, _, error = redqueen("retention", "--out", tmp_path, "--quick")
    assert code == 2 and "holds no retention experiment" in error
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]
