"""The seed buffer: what the untrained base writes before the first step, shown to teachers and trained on by nobody."""

from dataclasses import replace

import torch
from scripted import Table, Teacher, config_of, garbage, wrong

from redqueen.config import ProposeConfig
from redqueen.domains.code.kinds import CODE, IDENTITY
from redqueen.domains.frames import IN
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.run.cold_start import SEED_AUTHOR, grow_seed_buffer


def test_the_bases_valid_tasks_stand_behind_the_identity_program_under_the_seeds_name(table: Table) -> None:
    state, engine = table.sit(config_of(propose={"num_seed_proposals": 3}), Teacher(), wrong)
    before = engine.store.bank.flat.clone()
    grown, refused = grow_seed_buffer(state, engine)
    assert refused == [] and sum(request.num_samples for request in engine.proposer.requests) == 6
    assert [t.kind for t in grown.buffer.tasks] == ["code_o"] + ["code_o"] * 3 + ["code_i"] * 3
    assert {t.teacher for t in grown.buffer.tasks} == {SEED_AUTHOR}
    assert len({t.id for t in grown.buffer.tasks}) == 7
    assert replace(grown, buffer=state.buffer) == state
    assert torch.equal(engine.store.bank.flat, before)


def test_the_one_who_writes_it_is_a_fresh_founder_and_so_the_base_itself(table: Table) -> None:
    state, engine = table.sit(config_of(propose={"num_seed_proposals": 1}), Teacher(), wrong)
    grow_seed_buffer(state, engine)
    slots = {request.slot for request in engine.proposer.requests}
    assert slots == {state.teachers[0].slot}
    assert all(bool((b == 0).all()) for slot in slots for _, b in engine.store.bank.factors(slot).values())


def test_without_seed_proposals_or_valid_ones_only_the_identity_program_is_there(table: Table) -> None:
    state, engine = table.sit(config_of(propose={"num_seed_proposals": 0}), Teacher(), wrong)
    assert grow_seed_buffer(state, engine)[0] is state and engine.proposer.requests == []
    state, engine = table.sit(config_of(propose={"num_seed_proposals": 2}), garbage, wrong)
    grown, refused = grow_seed_buffer(state, engine)
    assert grown.buffer.tasks == (IDENTITY,) and refused == []  # only refusals by the policy are for the journal


def test_kinds_that_the_format_has_no_words_for_are_not_asked_and_without_any_nobody_writes(table: Table) -> None:
    state, engine = table.sit(config_of(), Teacher(), wrong)
    config = engine.config.model_copy(update={"propose": ProposeConfig(domains=("maths",), num_seed_proposals=2)})
    engine = replace(engine, config=config, prompt_format=PromptFormat(FRAMES["fewshot"]))
    assert grow_seed_buffer(state, engine) == (state, []) and engine.proposer.requests == []


def test_a_seed_that_could_not_be_asked_is_left_out(table: Table) -> None:
    def long(prompt: str, slot: int, sample: int) -> str:
        return f"def f(x):\n    return list(range(x)){IN}1500"

    state, engine = table.sit(config_of(propose={"num_seed_proposals": 1}), long, wrong)
    assert [t.kind for t in grow_seed_buffer(state, engine)[0].buffer.tasks] == ["code_o", "code_o"]


def test_what_the_frozen_suite_asks_is_no_seed(table: Table) -> None:
    item = next(one.task for one in CODE.suite() if one.kind == "code_o")

    def of_the_suite(prompt: str, slot: int, sample: int) -> str:
        return f"{item.code.strip()}{IN}{item.inputs[0]}"

    state, engine = table.sit(config_of(propose={"num_seed_proposals": 1}), of_the_suite, wrong)
    assert grow_seed_buffer(state, engine)[0].buffer.tasks == (IDENTITY,)


def test_what_the_policy_refuses_of_the_seed_is_left_out_and_handed_to_the_journal(table: Table) -> None:
    config = config_of(propose={"num_seed_proposals": 2, "policy_rules": [r"x \+ [12]\b"]})
    state, engine = table.sit(config, Teacher(), wrong)
    grown, refused = grow_seed_buffer(state, engine)
    assert [(r.candidate.teacher, r.reason) for r in refused] == [(SEED_AUTHOR, "policy")] * 2
    assert [t.kind for t in grown.buffer.tasks] == ["code_o", "code_i", "code_i"]
