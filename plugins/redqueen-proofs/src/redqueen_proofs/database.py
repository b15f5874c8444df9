"""The Metamath database behind the rules, and a student's proof as a Metamath proof in it.

Three axioms and detachment are stated; every other rule is proved from the rules before it. A student's steps become a
compressed proof of the lemma in this database, and the verifier of ``metamath.py`` decides whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from string import ascii_lowercase

from redqueen_proofs.calculus import RULES, Line, ProofError, read_proof, unfold
from redqueen_proofs.formulas import Formula, Lemma
from redqueen_proofs.metamath import Database, MetamathError

AXIOMS = ("ax1", "ax2", "ax3", "mp")
DERIVED = {
    "wk": "ax1, mp 1 2",
    "mpd": "ax2, mp 2 3, mp 1 4",
    "syl": "wk 2, mpd 1 3",
    "id": "ax1, ax1, mpd 1 2",
    "red": "id, mpd 2 1",
    "com": "ax2, mp 1 2, ax1, syl 4 3",
    "ctr": "ax3, mp 1 2",
    "efq": "ax1, ax3, syl 1 2",
    "dne": "efq, ax3, syl 2 3, red 4, mp 1 5",
    "dni": "efq, ax3, syl 2 3, red 4, ctr 5, mp 1 6",
    "con": "efq, ax3, syl 2 3, red 4, syl 5 1, efq, ax3, syl 7 8, red 9, ctr 10, syl 6 11, ctr 12",
    "mt": "con 2, mp 1 3",
}
"""The proof of each further rule from those before it."""
MAX_PROOF_SYMBOLS = 400_000
"""Maximum number of symbols that the proof of a lemma may write (ours); the longest proofs need a tenth."""
LEMMA = "lemma"


def database_text() -> str:
    """Return the database as text: the language, the axioms, and the proofs of all other rules."""
    parts = [
        "$( Propositional calculus: three axioms, detachment, and the rules that follow from them. $)",
        "$c ( ) -> -. wff |- $.",
        f"$v {' '.join(ascii_lowercase)} $.",
        *(f"v{letter} $f wff {letter} $." for letter in ascii_lowercase),
        "neg $a wff -. x $.",
        "imp $a wff ( x -> y ) $.",
    ]
    for name in AXIOMS:
        rule = RULES[name]
        parts.append(_statement(name, rule.premises, rule.conclusion, "$a"))
    for name, proof in DERIVED.items():
        lemma = Lemma(RULES[name].premises, RULES[name].conclusion)
        lines = unfold(lemma, read_proof(proof, len(lemma.hypotheses)))
        parts.append(lemma_text(lemma, lines, name))
    return "\n".join(parts) + "\n"


def lemma_text(lemma: Lemma, lines: Sequence[Line], name: str = LEMMA) -> str:
    """Return the Metamath statement of a lemma with the compressed proof of its unfolded lines."""
    return _statement(name, lemma.hypotheses, lemma.goal, "$p", _compressed(lemma, lines, name))


def verify_lines(lemma: Lemma, lines: Sequence[Line]) -> None:
    """Check an unfolded proof of a lemma with the verifier. Raises ProofError when it does not verify."""
    database = _opened()
    try:
        checked = database.branch(MAX_PROOF_SYMBOLS).read(lemma_text(lemma, lines))
    except MetamathError as error:
        raise ProofError(str(error)) from None
    if checked.proved != [LEMMA]:
        raise ProofError(next(iter(checked.faults.values()), "no proof"))


@lru_cache(maxsize=1)
def _opened() -> Database:
    database = Database().read(database_text())
    if database.faults:
        raise AssertionError(f"a rule is not proved: {database.faults}")
    return database


def _statement(name: str, premises: Sequence[Formula], conclusion: Formula, keyword: str, proof: str = "") -> str:
    lines = [
        f"{name}.{number} $e |- {' '.join(symbols(premise))} $." for number, premise in enumerate(premises, start=1)
    ]
    end = f" $= {proof} $." if proof else " $."
    lines.append(f"{name} {keyword} |- {' '.join(symbols(conclusion))}{end}")
    return "\n".join(["${", *lines, "$}"]) if premises else lines[0]


def symbols(formula: Formula) -> Iterator[str]:
    """Yield the symbols of a formula as Metamath writes it."""
    if isinstance(formula, str):
        yield formula
    elif formula[0] == "~":
        yield "-."
        yield from symbols(formula[1])
    else:
        yield "("
        yield from symbols(formula[1])
        yield "->"
        yield from symbols(formula[2])
        yield ")"


def _variables_in_order(formulas: Sequence[Formula]) -> list[str]:
    """Return the letters of formulas, in the order in which the database types them."""
    found = {symbol for formula in formulas for symbol in symbols(formula)}
    return [letter for letter in ascii_lowercase if letter in found]


def _compressed(lemma: Lemma, lines: Sequence[Line], name: str) -> str:
    """Return the compressed proof; formulas and lines that occur again are saved and reused."""
    mandatory = [f"v{letter}" for letter in _variables_in_order((*lemma.hypotheses, lemma.goal))]
    mandatory += [f"{name}.{number}" for number in range(1, len(lemma.hypotheses) + 1)]
    writer = _Writer(mandatory)
    needed = _needed(lines, len(lemma.hypotheses))
    places: dict[int, int] = {}

    def prove(number: int) -> None:
        """Write a line after the lines that it uses; the recursion depth is at most the number of steps."""
        line = lines[number - 1]
        if line.step is None:
            writer.label(f"{name}.{number}")
            return
        rule = RULES[line.step.rule]
        substitution = dict(line.substitution)
        for letter in _variables_in_order((*rule.premises, rule.conclusion)):
            writer.formula(substitution[letter])
        for use in line.step.uses:
            if use in places:
                writer.push_saved(places[use])
            else:
                prove(use)
        writer.label(line.step.rule)
        if needed[number] > 1:
            places[number] = writer.save()

    prove(len(lines))
    return writer.text()


def _needed(lines: Sequence[Line], num_hypotheses: int) -> dict[int, int]:
    """Return how often each line is used by lines that the last line needs."""
    counts = {len(lines): 1}
    for number in range(len(lines), num_hypotheses, -1):
        step = lines[number - 1].step
        if number in counts and step is not None:
            for use in step.uses:
                counts[use] = counts.get(use, 0) + 1
    return counts


class _Writer:
    """Collects the steps of a compressed proof; the numbers of saved steps depend on the number of all labels."""

    def __init__(self, mandatory: list[str]) -> None:
        self.mandatory = mandatory
        self.labels: dict[str, int] = {}
        self.steps: list[tuple[str, int]] = []  # ("label", number among mandatory and labels), ("saved", n), ("Z", 0)
        self.num_saved = 0
        self.formulas: dict[Formula, int] = {}

    def label(self, label: str) -> None:
        if label in self.mandatory:
            self.steps.append(("label", self.mandatory.index(label)))
        else:
            number = self.labels.setdefault(label, len(self.labels))
            self.steps.append(("label", len(self.mandatory) + number))

    def save(self) -> int:
        self.steps.append(("Z", 0))
        self.num_saved += 1
        return self.num_saved - 1

    def push_saved(self, saved: int) -> None:
        self.steps.append(("saved", saved))

    def formula(self, formula: Formula) -> None:
        if isinstance(formula, str):
            self.label(f"v{formula}")
            return
        if formula in self.formulas:
            self.push_saved(self.formulas[formula])
            return
        for part in formula[1:]:
            self.formula(part)
        self.label("neg" if formula[0] == "~" else "imp")
        self.formulas[formula] = self.save()

    def text(self) -> str:
        """Return ``( labels ) LETTERS``."""
        first_saved = len(self.mandatory) + len(self.labels)
        letters = [
            "Z" if kind == "Z" else _number(at + first_saved if kind == "saved" else at) for kind, at in self.steps
        ]
        return f"( {' '.join([*self.labels, ')'])} {''.join(letters)}"


def _number(number: int) -> str:
    """Return the letters of a number, counted from 0."""
    text = chr(ord("A") + number % 20)
    number //= 20
    while number > 0:
        number -= 1
        text = chr(ord("U") + number % 5) + text
        number //= 5
    return text
