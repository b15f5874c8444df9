"""``redqueen evaluate`` with a model: the base, a PEFT folder, the members of a run in one batch; what it reports."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_bases import small_base

from redqueen.adapters.bank import BASE_SLOT
from redqueen.adapters.base_shape import identify_base
from redqueen.adapters.peft import plain_config, write_adapter
from redqueen.adapters.protocols import Sampler
from redqueen.commands.evaluate import (
    BEST_NOTE,
    Answer,
    _default_path,
    _refuse_unwritable,
    _write,
    evaluate,
    evaluate_all,
    examine,
    results,
    table,
)
from redqueen.commands.examinees import Examination, Examinee, open_examination
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import MathsQuestion, Question, TaskQuestion
from redqueen.records import Completion, Grade, Request, Task

SHORT = ("solve.max_new_tokens=24", "run.num_threads=1", "verify.num_workers=1", "run.device=cpu")
ITEMS = [
    {"id": f"i{n}", "code": f"def f(x):\n    return x + {n}", "input": "1", "output": str(1 + n)} for n in range(4)
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    return path


@pytest.fixture(scope="module")
def alone() -> Iterator[Engine]:
    with open_examination("base", SHORT) as examination:
        assert examination.examinees == (Examinee("base", "base", BASE_SLOT),)
        yield examination.engine


def lines_of(path: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(str(path)).read_text().splitlines()]


def test_the_base_answers_greedily_and_several_times_and_every_answer_is_kept(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    found = evaluate("base", "cruxeval-o", data, 3, num_samples=3, out=out, overrides=SHORT)
    member = found["members"][0]  # type: ignore[index]
    assert (member["name"], found["num_items"], found["population"]) == ("base", 3, {})
    assert list(member["pass_at_k"]) == ["1", "2", "3"]
    rates = [member["pass_at_k"][k]["mean"] for k in ("1", "2", "3")]
    assert rates == sorted(rates)
    lines = lines_of(out)
    assert [(line["question"], line["mode"], line["sample"]) for line in lines] == [
        *[(f"i{n}", "greedy", 0) for n in range(3)],
        *[(f"i{n}", "sampled", sample) for n in range(3) for sample in range(3)],
    ]
    assert {"text", "answer", "correct", "verdict", "num_tokens", "finished"} <= set(lines[0])
    greedy = [line["correct"] for line in lines if line["mode"] == "greedy"]
    assert member["greedy"]["num_correct"] == sum(map(bool, greedy))
    for line in lines:  # what is recorded is what the verifier would say again
        right = line["answer"] == ITEMS[int(str(line["question"])[1:])]["output"]
        assert line["correct"] == right
    assert "base" in table(found) and "pass@2" in table(found)


def test_the_graded_greedy_answers_are_kept_when_the_evaluation_ends_while_it_samples(
    alone: Engine, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sampler(temperature: float, *limits: Any) -> Sampler:
        if temperature:
            raise KeyboardInterrupt
        return alone.sampler(temperature, *limits)

    base, out = (Examinee("base", "base", BASE_SLOT),), tmp_path / "answers.jsonl"
    opened = nullcontext(Examination(replace(alone, sampler=sampler), base, ""))
    monkeypatch.setattr("redqueen.commands.evaluate.open_examination", lambda *_: opened)
    with pytest.raises(KeyboardInterrupt):
        evaluate("base", "cruxeval-o", data, 3, num_samples=2, out=out, overrides=SHORT)
    assert [(line["question"], line["mode"]) for line in lines_of(out)] == [(f"i{n}", "greedy") for n in range(3)]


def test_an_adapter_in_a_peft_folder_is_examined_beside_its_base(alone: Engine, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    bank, base = alone.store.bank, identify_base(str(embedded()))
    genotype = bank.genotype(0)
    write_adapter(folder, plain_config(genotype, base.name, bank.shortest_targets()), genotype, base.sha256)
    config = json.loads((folder / "adapter_config.json").read_text())
    pattern = config | {"target_modules": r".*\.(q|k|v|o|gate|up|down)_proj"}  # PEFT may write them as one expression
    (folder / "adapter_config.json").write_text(json.dumps(pattern))
    questions = load_questions("cruxeval-o", data)
    with open_examination(str(folder), SHORT) as examination, Judge() as judge:
        assert examination.examinees == (Examinee("base", "base", BASE_SLOT), Examinee("adapter", "adapter", 0))
        assert examination.engine.prompt_format.name == "compact"
        answers = examine(examination, questions, judge, 0, 1.0)
    texts = {name: [a.text for a in answers if a.examinee == name] for name in ("base", "adapter")}
    assert len(texts["base"]) == 4 and texts["base"] == texts["adapter"], "a fresh adapter changes nothing"


def embedded() -> Path:
    from redqueen.adapters.base_shape import embedded_folder

    return embedded_folder()


def test_everybody_who_lives_in_a_run_is_examined_beside_the_base(quick_run: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    found = evaluate(str(quick_run), "cruxeval-o", data, 2, out=out, overrides=SHORT)
    roles = [member["role"] for member in found["members"]]  # type: ignore[attr-defined]
    assert roles == ["base", "teacher", "teacher", "student", "student"]
    assert set(found["population"]) == {"teacher", "student"}  # type: ignore[call-overload]
    facts = found["population"]["student"]  # type: ignore[index]
    assert facts["num_members"] == 2 and facts["best"]["note"] == BEST_NOTE
    assert facts["worst"]["score"] <= facts["mean"] <= facts["best"]["score"]
    assert len(lines_of(out)) == 2 * 5
    with pytest.raises(UserError, match="exists already: give another --out"):
        evaluate(str(quick_run), "cruxeval-o", data, 2, out=out, overrides=SHORT)


def test_answers_whose_writing_breaks_off_leave_no_file_that_stands_in_the_way(tmp_path: Path) -> None:
    class Cut:
        def as_line(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _write(tmp_path / "answers.jsonl", [SimpleNamespace(as_line=lambda: "{}\n"), Cut()])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
    _write(tmp_path / "answers.jsonl", [SimpleNamespace(as_line=lambda: "{}\n")])  # type: ignore[list-item]
    assert (tmp_path / "answers.jsonl").read_text() == "{}\n"


def test_a_prompt_that_the_base_has_no_room_for_is_answered_by_nobody(alone: Engine) -> None:
    code = "def f(x):\n" + "".join(f"    x = x + {n}  # {'a long remark ' * 9}\n" for n in range(200)) + "    return x"
    long = TaskQuestion("long", Task("long", "", "", "code_o", code, ("1",), ("2",)), "2")
    short = TaskQuestion("short", Task("short", "", "", "code_o", "def f(x):\n    return x", ("1",), ("1",)), "1")
    with Judge() as judge:
        examination = Examination(alone, (Examinee("base", "base", BASE_SLOT),), "")
        answers = examine(examination, [long, short], judge, 0, 1.0)
    by_name = {answer.question: answer for answer in answers}
    assert set(by_name) == {"long", "short"}
    assert (by_name["long"].grade.verdict, by_name["long"].grade.correct) == ("too-large", False)
    assert by_name["short"].num_tokens > 0


def test_what_was_cut_off_is_no_answer_even_where_it_reads_as_the_right_one(alone: Engine) -> None:
    asked = [TaskQuestion(n, Task(n, "", "", "code_o", "def f(x):\n    return x", ("1",), (n,)), n) for n in "12"]

    def graded(cut: Callable[[Completion], Completion]) -> list[bool | None]:
        class Sampler:
            def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
                whole = [alone.tokenizer(n, add_special_tokens=False)["input_ids"] for n in "12"]
                ended = [(*tokens, alone.tokenizer.eos_token_id) for tokens in whole]
                return [[cut(Completion(tokens, (-1.0,) * len(tokens), 1.0, True))] for tokens in ended]

        engine = replace(alone, sampler=lambda *settings: Sampler())
        examination = Examination(engine, (Examinee("base", "base", BASE_SLOT),), "")
        with Judge() as judge:
            return [answer.grade.correct for answer in examine(examination, asked, judge, 0, 1.0)]

    assert graded(lambda whole: whole) == [True, True]
    assert graded(lambda whole: replace(whole, tokens=whole.tokens[:-1], finished=False)) == [False, False]


@pytest.mark.parametrize("template", ["", "{% for m in messages %}User: {{ m.content }}\n{% endfor %}Assistant:"])
def test_a_base_that_self_play_asks_by_examples_is_asked_for_functions_too(tmp_path: Path, template: str) -> None:
    folder, out, data = small_base(tmp_path / "base"), tmp_path / "answers.jsonl", tmp_path / "items.jsonl"
    (folder / "chat_template.jinja").write_text(template)
    row = {"task_id": "H/0", "prompt": "def one():\n", "entry_point": "one", "canonical_solution": "    return 1\n"}
    data.write_text(json.dumps(row | {"test": "def check(candidate):\n    assert candidate() == 1\n"}))
    settings = ["model.prompt_format=fewshot", "solve.max_new_tokens=8"]
    found = evaluate(str(folder), "humaneval", data, out=out, overrides=settings)
    assert (found["num_items"], found["style"]) == (1, "auto")
    assert lines_of(out)[0]["num_tokens"] == 8


# What is made of the answers -------------------------------------------------------------------------------------

QUESTIONS = [TaskQuestion(name, Task(name, "", "", "code_o", "", ("",), ("1",))) for name in ("a", "b", "c", "d")]


def answers_of(name: str, role: str, mode: str, marks: str) -> list[Answer]:
    """``marks``: one letter an attempt, in the order of the questions: r right, w wrong, l lost."""
    return [
        Answer(name, role, "abcd"[i % 4], mode, i // 4, "", "", 1, True, Grade(mark == "r", "ok", lost=mark == "l"))
        for i, mark in enumerate(marks)
    ]


def test_a_population_is_summed_up_by_mean_spread_worst_and_best() -> None:
    answers = answers_of("base", "base", "greedy", "rwww")
    for name, marks in (("S1", "rrww"), ("S2", "rrrw"), ("S3", "rwww")):
        answers += answers_of(name, "student", "greedy", marks)
    found = results(answers, QUESTIONS, 0)
    facts = found["population"]["student"]  # type: ignore[index]
    assert facts["mean"] == pytest.approx(0.5) and facts["spread"] == pytest.approx(0.25)
    assert facts["worst"] == {"name": "S3", "score": 0.25}
    assert facts["best"] == {"name": "S2", "score": 0.75, "note": "selected on the test items"}
    low, high = facts["interval"]
    assert 0 <= low < 0.5 < high <= 1
    assert "selected on the test items" in table({**found, "suite": "mini", "answers": "x"})


def test_questions_whose_ids_share_a_folder_are_no_cluster_and_those_of_one_function_are() -> None:
    """MATH-500 names its items test/SUBJECT/NUMBER.json: a subject is no cluster, or its interval hardly has an end."""
    asked = [MathsQuestion(f"test/{'algebra' if n < 20 else 'geometry'}/{n}.json", "", "1") for n in range(40)]
    task = Task("t", "", "", "code_o", "", ("",), ("1",))
    made = [TaskQuestion(f"a/{n}/b/c", task, cluster=f"f{n // 20}") for n in range(40)]

    def width(questions: Sequence[Question]) -> float:
        answers = [
            Answer("S1", "student", q.id, mode, 0, "", "", 1, True, Grade(n < 20, "ok"))
            for n, q in enumerate(questions)
            for mode in ("greedy", "sampled")
        ]
        found = results(answers, questions, 1)
        low, high = found["population"]["student"]["interval"]
        assert found["members"][0]["pass_at_k"]["1"]["interval"] == [low, high]
        return high - low

    assert width(made) == 1.0  # two functions, one right and one wrong
    assert 0.2 < width(asked) < 0.4  # forty items, half of them right


def test_a_lost_grade_is_no_sample() -> None:
    found = results(answers_of("S1", "student", "greedy", "rlww"), QUESTIONS, 0)
    greedy = found["members"][0]["greedy"]  # type: ignore[index]
    assert (greedy["num_items"], greedy["num_graded"], greedy["score"]) == (4, 3, pytest.approx(1 / 3))
    nobody = results(answers_of("S1", "student", "greedy", "llll"), QUESTIONS, 0)
    assert nobody["population"]["student"] == {"num_members": 1, "mean": None}  # type: ignore[index]
    assert "-" in table({**nobody, "suite": "mini", "answers": "x"})


def test_pass_at_k_counts_the_attempts_at_each_item() -> None:
    answers = answers_of("S1", "student", "greedy", "wwww")
    answers += answers_of("S1", "student", "sampled", "rwww" + "rrww" + "rwwl")
    passes = results(answers, QUESTIONS, 3)["members"][0]["pass_at_k"]  # type: ignore[index]
    assert passes["1"]["mean"] == pytest.approx((1 + 1 / 3 + 0 + 0) / 4)
    assert passes["2"]["mean"] == pytest.approx((1 + 2 / 3 + 0 + 0) / 4)
    assert (passes["3"]["mean"], passes["3"]["num_items"]) == (pytest.approx(2 / 3), 3)


# Mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "suite", "more", "said"),
    [
        ("nowhere", "mini", {}, "nowhere is neither a run directory"),
        ("", "mini", {}, "nothing to evaluate"),
        ("base", "mini", {"num_samples": -1}, "--samples must be at least 0"),
        ("base", "mini", {"num_samples": 2, "temperature": 0.0}, "--temperature"),
        ("base", "mini", {"overrides": ["solve.nonsense=1"]}, "there is no field solve.nonsense"),
        ("base", "mini", {"overrides": ["evaluate.max_items=3"]}, "use --limit"),
        ("base", "nonsense", {}, "--suite nonsense is unknown"),
    ],
)
def test_a_mistake_is_named_before_anything_is_written(
    target: str,
    suite: str,
    more: dict[str, object],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        evaluate(target, suite, **more)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_prose_is_not_asked_of_the_embedded_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("math_verify", reason="math-verify is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.jsonl").write_text('{"question": "1 + 1?", "answer": "#### 2"}\n')
    with pytest.raises(UserError, match="name another base"):
        evaluate("base", "gsm8k", tmp_path / "items.jsonl", overrides=SHORT)
    assert [path.name for path in tmp_path.iterdir()] == ["items.jsonl"]


def test_a_place_where_no_answers_can_be_kept_is_named_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("redqueen.commands.evaluate.examine", lambda *words: pytest.fail("it was asked"))
    with pytest.raises(UserError, match=r"--out .*answers\.jsonl cannot be written"):
        evaluate("base", "mini", limit=1, out=tmp_path / "file" / "answers.jsonl", overrides=SHORT)


def test_only_a_runs_answers_are_kept_in_it_whatever_an_adapters_folder_is_called(alone: Engine) -> None:
    assert _default_path("step-000100", "mini", Examination(alone, (), "step-000100")) is None
    kept = _default_path("runs/a", "mini", Examination(alone, (), "step-000100", of_run=True))
    assert kept == Path("runs/a/evaluations/mini-step-000100.jsonl")


def test_answers_are_not_written_where_a_link_in_a_runs_folder_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "evaluations").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="evaluations is a link, but answers are written there"):
        _refuse_unwritable(tmp_path / "run" / "evaluations" / "mini-step-000100.jsonl")


def test_coverage_compares_members_together_with_one_at_equally_many_attempts() -> None:
    """Of four questions S1 solves the first two in half its attempts, S2 the last two: unlike members pay."""
    questions: list[Question] = [MathsQuestion(str(n), "?", "1") for n in range(4)]
    solved = {"S1": "01", "S2": "23"}
    answers = [
        Answer(name, "student", q.id, mode, i, "", "", 1, True, Grade(q.id in solved[name] and i % 2 == 0, "ok"))
        for name in solved
        for q in questions
        for mode, count in (("greedy", 1), ("sampled", 4))
        for i in range(count)
    ]
    found = results(answers, questions, 4)
    coverage = found["population"]["student"]["coverage"]
    assert set(coverage) == {"2", "4"}
    # Two attempts: one each finds a right one with 1/2 everywhere; both by one with 5/6, but on half the questions.
    assert coverage["2"]["together"] == pytest.approx(1 / 2) and coverage["2"]["one"] == pytest.approx(5 / 12)
    assert coverage["4"]["together"] == pytest.approx(5 / 6) and coverage["4"]["one"] == pytest.approx(1 / 2)
    assert coverage["4"]["gain"] == pytest.approx(1 / 3) and coverage["4"]["num_items"] == 4
    assert "solved in 4 attempts" in table({"suite": "s", "answers": None, **found})


def test_pass_at_k_goes_up_to_sixty_four() -> None:
    questions: list[Question] = [MathsQuestion("q", "?", "1")]
    answers = [
        Answer("base", "base", "q", mode, i, "", "", 1, True, Grade(i == 1, "ok"))
        for mode, count in (("greedy", 1), ("sampled", 64))
        for i in range(count)
    ]
    passes = results(answers, questions, 64)["members"][0]["pass_at_k"]
    assert {k: one["mean"] for k, one in passes.items()} == {str(1 << n): (1 << n) / 64 for n in range(7)}


def test_the_paper_suite_is_ten_suites_from_a_folder_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("redqueen.commands.evaluate.load_questions", lambda name, file, limit: asked.append(file))
    monkeypatch.setattr("redqueen.commands.evaluate.evaluate", lambda *given: given)
    monkeypatch.setattr("redqueen.commands.evaluate.show", asked.append)
    evaluate_all("runs/x", "paper", tmp_path, 5, 0, 0.8, Path("answers"), [], "plain")
    assert len(asked) == 20 and asked[:2] == [tmp_path / "humaneval+.jsonl", tmp_path / "mbpp+.jsonl"]
    assert asked[10] == (
        *("runs/x", "humaneval+", tmp_path / "humaneval+.jsonl", 5, 0, 0.8),
        *(Path("answers/humaneval+.jsonl"), [], "plain"),
    )
    assert len({given[1] for given in asked[10:]}) == 10
