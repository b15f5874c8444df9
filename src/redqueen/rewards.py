"""The verifier as a reward for other trainers: functions with the signature that TRL's trainers expect.

Such a function is called with ``prompts``, ``completions`` and, by name, the other columns of the data set, as lists of
equal length. It returns one reward for each completion, None where the infrastructure failed. It does not need torch.
"""

from __future__ import annotations

import ast
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from redqueen.commands.task_rows import COLUMNS, NEEDED, format_named, task_of_row
from redqueen.config import Config
from redqueen.domains.code.measures import UNPARSABLE
from redqueen.domains.frames import MARKS, ChatFrame, extract_program
from redqueen.domains.prompt_format import end_tokens
from redqueen.domains.registry import grade
from redqueen.errors import UserError
from redqueen.evaluate.evalplus import with_stand_in
from redqueen.evaluate.judging import definitions
from redqueen.learn.rewards import student_reward, well_formed
from redqueen.verifying import open_sandbox
from redqueen_sandbox import Sandbox
from redqueen_sandbox.unit_tests import UnitTest, UnitTester

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Reward = Callable[..., list[float | None]]
_END_TOKENS = re.compile(r"(?:(?:<[|｜][\w▁]{1,30}[|｜]>|</s>|<eos>|<pad>|<end_of_turn>)\s*){1,99}\Z")
"""End-of-turn tokens that trainers may leave at the end of a text."""
_TEXT_TYPES = ("text", "output_text")
"""Types of the content parts that are the text of the answer, not its reasoning or an image."""
_MODEL_ROLES = ("assistant", "model")


def reward_fn(
    prompt_format: str = "chat", tokenizer: PreTrainedTokenizerBase | None = None, config: Config | None = None
) -> Reward:
    """Return a reward for answers to tasks of ``task_rows``: 1 right, -0.5 wrong, -1 unreadable, as for students.

    ``tokenizer`` is needed to recognise answers that were cut off, and for formats whose marks are special tokens,
    because trainers remove these from the text. A completion is finished if it holds an end token of the tokenizer or
    of the generation config, or if its last token is another control token. ``config``: its section ``verify`` sets
    workers and limits. The sandbox starts at the first call in each process and closes with the function. Raises
    UserError for an unknown format; the function raises it without a sandbox, or for columns that are not its tasks.
    """
    form = format_named(prompt_format)
    sandbox = _LazySandbox(lambda: open_sandbox(config or Config()))

    def redqueen_reward(
        prompts: Sequence[Any] = (),
        completions: Sequence[Any] = (),
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Sequence[Any],
    ) -> list[float | None]:
        known = [name for name in COLUMNS if name in columns or name in NEEDED]
        _check_columns(len(completions), columns, known, "make its rows by redqueen.task_rows")
        tasks = [task_of_row({name: columns[name][i] for name in known}) for i in range(len(completions))]
        texts, ended = [_text(one) for one in completions], [True] * len(completions)
        if completion_ids is not None and tokenizer is not None:
            texts, ended = _decoded(tokenizer, completion_ids)
        read = zip(tasks, texts, ended, strict=True)
        answers = [form.parse_answer(task.kind, text, finished).answer for task, text, finished in read]
        grades = grade(list(zip(tasks, answers, strict=True)), sandbox.get())
        return [None if one.lost else student_reward(one, well_formed(one)) for one in grades]

    weakref.finalize(redqueen_reward, sandbox.close)
    return redqueen_reward


def program_reward_fn(workers: int = 2) -> Reward:
    """Return a reward for programs by unit tests: 1 when all pass, else 0, as in HumanEval and MBPP.

    Reads the columns ``tests`` (trusted Python with assertions, as a text or a list of texts) and ``entry`` (the
    function's name; tests may also call it ``candidate``). The program is the completion's last fenced Python block, or
    the whole completion, without example calls. The function raises UserError for tests that test nothing.
    """
    tester = _LazySandbox(lambda: UnitTester(workers=workers))

    def tests_reward(
        prompts: Sequence[Any] = (), completions: Sequence[Any] = (), **columns: Sequence[Any]
    ) -> list[float | None]:
        remedy = "give the assertions, and the name of the function"
        _check_columns(len(completions), columns, ("tests", "entry"), remedy)
        units = []
        for i, (one, tests, entry) in enumerate(zip(completions, columns["tests"], columns["entry"], strict=True)):
            runnable = runnable_tests(tests, entry, f"row {i}")
            text = _END_TOKENS.sub("", _text(one))
            units.append(UnitTest(f"row {i}", definitions(extract_program(text, entry), entry), runnable, entry))
        return [None if one.lost else float(one.correct) for one in tester.get().grade(units)]

    weakref.finalize(tests_reward, tester.close)
    return tests_reward


_Sandbox = TypeVar("_Sandbox", Sandbox, UnitTester)


class _LazySandbox(Generic[_Sandbox]):
    """A sandbox that opens on first use: once for all threads of a process, and again in a forked process."""

    def __init__(self, open_one: Callable[[], _Sandbox]) -> None:
        self._open_one: Callable[[], _Sandbox] = open_one
        self._opened: dict[int, _Sandbox] = {}
        self._lock = threading.Lock()

    def get(self) -> _Sandbox:
        with self._lock:
            if os.getpid() not in self._opened:
                self._opened[os.getpid()] = self._open_one()
            return self._opened[os.getpid()]

    def close(self) -> None:
        if os.getpid() in self._opened:
            self._opened.pop(os.getpid()).close()


