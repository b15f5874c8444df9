"""What is too long to be asked, and how long texts may be on a base with so many positions."""

import pytest
from scripted import config_of
from tokenizers import normalizers
from transformers import AddedToken, AutoTokenizer, PreTrainedTokenizerBase

from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.memory import TextLimits, fit_limits
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.propose.filters import reject_too_long
from redqueen.records import Candidate, Rejection, Task


def judged(limit: int, *verdicts: Task | Rejection) -> list[Task | Rejection]:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    candidates = [Candidate(str(i), "T1", "S1", "code_o", "") for i in range(len(verdicts))]
    return reject_too_long(candidates, verdicts, PromptFormat(FRAMES["compact"]), tokenizer, limit)


def task(output: str, kind: str = "code_i") -> Task:
    return Task("a", "T1", "S1", kind, "def f(x):\n    return x\n", ("1",), (output,))


def test_a_task_is_refused_for_the_length_of_what_its_student_would_be_shown() -> None:
    short, long = task("[1, 2]"), task(f"'{'a' * 100}'")
    result = judged(60, short, long, task(f"'{'a' * 100}'", "code_o"))
    assert [isinstance(v, Task) for v in result] == [True, False, True]  # a deduction prompt does not show the output
    assert isinstance(result[1], Rejection)
    assert (result[1].candidate.id, result[1].reason) == ("1", "too-long")
    assert "tokens" in result[1].detail


def test_what_was_rejected_already_keeps_its_reason() -> None:
    bad = Rejection(Candidate("0", "T1", "S1", "code_o", ""), "syntax")
    assert judged(1, bad) == [bad]


def test_the_limit_itself_is_short_enough() -> None:
    tokenizer, asked = AutoTokenizer.from_pretrained(embedded_folder()), task("1")
    length = len(PromptFormat(FRAMES["compact"]).encode(tokenizer, PromptFormat(FRAMES["compact"]).solve(asked)))
    assert judged(length, asked) == [asked]
    assert isinstance(judged(length - 1, asked)[0], Rejection)


def added_tokens(*tokens: str) -> PreTrainedTokenizerBase:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=True) for token in tokens])
    return tokenizer


HARMLESS = ("def f(x):\n    return '<|' + x + '##'\n", "'<'", "' '", "a hint")
HOSTILE = {
    "compact": ["<|in|>", "<|eos|>", "<tool_call>"],
    "fewshot": ["###", "<|eos|>", "<tool_call>"],
    "chat": ["<think>", "</think>", "<answer>", "</answer>", "<|eos|>", "<tool_call>"],
}


@pytest.mark.parametrize(("name", "mark"), [(name, mark) for name, marks in HOSTILE.items() for mark in marks])
@pytest.mark.parametrize("kind", ["code_o", "code_i", "code_f"])
def test_a_task_that_holds_a_mark_or_a_control_token_is_refused_and_no_text_is_changed(
    name: str, mark: str, kind: str
) -> None:
    tokenizer = added_tokens("<tool_call>", "  ")  # runs of blanks are tokens of some tokenizers
    code, given, output, message = HARMLESS
    asked = [
        Task("a", "T1", "S1", kind, code, (given,) * 2, (output,) * 2, message, 1),
        Task("a", "T1", "S1", kind, f'def f(x):\n    return r"{mark}"\n', (given,) * 2, (output,) * 2, message, 1),
        Task("a", "T1", "S1", kind, code, (given, f"'{mark}'"), (output,) * 2, message, 1),
        Task("a", "T1", "S1", kind, code, (given,) * 2, (output, f"'{mark}'"), message, 1),
        Task("a", "T1", "S1", kind, code, (given,) * 2, (output,) * 2, f"see {mark}", 1),
    ]
    candidates = [Candidate(str(i), "T1", "S1", kind, "") for i in range(len(asked))]
    prompt_format = PromptFormat(FRAMES[name])
    judged = reject_too_long(candidates, asked, prompt_format, tokenizer, 10_000)
    assert [one.reason if isinstance(one, Rejection) else "" for one in judged] == ["", *["unshowable"] * 4]
    assert (kind == "code_f") or code.strip() in prompt_format.solve(asked[0])


def test_a_control_token_in_the_spelling_of_a_normalizer_is_refused() -> None:
    tokenizer = added_tokens("<tool_call>")
    tokenizer.backend_tokenizer.normalizer = normalizers.NFKC()
    [judged] = reject_too_long(
        [Candidate("0", "T1", "S1", "code_i", "")],
        [task("'＜tool_call＞'")],
        PromptFormat(FRAMES["chat"]),
        tokenizer,
        9999,
    )
    assert isinstance(judged, Rejection) and judged.reason == "unshowable"


@pytest.mark.parametrize("name", ["chat", "plain", "r1", "fewshot"])
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_task_whose_text_the_tokenizer_changes_is_refused(name: str, kind: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()  # as Qwen's
    texts = {"cafe\u0301": "unshowable", "caf\u00e9": "", "\u212b": "unshowable", "a  b": ""}
    tasks = [Task("a", "T1", "S1", kind, f"def f(x):\n    return len('{text}')\n", ("1",), ("4",)) for text in texts]
    candidates = [Candidate("0", "T1", "S1", kind, "")] * len(tasks)
    judged = reject_too_long(candidates, tasks, PromptFormat(FRAMES[name]), tokenizer, 9999)
    assert [one.reason if isinstance(one, Rejection) else "" for one in judged] == [*texts.values()]


@pytest.mark.parametrize("positions", [64, 1024, 32768])
def test_prompt_and_completion_fit_the_positions_together_and_a_completion_gets_at_most_half(positions: int) -> None:
    limits = fit_limits(config_of(propose={"max_new_tokens": 8096}, solve={"max_new_tokens": 8096}), positions)
    assert limits.propose_new_tokens == limits.solve_new_tokens == min(8096, positions // 2)
    for prompt, new in (
        (limits.propose_prompt_tokens, limits.propose_new_tokens),
        (limits.solve_prompt_tokens, limits.solve_new_tokens),
    ):
        assert 0 < prompt <= 6144 and prompt + new <= positions


def test_what_the_config_asks_for_is_kept_where_there_is_room() -> None:
    config = config_of(
        propose={"max_new_tokens": 100, "max_prompt_tokens": 200}, solve={"max_new_tokens": 30, "max_prompt_tokens": 40}
    )
    assert fit_limits(config, 1024) == TextLimits(200, 100, 40, 30, 1024)
