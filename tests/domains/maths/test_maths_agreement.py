"""A text agrees with its twin by rules: the numbers, the question, and the operations that either names."""

from random import Random

import pytest

from recipes.embedded_base.exercises import LEVELS
from recipes.embedded_base.word_problems import draw_words
from redqueen.domains.maths.agreement import disagreement, miscounted, wanted_unknown
from redqueen.domains.maths.language import parse

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
    # an operation in its natural words
    ("What is the sum of the digits of the number 4587?", "digitsum(4587)"),
    ("What is the sum of the divisors of the number 60?", "sigma(60)"),
    ("What is the product of the first 5 positive integers?", "fact(5)"),
    ("10 people shake hands with each other once. How many handshakes are there?", "choose(10, 2)"),
    ("A triangle has angles of 50 and 60 degrees. How many degrees are left for the third?", "180 - 50 - 60"),
    ("How many seconds are there in one day?", "24*60*60"),
    # what is used up may be counted instead of taken away
    ("A shop sells 12 bikes on Monday and 17 on Tuesday. How many bikes does it sell in all?", "12 + 17"),
    ("A dog eats 400 grams of food each day. How many grams does it eat in 30 days?", "400*30"),
    ("Mr. Hall spends 3 euros on bread and 5 on cheese. How much does he spend in total?", "3 + 5"),
    ("Ben spent 14 euros and has 9 euros left. How much did he have at the beginning?", "14 + 9"),
    ("Tom sold 5 cakes on Monday and 7 cakes on Tuesday. How many cakes did he sell?", "5 + 7"),
    ("A shop sells pens for 3 dollars. How much do 5 pens cost?", "3*5"),
    # differences and quotients in other words
    ("Of its 410 seats a hall has 75 taken. How many of them are free?", "410 - 75"),
    ("A book has 320 pages. Ida has read 145 of them. How many pages must she still read?", "320 - 145"),
    ("One tower has 83 metres, the other 61. How much higher is the first tower?", "83 - 61"),
    ("If 3 pencils cost 45 cents, what do 7 pencils cost?", "45/3*7"),
    ("A trip takes 180 minutes. How many hours is that?", "180/60"),
    ("A shirt costs $15 and a hat costs $8. How many dollars do both cost together?", "15 + 8"),
)
DISAGREE = (
    ("Tom has 12 apples and eats 5 of them. How many are left?", "12 - 6", "the text has 5, the twin does not have it"),
    (
        "Tom has 12 apples and eats some of them. How many are left?",
        "12 - 6",
        "the twin has 6, the text does not have it",
    ),
    ("Tom has 12 apples and eats 5 of them. How many are left?", "12 + 5", "the text says 'eats'"),
    ("What is the product of the numbers 4 and 5?", "4 + 5", "the text says 'product'"),
    ("Tom has 4 apples and Ann has 6 of them. How many are there?", "gcd(4, 6)", "the twin has gcd"),
    ("How many are 4 + 6 apples and pears in all?", "4 + 6", "a formula in the text"),
    ("Tom has 4 apples and gets 6 more of them.", "4 + 6", "not one question"),
    ("How many 4 and 6?", "4 + 6", "fewer than 5 words"),
    ("Tom has 12 apples and eats 5 of them. How many does he have?", "12 + 5", "the text says 'eats'"),
    ("Ann originally had 20 pens and lost 5 of them. How many pens does she have now?", "20 + 5", "says 'lost'"),
    ("Mia buys 4 bags with 6 pens in each bag and loses 3 pens. How many has she now?", "4*6 + 3", "says 'loses'"),
    ("Tom earns 50 euros and spends 20 of them. How many euros does he have now?", "50 + 20", "says 'spends'"),
    ("Tom has 12 apples and eats 5. How many apples does he have left in total?", "12 + 5", "says 'eats'"),
    ("A shirt costs 15$ and a hat costs $8 more than that. What does the hat cost?", "15 + 8", "a formula in the text"),
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
    assert wanted_unknown("The sum is 20. What is the larger number that Mr. Hall has in mind?") == "most"
    assert wanted_unknown("If the larger number is 4 more than the smaller one, what is the smaller number?") == "least"
    assert wanted_unknown("The sum is 20. What is the larger of both numbers?") == "most"
    assert wanted_unknown("Ann and Ben are 20 together. How old is the older child?") == "most"
    assert wanted_unknown("Which of these two numbers is the smaller?") == "least"
    assert wanted_unknown("What is the largest number of pens she can have bought?") == ""
    assert wanted_unknown("What is the greatest common divisor of the numbers?") == ""
    assert wanted_unknown("How many larger apples are there?") == ""
    assert wanted_unknown("The younger one has 4 more. How many pens has the older one?") == ""


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
        # where the question begins
        ("He shares 7 pens. How many pens does each friend of Mr. Hall get?", "7/2", True),
        ("Ann gives all away. How many pens are left for St. Nick?", "-4", True),
        ("Ann wants to know how many pens each gets. She has 7. Can you help her?", "7/2", True),
        # how it is written
        ("How  many\npens does each get?", "7/2", True),
        ("How many 'red' (or blue) pens does each get?", "7/2", True),
        ("If she is fair, how many, in the end, are left?", "7/2", True),
        ("What quantity of pens is left?", "-4", True),
        ("What is the remaining count of pens?", "-4", True),
        # units that only say of what kind a thing is
        ("How many dollar bills does each get?", "7/2", True),
        ("How many euro coins does each get?", "7/2", True),
        ("How many 5 pound dogs are there?", "7/2", True),
        ("How many pens and pounds are there?", "7/2", True),
        ("How many cups does each get?", "7/2", True),
        ("How many times did the boys win?", "7/2", True),
        ("How many students with degrees are left?", "-4", True),
        # other ways to ask for a count
        ("What's the number of pens that each gets?", "7/2", True),
        ("Can you tell the number of pens that each gets?", "7/2", True),
        ("What is Ann's number of pens?", "7/2", True),
        ("What is the maximum possible number of boxes?", "7/2", True),
        ("What is the total remaining number of pens?", "-4", True),
        ("How many boxes of pens are there?", "7/2", True),
        # a rate that is told is not what is asked for
        ("If a baker packs 4 cakes per box, how many boxes does he need for 15 cakes?", "15/4", True),
        ("If 3 cookies are eaten each day, how many cookies are left?", "7/2", True),
        ("How many apples are left after a week?", "7/2", True),
        # what is measured, and means
        ("How many gallons of milk does each get?", "7/2", False),
        ("How many cm is it long?", "7/2", False),
        ("How many cups of flour does she need?", "7/2", False),
        ("How many times as heavy is the dog?", "7/2", False),
        ("How many euros more than Ben has Ann?", "7/2", False),
        ("How many pages does he read per day?", "7/2", False),
        ("How many pages does he read in one hour?", "7/2", False),
        ("How many total hours did he work?", "7/2", False),
        ("By how many does the first number exceed the second?", "7/2", False),
        ("What is the price of one if the number of pens is 2?", "7/2", False),
        ("What is the average number of goals in a game?", "7/2", False),
        ("What is the ratio of the number of boys to the number of girls?", "4/5", False),
        ("What fraction of the number of pupils are boys?", "3/5", False),
        ("What is the quotient of the numbers 7 and 2?", "7/2", False),
    ],
)
def test_what_is_counted_is_a_whole_number(text: str, answer: str, is_refused: bool) -> None:
    assert bool(miscounted(text, answer)) == is_refused


def test_a_number_with_roots_may_be_less_than_none_too() -> None:
    assert miscounted("How many litres are there?", "1 - 2*sqrt(2)", is_negative=True)
    assert not miscounted("How many litres are there?", "2*sqrt(2) - 1")
