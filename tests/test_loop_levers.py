"""What the loop makes of the levers: probe and genes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scripted import Reply, Table, Teacher, config_of, half, right, wrong
from small_adapters import distance

from redqueen.adapters.genotype import norm
from redqueen.config import Config
from redqueen.engine import Engine
from redqueen.evaluate.external import Examiner
from redqueen.evolve.spectrum import MERGED, mean_of
from redqueen.loop import run_step
from redqueen.run.product import choose_product, merged_in_place
from redqueen.state import State, state_from_plain, state_to_plain
from redqueen.timing import Clock

EVOLVING = {"enabled": True, "every_steps": 2, "replaced_frac": 0.5, "operators": ["copy_parent"]}
FIRST_STUDENT = 2
"""The slot of S1; S2 has the next one."""


def sit(table: Table, config: Config, answer: Reply, judged: Reply | None = None) -> tuple[State, Engine]:
    """Sit down at the table; ``judged`` is what probes are answered with, if other than in play."""
    state, engine = table.sit(config, Teacher(), answer)
    judge = engine.solver if judged is None else replace(engine.solver, reply=judged)
    return state, replace(engine, sampler=lambda temperature: judge)


def by_slot(good: int, bad: Reply = wrong) -> Reply:
    return lambda prompt, slot, sample: (right if slot == good else bad)(prompt, slot, sample)


def played(state: State, engine: Engine, num_steps: int) -> tuple[State, list]:
    reports = []
    for _ in range(num_steps):
        state, report = run_step(state, engine, Clock())
        reports.append(report)
    return state, reports


def test_by_the_probe_the_student_that_solves_less_of_it_leaves_whatever_it_solved_in_play(table: Table) -> None:
    config = config_of(evolve={**EVOLVING, "fitness": "probe", "probe_tasks": 6})
    state, engine = sit(table, config, by_slot(FIRST_STUDENT), judged=by_slot(FIRST_STUDENT + 1))
    state, reports = played(state, engine, 2)
    assert [b.replaced for b in reports[1].births if b.child.startswith("S")] == ["S1"]
    assert reports[1].metrics["evolve/probe_rate"] == 0.5 and reports[1].metrics["evolve/probe_tokens"] > 0
    assert sum(one.solved_frac == 0.5 for one in state.archive.entries) == 6  # of one student in play, of both now
    assert state.probes == {"S2": 1.0} and "evolve/probe_rate" not in reports[0].metrics
    assert state_from_plain(state_to_plain(state)) == state


def test_genes_differ_among_founders_are_inherited_with_a_step_and_reach_sampler_and_learner(table: Table) -> None:
    genes = ["learning_rate", "temperature"]
    state, engine = sit(table, config_of(evolve={**EVOLVING, "genes": genes}), half)
    founders = state.by_id()
    assert len({i.genes.learning_rate for i in founders.values()}) == 4
    state, reports = played(state, engine, 2)
    for birth in reports[1].births:
        child, parent = state.by_id()[birth.child].genes, founders[birth.parents[0]].genes
        assert child.temperature / parent.temperature == pytest.approx(1.25, rel=1e-9) or (
            parent.temperature / child.temperature == pytest.approx(1.25, rel=1e-9)
        )
    asked = {request.slot: request.temperature for request in engine.solver.requests}
    assert asked == {i.slot: i.genes.temperature for i in founders.values() if i.role == "student"}


# The product ---------------------------------------------------------------------------------------------------


def product_of(table: Table, answer: Reply, **run: object) -> tuple[object, Engine]:
    state, engine = sit(table, config_of(run=run), half, judged=answer)
    state, _ = played(state, engine, 2)
    examiner = Examiner(engine, (), 1)
    before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
    product = choose_product(engine, state, examiner, [], [one.task for one in state.archive.entries])
    after = engine.store.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(t, after[name]) for name, t in before.items())
    return product, engine


def test_the_product_is_the_student_that_solves_most_of_the_last_probe(table: Table) -> None:
    product, _ = product_of(table, by_slot(FIRST_STUDENT + 1))
    assert product.name == "S2" and product.shares == {"S1": 0.0, "S2": 1.0, MERGED: 0.0}
    assert product.metrics([])["product/chosen/S2"] == 1.0 and product.metrics([])["product/share/S1"] == 0.0


def test_of_equals_the_mean_of_the_students_is_the_product(table: Table) -> None:
    product, _ = product_of(table, right)
    assert product.name == MERGED and product.shares == {"S1": 1.0, "S2": 1.0, MERGED: 1.0}


def test_a_config_may_want_the_mean_whatever_it_solves_or_no_product(table: Table) -> None:
    assert product_of(table, by_slot(FIRST_STUDENT + 1), product="merged")[0].name == MERGED
    assert product_of(table, right, product="none")[0] is None


def test_the_mean_takes_a_students_place_only_for_a_while(table: Table) -> None:
    state, engine = sit(table, config_of(), half)
    state, _ = played(state, engine, 2)
    before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
    expected = mean_of([engine.store.genotype(i.slot) for i in state.students])
    with merged_in_place(engine, state.students) as stand_in:
        inside = engine.store.genotype(stand_in.slot)
        assert distance(inside, expected) <= 1e-4 * norm(expected)
    after = engine.store.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert np.isfinite(norm(expected)) and norm(expected) > 0
