"""The verifier of Metamath databases, by itself and beside the program of that name on whole databases."""

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from recipes.embedded_base.lemmas import draw
from redqueen_proofs.calculus import read_proof, unfold
from redqueen_proofs.database import DERIVED, database_text, lemma_text, verify_lines
from redqueen_proofs.formulas import read_lemma
from redqueen_proofs.metamath import Database, MetamathError, verify

DATABASES = Path("/usr/share/metamath/databases")
PROOF = re.compile(r"(?<=\s)([A-Za-z0-9._-]+)\s+\$p\s[^$]*\$=\s([^$]*)\$\.")
SMALL = """
$c ( ) -> wff |- $.  $v p q $.
wp $f wff p $.  wq $f wff q $.
wi $a wff ( p -> q ) $.
ax $a |- ( p -> ( q -> p ) ) $.
${ min $e |- p $.  maj $e |- ( p -> q ) $.  mp $a |- q $. $}
${ given $e |- p $.
   weak $p |- ( q -> p ) $= wp wq wp wi given wp wq ax mp $. $}
"""


def faults(proof: str) -> dict[str, str]:
    return verify(SMALL.replace("wp wq wp wi given wp wq ax mp", proof)).faults


def test_a_proof_is_right_in_both_forms():
    for proof in ("wp wq wp wi given wp wq ax mp", "( wi ax mp ) ABADCABEF", "( wi ax mp ) ABADZCABEF"):
        assert faults(proof) == {}, proof


@pytest.mark.parametrize(
    ("proof", "why"),
    [
        ("wp wq wp wi given wp wq ax", "ends with something else"),
        ("wp wq wp wi given wq wp ax mp", "does not fit"),
        ("wp wq wp wi wp wp wq ax mp", "does not fit"),
        ("given wq wp wi given wp wq ax mp", "of another sort"),
        ("mp", "needs more than is there"),
        ("?", "not complete"),
        ("weak", "uses what it proves"),
        ("min", "cannot be used here"),
        ("wp wq wp wi given wp wq axx mp", "cannot be used here"),
        ("( wi ax mp ) ABADCABEF?", "not complete"),
        ("( wi ax mp ) ABADCABEG", "too large"),
        ("( wi ax mp ) ABADCABEFU", "within a number"),
        ("( wi ax mp ) ZABADCABEF", "Z where"),
        ("( wi ax mp ) ABADZZCABEF", "Z where"),
        ("( wi ax mp wp ) ABADCABEF", "mandatory hypothesis"),
        ("( wi ax mp mp ) ABADCABEF", "label twice"),
        ("( wi ax mp ABADCABEF", "not closed"),
        ("( wi ax mp ) abadcabef", "a where"),
    ],
)
def test_a_wrong_proof_is_refused_with_the_reason(proof, why):
    assert why in faults(proof)["weak"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$c a $. $c a $.", "cannot be declared"),
        ("$v a $. $c a $.", "cannot be declared"),
        ("${ $c a $. $}", "within a scope"),
        ("$c a", "ends before"),
        ("$c a $. x $a b $.", "begins with a constant"),
        ("$c a $. $v v $. x $a a v $.", "no variable with a type"),
        ("$c a $. $v v $. f $f a v $. g $f a v $.", "types one variable, once"),
        ("$c a $. x $a a $. x $a a $.", "taken"),
        ("$c a $. $a a $.", "missing"),
        ("$c a $. x $p a $.", "before $="),
        ("$}", "without ${"),
        ("${", "not closed"),
        ("$( a $( b $) $c a $.", "comment"),
        ("$c a $. $)", "comment"),
        ("$[ set.mm $]", "included"),
        ("stray", "label without a statement"),
        ("$c a $. $d a a $.", "different active variables"),
        ("$= $.", "where a statement should begin"),
    ],
)
def test_what_is_no_database_is_refused_with_the_reason(text, why):
    with pytest.raises(MetamathError, match=re.escape(why)):
        verify(text)


def test_variables_that_must_be_distinct_are_kept_apart():
    text = """$c |- wff E. $. $v x y $. vx $f wff x $. vy $f wff y $. ${ $d x y $. ax $a |- E. x y $. $}
    ${ $d x y $. good $p |- E. x y $= vx vy ax $. $}  loose $p |- E. x y $= vx vy ax $.
    same $p |- E. x x $= vx vx ax $."""
    found = verify(text)
    assert found.proved == ["good"] and set(found.faults) == {"loose", "same"}
    assert all("must be distinct" in fault for fault in found.faults.values())


def test_a_proof_that_writes_too_much_is_given_up():
    doubled = " ".join(["wp"] + ["wp wi"] * 2)
    text = SMALL + f"big $p wff ( ( p -> p ) -> p ) $= {doubled} $."
    assert verify(text).faults == {}
    small = Database(most_symbols=8).read(text)
    assert "more than is given" in small.faults["big"]


