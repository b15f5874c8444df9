"""What was posed is remembered with decay, and a task is measured against it."""

import pytest

from redqueen.domains.code.measures import behaviour_class, size_class
from redqueen.propose.curriculum import TaskMemory, crowding, keep_only, remember
from redqueen.records import Task

PLAIN, LOOP = "def f(x):\n    return x + 1\n", "def f(x):\n    for a in [x]:\n        pass\n    return a\n"


def task(name: str, code: str = PLAIN, teacher: str = "T1", inputs: str = "1") -> Task:
    return Task(name, teacher, "S1", "code_o", code, (inputs,), ("2",))


def test_the_first_of_a_class_is_new_and_shares_its_novelty_with_its_like_in_the_step() -> None:
    first = crowding(TaskMemory(), [task("a"), task("b"), task("c", LOOP)], {})
    assert (first["a"].novelty, first["b"].novelty, first["c"].novelty) == (0.5, 0.5, 1.0)
    memory = remember(TaskMemory(), [task("a")], {})
    second = crowding(memory, [task("d"), task("e", LOOP)], {})
    assert (second["d"].novelty, second["e"].novelty) == (0.0, 1.0)


def test_a_class_seen_once_is_never_new_again_though_its_count_decays_away() -> None:
    memory = remember(TaskMemory(decay_frac=0.01), [task("a")], {})
    for _ in range(3):
        memory = remember(memory, [], {})
    assert memory.by_teacher["T1"] == {}
    assert crowding(memory, [task("b")], {})["b"].novelty == 0.0


def test_crowding_is_the_share_of_the_class_among_recent_tasks_of_all_teachers() -> None:
    memory = remember(TaskMemory(decay_frac=0.5), [task("a"), task("b", teacher="T2"), task("c", LOOP)], {})
    found = crowding(memory, [task("d")], {})["d"]
    # Two plain ones and a loop, halved, and the new plain one: (1 + 1) / (1 + 1 + 0.5).
    assert found.crowd_frac == pytest.approx(2 / 2.5)


def test_size_explains_hardness_where_tasks_of_that_size_were_solved_less_than_others() -> None:
    small, large = [task(f"s{i}") for i in range(8)], [task(f"l{i}", inputs="123456789") for i in range(8)]
    assert size_class(small[0]) != size_class(large[0]) and behaviour_class(small[0]) == behaviour_class(large[0])
    solved = {t.id: 1.0 for t in small} | {t.id: 0.0 for t in large}
    memory = remember(TaskMemory(), [*small, *large], solved)
    new = [task("s"), task("l", inputs="987654321"), task("m", inputs="987654321")]
    found = crowding(memory, new, {"s": 0.0, "l": 0.0, "m": 0.9})
    # Half of all were solved; the large ones' mean 0 counts 8 tasks beside as many that stand for the kind's mean.
    assert found["l"].size_hardness == pytest.approx(0.5 * 8 / (8 + 8))
    assert found["m"].size_hardness == pytest.approx(0.1)  # not more than was missed
    assert found["s"].size_hardness == 0.0
    assert crowding(memory, new, {})["l"].size_hardness == 0.0  # all attempts were lost: nothing was missed


def test_without_a_history_size_explains_nothing() -> None:
    assert crowding(TaskMemory(), [task("a")], {"a": 0.0})["a"].size_hardness == 0.0


def test_a_task_whose_attempts_were_all_lost_counts_for_its_class_and_for_no_size() -> None:
    memory = remember(TaskMemory(), [task("a")], {})
    assert memory.by_teacher["T1"] == {behaviour_class(task("a")): 1.0} and memory.sizes == {}


def test_who_has_left_is_forgotten_and_what_was_seen_is_not() -> None:
    memory = keep_only(remember(TaskMemory(), [task("a"), task("b", LOOP, "T2")], {}), ["T2"])
    assert set(memory.by_teacher) == {"T2"} and len(memory.ever) == 2
