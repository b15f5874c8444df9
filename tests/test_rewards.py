"""The verifier as a reward: what TRL's trainers call, row by row, for tasks and for programs with unit tests."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import redqueen
from redqueen import rewards
from redqueen.config import load_config
from redqueen.domains.compact import BOS, END_THINK, THINK
from redqueen.engine import load_base
from redqueen.nouns import Task
from redqueen.rewards import program_reward_fn, reward_fn, task_rows

ONE = load_config(None, ["verify.num_workers=1"])
REVERSED = Task("q", "", "", "code_o", "def f(x):\n    return x[::-1]\n", ("'abc'",), ("'cba'",))
EQUATION = Task("e", "", "", "maths_formal", "x + 1 = 3", ("",), ("2",))
DOUBLED = Task("p", "", "", "code_f", "", ("1", "2", "3"), ("2", "4", "6"), "twice", num_shown=2)


def columns_of(rows: list[dict]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def row_of(task: Task) -> dict:
    return {name: getattr(task, name) for name in rewards.COLUMNS}


def turn(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def test_answers_of_a_chat_model_are_paid_as_students_are() -> None:
    columns = columns_of(task_rows([REVERSED, REVERSED, REVERSED, DOUBLED]))
    prompts = columns.pop("prompt")
    assert prompts[0][0]["role"] == "user" and "x[::-1]" in prompts[0][0]["content"]
    assert "'cba'" not in prompts[0][0]["content"]
    said = ["<think>back</think><answer>'cba'</answer>", "<answer>'abc'</answer>", "no idea"]
    said += ["<answer>\n```python\ndef f(x):\n    return 2 * x\n```\n</answer>"]
    reward = reward_fn(config=ONE)
    assert reward(prompts=prompts, completions=[turn(text) for text in said], **columns) == [1.0, -0.5, -1.0, 1.0]
    assert reward.__name__ == "redqueen_reward"


def test_the_embedded_bases_marks_are_read_from_the_tokens_that_trainers_leave_out_of_the_text() -> None:
    _, tokenizer = load_base("embedded")
    columns = columns_of(task_rows([REVERSED, REVERSED], "compact"))
    prompts = columns.pop("prompt")
    assert all(isinstance(prompt, str) and prompt.startswith(BOS) for prompt in prompts)
    ids = [
        tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id, tokenizer.pad_token_id]
        for text in (f"{THINK}back{END_THINK}'cba'", "'cba'")
    ]
    texts = [tokenizer.decode(one, skip_special_tokens=True) for one in ids]
    assert reward_fn("compact", config=ONE)(completions=texts, **columns)[0] != 1.0
    reward = reward_fn("compact", tokenizer, ONE)
    assert reward(completions=texts, completion_ids=ids, **columns) == [1.0, 1.0]
    cut = [one[: one.index(tokenizer.eos_token_id)] for one in ids]
    assert reward(completions=texts, completion_ids=cut, **columns) == [-1.0, -1.0]


def test_rows_come_from_the_tasks_of_a_run(quick_run: object) -> None:
    tasks = redqueen.Run(quick_run).tasks()  # type: ignore[arg-type]
    rows = task_rows(tasks, "compact")
    assert [row["code"] for row in rows] == [task["code"] for task in tasks]


@pytest.mark.parametrize("name", ["inputs", "outputs"])
def test_literals_as_one_text_are_refused_and_not_split_into_characters(name: str) -> None:
    asked = row_of(REVERSED) | {name: '["1"]'}
    with pytest.raises(redqueen.UserError, match=f"{name} of a task is one text.*a list of literals, as Run.tasks"):
        task_rows([asked])
    with pytest.raises(redqueen.UserError, match="give a list of literals"):
        reward_fn()(completions=["x"], **columns_of([asked]))


def test_what_is_neither_a_list_nor_a_text_is_refused_in_a_sentence() -> None:
    asked = row_of(REVERSED)
    for inputs in (5, {"1": 2}, b"1"):
        with pytest.raises(redqueen.UserError, match=r"inputs of a task is .*give a list of literals"):
            reward_fn()(completions=["x"], **columns_of([asked | {"inputs": inputs}]))
    for completion in (["a"], 5, {"content": "x"}):
        with pytest.raises(redqueen.UserError, match="give a text, or a list of turns with a content"):
            reward_fn()(completions=[completion], **columns_of([asked]))


def test_threads_share_one_sandbox_and_a_forked_process_opens_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_one = rewards.open_verifier
    monkeypatch.setattr(rewards, "open_verifier", lambda config: opened.append(os.getpid()) or open_one(config))
    columns = columns_of(task_rows([REVERSED]))
    reward = reward_fn(config=ONE)

    def pay(_: int) -> list[float | None]:
        return reward(completions=[turn("<think>back</think><answer>'cba'</answer>")], **columns)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(pay, range(2))) == [[1.0], [1.0]]
    assert opened == [os.getpid()]
    child = os.fork()
    if child == 0:
        paid = False
        try:
            paid = pay(0) == [1.0]
        finally:
            os._exit(0 if paid and opened[1:] == [os.getpid()] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pay(0) == [1.0] and opened == [os.getpid()]


def test_programs_are_paid_by_unit_tests() -> None:
    tests = ["assert candidate(2) == 4", "assert candidate(2) == 4", "assert candidate(2) == 4"]
    said = [
        "Here:\n```python\ndef f(x):\n    return 2 * x\n```",
        "def f(x):\n    return x",
        "```python\ndef f(x) x\n```",
    ]
    reward = program_reward_fn(workers=1)
    assert reward(completions=said, tests=tests, entry=["f"] * 3) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: reward_fn()(completions=["x"], kind=["code_o"]),
            "no column code: make its rows by redqueen.task_rows",
        ),
        (lambda: program_reward_fn()(completions=["x"], tests=["pass"]), "no column entry"),
        (
            lambda: reward_fn()(completions=["x", "y"], **columns_of(task_rows([REVERSED]))),
            "the column kind has a length of 1, and there are 2 completions: give one row for each",
        ),
        (
            lambda: program_reward_fn()(completions=["x"], tests=[], entry=["f"]),
            "the column tests has a length of 0, and there are 1 completions",
        ),
        (lambda: task_rows([replace(REVERSED, kind="riddle")]), "no domain here has tasks of the kind riddle"),
        (
            lambda: reward_fn()(completions=["x"], **columns_of([row_of(REVERSED) | {"kind": "riddle"}])),
            "no domain here has tasks of the kind riddle",
        ),
        (
            lambda: task_rows([EQUATION], "fewshot-trace"),
            "tasks of the kind maths_formal have no prompts in the format fewshot-trace: choose one of compact",
        ),
        (
            lambda: reward_fn("fewshot")(completions=["x"], **columns_of([row_of(EQUATION)])),
            "tasks of the kind maths_formal have no prompts in the format fewshot",
        ),
        (lambda: task_rows([{"kind": "code_o", "inputs": ["1"], "outputs": ["1"]}]), "a task has no code: give kind"),
        (lambda: task_rows([row_of(REVERSED) | {"outputs": []}]), "a task has 1 inputs and 0 outputs"),
        (lambda: task_rows([row_of(REVERSED) | {"kind": None}]), "a task has no kind"),
        (lambda: task_rows([REVERSED], "english"), "prompt_format 'english' is unknown: choose one of compact"),
    ],
)
def test_a_data_set_that_lacks_something_is_refused(call: object, said: str) -> None:
    with pytest.raises(redqueen.UserError, match=said):
        call()  # type: ignore[operator]