def test_every_rule_is_proved_from_the_axioms_and_detachment():
    assert verify(database_text()).proved == list(DERIVED)


def test_a_students_proof_becomes_a_metamath_proof():
    lemma = read_lemma("p, p>q, q>r |- r")
    lines = unfold(lemma, read_proof("mp 1 2, mp 4 3", 3))
    verify_lines(lemma, lines)
    found = verify(database_text() + lemma_text(lemma, lines, "chain"))
    assert found.proved[-1] == "chain" and "chain $p |- r $=" in lemma_text(lemma, lines, "chain")


# ---- beside the program -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program() -> str:
    found = shutil.which("metamath")
    if found is None or not DATABASES.is_dir():
        pytest.skip("needs metamath and metamath-databases: apt-get install metamath metamath-databases")
    return found


def said_of(program: str, folder: Path, text: str, label: str) -> str:
    (folder / "database.mm").write_text(text)
    commands = ["read database.mm", f"verify proof {label}", "exit"]
    return subprocess.run([program, *commands], cwd=folder, capture_output=True, text=True, timeout=300).stdout


def theirs_is_right(said: str) -> bool:
    return "?Error" not in said and "?Warning" not in said.split("verify proof")[-1] and "read into" in said


def ours_is_right(text: str, label: str) -> bool:
    try:
        return label in verify(text, only=label).proved
    except MetamathError:
        return False


@pytest.mark.metamath
def test_whole_databases_are_verified_by_both(program, tmp_path):
    for name, num_proofs in (("hol.mm", 138), ("ql.mm", 1138)):
        text = (DATABASES / name).read_text()
        found = verify(text)
        assert (len(found.proved), found.faults) == (num_proofs, {})
        assert "All proofs in the database were verified" in said_of(program, tmp_path, text, "*")


@pytest.mark.metamath
@pytest.mark.slow
def test_the_largest_databases_are_verified_by_both(program, tmp_path):
    for name, num_proofs in (("nf.mm", 6001), ("iset.mm", 8990), ("set.mm", 37759)):
        text = (DATABASES / name).read_text()
        found = verify(text)
        assert (len(found.proved), found.faults) == (num_proofs, {})
        assert "All proofs in the database were verified" in said_of(program, tmp_path, text, "*")


def damaged(rng: Random, proof: str) -> str:
    """Change a proof by one random edit: a label or a letter swapped, left out, put in or replaced."""
    parts = proof.split()
    if parts[0] != "(":
        at = rng.randrange(len(parts))
        return " ".join([*parts[:at], *rng.choice(([], [rng.choice(parts)], [parts[at]] * 2)), *parts[at + 1 :]])
    end = parts.index(")")
    labels, letters = parts[1:end], list("".join(parts[end + 1 :]))
    at = rng.randrange(len(letters))
    way = rng.randrange(5)
    if way == 0 and len(labels) > 1:
        a, b = rng.sample(range(len(labels)), 2)
        labels[a], labels[b] = labels[b], labels[a]
    elif way == 1 and labels:
        del labels[rng.randrange(len(labels))]
    elif way == 2:
        letters[at] = rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ?")
    elif way == 3:
        del letters[at]
    else:
        letters.insert(at, rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    return f"( {' '.join(labels)} ) {''.join(letters)}"


@pytest.mark.metamath
def test_verdicts_are_equal_on_a_hundred_damaged_proofs(program, tmp_path):
    text = (DATABASES / "hol.mm").read_text()
    proofs = list(PROOF.finditer(text))
    rng = Random("damage/1")
    verdicts = []
    for _ in range(100):
        found = rng.choice(proofs)
        label = found.group(1)
        changed = f"{text[: found.start(2)]}{damaged(rng, found.group(2))} {text[found.end(2) :]}"
        theirs = theirs_is_right(said_of(program, tmp_path, changed, label))
        verdicts.append(ours_is_right(changed, label))
        assert verdicts[-1] == theirs, (label, changed[found.start() : found.end() + 40])
    assert 0 < sum(verdicts) < 20  # nearly all are wrong now, and an edit that changes nothing is not


@pytest.mark.metamath
def test_proofs_of_lemmas_are_verified_by_both(program, tmp_path):
    rng = Random("lemmas")
    drawn = [draw(rng) for _ in range(200)]
    texts = [lemma_text(one.lemma, one.lines, f"lemma{number}") for number, one in enumerate(drawn)]
    text = database_text() + "\n".join(texts) + "\n"
    assert len(verify(text).proved) == len(DERIVED) + 200
    assert "All proofs in the database were verified" in said_of(program, tmp_path, text, "*")
