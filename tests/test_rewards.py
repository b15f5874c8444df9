"""The verifier as a reward: what TRL's trainers call, row by row, for tasks and for programs with unit tests."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, PreTrainedTokenizerFast

import redqueen
from redqueen import rewards
from redqueen.commands.task_rows import task_rows
from redqueen.config import load_config
from redqueen.domains.frames import BOS, END_THINK, THINK
from redqueen.engine import load_base
from redqueen.records import Task
from redqueen.rewards import program_reward_fn, reward_fn

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
    said = ["<think>back</think><answer>'cba'</answer>", "<answer>'abc'</answer>", "<think><answer>'cba'</answer>"]
    said += ["<answer>\n```python\ndef f(x):\n    return 2 * x\n```\n</answer>"]
    reward = reward_fn(config=ONE)
    marked = [turn(f"<answer>{text}</answer>") for text in ("`'cba'`", "**'cba'**", "`'abc'`")]
    assert reward(completions=marked, **{name: cells[:3] for name, cells in columns.items()}) == [1.0, 1.0, -0.5]
    assert reward(prompts=prompts, completions=[turn(text) for text in said], **columns) == [1.0, -0.5, -1.0, 1.0]
    assert reward.__name__ == "redqueen_reward"


def test_the_embedded_bases_marks_are_in_the_text_that_trainers_decode_and_in_the_tokens() -> None:
    _, tokenizer = load_base("embedded")
    columns = columns_of(task_rows([REVERSED, REVERSED], "compact"))
    prompts = columns.pop("prompt")
    assert all(isinstance(prompt, str) and prompt.startswith(BOS) for prompt in prompts)
    ids = [
        tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id, tokenizer.pad_token_id]
        for text in (f"{THINK}back{END_THINK}'cba'", "'cba'")
    ]
    texts = [tokenizer.decode(one, skip_special_tokens=True) for one in ids]
    assert reward_fn("compact", config=ONE)(completions=texts, **columns) == [1.0, 1.0]
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
    parts = [{"role": "assistant", "content": [5]}]
    for completion in (["a"], 5, {"content": "x"}, [{"type": "text", "text": "x"}], [{"content": 5}], parts):
        with pytest.raises(redqueen.UserError, match="give a text, or a list of turns with a content"):
            reward_fn()(completions=[completion], **columns_of([asked]))


def test_threads_share_one_sandbox_and_a_forked_process_opens_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_one = rewards.open_sandbox
    monkeypatch.setattr(rewards, "open_sandbox", lambda config: opened.append(os.getpid()) or open_one(config))
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


HUMAN_EVAL = "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1) == 2\n"
UNTESTED = {
    "empty": "",
    "an empty list": [],
    "a comment": "# assert f(1) == 2",
    "no assertion": "f(1) == 2",
    "an assertion about nothing": "assert True",
    "an assertion that is a tuple": "assert (f(1) == 2, 'two')",
    "the same twice": "assert f(1) == f(1)",
    "a failure that is caught": "try:\n    assert f(1) == 2\nexcept AssertionError:\n    pass",
    "a function of its own": "def f(x):\n    return 2\n\nassert f(1) == 2",
    "an unreachable call": "if False:\n    assert f(1) == 2",
    "a loop over nothing": "for x in []:\n    assert f(x) == x + 1",
}
NEVER_CALLED = {
    "a pytest class": "class TestF:\n    def test_one(self):\n        assert f(1) == 2",
    "unittest": "class Cases(Base):\n    def one(self):\n        self.assertEqual(f(1), 2)\n\nassert f(1) == 2",
    "a parameter": "import math\n\ndef test_f(x):\n    assert f(x) == 2\n\nassert f(1) == 2",
    "a decorator": "@each([1])\ndef test_f(x=1):\n    assert f(x) == 2",
    "async": "async def test_f():\n    assert f(1) == 2\n\nassert f(1) == 2",
}
RUN = {
    "HumanEval": HUMAN_EVAL,
    "HumanEval, called": HUMAN_EVAL + "\ncheck(f)\n",
    "pytest": "def test_one():\n    assert f(1) == 2\n\ndef test_two():\n    assert f(2) == 3",
    "pytest after a statement": "assert f(5) in (0, 6)\n\ndef test_one():\n    assert f(1) == 2",
    "MBPP's list": ["assert f(1) == 2", "assert f(2) == 3"],
    "a tuple": ("assert f(1) == 2",),
    "a byte-order mark": "\ufeffassert f(1) == 2",
    "a script": "def run():\n    assert f(1) == 2\n\nif __name__ == '__main__':\n    run()",
    "a script with an exit": "import sys\nassert f(1) == 2\nsys.exit(0)",
    "a check for None": "assert f(1) is not None and f(1) != 0",
    "MBPP+, with numpy": "import numpy as np\nfor x, value in [(1, 2), (2, 3)]:\n    assert f(x) == value",
}


@pytest.fixture(scope="module")
def paid() -> Callable[..., list[float | None]]:
    reward = program_reward_fn(workers=1)

    def pay(completion: object, tests: object, entry: object = "f") -> list[float | None]:
        return reward(completions=[completion], tests=[tests], entry=[entry])

    return pay


@pytest.mark.parametrize("name", UNTESTED)
def test_program_reward_refuses_tests_that_any_function_passes(name: str, paid: Callable[..., object]) -> None:
    for program in ("def f(x):\n    return 0", "not Python"):
        with pytest.raises(redqueen.UserError, match="row 0: the tests pass whatever the function returns: give"):
            paid(program, UNTESTED[name])


@pytest.mark.parametrize("name", NEVER_CALLED)
def test_program_reward_refuses_tests_that_nothing_calls(name: str, paid: Callable[..., object]) -> None:
    with pytest.raises(redqueen.UserError, match=r"row 0: nothing calls \w+ of the tests: call it at their end"):
        paid("def f(x):\n    return 0", NEVER_CALLED[name])


@pytest.mark.parametrize("name", RUN)
def test_program_reward_runs_tests_in_the_forms_of_data_sets(name: str, paid: Callable[..., object]) -> None:
    assert paid("def f(x):\n    return x + 1", RUN[name]) == [1.0]
    assert paid("def f(x):\n    return 0", RUN[name]) == [0.0]


@pytest.mark.parametrize(
    ("tests", "entry", "said"),
    [
        ({"assert": 1}, "f", "row 0: tests are .*give Python with assertions, as a text or a list of texts"),
        (None, "f", "row 0: tests are None"),
        (5, "f", "row 0: tests are 5"),
        ([1], "f", r"row 0: tests are \[1\]"),
        (b"assert f(1) == 2", "f", "row 0: tests are b'assert"),
        (">>> f(1)\n2", "f", "row 0: the tests are not Python .*give assertions that call f"),
        ("assert f(1) == 2", None, "row 0: entry is None: give the name of the function"),
        ("assert f(1) == 2", "def", "row 0: entry is 'def': give the name of the function"),
        ("assert f(1) == 2", "", "row 0: entry is '': give the name of the function"),
        ("assert g(1) == 2", "f", r"row 0: the tests cannot run \(NameError\)"),
        ("import pytest\nassert f(1) == 2", "f", r"row 0: the tests cannot run \(ModuleNotFoundError\)"),
    ],
)
def test_program_reward_refuses_tests_that_cannot_run(
    tests: object, entry: object, said: str, paid: Callable[..., object]
) -> None:
    with pytest.raises(redqueen.UserError, match=said):
        paid("def f(x):\n    return x + 1", tests, entry)


SOLUTION = "def f(x):\n    return x + 1"
ANSWERS = {
    "py": f"```py\n{SOLUTION}\n```",
    "a version": f"```python3.11\n{SOLUTION}\n```",
    "attributes": f"```{{.python .numberLines}}\n{SOLUTION}\n```",
    "tildes": f"~~~python\n{SOLUTION}\n~~~",
    "tildes around backticks": f"~~~~\n{SOLUTION}\n# ```\n# ~~~\n~~~~",
    "indented": "1. Here:\n\n   ```python\n   def f(x):\n       return x + 1\n   ```",
    "an end token": f"```python\n{SOLUTION}\n```<|im_end|>\n<|endoftext|>",
    "an end token without a fence": f"{SOLUTION}</s>",
    "many end tokens": f"{SOLUTION}{'<|endoftext|>' * 50}",
    "DeepSeek's end token": f"{SOLUTION}<｜end▁of▁sentence｜>",
    "Cohere's end token": f"{SOLUTION}<|END_OF_TURN_TOKEN|>",
    "a byte-order mark": f"\ufeff{SOLUTION}",
    "a byte-order mark in a fence": f"```python\n\ufeff{SOLUTION}\n```",
    "a fence without its end": f"Here:\n```python\n{SOLUTION}",
    "a sentence before it": f"Here is the function:\n\n{SOLUTION}",
    "a fence in it": '```python\ndef f(x):\n    """Add.\n\n    ```\n    f(1)\n    ```\n    """\n    return x + 1\n```',
    "a deep recursion": "import sys\nsys.setrecursionlimit(9999)\ndef g(n):\n    return n and g(n - 1)\ndef f(x):\n"
    "    return g(3000) + x + 1",
    "its output behind it": f"```python\n{SOLUTION}\n```\nOutput:\n```\n2\n```",
    "its output behind it, both unlabelled": f"```\n{SOLUTION}\n```\nOutput:\n```\n2\n```",
    "a call behind it": f"```python\n{SOLUTION}\n```\nSo:\n```python\nprint(f(1))\n```",
    "an empty block behind it": f"```python\n{SOLUTION}\n```\n```python\n\n```",
    "a shell before it": f"```bash\npip install it\n```\n```python\n{SOLUTION}\n```",
    "an example that reads": f"```python\n{SOLUTION}\nprint(f(int(input())))\nassert f(1) == 3\n```",
    "marks": f"<think>easy</think><answer>{SOLUTION}</answer>",
    "parts": [{"role": "assistant", "content": [{"type": "text", "text": f"```python\n{SOLUTION}\n```"}]}],
    "as Gemma calls it": [{"role": "model", "content": SOLUTION}],
    "several parts": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "text": "```python\ndef f(x): return 0\n```"},
                {"type": "text", "text": "Here:"},
                {"type": "text", "text": f"```python\n{SOLUTION}\n```"},
                {"type": "image", "image": "x.png"},
            ],
        }
    ],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_program_reward_finds_the_program_in_an_answer(name: str, paid: Callable[..., object]) -> None:
    assert paid(ANSWERS[name], "assert f(1) == 2") == [1.0]


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_no_reward_pays_for_a_turn_that_is_not_the_assistants(role: str, paid: Callable[..., object]) -> None:
    turns = [{"role": "assistant", "content": "pass"}, {"role": role, "content": SOLUTION}]
    assert paid(turns, "assert f(1) == 2") == [0.0]


def test_program_reward_pays_no_program_of_a_thought_or_of_another_language(paid: Callable[..., object]) -> None:
    assert paid(f"<think>perhaps\n```python\n{SOLUTION}\n```", "assert f(1) == 2") == [0.0]
    assert paid("```pycon\n>>> 1\n```", "assert f(1) == 2") == [0.0]


@pytest.fixture
def tokenizer_with_marks() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[])
    made = Tokenizer(model)
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    marks = {"eos_token": "<|endoftext|>", "pad_token": "<|pad|>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **marks)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|end|>"]})
    tokenizer.add_tokens(["<turn>"])
    return tokenizer


@pytest.mark.parametrize(("prompt_format", "text"), [("fewshot", "{}"), ("chat", "<answer>{}</answer>")])
def test_reward_reads_an_answer_before_any_end_token(
    prompt_format: str, text: str, tokenizer_with_marks: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    tokenizer = tokenizer_with_marks
    GenerationConfig(eos_token_id=[tokenizer.convert_tokens_to_ids("<turn>")]).save_pretrained(tmp_path)
    tokenizer.name_or_path = str(tmp_path)
    columns = columns_of([row_of(REVERSED)])
    reward = reward_fn(prompt_format, tokenizer, ONE)
    said = tokenizer.encode(text.format("'cba'"), add_special_tokens=False)

    def paid(*ends: str) -> list[float | None]:
        tokens = said + [tokenizer.convert_tokens_to_ids(end) for end in ends]
        return reward(completions=[text], completion_ids=[tokens], **columns)

    for ends in (["<|endoftext|>"], ["<|end|>"], ["<turn>"], ["<|end|>", "<|endoftext|>"], ["<turn>", "Ċ", "<|end|>"]):
        assert paid(*ends, "<|pad|>", "<|pad|>") == [1.0], ends
        assert paid(*ends) == [1.0], ends
    for cut in ([], ["<|pad|>"], ["<unk>"]):
        assert paid(*cut) == [1.0 if prompt_format == "chat" else -1.0]


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
        (lambda: program_reward_fn()(completions=["x"], tests=None, entry=["f"]), "the column tests has a length of 0"),
        (lambda: task_rows([replace(REVERSED, kind="riddle")]), "no loaded domain has tasks of the kind riddle"),
        (
            lambda: reward_fn()(completions=["x"], **columns_of([row_of(REVERSED) | {"kind": "riddle"}])),
            "no loaded domain has tasks of the kind riddle",
        ),
        (
            lambda: task_rows([EQUATION], "fewshot"),
            "tasks of the kind maths_formal have no prompts in the format fewshot: choose one of compact",
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
