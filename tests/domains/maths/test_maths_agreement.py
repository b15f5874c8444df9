"""A text agrees with its twin by rules: the numbers, the question, and the operations that either names."""

from random import Random

import pytest

from redqueen.domains.maths.agreement import disagreement, miscounted, wanted_unknown
from redqueen.domains.maths.exercises import LEVELS
from redqueen.domains.maths.language import parse
from redqueen.domains.maths.word_problems import draw_words

AGREE = (
    ("A train travels at 60 km per hour for 3 hours. How far does it go in km?", "60*3"),
    ("Tom has twelve apples and eats five of them. How many are left?", "12 - 5"),
    ("There are twenty-four eggs in two boxes, equally many in each. How many eggs are in a box?", "24/2"),
    ("20% of the 50 pupils of a school are ill. How many pupils are ill?", "50*20/100"),
    ("The sum of three consecutive numbers is 33. What is the largest of them?", "x + 2 where 3*x + 1 + 2 = 33"),
    ("In how many ways can 5 books be arranged on a shelf?", "fact(5)"),
    ("What is the remainder when the sum of 17 and 25 is divided by 9?", "(17 + 25) % 9"),
    ("Ann is twice as old as Ben. Together they are 36 years old. How old is Ben?", "b where a = 2*b, a + b = 36"),
    ("How many whole numbers from 1 to 1,000 are divisible by 7?", "count(k in 1..1000, k % 7 = 0)"),
)
DISAGREE = (
    ("Tom has 12 apples and eats 5 of them. How many are left?", "12 - 6", "the text has 5, the twin has not"),
    ("Tom has 12 apples and eats some of them. How many are left?", "12 - 6", "the twin has 6, the text has not"),
    ("Tom has 12 apples and eats 5 of them. How many are left?", "12 + 5", "the text says 'eats'"),
    ("What is the product of the numbers 4 and 5?", "4 + 5", "the text says 'product'"),
    ("Tom has 4 apples and Ann has 6 of them. How many are there?", "gcd(4, 6)", "the twin has gcd"),
    ("How many are 4 + 6 apples and pears in all?", "4 + 6", "a formula in the text"),
    ("Tom has 4 apples and gets 6 more of them.", "4 + 6", "not one question"),
    ("How many 4 and 6?", "4 + 6", "fewer than 5 words"),
    ("", "4 + 6", "there is no text"),
)


@pytest.mark.parametrize(("text", "twin"), AGREE)
def test_honest_word_problems_agree(text: str, twin: str) -> None:
    assert disagreement(text, parse(twin)) == ""


@pytest.mark.parametrize(("text", "twin", "reason"), DISAGREE)
def test_others_are_refused_with_the_rule_that_they_break(text: str, twin: str, reason: str) -> None:
    assert reason in disagreement(text, parse(twin))


def test_every_story_that_is_taught_agrees_with_its_twin() -> None:
    rng = Random(3)
    for number in range(1500):
        exercise = draw_words(rng, LEVELS[number % 3], held_out=False)
        assert disagreement(exercise.text, parse(exercise.code)) == "", exercise


def test_a_changed_number_is_noticed_in_every_story() -> None:
    rng = Random(4)
    for number in range(300):
        exercise = draw_words(rng, LEVELS[number % 3], held_out=False)
        digits = [at for at, char in enumerate(exercise.text) if char.isdigit()]
        at = rng.choice(digits)
        other = str((int(exercise.text[at]) + rng.randint(1, 8)) % 9 + 1)
        if other != exercise.text[at]:
            assert disagreement(exercise.text[:at] + other + exercise.text[at + 1 :], parse(exercise.code))


def test_the_question_for_the_larger_or_the_smaller_number_is_recognised() -> None:
    assert wanted_unknown("The larger is odd. What is the smaller number?") == "least"
    assert wanted_unknown("What is the largest of the three numbers?") == "most"
    assert wanted_unknown("How many larger apples are there?") == ""


@pytest.mark.parametrize(
    ("text", "answer", "is_refused"),
    [
        ("Ann shares 7 pens between 2 friends. How many pens does each get?", "7/2", True),
        ("Ann shares 8 pens between 2 friends. How many pens does each get?", "4", False),
        ("Ann gives all pens away. How many pens are left?", "0", False),
        ("Ann gives more away than she has. How many pens are left?", "-2", True),
        ("How many of the numbers are there?", "sqrt(2)", True),
        ("Ann shares 7 litres between 2 friends. How many litres does each get?", "7/2", False),
        ("How many more square metres has the garden?", "7/2", False),
        ("How many litres are left?", "-2", True),
        ("How many degrees is it at night?", "-2", False),
        ("What is the number of pens that each gets?", "7/2", True),
        ("Which number is half of the sum of both numbers?", "7/2", False),
        ("Ann asks how many pens there are. What is the mean?", "7/2", False),
        ("What is the quotient of the numbers 7 and 2?", "7/2", False),
    ],
)
def test_what_is_counted_is_a_whole_number(text: str, answer: str, is_refused: bool) -> None:
    assert bool(miscounted(text, answer)) == is_refused
