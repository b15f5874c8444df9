"""The tokenizer: any text comes back, words of Python are one token, digits and letters inside data are single."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from recipes.embedded_base.draft import WORDS
from recipes.embedded_base.tokenizer import build_tokenizer, build_vocabulary, pieces_of
from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains.code.suite import load_suite
from redqueen.domains.frames import BOS, EOS, MARKS, PAD

PROGRAMS = [
    "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total",
    "def f(s):\n    return s + 'total'",
]


@pytest.fixture(scope="module")
def shipped() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


@pytest.fixture(scope="module")
def small() -> PreTrainedTokenizerBase:
    return build_tokenizer(build_vocabulary(PROGRAMS, min_count=1))


def ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def pieces(tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
    return [tokenizer.decode([i]) for i in ids(tokenizer, text)]


TOKENIZERS = [
    AutoTokenizer.from_pretrained(embedded_folder()),
    build_tokenizer(build_vocabulary(PROGRAMS, min_count=1)),
]


@settings(max_examples=150)
@given(st.sampled_from(TOKENIZERS), st.one_of(st.text(max_size=60), st.text("def f(x):\n '1ab<|in|>", max_size=60)))
def test_any_text_comes_back_from_its_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> None:
    assert tokenizer.decode(ids(tokenizer, text), skip_special_tokens=False, clean_up_tokenization_spaces=False) == text


@settings(max_examples=150)
@given(st.one_of(st.text(max_size=60), st.text("def f(x):\n '1a= ", max_size=60)))
def test_the_pieces_of_a_text_are_the_whole_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


def test_every_program_of_the_suites_comes_back(shipped: PreTrainedTokenizerBase) -> None:
    for item in load_suite(kinds=("code_o",)):
        assert shipped.decode(ids(shipped, item.task.code), clean_up_tokenization_spaces=False) == item.task.code


def test_digits_are_single_tokens(shipped: PreTrainedTokenizerBase) -> None:
    assert pieces(shipped, "1203") == ["1", "2", "0", "3"]
    assert pieces(shipped, "[10, -7]") == ["[", "1", "0", ", ", "-", "7", "]"]


def test_words_inside_data_fall_apart_into_letters_but_for_those_of_word_problems(
    shipped: PreTrainedTokenizerBase,
) -> None:
    whole = {word for word in WORDS if pieces(shipped, repr(word)) == ["'", word, "'"]}
    assert whole == {"red", "box", "data"} and len(WORDS) > 10
    assert all(pieces(shipped, repr(word)) == ["'", *word, "'"] for word in WORDS if word not in whole)


@pytest.mark.parametrize("word", ["return ", "xs", "len", " += ", "[::-1]", " in ", "append", "\n    ", "\n        "])
def test_words_of_python_are_one_token(shipped: PreTrainedTokenizerBase, word: str) -> None:
    assert pieces(shipped, f"{word}7") == [word, "7"]


def test_a_vocabulary_is_read_off_programs_outside_their_strings() -> None:
    vocabulary = build_vocabulary(PROGRAMS, min_count=1)
    assert "total" in vocabulary and "return " in vocabulary
    assert "total" not in build_vocabulary(PROGRAMS[1:], min_count=1)
    assert "total" not in build_vocabulary(PROGRAMS, min_count=4)  # it stands three times outside strings
    assert "total" in build_vocabulary(PROGRAMS, ["total"], min_count=4)  # and once in a hint
    assert all(len(piece) > 1 for piece in vocabulary)


@pytest.mark.parametrize("small", TOKENIZERS)
def test_marks_come_first_and_decoders_keep_those_between_the_ends(small: PreTrainedTokenizerBase) -> None:
    assert [small.convert_tokens_to_ids(mark) for mark in MARKS] == list(range(len(MARKS)))
    assert (small.bos_token, small.eos_token, small.pad_token) == (BOS, EOS, PAD)
    assert set(small.all_special_ids) == {0, 1, 2}
    assert small.decode(ids(small, "".join(MARKS)), skip_special_tokens=True) == "".join(MARKS[3:])
    assert small.chat_template == TOKENIZERS[0].chat_template


def test_a_tokenizer_is_the_same_after_saving(small: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    small.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    for text in (*PROGRAMS, f"{BOS}é<|in|>\t{EOS}"):
        assert ids(again, text) == ids(small, text)
