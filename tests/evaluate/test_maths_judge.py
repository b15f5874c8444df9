"""Answers in mathematics: equal forms are right, other values wrong, and what is hostile costs its time and no more."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.domains.maths.notation import final_answer, plain_form
from redqueen.evaluate.maths import MAX_MATHS_CHARS, MathsJudge
from redqueen_sandbox.guard import faults

pytest.importorskip("math_verify", reason="math-verify is not installed (extra: maths)")


@pytest.fixture(scope="module")
def judge() -> Iterator[MathsJudge]:
    with MathsJudge(workers=1, deadline_s=60) as opened:
        yield opened


RIGHT = [
    ("18", "18"),
    ("18", "\\boxed{18}"),
    ("18", "So she has $\\boxed{7}$ left, no: \\boxed{18}."),
    ("18", "<<16-3=13>> and so on\n#### 18"),
    ("2125", "2,125"),
    ("27", "27.0"),
    ("025", "25"),
    ("\\frac{14}{3}", "14/3"),
    ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3, \\pi/2)"),
    ("\\text{Evelyn}", "Evelyn"),
    ("x^3+3x-6", "-6 + 3x + x^3"),
    ("11\\sqrt2", "11\\sqrt{2}"),
    ("(3,4]", "(3, 4]"),
]
WRONG = [
    ("18", "19"),
    ("18", "\\boxed{18} is wrong, it is \\boxed{19}"),
    ("\\frac{14}{3}", "4.67"),
    ("\\left( 3, \\frac{\\pi}{2} \\right)", "(\\pi/2, 3)"),
    ("\\text{Evelyn}", "Mary"),
    ("(3,4]", "(3,4)"),
    ("18", ""),
    ("18", "18 or 19"),
    ("3, 5, 7", "3, 5"),
    ("1", "1" * (MAX_MATHS_CHARS + 1)),
]


EQUAL = [
    ("5", "x=5"), ("5", "f(x) = 5"), ("5", "\\theta = 5"), ("5", "a_1=5"), ("5", "5.0"), ("5", "05"), ("5", "+5"),
    ("5", "$5$"),
    ("5", "5\\text{ cm}"), ("90", "90^\\circ"), ("5", "\\$5"), ("5", "\\$5.00"), ("5", "\\frac{10}{2}"), ("5", "10/2"),
    ("5", "\\sqrt{25}"), ("5", "(5)"), ("5", "5."), ("5", "\\text{5}"), ("50000", "5\\times 10^4"),
    ("50000", "5 \\cdot 10^{4}"),
    ("1450000", "1,450,000"), ("1450000", "1\\,450\\,000"), ("0.5", "\\frac12"), ("\\frac{1}{2}", "0.5"), ("-3", "-3"),
    ("-\\frac{1}{2}", "\\frac{-1}{2}"), ("10\\%", "10\\%"), ("10\\%", "10%"), ("10\\%", "10"), ("x=5", "5"),
    ("x=5", "x = 5"),
    ("y=2x+3", "y = 3+2x"), ("y=2x+3", "2x+3"), ("x^2+y^2=1", "y^2 + x^2 = 1"), ("x<5", "x < 5"), ("x<5", "5>x"),
    ("\\pi", "\\pi"), ("2\\pi", "\\pi \\cdot 2"), ("\\sqrt{2}+1", "1+\\sqrt 2"), ("x^2-1", "(x-1)(x+1)"),
    ("1,2", "2, 1"),
    ("\\int_0^1 f", "\\int_0^1 f"), ("6=5", "6=5"), ("\\infty", "\\infty"), ("3:4", "3:4"), ("5!", "5!"),
    ("\\text{no}", "no"),
    ("90^\\circ", "90°"), ("90", "90\\degree"), ("12", "12 ways."), ("\\frac{1}{2}", "1/2."), ("\\text{(A)}", "A."),
    ("12", "12\\text{ square units}"), ("12", "12\\text{ km/h}"), ("12", "12\\text{ square-inches}"),
    ("12", "12\\mathrm{~cm}^2"), ("12", "$12$ hours"), ("90", "90^{\\circ}"), ("12", "12\\text{ ways to choose}"),
    ("[2,5)", "x \\in [2,5)"), ("(1,2)", "\\left(1, 2\\right)"), ("\\pm 5", "\\pm 5"),
]  # fmt: skip
SAME_VALUE = [
    ("0.00000015", "1.5\\times 10^{-7}"), ("1.5\\times10^{-7}", "0.00000015"), ("0.0001", "0.00010"),
    ("6.63\\times10^{-34}", "6.63e-34"), ("1011_2", "1011_{2}"), ("1011_2", "1011"), ("4210_{5}", "4210_5"),
    ("A3_{16}", "A3_{16}"), ("5\\text{ kg}", "5 kilograms"), ("864 \\mbox{ inches}^2", "864 \\text{ in}^2"),
    ("864 \\mbox{ inches}^2", "864"), ("864 \\mbox{ inches}^2", "864 square inches"), ("5.4 \\text{ cents}", "5.4"),
    ("15\\mbox{ cm}^2", "15 cm^2"), ("12\\text{ cm}", "12 cm"), ("12\\text{ cm}", "12 centimeters"),
    ("2\\sqrt{3}\\text{ cm}", "2\\sqrt{3}"), ("10:15\\text{ AM}", "10:15 a.m."),
    ("10:15\\text{ AM}", "10:15\\text{ a.m.}"), ("6:30", "6:30"), ("42", "<think>so</think>\\boxed{42}"),
    ("42", "<think>\\boxed{41}</think> The answer is \\boxed{42}"), ("42", "</think>\\boxed{42}"),
    ("12.5\\%", "0.125"), ("10\\%", "10 \\%"), ("37\\%", "37"), ("\\frac{1}{2}\\%", "0.5"),
    ("33\\frac{1}{3}\\%", "33\\frac13"), ("1e5", "100000"), ("1e5", "10^5"), ("1.2e-3", "0.0012"),
    ("2.5E6", "2500000"), ("100000", "1e5"), ("\\pm 5", "5, -5"), ("\\pm 5", "-5, 5"), ("5, -5", "\\pm5"),
    ("1+\\sqrt{2}, 1-\\sqrt{2}", "1\\pm\\sqrt{2}"), ("1 \\pm \\sqrt{19}", "1+\\sqrt{19}, 1-\\sqrt{19}"),
    ("2,-2", "x = \\pm 2"), ("\\{-2,2\\}", "\\pm 2"), ("(2,\\infty)", "x>2"), ("(-\\infty,2]", "x \\leq 2"),
    ("[-2,7]", "-2 \\le x \\le 7"), ("x \\in [-2,7]", "-2 \\le x \\le 7"), ("x \\in [-2,7]", "[-2,7]"),
    ("(-\\infty, 2) \\cup (3, \\infty)", "x<2 \\text{ or } x>3"), ("(-\\infty, 2) \\cup (3, \\infty)", "x<2 or x>3"),
    ("[2,5)", "2 \\leq x < 5"), ("[2,5)", "5>x\\ge 2"), ("(0,9) \\cup (9,36)", "0<x<9 \\text{ or } 9<x<36"),
    ("x<5", "(-\\infty,5)"), ("-2\\le x\\le 7", "[-2,7]"), ("(2,4)", "2<x<4"), ("(-\\infty,2)", "(−∞,2)"),
    ("\\pi", "π"), ("2\\pi", "2π"), ("\\sqrt{5}", "√5"), ("x\\le 5", "x ≤ 5"), ("-3", "−3"), ("90^\\circ", "90°"),
    ("\\frac{1}{2}", "½"), ("(2,3)\\cup(4,5)", "(2,3)∪(4,5)"), ("3\\times 10^4", "3 × 10^4"),
    ("\\frac{\\pi}{2}", "π/2"), ("73", "\\mathbf{73}"), ("73", "\\textbf{73}"), ("73", "{\\color{red}73}"),
    ("73", "\\textcolor{blue}{73}"), ("73", "\\color{red}{73}"), ("\\frac{1}{2}", "\\mathbf{\\frac{1}{2}}"),
    ("\\frac{1}{2}", "\\displaystyle\\frac{1}{2}"), ("73", "\\boxed{\\boldsymbol{73}}"), ("73", "\\boxed{\\text{73}}"),
    ("73", "\\boxed{\\mathrm{73}}"), ("73", "\\boxed{\\Large 73}"), ("73", "\\underline{73}"),
    ("x^2+1", "\\mathbf{x^2+1}"), ("73", "**73**"), ("73", "#### 73"), ("73", "#### **73**"), ("73", "**73.**"),
    ("73", "`73`"), ("73", "*73*"), ("73", "__73__"), ("73", "#### $73$"), ("73", "#### **$73$**"), ("73", "### 73"),
    ("\\frac{5}{2}", "2\\frac{1}{2}"), ("\\frac{5}{2}", "5/2"), ("\\frac{5}{2}", "\\dfrac52"),
    ("\\frac{5}{2}", "\\tfrac{5}{2}"), ("\\frac{5}{2}", "{5 \\over 2}"), ("\\frac{5}{2}", "2.5"),
    ("\\frac{5}{2}", "2½"), ("\\frac{5}{2}", "5 / 2"), ("\\frac{5}{2}", "\\frac 52"), ("137 \\frac{1}{2}", "137.5"),
    ("137 \\frac{1}{2}", "275/2"), ("1\\frac{4}{5}", "9/5"), ("-\\frac{5}{2}", "-2 1/2"),
    ("-\\frac{5}{2}", "-2\\frac{1}{2}"), ("\\frac59", "\\frac{5}{9}"), ("\\frac{20000}{\\pi}", "20000/\\pi"),
    ("\\frac{\\sqrt{21}}{5}", "\\sqrt{21}/5"), ("\\frac{5}{2}", "\\cfrac{5}{2}"), ("1331, 1728", "x=1331, 1728"),
    ("1,-2", "x=1 \\text{ or } x=-2"), ("1,-2", "x = 1 or x = -2"), ("1,-2", "x=1 and x=-2"),
    ("1,-2", "1 \\text{ and } -2"), ("3, 5, 7", "a=3, b=5, c=7"), ("(1,2)", "(x,y)=(1,2)"), ("(1,2)", "x=1, y=2"),
    ("1,-2", "x_1 = 1, x_2 = -2"), ("3, 5, 7", "3, 5 and 7"), ("1,-2", "-2, 1"), ("12", "12 cm^3"),
    ("12", "12 square centimeters"), ("12", "12 miles per hour"), ("12", "12 m/s"), ("12", "12 cm^{2}"),
    ("12", "12 cubic feet"), ("12", "12\\text{ square units}"), ("12", "12\\,\\text{cm}^2"),
    ("12", "12\\ \\mathrm{m/s^2}"), ("12", "12 m/s^2"), ("12", "12\\text{ m}^2"), ("12", "12 kg m"),
    ("12", "12 sq ft"), ("12", "12 dollars per day"), ("12", "12 sq. ft."), ("12", "12 units^2"), ("\\text{(C)}", "C"),
    ("\\text{(C)}", "\\textbf{(C)}"), ("\\text{(C)}", "(C)"), ("\\text{(C)}", "\\text{C}"),
    ("\\text{Evelyn}", "evelyn"), ("p - q", "-q+p"), ("5x - 7y + 11z + 4 = 0", "4+5x-7y+11z=0"), ("3R^2", "3R^2"),
    ("6 - 5i", "-5i+6"),
    ("\\begin{pmatrix} -1 & 0 \\\\ 0 & -1 \\end{pmatrix}", "\\begin{pmatrix} -1 & 0 \\\\ 0 & -1 \\end{pmatrix}"),
    ("\\begin{pmatrix} -2 \\\\ -14 \\\\ -7 \\end{pmatrix}", "\\begin{pmatrix}-2\\\\-14\\\\-7\\end{pmatrix}"),
    ("\\begin{pmatrix} 1/5 \\\\ -18/5 \\end{pmatrix}",
     "\\begin{pmatrix} \\frac{1}{5} \\\\ -\\frac{18}{5} \\end{pmatrix}"),
    ("\\{1\\pm\\sqrt{5},-2\\}", "\\{1+\\sqrt{5},1-\\sqrt{5},-2\\}"),
    ("\\{1\\pm\\sqrt{5},-2\\}", "-2, 1-\\sqrt5, 1+\\sqrt5"), ("(a+5)(b+2)", "(b+2)(a+5)"),
    ("(a+5)(b+2)", "ab+2a+5b+10"),
    ("\\left[ \\frac{\\pi^2}{8}, \\frac{5 \\pi^2}{4} \\right]", "[\\pi^2/8, 5\\pi^2/4]"), ("18+2\\pi", "2\\pi+18"),
    ("\\$32,\\!348", "32348"), ("11,\\! 111,\\! 111,\\! 100", "11,111,111,100"), ("10,\\!080", "10080"),
    ("\\frac{270}7\\text{ degrees}", "\\frac{270}{7}"), ("\\frac{270}7\\text{ degrees}", "270/7^\\circ"),
    ("11 \\sqrt{5} + 11", "11(1+\\sqrt5)"), ("y = -2x", "y=-2x"), ("y = -2x", "-2x"),
    ("\\frac{4}{2598960}", "\\frac{1}{649740}"), ("x^5 - x^4 + x^3 - x^2 + x - 1", "(x-1)(x^4+x^2+1)"),
    ("3\\sqrt{13}", "\\sqrt{117}"), ("2k", "2k+0"), ("[2,5)", "[2,5)"), ("145^\\circ", "145"),
    ("145^\\circ", "145 degrees"), ("x=5", "5"), ("73", "**Answer:** 73"), ("\\cot x", "\\frac{1}{\\tan x}"),
]  # fmt: skip
"""Other notations of one value: units, percentages, powers of ten, fractions, inequalities, fonts, Markdown, signs."""
OTHER_VALUE = [
    ("0.00000015", "0.00000016"), ("10^{-8}", "10^{-9}"), ("\\frac{\\sqrt{2}}{10^{20}}", "\\frac{\\sqrt{3}}{10^{20}}"),
    ("\\frac{\\pi}{10^{9}}", "\\frac{\\pi}{10^{8}}"), ("e^{-40}", "e^{-41}"),
    ("6.63\\times10^{-34}", "6.64\\times10^{-34}"), ("1011_2", "1011_3"), ("2516_8", "2516_{9}"),
    ("5\\text{ kg}", "5\\text{ g}"), ("3\\text{ hours}", "3\\text{ minutes}"), ("10\\text{ miles}", "10\\text{ km}"),
    ("5.4 \\text{ cents}", "5.4 dollars"), ("15\\mbox{ cm}^2", "15 m^2"),
    ("2\\sqrt{3}\\text{ cm}", "2\\sqrt{3}\\text{ m}"), ("10:15\\text{ AM}", "10:15 PM"),
    ("3\\text{ PM}", "3\\text{ AM}"), ("6:30", "6:31"), ("42", "<think>so it is \\boxed{42}"),
    ("42", "<think>a</think><think>\\boxed{42}"), ("37\\%", "38"), ("37", "37\\%"), ("2.5e6", "2.5e5"),
    ("\\pm 5", "5"), ("\\pm\\sqrt{2}", "\\sqrt{2}"), ("3 \\pm 2\\sqrt{2}", "3+2\\sqrt{2}"), ("(2,\\infty)", "x\\ge2"),
    ("(-\\infty, 2) \\cup (3, \\infty)", "x<2 \\text{ or } x>4"), ("[2,5)", "2 < x < 5"), ("5", "⁵"),
    ("73", "\\boxed{\\mathbf{74}}"), ("73", "**74**"), ("73", "- 73"),
    ("\\frac{5}{2}", "2 1/3"), ("\\frac{5}{2}", "5:2"), ("\\frac{5}{2}", "5÷2"), ("1,-2", "x = 1, x = 2"),
    ("12", "12 km^2 squared"), ("12", "12^2"), ("12", "12 cm^2 + 1"), ("12", "12 dozen eggs"), ("\\text{(C)}", "D"),
    ("\\text{even}", "odd"), ("\\text{east}", "\\text{west}"), ("\\text{ellipse}", "\\text{an ellipse}"),
    ("6 - 5i", "6+5i"), ("0.5", "5\\%"), ("\\sqrt{2}", "1.41421356237"),
    ("\\pi", "3.14159265358979"), ("\\pi", "22/7"), ("3\\sqrt{13}", "\\sqrt{118}"),
    ("70\\sqrt{2}", "70\\sqrt{2}\\text{ or }5"), ("145^\\circ", "145\\text{ radians}"),
    ("\\sqrt{2}", "1} \\boxed{\\sqrt{2}"), ("x^2", "\\int 2x\\,dx"), ("\\sqrt{2}", "\\sqrt{2}, 1"),
    ("\\sqrt{2}", "\\{\\sqrt{2}, \\sqrt{3}\\}"), ("18", "18 or 19"),
]  # fmt: skip
"""Other values, however small the difference: bases, units, halves of the day, unfinished thoughts, roundings."""
NO_VALUE_OF_FIVE = [
    "6=5", "5=6", "6=x", "5=2+3", "x=6=5", "x=2+3=6", "1=2=5", "x+y=5", "2x=5", "5\\%", "5%", "500\\%",
    "\\% 5", "% 5",
    "\\int_0^5 1\\,dx", "\\int_0^1 5 dx", "∫_0^1 5 dx", "\\sum_{i=1}^5 1", "\\prod_{i=1}^{1}5", "\\lim_{x\\to0}5",
    "\\frac{d}{dx}5x", "\\frac{d}{dx}(5x)", "5\\pmod 7", "5\\bmod 7", "12\\mod 7", "5\\ne 6", "5\\neq6", "5<6",
    "x<5", "x\\le 5",
    "5\\approx5.1", "x\\approx 5", "5\\equiv5", "5\\sim5", "5\\to6", "5\\pm0", "\\pm5", "2+3", "10-5", "-(-5)+0",
    "1\\cdot5",
    "5\\times1", "5*1", "10\\div 2", "3!-1", "5!", "5'", "5_6", "101_2", "5,5", "5,6", "5;6", "5:1", "\\{5,5\\}",
    "5 6", "5\\ 6",
    "5\\text{ or }6", "5\\text{ is wrong}", "\\text{not }5", "5\\ldots", "5\\dots", "5...", "4.\\overline{9}", "|5|",
    "|-5|",
    "\\max(5,3)", "\\gcd(5,10)", "\\lfloor5.5\\rfloor", "\\binom51", "\\binom{5}{1}", "\\log_2 32", "e^{\\ln5}",
    "\\det(5)",
    "5\\cap5", "5\\cup6", "5\\mid10", "--5", "5}{6", "}5{", "5\\} 6", "٥", "²5", "0_5", "5e0j", "0x5",
    "V", "five", "5i^4",
    "5≡5", "5≅5", "6＝5", "5％", "5\\text{ percent}", "5 percent", "5\\text{ hundredths}", "5\\text{ million}",
    "5\\text{k}", "5k",
    "\\frac{5x}{x}", "5x/x", "\\frac{\\frac{20}{2}}{2}", "\\frac{5}{5/5}", "5/1/1", "5^{0}5", "5\\text{6}",
    "5\\text{ maybe}",
    "\\text{about }5", "\\text{at least }5", "5\\text{?}", "5?", "5∙1", "5⋅1", "5−0", "5–6", "5\\%+0", "x=5\\%",
    "x=2+3", "5⁰",
    "x=\\int_0^5 1\\,dx", "\\operatorname{lcm}(1,5)", "\\sqrt{20+5}", "\\frac{2+3}{1}", "5^{2-1}", "5+i-i",
    "5\\lor6", "\\to 5", "=6",
    "3. 5", "a) 3) 5", "(3) 5", "5\\text{‰}", "5‰", "5\\text{ squared}", "5\\text{ factorial}", "5\\text{ doubled}",
    "5\\text{ times}", "5\\text{ plus one}", "5\\text{ over two}", "5\\text{ and a half}", "5\\text{ mod six}",
    "5\\text{ inverse}", "5\\text{ thirds}", "5\\text{ bn}", "5\\text{ lakh}", "5\\text{ ppm}", "5\\mathrm{i}",
    "5\\mathrm{M}", "5\\text{x}", "5\\text{ to six}", "5\\text{ when odd}", "5\\text{ + six}", "5\\text{!}", "5 less",
    "5^T", "minus 5", "\\text{minus }5", "5\\text{ - six}", "5 squared", "twice 5", "half of 5",
    "\\begin{pmatrix}5\\end{pmatrix}", "5\\\\6", "6\\newline 5", "5 \\vee 6", "4.9999999", "5.0001", "-5", "", " ",
    "\\boxed{}",
]  # fmt: skip
HOSTILE = [
    "9^{9^{9^9}}", "9^{9^{9^{9^9}}}", "9^9^9^9", "10^{10^{10^{10}}}", "2^{99999999}", "(999999)!", "((9!)!)!",
    "99999!", "9!!!!!!",
    "\\frac{" * 300 + "1" + "}{1}" * 300, "\\sqrt{" * 400 + "5" + "}" * 400, "(" * 900 + "5" + ")" * 900,
    "{" * 999 + "5" + "}" * 999,
    "\\int_0^1" * 200 + "x", "\\sum_{i=1}^{10^{10}} i", "\\prod_{i=1}^{10^9} i", "x^{x^{x^{x^x}}}", "9" * 1_999,
    "0." + "9" * 1_900,
    "1" + "/1" * 900, "-" * 1_900 + "5", "1,000" * 300, "\\left" * 400, "\\text{" * 300, "^" * 1_000, "_" * 1_000,
    "\\" * 1_999,
    "\ud800", "\x00", "\u202e5", "__import__('os')", "\\binom{10^9}{10^8}", "5^{-99999999}", "1e999999999",
    "\\log_{1}5", "\\frac{5}{0}",
]  # fmt: skip


CASES = [line.split(" | ") for line in (Path(__file__).parent / "maths_cases.txt").read_text().splitlines()]
"""Lines ``gold | answer | T`` or ``F``: all notations and spoiled answers that were tried, by their kind."""


@pytest.mark.parametrize("part", [pytest.param(0), *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))])
def test_cases_of_every_kind_get_the_grade_that_a_reader_gives(judge: MathsJudge, part: int) -> None:
    cases = [(gold, " | ".join(answer), right == "T") for gold, *answer, right in CASES[part::10]]
    grades = judge.grade(
        [(gold, answer.replace("\\n", "\n") if "```" in answer else answer) for gold, answer, _ in cases]
    )
    assert len(cases) > 100
    assert [case for case, grade in zip(cases, grades, strict=True) if grade.correct is not case[2]] == []


def test_one_value_in_other_forms_is_right(judge: MathsJudge) -> None:
    assert [pair for pair, grade in zip(EQUAL, judge.grade(EQUAL), strict=True) if not grade.correct] == []


def test_another_notation_of_the_value_is_right(judge: MathsJudge) -> None:
    assert [pair for pair, grade in zip(SAME_VALUE, judge.grade(SAME_VALUE), strict=True) if not grade.correct] == []


def test_a_value_that_differs_a_little_is_wrong(judge: MathsJudge) -> None:
    assert [pair for pair, grade in zip(OTHER_VALUE, judge.grade(OTHER_VALUE), strict=True) if grade.correct] == []


def test_a_number_is_right_with_any_unit_and_another_is_wrong(judge: MathsJudge) -> None:
    units = ("hours", "eggs", "pages", "books", "girls", "apples", "cm")
    golds = ("18", "1,000", "$18", "-3", "2.5")
    right = [(gold, f"{gold.strip('$').replace(',', '')} {unit}") for gold in golds for unit in units]
    right += [
        ("1000", "1000 dollars"),
        ("1000", "1,000 dollars"),
        ("1000", "1000 euros"),
        ("7", "\\boxed{7 days}"),
    ]
    assert [grade.correct for grade in judge.grade(right)] == [True] * len(right)
    wrong = [(gold, f"{gold.strip('$').replace(',', '')}1 {unit}") for gold in golds for unit in units]
    wrong += [("18", "18 dozen"), ("18", "18 thousand"), ("18", "18 squared"), ("18", "18 or 19"), ("18", "18 %")]
    assert [grade.correct for grade in judge.grade(wrong)] == [False] * len(wrong)


def test_what_states_no_value_or_another_is_no_answer_for_five_or_seven(judge: MathsJudge) -> None:
    sevens = [("7", text.replace("5", "7")) for text in NO_VALUE_OF_FIVE if "7" not in text]
    pairs = [("5", text) for text in NO_VALUE_OF_FIVE] + sevens
    grades = judge.grade(pairs)
    assert [pair for pair, grade in zip(pairs, grades, strict=True) if grade.correct] == []
    assert not any(grade.lost for grade in grades) and not faults


def test_a_relation_or_a_percentage_counts_only_as_the_gold_answer_has_it(judge: MathsJudge) -> None:
    pairs = [
        ("x=5", "6=5"), ("x=5", "y=5"), ("x=5", "x<5"), ("x<5", "x>5"), ("x<5", "x=5"), ("x<5", "5"),
        ("5\\%", "500\\%"),
        ("5\\%", "6\\%"), ("x^2+y^2=1", "0=0"), ("(1,2)", "(2,1)"), ("\\{1,2\\}", "\\{1,2,3\\}"), ("[2,5)", "(2,5)"),
        ("(1,2)", "\\{1,2\\}"), ("\\{1,2\\}", "(1,2)"), ("\\{1,2\\}", "\\left[2,1\\right]"),
        ("x^2", "\\int 2x\\,dx"), ("2x", "\\frac{d}{dx}x^2"), ("\\pi", "3.14159"), ("\\sqrt{2}", "1.41421"),
    ]  # fmt: skip
    assert [pair for pair, grade in zip(pairs, judge.grade(pairs), strict=True) if grade.correct] == []


def test_hostile_answers_are_wrong_and_cost_little(judge: MathsJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "deadline_s", 5)
    judge.grade([("1", "1.0")])  # start it
    start_s = time.monotonic()
    grades = judge.grade([("5", text) for text in HOSTILE])
    spent_s = time.monotonic() - start_s
    assert not any(grade.correct or grade.lost for grade in grades) and not faults
    assert sum(grade.verdict in ("timeout", "memory") for grade in grades) <= 1
    assert spent_s < 60


def test_equal_answers_are_right_in_any_form(judge: MathsJudge) -> None:
    assert [pair for pair, grade in zip(RIGHT, judge.grade(RIGHT), strict=True) if not grade.correct] == []


def test_other_answers_are_wrong(judge: MathsJudge) -> None:
    grades = judge.grade(WRONG)
    assert [pair for pair, grade in zip(WRONG, grades, strict=True) if grade.correct] == []
    assert not any(grade.lost for grade in grades)


def test_an_answer_that_takes_for_ever_is_stopped_and_the_next_one_is_graded(
    judge: MathsJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "deadline_s", 3)
    endless = judge.grade([("1", "10^{10^{10^{10}}}")])[0]
    assert (endless.correct, endless.lost) == (False, False) and endless.verdict in ("timeout", "memory", "ok")
    assert judge.grade([("1/2", "0.5")])[0].correct


def test_a_text_is_read_by_the_library_in_the_sandbox_and_nowhere_else(judge: MathsJudge) -> None:
    assert judge.protections()["seccomp"]
    before = judge.num_jobs
    assert [grade.correct for grade in judge.grade([("5", "5"), ("5", "x=5"), ("5", "6=5"), ("5", "")])] == [
        True, True, False, False,
    ]  # fmt: skip
    assert judge.num_jobs == before  # texts alone decided these
    assert [grade.correct for grade in judge.grade([("\\pi^2", "\\pi\\pi"), ("\\pi", "3")])] == [True, False]
    assert judge.num_jobs == before + 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\boxed{a{b}c} then", "a{b}c"),
        ("\\boxed{open", "\\boxed{open"),
        ("\\boxed{1}, then \\boxed{2}", "2"),
        ("\\boxed{1}, \\boxed{2} and \\boxed{3}", "1, 2, 3"),
        ("\\boxed{1} or $\\boxed{2}$", "1, 2"),
        ("\\boxed{1},\\quad\\boxed{2}", "1, 2"),
        ("\\boxed{1} \\quad \\boxed{2}", "2"),
        ("\\boxed{\\boxed{1}}", "1"),
        ("\\boxed 1", "1"),
        ("<think>\\boxed{1}</think>", ""),
        ("<answer>1</answer>", "1"),
        ("So, x. The answer is 7.", "7."),
        ("**Final Answer:** The final answer is $7$. I hope it is correct.", "$7$."),
        ("I doubt the answer is 7", "I doubt the answer is 7"),
        ("◁think▷\\boxed{1}", ""),
        ("<seed:think>\\boxed{1}</seed:think>2", "2"),
        ("$x$ and $y$", "$x$ and $y$"),
        ("reasons #### 1,000", "1,000"),
        ("  7 ", "7"),
        ("## Final Answer\n$7$", "$7$"),
        ("Thus, the answer is **7**.", "7**."),
        ("So:\n```text\n7\n```", "7"),
        ("```7\n```", "7"),
        ("#### 5 #### 6", "6"),
        ("#### 5\n#### so", "5"),
        ("x #### y", "y"),
        ("#### 5\nwell", "5"),
        ("#####7", "7"),
        ("#### -$5 ####", "-$5"),
    ],
)
def test_the_final_answer_is_the_last_box_or_what_follows_the_mark(text: str, expected: str) -> None:
    assert final_answer(text) == expected


def test_the_plain_form_drops_what_means_nothing() -> None:
    assert plain_form("\\left( 3, \\dfrac12 \\right).") == "( 3, \\frac{1}{2} )"
    assert plain_form("\\textcolor{red}{\\mathbf{7}}") == "{7}"
    assert plain_form("\\leftarrow x") == "\\leftarrow x"
