"""Refuse what could not be asked: a valid task whose solving prompt is longer than a student may be shown, or shows
another program, since what would end a prompt is written as an escape in it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from redqueen.domains.prompt_format import PromptFormat
from redqueen.nouns import Candidate, Rejection, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def reject_too_long(
    candidates: Sequence[Candidate],
    judged: Sequence[Task | Rejection],
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    max_prompt_tokens: int,
) -> list[Task | Rejection]:
    """Turn tasks with a solving prompt of more than ``max_prompt_tokens`` into rejections with reason ``too-long``, and
    those whose prompt shows another program into rejections with reason ``unshowable``.
    """
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task):
            prompt = prompt_format.solve(verdict)
            num_tokens = len(prompt_format.encode(tokenizer, prompt))
            shown = prompt_format.frame.spelled(tokenizer, verdict.code)
            if _is_another(verdict.code, shown) and (shown in prompt or verdict.code.strip("\n") in prompt):
                verdict = Rejection(candidate, "unshowable", "a mark of the prompt in a raw string or an f-string")
            elif num_tokens > max_prompt_tokens:
                verdict = Rejection(candidate, "too-long", f"its prompt has {num_tokens} tokens")
        result.append(verdict)
    return result


def _is_another(code: str, shown: str) -> bool:
    """Tell whether a program is another one as it is shown. A text that is no program is none."""
    if shown == code.strip("\n"):
        return False
    try:
        before = ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    try:
        return ast.dump(ast.parse(shown)) != before
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
