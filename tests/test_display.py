"""Text that a model wrote is shown whole, visible and harmless."""

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.display import all_visible, script_json, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Grüße, 数学, 🙂", "plain text, Grüße, 数学, 🙂"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\x00b\x07c\x7f", "a␀b␇c␡"),
        ("over\rwritten", "over␍written"),
        ("\u202eevil\u202c", "⟨U+202E⟩evil⟨U+202C⟩"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("line\u2028separator", "line⟨U+2028⟩separator"),
        ("tag \U000e0041", "tag ⟨U+E0041⟩"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
    ],
)
def test_hidden_characters_are_written_out_and_others_stay(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_line_stays_one_line() -> None:
    assert visible("two\nlines\tand\r\nmore", one_line=True) == "two⏎lines and␍⏎more"


def test_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert visible("x" * 1_000_000, max_chars=3) == "xxx … (999,997 more characters)"
    assert visible("xyz", max_chars=3) == "xyz"


def test_a_tower_of_combining_marks_is_taken_down() -> None:
    assert visible("e\u0301" + "\u0351" * 5) == "e\u0301" + "\u0351" * 3 + "⟨U+0351⟩" * 2


@settings(deadline=None)
@given(st.text())
def test_nothing_that_commands_a_terminal_is_left(text: str) -> None:
    categories = {unicodedata.category(character) for character in visible(text, one_line=True)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_in_a_script_says_the_same_and_cannot_end_it(value: object) -> None:
    text = script_json(value)
    assert json.loads(text) == all_visible(value)
    assert text.isascii() and not set(text) & set("<>&")


def test_json_without_a_value_for_nan_is_refused() -> None:
    with pytest.raises(ValueError):
        script_json([float("nan")])
