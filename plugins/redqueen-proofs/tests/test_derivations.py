"""What a teacher of the compact format derives counts as far as it holds."""

import pytest

from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen_proofs.kinds import LEMMA


def read(text: str) -> tuple[str, str]:
    found = PromptFormat(FRAMES["compact"]).parse_proposal(LEMMA.name, text, None)
    assert not found.error
    return found.code, found.inputs[0]


@pytest.mark.parametrize(
    ("text", "lemma", "proof"),
    [
        ("1 p\n2 p>q\nmp 1 2: 3 q", "p, p>q |- q", "mp 1 2"),
        ("1 p\n2 p>q\nmp 1 2: 3 r", "p, p>q |- q", "mp 1 2"),  # what the step gives, not what is written
        ("1 p\nwk 1: 2 r>p", "p |- r>p", "wk 1"),  # what it leaves open is as it is written
        ("1 p\n2 p>q\nmp 1 2: 3 q\nmp 3 3: 4 p", "p, p>q |- q", "mp 1 2"),  # the second step does not hold
        ("1 p>q\n2 q>r\nsyl 1 2: 3 p>r\ncon 3: 4 nonsense", "p>q, q>r |- ~r>~p", "syl 1 2, con 3"),
        ("efq: 1 ~q>q>s", "|- ~q>q>s", "efq"),
        ("1 p\n2 q\n? p", "p, q |- p", ""),  # a goal that is asked for stands as it is written
    ],
)
def test_the_goal_is_what_the_steps_give(text, lemma, proof):
    assert read(text) == (lemma, proof)


def test_a_derivation_of_which_nothing_holds_is_left_to_the_check():
    assert read("1 p\n2 q\nmp 1 2: 3 r") == ("p, q |- r", "mp 1 2")
    assert read("1 p\nmp 7 8: 2 r") == ("p |- r", "mp 7 8")
    assert read("1 p>\nwk 1: 2 p>p") == ("p> |- p>p", "wk 1")
    long = "1 p\n" + "\n".join(f"dni {number}: {number + 1} p" for number in range(1, 20))
    assert read(long)[0] == "p |- p"


def test_what_only_repeats_a_hypothesis_is_passed_over():
    assert read("1 p\n2 p>q\nmp 1 2: 3 q\nid: 4 q>q\nmp 3 4: 5 q") == ("p, p>q |- q", "mp 1 2, id, mp 3 4")
    assert read("1 p\nwk 1: 2 q>p\nid: 3 p>p\nmp 1 3: 4 p") == ("p |- p>p", "wk 1, id")
