"""Refuse what could not be asked: a valid task whose solving prompt is longer than a student may be shown."""

from __future__ import annotations

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
    """Turn tasks with a solving prompt of more than ``max_prompt_tokens`` into rejections with reason ``too-long``."""
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task):
            num_tokens = len(prompt_format.encode(tokenizer, prompt_format.solve(verdict)))
            if num_tokens > max_prompt_tokens:
                verdict = Rejection(candidate, "too-long", f"its prompt has {num_tokens} tokens")
        result.append(verdict)
    return result
