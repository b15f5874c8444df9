"""Puzzles that are none, answers that only look right: each is refused or graded right, in bounded time."""

from redqueen.domains.logic.kinds import PUZZLE
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check, grade
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox
from redqueen_sandbox.guard import faults

CONTRADICTORY = [
    "order A B\nA < B\nB < A",
    "order A B C\nA = 4",
    "order A B C\nA = B",
    "order A B C, P Q R\nA = P\nB = P",
    "number x y, 1 9\nx + y = 19",
    "number x y, 1 9\nx < x\ny = 1",
    "number x y, 0 9\nx % 2 = 0\nx % 2 = 1\ny = 3",
    "number x y, 0 9\nx * x = 2\ny = 0",
    "knights A B\nA: not A",
    "knights A B\nA: A != A\nB: A = B\nA: not B\nB: B and not A or A and not B",
    "order A B C D\nA < B\nB < C\nC < D\nD < A",
    "number a b c, 1 4\na < b\nb < c\nc < a",
]
AMBIGUOUS = [
    "order A B C\nA < B",
    "order A B C\n1 = 1",
    "order A B C, P Q R\nA = P\nB = Q",
    "number x y, 1 9\nx + y = 10",
    "number x y, 0 9\nx * y = 12\nx < y",
    "number x y, 0 9\nx * y = 0",
    "number x y, 0 99\nx % 10 = 3\ny = x",
    "knights A B\nA: A",
    "knights A B\nA: not B",
    "knights A B C\nA: not B\nB: not A\nC: A = B",
    "knights A B C\nA: B = C\nB: B",
    "order A B C D\n|A - B| = 1\n|C - D| = 1",
]
NO_PUZZLE = [
    "",
    "\n\n\n",
    "order A B",
    "order A\nA = 1",
    "order A A\nA = 1",
    "order A B, C\nA < B",
    "order A B C\nD = 1",
    "order a1 b2\na1 < b2",
    "order A B\nA",
    "order A B\nA + B",
    "order A B\nA < B < 3",
    "order A B\nA = 1 = 1",
    "order A B\n(A = 1",
    "order A B\nA = 1)",
    "order A B\n|A - B = 1",
    "order A B\nA % B = 0",
    "order A B\nA % 0 = 0",
    "order A B\nA = 12345",
    "order A B\nA = 1.5",
    "order A B\nA = -1",
    "order A B\nA == 1",
    "order A B\nA: B",
    "order or and\nor < and",
    "number x y\nx = 1",
    "number x y, 0 999\nx = 1",
    "number x y, 9 0\nx = 1",
    "number x y, 0\nx = 1",
    "number x, 0 9, 1 2\nx = 1",
    "knights A B\nA",
    "knights A B\nA: B: A",
    "knights A B\nB and A",
    "knights A, B\nA: B",
    "zebra A B\nA < B",
    "order " + " ".join(f"{a}{b}" for a in "ABCDE" for b in "ABCDEF") + "\nAA < AB",
    "order A B\n" + "\n".join(["A < B"] * 25),
    "order A B\n" + "(" * 40 + "A = 1" + ")" * 40,
    "order A B\n" + "not " * 400 + "A = 1",
    "order A B\n" + "A < B or " * 300 + "A < B",
    *("order A B\nA < B\nA" + " + 1" * length + " > A" for length in (80, 240, 340, 450)),
    *("order A B\nA < B\n0" + f" {sign} 3" * 150 + " = 0" for sign in "*%-"),
    "order A B\nA < B\n" + "A < B and " * 45 + "A < B",
]
INJECTED = [
    "order A B\n__import__('os').system('id')",
    "order A B\nA = 1; import os",
    "order A B\nA = 1\n(assert false)",
    "order A B\n)(check-sat)(exit)\nA = 1",
    "order A B\nA = 1 # 2",
    "order A B\nA = 1\x00",
    "order A B\nA ＜ B",
    "order А В\nА < В",  # Cyrillic names
    "order A B\nA = １",
    "order A B\nA = ²",
    "order A B\neval(A) = 1",
    "order A B\nA.__class__ = 1",
    "order A B\nA ** B = 1",
    "order A B\nA = 1 && B = 2",
    "order A B\n{A} = 1",
    "order A B\n<|think|>A = 1",
]
LABORIOUS = [
    "number a b c d e f g h i j k l, 0 99\n" + " * ".join("abcdefghijkl") + " = 7560\na + b = c",
    "number a b c d e f, 0 99\na * b * c = d * e * f + 1\na * a * a + b * b * b + c * c * c = d * d * d + e * e * e",
    "number a b c d, 1 99\na * a * a * a + b * b * b * b = c * c * c * c + d * d * d * d\na < c\nc < d\nd < b",
]


def candidates(texts: list[str], kind: str = PUZZLE.name) -> list[Candidate]:
    return [Candidate(str(number), "T", "S", kind, "", code=text) for number, text in enumerate(texts)]


