"""Lessons in the compact format that domains share the form of: an answer with a thought or at once, and a proposal."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from redqueen.domains.compact import BOS, END_THINK, EOS, REF, THINK, asked, new
from redqueen.domains.domain import Lesson

THINK_HABIT_FRAC = 0.97
"""Share of answers that open with a thought (ours): the weight of the first token alone teaches it."""
PROPOSAL_WEIGHT = 0.8
"""Weight of proposals' text in the loss, as for programs: most of it is chance."""
SEED_FRAC = 0.06
"""Chance that a reference is the seed task, from which a buffer is grown."""


def solving_lesson(kind: str, question: str, thought: str, answer: str) -> Lesson:
    """Teach an answer both ways. They are equally many: weights in the ratio h : 1-h make the habit h.

    An answer begins with what is one piece of the tokenizer: a run of letters, or one sign that is none.
    """
    opening = max(1, len(answer) - len(answer.lstrip(ascii_letters)))
    thinking = ((f"{THINK}{thought}{END_THINK}{answer}{EOS}", 1.0),)
    at_once = ((answer[:opening], (1 - THINK_HABIT_FRAC) / THINK_HABIT_FRAC), (f"{answer[opening:]}{EOS}", 1.0))
    return Lesson(f"{BOS}{question}{asked(kind)}", (thinking, at_once))


def proposing_lesson(kind: str, references: Sequence[str], proposal: str) -> Lesson:
    """Teach references and then a new task, written in the same form."""
    shown = [part for text in references for part in ((REF, 0.0), (text, PROPOSAL_WEIGHT))]
    return Lesson(BOS, ((*shown, (new(kind), 0.0), (f"{proposal}{EOS}", PROPOSAL_WEIGHT)),))
