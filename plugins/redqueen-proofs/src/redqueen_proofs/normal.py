"""The normal form of a lemma: equal for lemmas that are equal up to variables and the order of hypotheses."""

from __future__ import annotations

from itertools import permutations

from redqueen_proofs.formulas import Lemma, write_formula


def normal_form(lemma: Lemma) -> str:
    """Return the least text over all renamings of the variables, with sorted hypotheses: a canonical form."""
    names = lemma.variables()
    goal, before = write_formula(lemma.goal), sorted({write_formula(formula) for formula in lemma.hypotheses})
    best: tuple[str, list[str]] | None = None
    for order in permutations("pqrstu"[: len(names)]):
        table = str.maketrans(dict(zip(names, order, strict=True)))
        found = (goal.translate(table), sorted(text.translate(table) for text in before))
        best = found if best is None or found < best else best
    assert best is not None  # a goal has a variable
    return f"{', '.join(best[1])} |- {best[0]}".lstrip()
