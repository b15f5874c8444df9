"""One text for lemmas that are the same but for letters and the order of hypotheses, and which are held out."""

from __future__ import annotations

import hashlib
from itertools import permutations

from redqueen.domains.proofs.formulas import Lemma, write_formula

HELD_OUT_SHARE = 16
"""One lemma in so many is held out of every lesson, by the digest of its normal form (ours)."""


def normal_form(lemma: Lemma) -> str:
    """Return the least text over all renamings of the variables, hypotheses sorted: exactly canonical."""
    names = lemma.variables()
    goal, before = write_formula(lemma.goal), sorted({write_formula(formula) for formula in lemma.hypotheses})
    best: tuple[str, list[str]] | None = None
    for order in permutations("pqrstu"[: len(names)]):
        table = str.maketrans(dict(zip(names, order, strict=True)))
        found = (goal.translate(table), sorted(text.translate(table) for text in before))
        best = found if best is None or found < best else best
    assert best is not None  # a goal has a variable
    return f"{', '.join(best[1])} |- {best[0]}".lstrip()


def is_held_out(lemma: Lemma) -> bool:
    """Tell whether a lemma belongs to the share that no lesson shows: the frozen suite is drawn from it alone."""
    return hashlib.sha256(normal_form(lemma).encode()).digest()[0] % HELD_OUT_SHARE == 0
