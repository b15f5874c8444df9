"""Turn a candidate into a task, or into a rejection with one reason. Outputs are always computed here, never taken from
the proposal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from redqueen.config import VerifyConfig
from redqueen.domains.code.calls import distinct_calls, distinct_pairs
from redqueen.domains.code.measures import measure
from redqueen.domains.code.other_inputs import other_inputs, simple_inputs
from redqueen.domains.domain import task_of
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args, is_canonical, read_call
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules, make_job, run_once, verify_program
from redqueen_sandbox.records import Program

MAX_CODE_DEPTH = 100
"""Maximum depth of a program's syntax tree, as counted by ``measure``. Recursive functions such as ``normalise`` may
exceed the stack on a deeper one (ours; the programs of CRUXEval have at most 13)."""
MAX_CHARS = 8_192
"""Maximum length of an input or output of a task (ours): longer ones do not fit a prompt and slow down the grading."""
ANSWERED_CPU_MS = 10
"""CPU time limit, milliseconds, of a program that answers run (abduction) or imitate (induction): half of the lowest
limit of ``answer_ms`` (ours; nearly all programs need less than 5)."""

BOOLS = ("True", "False")
MIN_OTHERS = 4
"""Minimum number of other inputs that a program accepts; with fewer, the chance of a guess is at least 1/2 (ours)."""
MAX_RUNS = 8
"""Maximum number of processes for other inputs under one hash seed; in total 2 times, for abduction 7 times (ours)."""
MIN_SHARE = 1 / 8
"""An abduction is guessable only if more than this share of simple inputs solves it (ours)."""


def check_program(
    candidate: Candidate, rules: Rules, terms: VerifyConfig, with_pairs: bool = False
) -> Jobs[Task | Rejection]:
    """Verify one candidate: a program with one input, or with pairs.

    AZR's rules: one input, or ``terms.num_inputs`` distinct ones whose outputs are not all equal. With
    ``terms.refuse_constant``, a program with one input is rejected if all variants of that input give the same output
    or fail.
    """
    if len(candidate.code) > rules.limits.max_code_chars:
        return Rejection(candidate, "too-large", "source")
    limits = replace(rules.limits, max_input_chars=MAX_CHARS, max_output_chars=MAX_CHARS)
    rules = replace(rules, limits=limits)
    try:
        inputs = [canonical_args(text, max_chars=MAX_CHARS) for text in candidate.inputs]
        if with_pairs:
            inputs = distinct_calls(candidate.code, inputs)[: terms.num_inputs]
    except LiteralError as error:
        return Rejection(candidate, "invalid-input", str(error))
    wanted = terms.num_inputs if with_pairs else 1
    if len(inputs) != wanted:
        return Rejection(candidate, "invalid-input", f"{len(inputs)} distinct inputs where {wanted} are needed")
    result = yield from verify_program(Program(candidate.id, candidate.code, tuple(inputs)), rules)
    if result.verdict != "ok":
        return Rejection(candidate, result.verdict, result.detail)
    most_ms = limits.accept_cpu_ms if candidate.kind == "code_o" else min(limits.accept_cpu_ms, ANSWERED_CPU_MS)
    if result.cpu_ms > most_ms:
        return Rejection(candidate, "timeout", f"needs more than {most_ms} ms of CPU")
    try:
        outputs = tuple(canonical(text, max_chars=MAX_CHARS) for text in result.outputs)
    except LiteralError as error:
        return Rejection(candidate, "invalid-output", str(error))
    if not _can_be_measured(candidate.code):
        return Rejection(candidate, "too-large", f"source nested deeper than {MAX_CODE_DEPTH}")
    if with_pairs and len(set(outputs)) == 1:
        return Rejection(candidate, "constant", "all outputs are equal")
    hidden = outputs[terms.num_shown :] if with_pairs else ()
    others, chance = tuple[str, ...](), 0.5 if 1 == len(set(hidden)) < len(hidden) else 0.0
    if not with_pairs:
        tried = yield from _try_others(candidate, inputs[0], outputs[0], rules, terms)
        if isinstance(tried, Rejection):
            return tried
        others, chance = tried
    try:
        if with_pairs and (num_told := distinct_pairs(candidate.code, inputs, outputs)) < wanted:
            return Rejection(candidate, "invalid-input", f"{num_told} distinct inputs where {wanted} are needed")
    except LiteralError as error:  # numbers of hundreds of digits, written out
        return Rejection(candidate, "invalid-input", str(error))
    return task_of(
        candidate,
        code=candidate.code,
        inputs=tuple(inputs),
        outputs=outputs,
        message=candidate.message,
        num_shown=terms.num_shown if with_pairs else 0,
        protection=result.protection,
        chance=chance,
        signature=signature((*outputs, *others)),
    )


def signature(outputs: Sequence[str]) -> str:
    """Return a digest of a program's outputs, "" for fewer than eight, or fewer than four distinct ones (ours)."""
    is_telling = len(outputs) >= 8 and len(set(outputs)) >= 4
    return hashlib.sha256("\0".join(outputs).encode()).hexdigest()[:16] if is_telling else ""


def guess_chance(output: str, others: Sequence[str]) -> float:
    """Return the chance 1/k to guess the output of a program with k possible outputs; 0 if k seems to be large (ours).

    ``others`` are its outputs for other inputs. k is the number of distinct outputs, at least 2. For a bool this always
    applies. Otherwise it applies if there are more than three outputs and at most two, or at most a third of them, are
    distinct. It does not apply if more than three in four outputs are equal, as for programs that count, unless all are
    equal, or there are two values and the rarer one occurs more than once.
    """
    outputs = [output, *others]
    num_distinct, num_equal = len(set(outputs)), max(map(outputs.count, outputs))
    is_spread = num_equal <= 0.75 * len(outputs) or num_equal == len(outputs)
    is_spread |= num_distinct == 2 and num_equal < len(outputs) - 1
    is_few = num_distinct <= max(2, len(outputs) / 3) and len(outputs) > 3
    return 1 / max(2, num_distinct) if output in BOOLS or (is_few and is_spread) else 0.0


