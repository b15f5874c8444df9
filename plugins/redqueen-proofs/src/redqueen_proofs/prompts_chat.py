"""Prompts for lemmas in plain English, with fenced blocks. The wording is ours."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import THINK_FIRST, fence, last_block, unfenced
from redqueen.records import Task
from redqueen_proofs.calculus import RULES
from redqueen_proofs.formulas import read_lemma, write_formula


def _rules_text() -> str:
    lines = []
    for name, rule in RULES.items():
        premises = ", ".join(map(write_formula, rule.premises))
        lines.append(
            f"- {name}: {'from ' + premises + ' ' if premises else ''}conclude {write_formula(rule.conclusion)}"
        )
    return "\n".join(lines)


LANGUAGE = """Formulas of propositional calculus are written with ~ for not and > for implies, which binds to the right:
p>q>r is p>(q>r). Variables are single letters. A lemma is written `p, p>q |- q`: hypotheses, then |- and the goal."""

_PROOFS = f"""A proof is a list of steps with commas between them. The hypotheses are lines 1, 2, ... in order, and each
step gives the next line: a rule, and the numbers of the lines that it is used on, in the order of its premises. The
last line must be the goal. For `p, p>q, q>r |- r` a proof is `mp 1 2, mp 4 3`. In a rule x, y and z stand for any
formulas; what they stand for is worked out by itself. The rules:
{_rules_text()}"""


def _propose(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    parts = ["Invent a lemma of propositional calculus that is true. A solver will see it and must prove it."]
    parts += [LANGUAGE, _PROOFS, "There are at most 9 hypotheses and 6 variables."]
    for number, task in enumerate(references, start=1):
        parts.append(f"Earlier lemma {number}:\n{fence('lemma', task.code)}")
    if references:
        parts.append("Your lemma must differ from all of the above in how it is proved, not only in its letters.")
    parts.append(
        "Make it hard for the solver: several steps that build on each other. First plan between <think> and </think>. "
        "Then write the lemma in a ```lemma block and a proof of it in a ```proof block."
    )
    return "\n\n".join(parts)


def _solve(task: Task) -> str:
    return "\n\n".join(
        [
            "Prove this lemma of propositional calculus.",
            LANGUAGE,
            _PROOFS,
            f"{fence('lemma', task.code)}\n{_numbered(task.code)}",
            f"{THINK_FIRST} The answer is the list of steps, such as mp 1 2, syl 3 4, and nothing else.",
        ]
    )


def _numbered(text: str) -> str:
    lemma = read_lemma(text)
    lines = (f"line {number} is {write_formula(formula)}" for number, formula in enumerate(lemma.hypotheses, start=1))
    return f"Here {', '.join(lines)}." if lemma.hypotheses else "It has no hypotheses: the first step gives line 1."


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the last lemma, and the last proof if there is one."""
    lemma = last_block(text, "lemma")
    if not lemma:
        return ParsedProposal(error="no lemma block")
    return ParsedProposal(lemma.strip(), (last_block(text, "proof").strip(),))


WORDS = Words(_propose, _solve, _read_proposal, unfenced)