def _check_columns(wanted: int, columns: Mapping[str, Sequence[Any]], names: Sequence[str], remedy: str) -> None:
    """Raise UserError when a column is missing, or does not have one row for each completion."""
    for name in names:
        if name not in columns:
            raise UserError(f"the data set has no column {name}: {remedy}")
        if (length := len(columns[name]) if hasattr(columns[name], "__len__") else 0) != wanted:
            raise UserError(
                f"the column {name} has a length of {length}, and there are {wanted} completions: give one row for each"
            )


def _text(completion: Any) -> str:
    """Return a completion's text: the completion itself, or the content of its last turn, which may be a list of parts.
    The text is empty if the last turn is that of a user or a tool."""
    content = completion
    refusal = f"a completion is {completion!r:.100}: give a text, or a list of turns with a content"
    if isinstance(completion, list | tuple) and completion:
        if not isinstance(completion[-1], Mapping) or completion[-1].keys().isdisjoint(("role", "content")):
            raise UserError(refusal)
        content = completion[-1].get("content") if completion[-1].get("role", "model") in _MODEL_ROLES else ""
    parts = [content or ""] if isinstance(content, str | None) else content
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str | Mapping) for part in parts):
        raise UserError(refusal)
    typed = [{"text": part} if isinstance(part, str) else part for part in parts]
    return "\n".join(str(part.get("text") or "") for part in typed if part.get("type", "text") in _TEXT_TYPES)


def _decoded(tokenizer: PreTrainedTokenizerBase, ids: Sequence[Sequence[int]]) -> tuple[list[str], list[bool]]:
    """Decode completions up to their end token, keeping all other marks. Return the texts, and which have ended."""
    from transformers import GenerationConfig

    try:
        generation_config = GenerationConfig.from_pretrained(tokenizer.name_or_path, local_files_only=True)
    except (OSError, ValueError):
        generation_config = None
    ends, pad = set(end_tokens(tokenizer, generation_config)), tokenizer.pad_token_id
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    marks = {*special, *tokenizer.all_special_tokens} - {*MARKS, *ChatFrame.marks}
    last = {tokenizer.convert_tokens_to_ids(mark) for mark in marks} - {pad, tokenizer.unk_token_id}
    texts, ended = [], []
    for tokens in ids:
        found = [int(token) for token in tokens]
        while found and found[-1] == pad and pad not in ends:
            found.pop()
        kept = found[: next((i for i, token in enumerate(found) if token in ends), len(found))]
        while kept and kept[-1] in last:
            kept.pop()
        texts.append(str(tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)))
        ended.append(len(kept) < len(found))
    return texts, ended


def runnable_tests(tests: object, entry: object, where: str) -> str:
    """Return the tests of one row as a program that runs them; a list of assertions (MBPP) becomes one text.

    Calls of HumanEval's ``check(candidate)`` and of pytest functions are added where the tests do not call them. Raises
    UserError, which begins with ``where``, for tests that are not Python text or that would never run.
    """
    if not (isinstance(entry, str) and entry.isidentifier()) or iskeyword(entry):
        raise UserError(f"{where}: entry is {entry!r:.100}: give the name of the function that the tests call")
    is_list = isinstance(tests, Iterable) and not isinstance(tests, str | bytes | Mapping)
    parts: list[Any] = list(tests) if is_list else [tests]  # type: ignore[call-overload]
    if not all(isinstance(part, str) for part in parts):
        raise UserError(f"{where}: tests are {tests!r:.100}: give Python with assertions, as a text or a list of texts")
    text = with_stand_in("\n".join(parts).removeprefix("\ufeff"))
    try:
        body = ast.parse(text).body
    except UNPARSABLE as error:
        raise UserError(f"{where}: the tests are not Python ({error}): give assertions that call {entry}") from None
    calls = [_call(node, where) for node in body if _is_uncalled_test(node, body)]
    return "\n".join([text, *calls])


def _is_uncalled_test(node: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    others = (inner for other in body if other is not node for inner in ast.walk(other))
    if any(isinstance(inner, ast.Name) and inner.id == node.name for inner in others):
        return False
    inside = list(ast.walk(node))
    asserts = any(isinstance(inner, ast.Assert) or "assert" in getattr(inner, "attr", "") for inner in inside)
    return asserts or node.name == "check" or node.name.lower().startswith("test")


def _call(node: ast.stmt, where: str) -> str:
    """Return a statement that calls an uncalled test. Raises UserError where its arguments are unknown."""
    name = getattr(node, "name", "")
    if isinstance(node, ast.FunctionDef) and not node.decorator_list and None not in node.args.kw_defaults:
        names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        needed = names[: len(names) - len(node.args.defaults)]
        if not needed or needed == ["candidate"] or (name == "check" and len(needed) == 1):
            return f"{name}({'candidate' if needed else ''})"
    raise UserError(f"{where}: nothing calls {name} of the tests: call it at their end")