def without_arguments(output: str, given: str) -> str:
    """Return an output in which "=" and a number replace the eight longest arguments that it repeats. The rest, and the
    order, is what a student must work out. An output of more than 1,000 characters is returned unchanged."""
    by_place, by_name = read_call(given)
    places = {text: place for place, text in reversed([*enumerate((*by_place, *by_name.values()))])}
    for text in sorted(places, key=len, reverse=True)[: 8 if len(output) <= 1_000 else 0]:
        if bare := text.strip("'\""):
            output = re.sub(rf"(?<![\w=]){re.escape(bare)}(?!\w)", f"={places[text]}", output)
    return output


def _try_others(
    candidate: Candidate, given: str, output: str, rules: Rules, terms: VerifyConfig
) -> Jobs[tuple[tuple[str, ...], float] | Rejection]:
    """Return a program's outputs for variants of the given input, and the chance to guess an answer, estimated from
    these and, for abduction, from simple inputs. Return a rejection also where an output depends on earlier calls, or
    where ``terms`` refuse a program whose output never changes."""
    like, bold = other_inputs(given)
    if output in BOOLS:  # other programs may fail on bold changes, such as a negative number
        like += bold
    simple = simple_inputs(given) if candidate.kind == "code_i" else []
    ran = (yield from _outputs(candidate, (*like, given), rules)) if like else [output]
    if isinstance(ran, Rejection):
        return ran
    guessed = (yield from _outputs(candidate, simple, rules)) if simple else []
    if isinstance(guessed, Rejection):
        return guessed
    *found, last = ran
    if last not in ("", output):
        return Rejection(candidate, "nondeterministic", "the output depends on the runs before")
    pairs = [(text, other) for text, other in zip(found, like, strict=True) if text]
    others = [text for text, _ in pairs]
    if terms.refuse_constant and set(others) <= {output}:
        taken = "other inputs give the same output" if others else "no other input gives an output"
        return Rejection(candidate, "constant", taken)
    share = guessed.count(output) / (1 + len(simple))
    chance = max(guess_chance(output, others), share if share > MIN_SHARE else 0.0)
    rest = [without_arguments(text, arguments) for text, arguments in [(output, given), *pairs]]
    if len(set(rest)) > 1:
        chance = max(chance, guess_chance(rest[0], rest[1:]))
    if len(pairs) < MIN_OTHERS:
        chance = max(chance, 0.5)
    return tuple(found), chance


def _outputs(candidate: Candidate, inputs: Sequence[str], rules: Rules) -> Jobs[list[str] | Rejection]:
    """Return a program's output for each input, "" where it fails, exceeds the limit or differs between hash seeds. For
    abduction, different outputs or too many processes are a rejection.

    Inputs that are too slow under the first seed are not tried again; inputs that fail run alone, if at all. Later runs
    have twice the time, so that one near the limit does not seem to differ, and every other seed has reverse order.
    """
    job = make_job(candidate.code, tuple(("literal", text) for text in inputs), "each", rules)
    seeds = [-1] if job.seed < 0 else range(rules.num_seeds)
    job = replace(job, cpu_ms=rules.limits.accept_cpu_ms, again=True)
    found, num_runs, is_sought, slow = dict.fromkeys(inputs, "untried"), 0, candidate.kind == "code_i", set[str]()
    for number, seed in enumerate(seeds):
        is_alone = is_sought and number == 1  # one process each, so that a program cannot know the order
        left = [text for text in inputs if found[text] or (is_alone and text not in slow)][:: -1 if number % 2 else 1]
        texts, most = list[str](), num_runs + (len(left) if is_alone else MAX_RUNS)
        while len(texts) < len(left) and num_runs < most:
            rest = tuple(("literal", text) for text in left[len(texts) : len(texts) + 1 if is_alone else None])
            run = yield from run_once(replace(job, inputs=rest, seed=seed))
            if run.ended == "infra":
                return Rejection(candidate, "infra", run.detail)
            num_runs += 1
            slow |= set() if run.items else {left[len(texts)]}
            texts += [one.text if one.verdict == "ok" else "" for one in run.items] or [""]  # "": too slow even alone
        slow |= set(left[len(texts) :])
        outputs = dict(zip_longest(left, texts, fillvalue=""))
        if number == 0:
            found = {text: new if is_canonical(new) else "" for text, new in outputs.items()}
            job = replace(job, cpu_ms=2 * job.cpu_ms)
        elif differing := [t for t, new in outputs.items() if new != found[t] and (found[t] or is_canonical(new))]:
            if is_sought:
                return Rejection(candidate, "nondeterministic", "hash seeds or orders disagree about other inputs")
            found |= {text: "" for text in differing if text != inputs[-1]}  # the given one keeps its first output
        if num_runs > (7 if is_sought else 2) * MAX_RUNS:  # for abduction, all seeds must be tried
            return Rejection(candidate, "timeout", "on other inputs") if is_sought else [found[text] for text in inputs]
    return [found[text] for text in inputs]


def _can_be_measured(code: str) -> bool:
    try:
        return measure(code).ast_depth <= MAX_CODE_DEPTH
    except (ValueError, RecursionError, MemoryError):
        return False
