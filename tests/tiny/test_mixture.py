"""The mixture of a corpus: shares of tokens, refusals, and what domains bring."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
import torch
from transformers import AutoTokenizer

from redqueen.domains.compact import BOS, EOS, asked
from redqueen.domains.domain import Lesson
from redqueen.domains.registry import DOMAINS
from redqueen.errors import UserError
from redqueen.policy.base_shape import embedded_folder
from redqueen.tiny.corpus import Corpus
from redqueen.tiny.mixture import Tally, check_mixture, lessons_of, words_of
from redqueen.tiny.recipe import RECIPES, Recipe, build_recipe_tokenizer


def sums(rng: Random) -> list[Lesson]:
    """Lessons of a domain of our own."""
    a, b = rng.randint(0, 99), rng.randint(0, 99)
    return [Lesson(f"{BOS}addition {a} + {b}{asked('sum')}", (((f"{a + b}{EOS}", 1.0),),))]


@pytest.fixture(autouse=True)
def with_a_domain_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOMAINS, "sums", replace(DOMAINS["code"], name="sums", kinds=(), lessons=sums))
    monkeypatch.setitem(DOMAINS, "silent", replace(DOMAINS["code"], name="silent", kinds=(), lessons=None))


def test_whoever_is_furthest_behind_its_share_writes_next() -> None:
    tally = Tally({"a": 0.75, "b": 0.25})
    assert tally.furthest_behind() == "a"
    tally.add("a", 30)
    assert tally.furthest_behind() == "b"
    tally.add("b", 11)  # 44 to the share of a, 40 of which are there
    assert tally.furthest_behind() == "a"


def test_a_batch_holds_each_source_by_its_share_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(digit: str, longest: int) -> Callable[[Random], list[Lesson]]:
        return lambda rng: [Lesson(BOS, (((digit * rng.randint(1, longest), 1.0),),))]

    for name, digit, longest in (("ones", "1", 30), ("twos", "2", 90)):
        monkeypatch.setitem(DOMAINS, name, replace(DOMAINS["code"], name=name, kinds=(), lessons=write(digit, longest)))
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    tokens = Corpus(tokenizer, 0, 10, 16, 320, mixture={"ones": 3.0, "twos": 1.0})[0].pack.tokens
    ones, twos = ((tokens == tokenizer.convert_tokens_to_ids(digit)).sum().item() for digit in "12")
    assert ones / (ones + twos) == pytest.approx(0.75, abs=0.03)


def test_worlds_and_domains_stand_beside_each_other_in_a_batch_that_depends_on_seed_and_index_alone() -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    corpus = Corpus(tokenizer, 0, 10, 16, 320, mixture={"basic": 1.0, "everyday": 2.0, "sums": 1.0})
    tokens = corpus[0].pack.tokens
    texts = [tokenizer.decode(row) for row in tokens]
    assert any("addition" in text for text in texts) and any("def f(" in text for text in texts)
    assert torch.equal(corpus[0].pack.tokens, tokens)
    assert not torch.equal(corpus[1].pack.tokens[:1, :40], tokens[:1, :40])


def test_the_default_mixture_is_the_basic_world_alone_and_writes_what_it_wrote_without_a_mixture() -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    plain, mixed = Corpus(tokenizer, 0, 2, 4, 320), Corpus(tokenizer, 0, 2, 4, 320, mixture=Recipe().mixture)
    assert torch.equal(plain[1].pack.tokens, mixed[1].pack.tokens)


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ({}, "the mixture is empty"),
        (
            {"basic": 1.0, "poetry": 0.1},
            "names poetry, which is no world and no domain with lessons; choose from basic",
        ),
        ({"silent": 1.0}, "names silent, which is no world and no domain with lessons"),
        ({"basic": 0.0}, "weight of basic is 0.0: set it above 0"),
        ({"basic": float("nan")}, "weight of basic is nan: set it above 0"),
    ],
)
def test_a_mixture_that_cannot_be_written_is_refused(mixture: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_mixture(mixture, "the recipe x")


def test_the_mixtures_of_all_recipes_can_be_written() -> None:
    for name, recipe in RECIPES.items():
        check_mixture(recipe.mixture, name)


def test_words_that_lessons_use_often_become_tokens_and_rare_ones_and_marks_do_not() -> None:
    recipe = Recipe(mixture={"basic": 0.5, "sums": 0.5}, vocabulary_programs=300)
    vocabulary = build_recipe_tokenizer(recipe, frozenset()).get_vocab()
    assert "addition" in vocabulary
    assert "ask" not in vocabulary
    assert lessons_of("sums") is sums


def test_the_words_of_a_lesson_are_its_text_without_marks() -> None:
    lesson = Lesson(f"{BOS}what{asked('sum')}", ((("four", 1.0), (EOS, 1.0)),))
    assert list(words_of(lesson)) == ["what", "sum", "four"]
