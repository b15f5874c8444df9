"""Turn a proposal into a task: our own parser reads the statement, the sandbox computes its answer."""

from __future__ import annotations

from redqueen.config import VerifyConfig
from redqueen.domains.domain import task_of, worker_verdict
from redqueen.domains.maths.agreement import disagreement, miscounted, wanted_unknown
from redqueen.domains.maths.answers import grade_number
from redqueen.domains.maths.language import Node, StatementError, free_names, parse, write
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules, call_job, run_once

KILL_CPU_MS, ACCEPT_CPU_MS = 3_000, 1_500
"""CPU time after which the solver is killed, and CPU time up to which a statement is accepted as a task (ours). The
second is lower, so that no statement is accepted once and too slow the next time."""


def check_statement(
    candidate: Candidate, rules: Rules, terms: VerifyConfig, in_words: bool = False
) -> Jobs[Task | Rejection]:
    """Verify one candidate: a statement, or with ``in_words`` a text with a statement as its formal twin."""
    try:
        code = write(parse(candidate.code))
        statement = parse(code)  # the limits apply to the statement as it is shown
    except StatementError as error:
        return Rejection(candidate, "syntax", str(error))
    if in_words and (why := disagreement(candidate.message, statement)):
        return Rejection(candidate, "disagreement", why)
    verdict, found = yield from _solve(code, rules)
    if verdict != "ok":
        return Rejection(candidate, verdict, found)
    task = task_of(
        candidate,
        code=code,
        outputs=(found,),
        message=candidate.message.strip() if in_words else "",
        protection=rules.protection,
    )
    if found == code or (not in_words and (yield from _holds_its_answer(statement, task, rules))):
        return Rejection(candidate, "trivial", "the statement is its own answer")
    if in_words:
        is_negative = "sqrt" in found and (yield from _solve(f"1 where {found} < 0", rules))[0] == "ok"
        why = miscounted(candidate.message, found, is_negative)
        if why or (why := (yield from _other_extreme(candidate.message, statement, found, rules))):
            return Rejection(candidate, "disagreement", why)
    return task


def _holds_its_answer(statement: Node, task: Task, rules: Rules) -> Jobs[bool]:
    """Return whether a part of the statement, copied, is a right answer, as for ``84/6``, ``sqrt(8)``,
    ``x where x = 7`` or ``x where x in 7..7``.
    """
    asked, conditions = statement[1:]
    copies: list[tuple[Node, ...]] = [(asked,)]
    for condition in conditions:
        if condition[0] == "rel" and asked in condition[2] and set(condition[1]) == {"="}:
            copies += [(side,) for side in condition[2]]
        elif condition[0] == "in" and asked == ("name", condition[1]):
            copies.append(condition[2:])  # both bounds: one alone may be the answer of a search
    for parts in dict.fromkeys(copies):
        for part in parts:
            if free_names(part) or not (yield from grade_number(task, write(part), rules)).correct:
                break
        else:
            return True
    return False


def _solve(code: str, rules: Rules) -> Jobs[tuple[str, str]]:
    """Return ``("ok", number)``, or a verdict and its reason."""
    run = yield from run_once(call_job("redqueen.domains.maths.solver", "solve", [code], KILL_CPU_MS, rules))
    verdict, found = worker_verdict(run, ACCEPT_CPU_MS)
    return str(verdict), str(found)


def _other_extreme(text: str, statement: Node, answer: str, rules: Rules) -> Jobs[str]:
    """Return the reason if the text asks for another unknown than its twin (see ``wanted_unknown``), else ""."""
    wanted = wanted_unknown(text)
    asked, conditions = statement[1:]
    if not wanted or asked[0] != "name":
        return ""
    for name in sorted(free_names(conditions) - {asked[1]}):
        more_extreme = ("rel", (">" if wanted == "most" else "<",), (("name", name), parse(answer)[1]))
        verdict, _ = yield from _solve(write(("ask", ("name", name), (more_extreme, *conditions))), rules)
        if verdict in ("ok", "not-unique"):
            return f"the text asks for the {wanted} of the numbers, and {name} is it"
    return ""
