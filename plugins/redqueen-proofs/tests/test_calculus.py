import pytest

from redqueen_proofs.calculus import RULES, ProofError, conclude, read_proof, unfold, write_proof
from redqueen_proofs.formulas import (
    Lemma,
    LemmaError,
    follows,
    read_formula,
    read_lemma,
    write_formula,
    write_lemma,
)
from redqueen_proofs.normal import normal_form


def formulas(lemma: str, proof: str) -> list[str]:
    read = read_lemma(lemma)
    return [write_formula(line.formula) for line in unfold(read, read_proof(proof, len(read.hypotheses)))]


def test_implication_binds_to_the_right_and_brackets_stand_only_where_they_are_needed():
    assert read_formula("p>q>r") == (">", "p", (">", "q", "r")) == read_formula("p -> (q -> r)")
    assert write_formula(read_formula("((p)>(q))>(~(~r))")) == "(p>q)>~~r"
    assert write_formula(read_formula("~(p>~q)")) == "~(p>~q)"
    assert write_lemma(read_lemma("  p ,p>q|-q ")) == "p, p>q |- q"


def test_a_truth_table_decides_what_follows():
    for text in ("|- p>p", "p, p>q |- q", "|- ((p>q)>p)>p", "p, ~p |- q", "p>q, ~p>q |- q", "|- ~~p>p"):
        assert follows(read_lemma(text)), text
    for text in ("|- p", "p>q |- q>p", "~p>q |- p"):
        assert not follows(read_lemma(text)), text


def test_every_rule_is_sound():
    for name, rule in RULES.items():
        assert follows(Lemma(rule.premises, rule.conclusion)), name


def test_a_proof_is_unfolded_by_the_most_general_unifier():
    assert formulas("p, p>q, q>r |- r", "mp 1 2, mp 4 3") == ["p", "p>q", "q>r", "q", "r"]
    assert formulas("|- p>p", "ax1, ax1, mpd 1 2") == ["p>p>p", "p>(p>p)>p", "p>p"]
    assert formulas("q |- p>q", "wk 1") == ["q", "p>q"]


def test_the_general_conclusion_of_a_proof_has_letters_of_its_own():
    assert write_formula(conclude(read_proof("ax1, ax3, syl 1 2", 0))[-1].formula) == "~p>p>q"
    assert write_formula(conclude(read_proof("id, wk 1", 0))[-1].formula) == "p>q>q"


def test_a_line_is_one_formula_and_no_scheme():
    with pytest.raises(ProofError):  # id would have to be p>p and q>q at once
        formulas("(p>p)>(q>q)>r |- r", "id, mp 2 1, mp 2 3")
    assert formulas("(p>p)>(q>q)>r |- r", "id, mp 2 1, id, mp 4 3")[-1] == "r"


def test_a_proof_is_read_back_as_it_is_written():
    for text in ("mp 1 2, mp 4 3", "id", "ax1, ax2, mp 1 2"):
        assert write_proof(read_proof(text, 3)) == text


def test_formulas_are_never_larger_than_they_may_be():
    with pytest.raises(LemmaError, match="nested deeper"):
        read_formula("~" * 30 + "p")
    with pytest.raises(LemmaError, match="longer than"):
        read_lemma("|- " + "p>" * 1000 + "p")


def test_the_normal_form_forgets_letters_and_the_order_of_hypotheses():
    assert normal_form(read_lemma("a>b, a |- b")) == normal_form(read_lemma("q, q>p |- p"))
    assert normal_form(read_lemma("p, p>q |- q")) != normal_form(read_lemma("q, p>q |- p"))
    assert normal_form(read_lemma("p, p, p>q |- q")) == normal_form(read_lemma("p, p>q |- q"))
