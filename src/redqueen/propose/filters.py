"""Filters of proposals: content rules, duplicates, items of held-out suites, and tasks that are too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from redqueen.config import ProposeConfig, VerifyConfig
from redqueen.domains.domain import Item
from redqueen.domains.frames import control_tokens
from redqueen.domains.prompt_format import PromptFormat, decoded
from redqueen.domains.registry import JobRunner, check, domain_of, frozen_items, import_as, kind_of
from redqueen.errors import UserError
from redqueen.propose.buffer import duplicate_keys
from redqueen.records import Candidate, Rejection, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Hook = Callable[[Candidate], "str | None"]
"""Returns the reason why a proposal is refused, or None when it is allowed."""

REASON = "policy"


@dataclass(frozen=True)
class ContentFilter:
    """Compiled rules, and the hook with its name. With neither, nothing is refused."""

    rules: tuple[re.Pattern[str], ...] = ()
    hook: Hook | None = None
    hook_name: str = ""


def load_content_filter(config: ProposeConfig) -> ContentFilter:
    """Compile the rules and import the hook. Raises UserError for a rule that is not a regular expression, or a hook
    that cannot be imported."""
    rules = []
    for rule in config.policy_rules:
        try:
            rules.append(re.compile(rule))
        except re.error as error:
            raise UserError(
                f"propose.policy_rules: {rule!r} is not a regular expression ({error}); correct or remove it"
            ) from None
    name, hook = config.policy_hook, None
    try:
        hook = import_as(name, cast(Any, Callable), "a function that takes a Candidate") if name else None
    except UserError as error:
        raise UserError(f"propose.policy_hook: {error}") from None
    return ContentFilter(tuple(rules), hook, name)


def refuse(candidates: Sequence[Candidate], content_filter: ContentFilter) -> list[Rejection | None]:
    """Return a rejection for each candidate that the filter refuses, None for the others.

    Candidates that could not be parsed are left to the verifier. Raises UserError when the hook fails: a broken filter
    must not let anything pass.
    """
    return [None if candidate.error else _refusal(candidate, content_filter) for candidate in candidates]


def check_allowed(
    candidates: Sequence[Candidate], content_filter: ContentFilter, verifier: JobRunner, terms: VerifyConfig
) -> list[Task | Rejection]:
    """Return a task or a rejection for each candidate. Candidates that the filter refuses are never run."""
    refused = refuse(candidates, content_filter)
    allowed = [candidate for candidate, refusal in zip(candidates, refused, strict=True) if refusal is None]
    checked = iter(check(allowed, verifier, terms))
    return [refusal or next(checked) for refusal in refused]


def _refusal(candidate: Candidate, content_filter: ContentFilter) -> Rejection | None:
    asked = "\n".join((candidate.code, *candidate.inputs, candidate.message))
    for rule in content_filter.rules:
        if rule.search(asked):
            return Rejection(candidate, REASON, f"matches the rule {rule.pattern}")
    if content_filter.hook is None:
        return None
    try:
        why = content_filter.hook(candidate)
    except Exception as error:  # the hook is code of the user and may raise anything
        raise UserError(
            f"propose.policy_hook {content_filter.hook_name} failed on the proposal {candidate.id} "
            f"({type(error).__name__}: {error}); correct it, then resume the run"
        ) from error
    return Rejection(candidate, REASON, str(why)) if why else None


def reject_duplicates(
    candidates: Sequence[Candidate], judged: Sequence[Task | Rejection], asked: Iterable[str], order: Iterable[int]
) -> list[Task | Rejection]:
    """Turn repeated tasks into rejections with the reason ``duplicate``; of equal ones the first in ``order`` is kept.

    ``asked`` are the keys of earlier tasks (``TaskBuffer.asked``), ``order`` the candidates' indices: in the order of
    the teachers, the last one would be blamed for what all of them propose.
    """
    seen = set(asked)
    result = list(judged)
    for at in order:
        if isinstance(verdict := judged[at], Task):
            keys = duplicate_keys(verdict)
            if not seen.isdisjoint(keys):
                result[at] = Rejection(candidates[at], "duplicate", "the same was asked before, with the same inputs")
            seen.update(keys)
    return result


def reject_held_out(candidates: Sequence[Candidate], judged: Sequence[Task | Rejection]) -> list[Task | Rejection]:
    """Turn tasks with the normal form of an item of the frozen suite into rejections with the reason ``held-out``.

    Kind and inputs do not matter: no task about a program of the suite is allowed. Raises UserError when a suite
    cannot be read.
    """
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task) and kind_of(verdict).normal_form(verdict) in _frozen_forms(
            domain_of(verdict.kind).suite
        ):
            verdict = Rejection(candidate, "held-out", "an item of the frozen suite is about the same")
        result.append(verdict)
    return result


@cache
def _frozen_forms(suite: Callable[[], list[Item]]) -> frozenset[str]:
    return frozenset(kind_of(item.task).normal_form(item.task) for item in frozen_items(suite))


def reject_too_long(
    candidates: Sequence[Candidate],
    judged: Sequence[Task | Rejection],
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    max_prompt_tokens: int,
) -> list[Task | Rejection]:
    """Turn tasks with a solving prompt of more than ``max_prompt_tokens`` into rejections with reason ``too-long``.

    Tasks whose texts contain a mark of the prompt format or a control token of the tokenizer become rejections with
    reason ``unshowable``: a prompt shows exactly the text that runs, without escapes. So do tasks with a text that the
    tokenizer changes (it may compose accents or lack a letter), because the student would see a different text.
    """
    result: list[Task | Rejection] = []
    for candidate, verdict in zip(candidates, judged, strict=True):
        if isinstance(verdict, Task):
            texts = (verdict.code, *verdict.inputs, *verdict.outputs, verdict.message)
            prompt = prompt_format.solve(verdict)
            tokens = prompt_format.encode(tokenizer, prompt)
            if mark := mark_in(texts, prompt_format.frame.marks, tokenizer):
                verdict = Rejection(candidate, "unshowable", f"holds {mark!r}, which has a meaning in a prompt")
            elif len(tokens) > max_prompt_tokens:
                verdict = Rejection(candidate, "too-long", f"its prompt has {len(tokens)} tokens")
            elif changed := changed_in(texts, prompt, decoded(tokenizer, tokens)):
                verdict = Rejection(candidate, "unshowable", f"the tokenizer writes {changed!r:.60} in another way")
        result.append(verdict)
    return result


def changed_in(texts: Iterable[str], prompt: str, shown: str) -> str:
    """Return a text that is in the prompt but not in ``shown``, the prompt decoded from its tokens; "" without one."""
    return next((text for text in map(str.strip, texts) if text in prompt and text not in shown), "")


def mark_in(texts: Iterable[str], marks: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a mark, or a control token of the tokenizer, that one of the texts contains; "" without one.

    The tokenizer's normalizer may turn another spelling into a control token, so the token ids are searched too.
    """
    known = control_tokens(tokenizer)
    for text in texts:
        for mark in (*marks, *known.values()):
            if mark in text:
                return mark
        for number in tokenizer.encode(text, add_special_tokens=False):
            if number in known and number != tokenizer.unk_token_id:
                return known[number]
    return ""
