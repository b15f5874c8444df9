"""Suite files become tasks, and a suite that changed is noticed."""

import json
from collections import Counter
from pathlib import Path

import pytest

from redqueen.domains.code.suite import (
    build_items,
    load_functions,
    load_suite,
)
from redqueen.domains.rows import checksum
from redqueen.errors import UserError
from redqueen.evaluate.external import subset

RECORD = {
    "id": "mini/001-add",
    "level": 2,
    "tags": ["int"],
    "code": "def f(a, b):\n    return a + b",
    "input": "1, 2",
    "output": "3",
    "io_inputs": [f"{i}, 1" for i in range(10)],
    "io_outputs": [str(i + 1) for i in range(10)],
    "message": "Add two numbers.",
}


def write(folder: Path, *records: dict[str, object]) -> Path:
    path = folder / "mini.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (folder / "CHECKSUMS").write_text(f"{checksum(path)}  {path.name}\n", encoding="utf-8")
    return path


def test_a_function_gives_one_task_of_each_kind(tmp_path: Path) -> None:
    items = build_items(load_functions(write(tmp_path, RECORD)))
    assert [item.id for item in items] == ["mini/001-add/code_o", "mini/001-add/code_i", "mini/001-add/code_f"]
    assert {(item.cluster, item.suite, item.stratum) for item in items} == {("mini/001-add", "mini", "mini/2")}
    for item in items[:2]:
        assert (item.task.inputs, item.task.outputs, item.task.num_shown) == (("1, 2",), ("3",), 0)
    induction = items[2].task
    assert (len(induction.inputs), len(induction.outputs), induction.num_shown) == (10, 10, 5)
    assert induction.message == "Add two numbers."
    assert all((item.task.kind, item.task.id) == (item.kind, item.id) for item in items)


def test_inputs_keep_their_order_and_outputs_become_canonical(tmp_path: Path) -> None:
    record = {**RECORD, "input": "{'b':1,'a':2},3", "output": "{'b': 1, 'a': 2}"}
    function = load_functions(write(tmp_path, record))[0]
    assert (function.input, function.output) == ("{'b': 1, 'a': 2}, 3", "{'a': 2, 'b': 1}")


def test_a_changed_suite_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = write(tmp_path, RECORD)
    assert len(load_suite(tmp_path)) == 3
    path.write_text(path.read_text(encoding="utf-8").replace("1, 2", "1, 3"), encoding="utf-8")
    with pytest.raises(UserError, match=r"mini\.jsonl has changed.*restore"):
        load_suite(tmp_path)


def test_a_missing_suite_is_named(tmp_path: Path) -> None:
    write(tmp_path, RECORD).unlink()
    with pytest.raises(UserError, match=r"mini\.jsonl is missing"):
        load_suite(tmp_path)
    with pytest.raises(UserError, match="CHECKSUMS is missing"):
        load_suite(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"code": 3}, "field code"),
        ({"level": True}, "field level"),
        ({"io_inputs": list(range(10))}, "field io_inputs.0: .*string"),
        ({"io_inputs": ["1"] * 10}, "different inputs"),
        ({"io_outputs": ["1"] * 9}, "different inputs"),
        ({"id": "add"}, "suite/name"),
        ({"output": "3 + 4"}, "field output: "),
        ({"input": "g(1)"}, "field input: "),
    ],
)
def test_a_faulty_line_is_named_with_its_field(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = write(tmp_path, RECORD, {**RECORD, "id": "mini/002", **change})
    with pytest.raises(UserError, match=f"line 2: .*{complaint}"):
        load_functions(path)


def test_an_id_may_be_used_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 2: the id mini/001-add was used before"):
        load_functions(write(tmp_path, RECORD, RECORD))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mini.jsonl"
    path.write_text("{'id': 1}\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 1: not JSON"):
        load_functions(path)


def test_a_subset_keeps_whole_functions_of_every_stratum_in_proportion_and_in_order() -> None:
    items = load_suite()
    drawn = subset(items, len(items) // 4)
    for stratum, num in Counter(item.stratum for item in items).items():
        assert abs(sum(item.stratum == stratum for item in drawn) - num / 4) < 6  # two functions with three items each
    assert {item.cluster for item in items if item not in drawn}.isdisjoint(item.cluster for item in drawn)
    assert [item for item in items if item in drawn] == drawn == subset(items, len(items) // 4)
