"""The content filter: refuses proposals that match the rules of the user, before they are run.

A rule is a regular expression, searched for in what a proposal would put before a student (program, inputs, message);
a hook is a function of the user that is called on every proposal. Both are off by default. Every refusal is a
rejection with the reason ``policy`` and the rule or the text that the hook returns as its detail. Ground: ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redqueen.config import ProposeConfig, VerifyConfig
from redqueen.domains.own_code import import_named
from redqueen.domains.registry import JobRunner, check
from redqueen.errors import UserError
from redqueen.nouns import Candidate, Rejection, Task

Hook = Callable[[Candidate], "str | None"]
"""Says why a proposal is refused, or None when it may be asked."""

REASON = "policy"


@dataclass(frozen=True)
class ContentFilter:
    """Compiled rules and the hook with its name; without either, nothing is refused."""

    rules: tuple[re.Pattern[str], ...] = ()
    hook: Hook | None = None
    hook_name: str = ""


def load_content_filter(config: ProposeConfig) -> ContentFilter:
    """Compile the rules and import the hook. Raises UserError for a rule that is no regular expression or a hook that
    is not there."""
    rules = []
    for rule in config.policy_rules:
        try:
            rules.append(re.compile(rule))
        except re.error as error:
            raise UserError(
                f"propose.policy_rules: {rule!r} is no regular expression ({error}); correct or remove it"
            ) from None
    return ContentFilter(tuple(rules), _import_hook(config.policy_hook), config.policy_hook)


def refuse(candidates: Sequence[Candidate], content_filter: ContentFilter) -> list[Rejection | None]:
    """Return a rejection for each candidate that the filter forbids, None for the others.

    What could not be parsed is left to the verifier. Raises UserError when the hook fails: a filter that does not
    work must not let anything pass.
    """
    return [None if candidate.error else _refusal(candidate, content_filter) for candidate in candidates]


def check_allowed(
    candidates: Sequence[Candidate], content_filter: ContentFilter, verifier: JobRunner, terms: VerifyConfig
) -> list[Task | Rejection]:
    """Return a task or a rejection for each candidate; what the filter refuses is never run."""
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
    except Exception as error:  # it may run any code of the user
        raise UserError(
            f"propose.policy_hook {content_filter.hook_name} failed on the proposal {candidate.id} "
            f"({type(error).__name__}: {error}); correct it, then resume the run"
        ) from error
    return Rejection(candidate, REASON, str(why)) if why else None


def _import_hook(name: str) -> Hook | None:
    if not name:
        return None
    try:
        hook = import_named(name)
    except Exception as error:  # importing runs the user's code
        raise UserError(
            f"propose.policy_hook {name!r} cannot be imported ({error}); write it as module:function, importable here"
        ) from None
    if not callable(hook):
        raise UserError(f"propose.policy_hook {name!r} is no function; name one that takes a Candidate")
    return hook  # type: ignore[no-any-return]
