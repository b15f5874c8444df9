"""The phase ``distill`` of a step, with scripted teachers and students: when it runs and what it changes."""

from dataclasses import replace

import pytest
import torch
from scripted import Reply, Table, Teacher, config_of, half, wrong

from redqueen.config import Config
from redqueen.engine import Engine
from redqueen.loop import StepReport, run_step
from redqueen.propose.buffer import task_key
from redqueen.run.product import num_probe_tasks, probe_tasks
from redqueen.state import State
from redqueen.timing import Clock

STUDENTS, DISTILLED = (2, 3), 4


def distilling(**changes: dict[str, object]) -> Config:
    sections: dict[str, dict[str, object]] = {
        "run": {"product": "distilled", "num_threads": 1, "num_steps": 100, "device": "cpu"},
        "distill": {"every_steps": 2, "batch_size": 4, "learning_rate": 1e-2, "warmup_updates": 0},
    }
    return config_of(**{name: {**sections.get(name, {}), **changes.get(name, {})} for name in {**sections, **changes}})


def played(table: Table, config: Config, answer: Reply, num_steps: int) -> tuple[State, list[StepReport], Engine]:
    return table.play(config, Teacher(), answer, num_steps)


def factors(engine: Engine) -> torch.Tensor:
    return engine.store.bank.flat.clone()


def test_every_k_steps_all_students_become_the_adapter_distilled_from_all_answers_so_far(table: Table) -> None:
    state, reports, engine = played(table, distilling(), half, 4)
    now = factors(engine)
    assert all(torch.equal(now[slot], now[DISTILLED]) for slot in STUDENTS)
    assert now[DISTILLED].abs().max() > 0 and not torch.equal(now[0], now[DISTILLED])
    found = [report.distilled and report.distilled.num_answers for report in reports]
    assert found == [None, 12, None, 24]  # each of six tasks a step was solved
    assert state.distilled_step == 4
    assert not [slot for slot in (*STUDENTS, DISTILLED) if f"{slot}.step" in engine.learner.state_dict()]


def test_between_two_distillations_students_that_train_move_away_from_it(table: Table) -> None:
    state, _, engine = played(table, distilling(), half, 3)
    now = factors(engine)
    assert state.distilled_step == 2
    assert all(not torch.equal(now[slot], now[DISTILLED]) for slot in STUDENTS)


def test_without_a_verified_answer_the_students_stay_as_they_are(table: Table) -> None:
    config = distilling(learn={"train_students": False})
    state, engine = table.sit(config, Teacher(), wrong)
    before = factors(engine)
    for _ in range(2):
        state, report = run_step(state, engine, Clock())
    now = factors(engine)
    assert report.distilled is None
    assert all(torch.equal(now[slot], before[slot]) for slot in STUDENTS)
    assert state.distilled_step == 0 and not state.has_new_members


def test_broken_students_are_whole_again_and_broken_teachers_are_not(table: Table) -> None:
    state, engine = table.sit(distilling(learn={"train_students": False}), Teacher(), half)
    state, _ = run_step(state, engine, Clock())
    state, _ = run_step(replace(state, broken=frozenset({"S1", "T1"})), engine, Clock())
    assert state.broken == {"T1"}


def test_the_last_step_does_not_distil_since_the_product_is_distilled_after_it(table: Table) -> None:
    config = distilling(run={"num_steps": 2, "product": "distilled", "num_threads": 1, "device": "cpu"})
    state, reports, engine = played(table, config, half, 2)
    assert reports[-1].distilled is None and state.distilled_step == 0
    state, engine = table.sit(distilling(), Teacher(), half)
    state, _ = run_step(state, engine, Clock())
    state, report = run_step(state, engine, Clock(), is_last=True)
    assert report.distilled is None and len(state.answers.by_task) == 12


def test_answers_are_kept_only_where_something_is_distilled(table: Table) -> None:
    state, _, _ = played(table, config_of(), half, 1)
    assert not state.answers.by_task and state.answers.capacity == 0


def test_the_product_is_chosen_by_tasks_that_no_candidate_was_distilled_from(table: Table) -> None:
    config = distilling()
    state, _, _ = played(table, config, half, 3)
    asked = probe_tasks(config, state)
    used = {key for key, answer in state.answers.by_task.items() if answer.step <= 2}
    assert asked and not used & {task_key(task) for task in asked}
    assert {task.id.split("-")[0] for task in asked} == {"3"}
    before = {key: replace(answer, step=2) for key, answer in state.answers.by_task.items()}
    assert probe_tasks(config, replace(state, answers=replace(state.answers, by_task=before))) == []
    assert (num_probe_tasks(config, 43), num_probe_tasks(config_of(), 43)) == (10, 43)  # a quarter where it distils


def test_students_that_begin_with_unlike_founders_are_not_one_adapter() -> None:
    learn = {"train_students": False}
    alike, unlike = (distilling(learn=learn, population={"founders": own}) for own in (["a"], ["a", "b"]))
    assert alike.students_are_clones and not unlike.students_are_clones


@pytest.mark.parametrize(
    ("learn", "genes", "bred"), [(False, [], {"T"}), (True, [], {"S", "T"}), (False, ["temperature"], {"S", "T"})]
)
def test_students_that_are_all_one_adapter_are_neither_bred_nor_probed(
    table: Table, learn: bool, genes: list[str], bred: set[str]
) -> None:
    rules = {"enabled": True, "every_steps": 2, "replaced_frac": 0.5, "fitness": "probe", "genes": genes}
    config = distilling(learn={"train_students": learn}, evolve=rules)
    state, engine = table.sit(config, Teacher(), half)
    engine = replace(engine, sampler=lambda temperature: engine.solver)
    for _ in range(2):
        state, report = run_step(state, engine, Clock())
    assert {birth.replaced[0] for birth in report.births} == bred
    assert ("evolve/probe_rate" in report.metrics) == bool(state.probes) == ("S" in bred)