def reasons(texts: list[str], verifier: Sandbox) -> list[str]:
    before = dict(faults)
    found = check(candidates(texts), verifier)
    assert dict(faults) == before  # none of them made the judge itself fail
    return [one.reason if isinstance(one, Rejection) else "task" for one in found]


def test_there_are_enough_of_them():
    assert len(CONTRADICTORY + AMBIGUOUS + NO_PUZZLE + INJECTED + LABORIOUS) >= 75


def test_what_contradicts_itself_is_refused(verifier):
    assert reasons(CONTRADICTORY, verifier) == ["contradictory"] * len(CONTRADICTORY)


def test_what_has_several_solutions_is_refused(verifier):
    assert reasons(AMBIGUOUS, verifier) == ["ambiguous"] * len(AMBIGUOUS)


def test_what_is_no_puzzle_is_refused_with_a_reason(verifier):
    found = check(candidates(NO_PUZZLE), verifier)
    for text, one in zip(NO_PUZZLE, found, strict=True):
        assert isinstance(one, Rejection) and one.reason == "syntax" and one.detail, text


def test_what_would_be_injected_into_the_parser_is_refused(verifier):
    assert reasons(INJECTED, verifier) == ["syntax"] * len(INJECTED)


def test_what_is_slow_to_solve_is_given_up_in_bounded_work(verifier):
    for text, reason in zip(LABORIOUS, reasons(LABORIOUS, verifier), strict=True):
        assert reason in ("timeout", "too-large", "ambiguous"), (text, reason)


def test_a_mark_in_a_compact_proposal_is_refused():
    compact = PromptFormat(FRAMES["compact"])
    for text in ("<|in|><|ref|>order A B\nA < B", "<|out|>order A B\nA < B", "<|in|>", "A = 1<|in|>  \n"):
        assert compact.parse_proposal(PUZZLE.name, text, None).error


def test_the_longest_puzzle_that_is_read_can_be_measured_with_little_stack_left(verifier):
    longest = ["A" + " + 1" * 78 + " > A", "A" + " % 9" * 78 + " > 0", "A < B" + " or A < B" * 38]
    found = check(candidates([f"order A B\nA < B\n{clue}" for clue in longest]), verifier)
    looks = (PUZZLE.normal_form, PUZZLE.behaviour, PUZZLE.behaviour_class, PUZZLE.size_class, PUZZLE.measure)

    def deep_down(look, task: Task, depth: int = 400):
        return deep_down(look, task, depth - 1) if depth else look(task)

    for task in found:
        assert isinstance(task, Task)
        assert all(deep_down(look, task) for look in looks)


TASK = Task("1", "", "", PUZZLE.name, "order A B C\nA < B\nB < C", ("",), ("A = 1, B = 2, C = 3",))
KNIGHTS = Task("2", "", "", PUZZLE.name, "knights A B\nA: A = B\nB: A", ("",), ("A = 1, B = 1",))
RIGHT = [
    "A = 1, B = 2, C = 3",
    "C=3,B=2,A=1",
    " A = 1 ,\tB = 2, C = 3 ",
    "A = 1\nB = 2\nC = 3",
    "A is 1; B is 2; C is 3.",
]
WRONG = [
    "A = 1, B = 3, C = 2",
    "A = 1, B = 2",
    "A = 1, B = 2, C = 3, D = 4",
    "a = 1, b = 2, c = 3",
    "A = 1, B = 2, C = 33",
    "A = knight, B = 2, C = 3",
    "A is knight; B is 2; C is 3",
]
UNREADABLE = [
    "",
    ",",
    "1 2 3",
    "A < B < C",
    "A = 1, A = 1, B = 2, C = 3",
    "A = 1, A = 2, B = 2, C = 3",
    "A = 1, B = 2, C = 1+2",
    "A = 1, B = 2, C = 3.0",
    "A = 1, B = 2, C = ３",
    "A = 1, B = 2, C = 0x3",
    "A = 1, B = 2, C = 3 or C = 2",
    "A = 1, B = 2, C = -3",
    "A = 1, B = 2, C = knighted",
    "A == 1, B == 2, C == 3",
]


def test_an_assignment_is_right_however_it_is_ordered_and_spaced(verifier):
    assert all(one.correct for one in grade([(TASK, answer) for answer in RIGHT], verifier))


def test_answers_that_only_look_right_are_wrong(verifier):
    found = grade([(TASK, answer) for answer in WRONG], verifier)
    assert [(one.correct, one.verdict) for one in found] == [(False, "ok")] * len(WRONG)
    found = grade([(TASK, answer) for answer in UNREADABLE], verifier)
    assert [(one.correct, one.verdict) for one in found] == [(False, "unparsable")] * len(UNREADABLE)
    (one,) = grade([(TASK, "A = 1, " * 10_000)], verifier)
    assert (one.correct, one.verdict) == (False, "too-large")


def test_knights_may_be_named_so(verifier):
    answers = ["A = knight, B is knight", "A = knight, B = knave", "A = 1, B = 1"]
    assert [one.correct for one in grade([(KNIGHTS, answer) for answer in answers], verifier)] == [True, False, True]
