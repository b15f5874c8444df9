"""The state of a run: who is there at the beginning, and what a checkpoint keeps of it."""

import json
from dataclasses import replace

import pytest

from redqueen.adapters.hall_of_fame import HallOfFame, admit
from redqueen.config import Config, parse_config
from redqueen.domains.code.kinds import IDENTITY
from redqueen.errors import UserError
from redqueen.propose.buffer import TaskArchive, TaskBuffer, task_key
from redqueen.propose.curriculum import TaskMemory, remember
from redqueen.records import Individual, Rating, Task
from redqueen.state import State, initial_state, state_from_plain, state_to_plain


def config_of(**population: object) -> Config:
    return parse_config({"population": population}, "test")


def test_founders_are_teachers_then_students_in_the_slots_of_the_bank() -> None:
    state = initial_state(config_of(num_teachers=2, num_students=3))
    assert [(i.id, i.role, i.slot) for i in state.individuals] == [
        ("T1", "teacher", 0),
        ("T2", "teacher", 1),
        ("S1", "student", 2),
        ("S2", "student", 3),
        ("S3", "student", 4),
    ]
    assert {i.rating for i in state.individuals} == {Rating(25.0, 25.0 / 3)}
    assert [i.id for i in state.teachers] == ["T1", "T2"]
    assert [i.id for i in state.students] == ["S1", "S2", "S3"]
    assert state.by_id()["S2"].slot == 3


def test_the_single_agent_is_one_member_that_is_teacher_and_student() -> None:
    state = initial_state(config_of(num_teachers=1, num_students=1, single=True))
    assert [(i.id, i.role, i.slot) for i in state.individuals] == [("A1", "both", 0)]
    assert state.teachers == state.students == state.individuals


def test_a_copy_of_a_task_that_the_buffer_begins_with_is_no_new_task() -> None:
    buffer = initial_state(config_of()).buffer
    assert buffer.tasks and buffer.asked == tuple(map(task_key, buffer.tasks))


def test_a_run_begins_with_the_identity_program_and_no_games() -> None:
    state = initial_state(Config())
    assert state.step == 0
    assert state.buffer == TaskBuffer(1024, (IDENTITY,), (task_key(IDENTITY),))
    assert state.broken == frozenset()


def test_a_state_comes_back_from_its_checkpoint_exactly() -> None:
    child = Individual("T2.10", "teacher", 1, Rating(25.1 / 3, 0.1 + 0.2), 10, ("T1", "T3"), "X2")
    founder = Individual("S1", "student", 2, Rating(31.0, 7.0))
    task = Task(
        "1-T1-0", "T1", "S1", "code_f", "def f(x):\n    return 'é\\n'\n", ("1", "2"), ("'a'", "{1: (2,)}"), "hint", 1
    )
    memory = remember(remember(TaskMemory(), [task], {task.id: 1 / 3}), [IDENTITY], {"seed": 0.1 + 0.2})
    hall, _ = admit(HallOfFame(2, 8), child, 12)
    buffer = TaskBuffer(64, (IDENTITY, task), ("one", "two"))
    broken, rewards = frozenset({"S1", "T2.10"}), {"S1": (1 / 3, 0.5)}
    state = State(17, (child, founder), buffer, broken, memory, hall, rewards=rewards)
    plain = state_to_plain(state)
    read = state_from_plain(json.loads(json.dumps(plain)))
    assert read == state
    assert read != replace(state, step=18)
    assert plain["broken"] == ["S1", "T2.10"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"buffer": {"tasks": 1}}, "buffer"),
        ({"step": "soon"}, "step"),
        ({"moods": {}}, "moods"),
    ],
)
def test_a_state_of_another_version_is_refused_by_its_field(change: dict[str, object], named: str) -> None:
    plain = state_to_plain(initial_state(Config())) | change
    with pytest.raises(UserError, match=rf"another version of redqueen \({named}"):
        state_from_plain(plain)


def test_a_state_of_an_earlier_version_is_read_without_the_fields_that_were_removed() -> None:
    task = Task("1-T1-0", "T1", "S1", "code_o", "def f(a):\n    return a", ("1",), ("1",), "", 0)
    state = replace(initial_state(Config()), archive=TaskArchive(8).add([task], {task.id: 0.5}, 1))
    plain = json.loads(json.dumps(state_to_plain(state)))
    plain |= {"payoff": {"decay_frac": 0.95, "cells": []}, "scores": {"S1": [0.5]}}
    plain["archive"]["entries"][0]["last_look"] = 1
    for individual in plain["individuals"]:
        individual["genes"]["entropy_weight"] = 1.0
        individual["domain_ratings"] = []
    assert state_from_plain(plain) == state


def test_a_users_kind_of_tasks_may_be_called_like_a_field_that_was_removed() -> None:
    memory = TaskMemory(sizes={"scores": (0.5, 1.0)}, by_teacher={"T1": {"payoff": 3.0}})
    state = replace(initial_state(Config()), memory=memory)
    assert state_from_plain(json.loads(json.dumps(state_to_plain(state)))) == state
