"""The task buffer: bounded, without doubles in program or behaviour, the oldest leave first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.domains.code.kinds import IDENTITY
from redqueen.propose.buffer import (
    KEYS_PER_TASK,
    TaskBuffer,
    behaviour_key,
    cell,
    draw_references,
    program_key,
    task_key,
    tasks_of_domain,
)
from redqueen.records import Task


def task(code: str, input_: str = "1", output: str = "2", teacher: str = "T1", kind: str = "code_o") -> Task:
    return Task(f"{teacher}-{code}", teacher, "S1", kind, code, (input_,), (output,))


def adder(k: int, teacher: str = "T1") -> Task:
    """Programs that differ in more than names, and in what they do."""
    return task(f"def f(x):\n    return x + {k}\n", "1", str(1 + k), teacher)


def test_a_buffer_begins_with_the_identity_program() -> None:
    assert TaskBuffer(8, (IDENTITY,)).tasks == (IDENTITY,)


def test_new_tasks_stand_behind_older_ones_and_the_old_buffer_is_left_as_it_was() -> None:
    before = TaskBuffer(8, (IDENTITY,))
    after = before.add([adder(1), adder(2)])
    assert after.tasks == (IDENTITY, adder(1), adder(2))
    assert before.tasks == (IDENTITY,)


def test_a_full_buffer_lets_its_oldest_go() -> None:
    buffer = TaskBuffer(8, (IDENTITY,))
    for k in range(1, 21):
        buffer = buffer.add([adder(k)])
    assert buffer.tasks == tuple(adder(k) for k in range(13, 21))
    assert TaskBuffer(8, (IDENTITY,)).add(adder(k) for k in range(1, 21)) == buffer  # at once or one by one


def test_the_same_program_under_other_names_is_a_double() -> None:
    first = task("def f(x):\n    y = x + 1\n    return y\n", "1", "2")
    again = task("def f(a):\n    b = a + 1  # the same\n    return b\n", "5", "6")
    other = task("def f(x):\n    y = x + 2\n    return y\n", "1", "3")
    assert program_key(first) == program_key(again) != program_key(other)
    assert TaskBuffer(8, (IDENTITY,)).add([first, again, other]).tasks == (IDENTITY, first, other)


def test_another_program_that_does_the_same_on_the_same_input_is_a_double() -> None:
    first = task("def f(x):\n    return x + x\n", "3", "6")
    again = task("def f(x):\n    return x * 2\n", "3", "6")
    elsewhere = task("def f(x):\n    return x * 2\n", "4", "8")
    assert behaviour_key(first) == behaviour_key(again) != behaviour_key(elsewhere)
    assert TaskBuffer(8, (IDENTITY,)).add([first, again]).tasks == (IDENTITY, first)
    assert TaskBuffer(8, (IDENTITY,)).add([first, elsewhere]).tasks == (IDENTITY, first, elsewhere)


def test_inputs_and_outputs_are_kept_apart_in_a_behaviour() -> None:
    one = Task("a", "T1", "S1", "code_f", "def f(x): ...", ("1", "2"), ("3",))
    two = Task("b", "T1", "S1", "code_f", "def f(x): ...", ("1",), ("2", "3"))
    assert behaviour_key(one) != behaviour_key(two)


def test_what_has_left_may_come_back() -> None:
    buffer = TaskBuffer(8, (IDENTITY,)).add(adder(k) for k in range(1, 12))
    assert adder(1) not in buffer.tasks
    assert buffer.add([adder(1)]).tasks[-1] == adder(1)


def test_the_memory_of_what_was_asked_is_bounded_too_and_forgets_the_oldest() -> None:
    buffer = TaskBuffer(8, (IDENTITY,))
    for k in range(1, 8 * KEYS_PER_TASK + 11):
        buffer = buffer.add([adder(k)])
    assert len(buffer.asked) == 8 * KEYS_PER_TASK
    assert task_key(adder(10)) not in buffer.asked
    assert buffer.asked[0] == task_key(adder(11)) and buffer.asked[-1] == task_key(adder(8 * KEYS_PER_TASK + 10))


def test_two_tasks_ask_the_same_when_kind_program_and_inputs_agree() -> None:
    one = task("def f(x):\n    return x + 1\n")
    assert task_key(one) == task_key(task("def f(n):\n    return n + 1\n", output="9", teacher="T2"))
    assert task_key(one) != task_key(task("def f(x):\n    return x + 1\n", "2"))
    assert task_key(one) != task_key(task("def f(x):\n    return x + 1\n", kind="code_i"))


def test_there_is_a_task_to_refer_to_even_when_the_seed_has_left() -> None:
    buffer = TaskBuffer(8, (IDENTITY,)).add(adder(k, "T2") for k in range(1, 12))
    assert IDENTITY not in buffer.tasks and tasks_of_domain((), "code_f") == [IDENTITY]
    assert tasks_of_domain(buffer.tasks, "code_o") == list(buffer.tasks)


def test_references_are_different_tasks_and_at_most_as_many_as_there_are() -> None:
    tasks = [adder(k) for k in range(1, 6)]
    for num in (0, 1, 3, 5, 9):
        drawn = draw_references(tasks, num, np.random.default_rng(num))
        assert len(drawn) == len({t.id for t in drawn}) == min(num, 5)
    assert draw_references([], 3, np.random.default_rng(0)) == ()


def test_references_repeat_with_their_generator() -> None:
    tasks = [adder(k) for k in range(1, 30)]
    assert draw_references(tasks, 6, np.random.default_rng(1)) == draw_references(tasks, 6, np.random.default_rng(1))


def test_the_newest_task_is_shown_twice_as_often_as_the_oldest() -> None:
    tasks = [adder(k) for k in range(1, 12)]
    rng = np.random.default_rng(0)
    drawn = [draw_references(tasks, 1, rng)[0] for _ in range(6000)]
    oldest, newest = drawn.count(tasks[0]), drawn.count(tasks[-1])
    # Weights run from 1 to 2 over 11 tasks: 6000 / 16.5 = 364 and twice that; six standard deviations are about 110.
    assert oldest == pytest.approx(364, abs=110)
    assert newest == pytest.approx(727, abs=160)


def test_over_cells_a_lone_task_is_shown_as_often_as_all_of_a_crowd_together() -> None:
    crowd, lone = [adder(k) for k in range(10, 19)], task("def f(x):\n    return x[::-1]\n", "'ab'", "'ba'")
    assert len({cell(one) for one in crowd}) == 1 and cell(lone) != cell(crowd[0])
    rng = np.random.default_rng(0)
    drawn = [draw_references([*crowd, lone], 1, rng, over_cells=True)[0] for _ in range(4000)]
    # A fair coin decides between the cells: 2000, with a standard deviation of 32.
    assert drawn.count(lone) == pytest.approx(2000, abs=160)
    # Within the crowd weights run from 1 to 17/9, for the lone task is the newest: 9 of them sum to 13.
    assert drawn.count(crowd[0]) == pytest.approx(2000 / 13, abs=60)
    assert drawn.count(crowd[-1]) == pytest.approx(2000 / 13 * 17 / 9, abs=80)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.integers(8, 12))
def test_a_buffer_is_bounded_and_has_no_doubles_whatever_comes(pairs: list[tuple[int, int]], capacity: int) -> None:
    buffer = TaskBuffer(capacity)
    for k, input_ in pairs:
        new = task(f"def f(x):\n    return x * {k}\n", str(input_), str(k * input_))
        buffer = buffer.add([new, new])
        assert len(buffer.tasks) <= capacity
        assert len({program_key(t) for t in buffer.tasks}) == len({behaviour_key(t) for t in buffer.tasks})
        assert len({program_key(t) for t in buffer.tasks}) == len(buffer.tasks)
