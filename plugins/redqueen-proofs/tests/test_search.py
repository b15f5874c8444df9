from collections import Counter
from random import Random

from recipes.embedded_base.lemmas import draw
from recipes.embedded_base.suites import LEVELS, TASKS_PER_LEVEL
from redqueen.records import Task
from redqueen_proofs.calculus import read_proof, unfold
from redqueen_proofs.database import verify_lines
from redqueen_proofs.formulas import read_lemma, write_lemma
from redqueen_proofs.kinds import LEMMA, PROOFS
from redqueen_proofs.measures import measure, size_of, sort_of
from redqueen_proofs.search import search


def test_the_search_proves_nearly_all_that_is_drawn_and_each_of_its_proofs_verifies():
    rng = Random("search")
    drawn = [draw(rng) for _ in range(150)]
    proofs = [search(write_lemma(one.lemma)).steps for one in drawn]
    for one, steps in zip(drawn, proofs, strict=True):
        if steps is not None:
            verify_lines(one.lemma, unfold(one.lemma, steps))
    assert sum(steps is not None for steps in proofs) >= 140


def test_the_search_finds_laws_of_classical_logic_and_gives_up_in_bounded_work():
    for text in ("|- ((p>q)>p)>p", "|- (~p>p)>p", "p>q, ~p>q |- q"):
        assert search(text).steps is not None, text
    assert search("p>q |- q>p").steps is None
    assert search("|- " + "(p>" * 10 + "p" + ")" * 10 + ">(" + "q>" * 10 + "q)").num_lines <= 500
    long = "a>b>c>d>e>f, b>c>d>e>f>a, c>d>e>f>a>b, d>e>f>a>b>c, e>f>a>b>c>d, f>a>b>c>d>e, a>a>a>a>a>a |- a>f"
    assert search(long).num_lines <= 500


def test_difficulty_is_what_the_search_did():
    task = Task("1", "", "", LEMMA.name, "p, p>q, q>r |- r", ("",), ("mp 1 2, mp 4 3",))
    found = measure(task)
    assert (found["hypotheses"], found["symbols"], found["proof_steps"]) == (3.0, 8.0, 2.0)
    assert found["search_rounds"] == 2.0 and found["search_failed"] == 0.0 and found["search_lines"] > 3
    assert sort_of(task) == "proof_lemma entailment variable mp"
    assert size_of(task) == "proof_lemma hypotheses 3 symbols 4"
    easy = Task("2", "", "", LEMMA.name, "p, p>q |- q", ("",), ("mp 1 2",))
    assert measure(easy)["search_rounds"] == 1.0 < found["search_rounds"]


def test_the_frozen_suite_has_as_many_lemmas_of_every_level_and_every_proof_verifies():
    items = PROOFS.suite()
    assert Counter(item.stratum for item in items) == {f"lemmas/{level}": TASKS_PER_LEVEL for level in LEVELS}
    for item in items:
        lemma = read_lemma(item.task.code)
        verify_lines(lemma, unfold(lemma, read_proof(item.task.outputs[0], len(lemma.hypotheses))))
