"""The items of a suite: base beside member, what flipped, and answers that nobody should trust."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from synthetic_run import HOSTILE, build_run

from redqueen.dashboard.app import create_app
from redqueen.dashboard.items import answer_files, item_page, read_answers, sign_test

NAME = "mini-step-000004.jsonl"
BASE_RIGHT = {"q/1/a", "q/2/a", "q/3/b"}
STUDENT_RIGHT = {"q/1/a", "q/4/b", "q/5/b", "q/6/b"}


def line(examinee: str, question: str, correct: bool, **more: object) -> str:
    row = {"examinee": examinee, "role": "student", "question": question, "mode": "greedy", "sample": 0}
    row |= {"text": f"{examinee} on {question}", "answer": "1", "num_tokens": 3, "finished": True}
    return json.dumps({**row, "correct": correct, "verdict": "ok", "detail": "", "lost": False, **more})


def write_answers(run: Path, extra: list[str] | None = None, name: str = NAME) -> Path:
    lines = []
    for number in range(1, 8):
        question = f"q/{number}/{'a' if number < 3 else 'b'}"
        lines.append(line("base", question, question in BASE_RIGHT, role="base"))
        lines.append(line("T1", question, False, role="teacher"))
        lines.append(line("S1", question, question in STUDENT_RIGHT, lost=question == "q/7/b"))
        lines.append(line("S1", question, True, mode="sampled"))
    folder = run / "evaluations"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join([*lines, *(extra or [])]) + "\n")
    return folder / name


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return build_run(tmp_path / "run", 2, 1, 1, tasks_per_match=1, num_attempts=1)


@pytest.fixture
def client(run: Path) -> TestClient:
    return TestClient(create_app(run.parent), base_url="http://localhost")


def test_flips_are_what_one_had_right_and_the_other_wrong(run: Path) -> None:
    page = item_page(read_answers(write_answers(run)), "S1", "", 1)
    assert {item.question: item.flip for item in page.items if item.flip} == {
        "q/2/a": "lost",
        "q/3/b": "lost",
        "q/4/b": "gained",
        "q/5/b": "gained",
        "q/6/b": "gained",
    }
    assert (page.num_items, page.num_base_right, page.num_member_right) == (7, 3, 4)
    assert (page.num_gained, page.num_lost) == (3, 2)
    assert page.counted == {"a": (0, 1), "b": (3, 1)}


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, 1.0), (3, 2, 1.0), (5, 0, 2 / 32), (9, 1, 2 * (1 + 10) / 1024), (1200, 1200, 1.0)],
)
def test_the_sign_test_is_exact(gained: int, lost: int, p: float) -> None:
    assert sign_test(gained, lost) == sign_test(lost, gained) == pytest.approx(p)


def test_the_sign_test_answers_for_as_many_items_as_a_file_may_hold() -> None:
    assert sign_test(25_000, 25_000) == 1.0 and 0 < sign_test(25_300, 24_700) < 0.01


def test_the_page_shows_the_first_who_solves_and_can_be_narrowed(run: Path, client: TestClient) -> None:
    write_answers(run)
    page = client.get("/run/run/items").text
    assert page.count('<th scope="row">') == 7 and "<dt>S1</dt>" in page
    assert page.count("▲ now right") == 3 and page.count("▼ now wrong") == 2
    lost = client.get("/run/run/items?show=lost&member=S1").text
    assert lost.count('<th scope="row">') == 2 and "▲ now right" not in lost
    assert client.get("/run/run/items?member=T1").text.count("✓ right") == 3  # the base's


def test_an_item_has_both_answers_side_by_side(run: Path, client: TestClient) -> None:
    write_answers(run)
    page = client.get(f"/run/run/item?file={NAME}&member=S1&id=q/4/b").text
    assert page.index("base on q/4/b") < page.index("S1 on q/4/b")
    assert page.count('<article class="attempt"') == 2


def test_an_item_of_the_embedded_suite_is_shown_with_its_program(run: Path, client: TestClient) -> None:
    question = "everyday/001-sum-positive/code_o"
    write_answers(run, [line("base", question, False), line("S1", question, True)])
    page = client.get("/run/run/item", params={"file": NAME, "member": "S1", "id": question}).text
    assert '<h3 id="program-title">The item</h3>' in page and "<pre>def f(" in page


def test_a_run_without_answers_names_the_command_that_keeps_them(run: Path, client: TestClient) -> None:
    page = client.get("/run/run/items").text
    assert f"redqueen evaluate {run} --suite=mini</code>" in page


def test_pages_of_many_items_are_small_and_all_are_reached(run: Path, client: TestClient) -> None:
    many = [line(who, f"s/{n:05}/k", n % 2 == 0) for n in range(3000) for who in ("base", "S1")]
    write_answers(run, many)
    pages = [client.get(f"/run/run/items?member=S1&page={number}").text for number in (1, 2, 61)]
    assert max(map(len, pages)) < 60_000
    seen = {int(number) for page in pages for number in re.findall(r"s/(\d+)/k</a>", page)}
    assert {0, 42, 43, 92, 2999} <= seen
    assert client.get("/run/run/items?page=999999").text.count('<th scope="row">') == 3007 % 50


STRANGE = ["", "[]", "{", "null", '{"examinee": 1}', "[" * 100_000, line("S1", "q/9/a", True, text=5), "\x00\xff"]


def test_lines_that_are_none_of_ours_are_counted_and_left_out(run: Path, client: TestClient) -> None:
    answers = read_answers(write_answers(run, STRANGE))
    assert answers.num_strange == len(STRANGE) and "q/9/a" not in answers.of["S1"]
    assert f"{len(STRANGE)} lines of the file" in client.get("/run/run/items").text


def test_hostile_answers_are_text(run: Path, client: TestClient) -> None:
    rows = [line("S1", f"q/{n}/x", True, text=text, answer=text) for n, text in enumerate(HOSTILE, start=20)]
    write_answers(run, [*rows, line("<b onmouseover=x>", "<script>alert(1)</script>", True)])
    for n in range(20, 20 + len(HOSTILE)):
        page = client.get(f"/run/run/item?file={NAME}&member=S1&id=q/{n}/x").text
        assert "<script>document" not in page and "<img" not in page and "\x1b" not in page
    listed = client.get("/run/run/items", params={"member": "<b onmouseover=x>"}).text
    assert "<script>alert" not in listed and "<b onmouseover" not in listed


def test_only_plain_files_of_the_run_are_read(run: Path, client: TestClient, tmp_path: Path) -> None:
    path = write_answers(run)
    outside = write_answers(build_run(tmp_path / "outside" / "run", 1, 1, 1, 0, 0.1, 1, 1))
    (path.parent / "link.jsonl").symlink_to(outside)
    (path.parent / "note.txt").write_text("no answers")
    assert answer_files(run) == [NAME]
    for name in ("link.jsonl", "note.txt", "../config.json", "missing.jsonl"):
        assert client.get("/run/run/items", params={"file": name}).status_code == 404
        assert client.get("/run/run/item", params={"file": name, "member": "S1", "id": "q/1/a"}).status_code == 404


@pytest.mark.parametrize("asked", [{"member": "nobody"}, {"show": "everything"}])
def test_a_choice_that_there_is_not_is_named(run: Path, client: TestClient, asked: dict[str, str]) -> None:
    write_answers(run)
    answer = client.get("/run/run/items", params=asked)
    assert answer.status_code == 400 and 'role="alert"' in answer.text
