"""Before step 1 a run says whether its base can begin, and what would do better where it cannot."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from scripted import Reply, Scripted, Table, Teacher, config_of, garbage, right, wrong

from redqueen.adapters.memory import fit_limits
from redqueen.domains.code.prompts_compact import NEW
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import num_proposals
from redqueen.errors import UserError
from redqueen.records import BASE_SLOT, Completion, Request
from redqueen.run.cold_start import check_cold_start

ASKED = {"num_check_proposals": 6, "num_proposals": {"code_o": 2, "code_i": 1, "code_f": 0}}


def test_a_base_that_writes_and_solves_is_measured_and_not_warned_of(table: Table) -> None:
    state, engine = table.sit(config_of(propose=ASKED), Teacher(), right)
    said: list[str] = []
    found = check_cold_start(state, engine, said.append)
    assert [(one.kind, one.num_proposals, one.num_valid, one.num_cut_off) for one in found] == [
        ("code_o", 6, 6, 0),
        ("code_i", 6, 6, 0),
    ]
    assert all(one.num_right == one.num_attempts == 6 * engine.config.solve.num_attempts for one in found)
    assert "cold start, code_o: 6 of 6 proposals valid, 24 of 24 attempts right" in said
    assert not [line for line in said if line.startswith("warning")]
    assert {request.slot for request in engine.proposer.requests + engine.solver.requests} == {BASE_SLOT}


def test_each_kind_is_asked_as_often_whatever_the_shares_of_the_domains(table: Table) -> None:
    shares = {"num_check_proposals": 4, "num_of_each_kind": 32, "domains": {"code": 0.99, "maths": 0.01}}
    state, engine = table.sit(config_of(propose=shares), garbage, wrong)
    found = check_cold_start(state, replace(engine, sampler=lambda *given: engine.solver), lambda line: None)
    assert {one.kind for one in found} == set(num_proposals(engine.config.propose))
    assert [one.num_proposals for one in found] == [4] * len(found)


def test_a_base_that_solves_nothing_is_warned_of(table: Table) -> None:
    config = config_of(propose={**ASKED, "num_check_proposals": 5})  # 20 attempts of each kind, the fewest that tell
    state, engine = table.sit(config, Teacher(), wrong)
    said: list[str] = []
    check_cold_start(state, engine, said.append)
    assert [line for line in said if line.startswith("warning")] == [
        f"warning: under 10% of the attempts at {kind} are right: students learn little from it; try another "
        f"model.prompt_format, a larger model.base, or fewer {kind} in propose.num_proposals"
        for kind in ("code_o", "code_i")
    ]


def test_a_few_wrong_attempts_are_told_and_not_warned_of(table: Table) -> None:
    state, engine = table.sit(config_of(propose={**ASKED, "num_check_proposals": 4}), Teacher(), wrong)
    said: list[str] = []
    check_cold_start(state, engine, said.append)
    assert "cold start, code_o: 4 of 4 proposals valid, 0 of 16 attempts right (too few to tell)" in said
    assert not [line for line in said if line.startswith("warning")]


def test_where_nothing_is_valid_the_temperature_that_would_do_better_is_named(table: Table) -> None:
    state, engine = table.sit(config_of(propose=ASKED), garbage, wrong)
    tried = []

    def sampler(temperature: float, max_new_tokens: int, stops: tuple[str, ...]) -> Scripted:
        tried.append((temperature, max_new_tokens, stops))
        return Scripted(engine.tokenizer, Teacher() if temperature == 0.6 else garbage)

    said: list[str] = []
    check_cold_start(state, replace(engine, sampler=sampler), said.append)
    assert "warning: under 10% of the proposals of code_o are valid: teachers learn little from it" in said
    assert (0.6, engine.limits.propose_new_tokens, ()) in tried
    assert said[-1].startswith("12 proposals are valid with model.prompt_format = compact and temperature 0.6")
    asked = [line.partition(",")[2].split(" at temperature ") for line in said if " at temperature " in line]
    by_format = {name: [rest for other, rest in asked if other == name] for name, _ in asked}
    assert len(by_format) > 1, "other formats were tried too"
    for tries in by_format.values():
        assert not any(": 0 proposals" in rest for rest in tries[:-1]), "asked on after none was valid"


def first_of(teach: Teacher, num: int) -> Reply:
    """Write one valid program in ``num`` proposals, and otherwise what is not one."""
    calls = count()
    return lambda *asked: (garbage if next(calls) % num else teach)(*asked)


@pytest.mark.parametrize(("num", "is_enough"), [(10, True), (11, False)])
def test_a_tenth_of_the_proposals_is_enough(num: int, is_enough: bool, table: Table) -> None:
    config = config_of(propose={**ASKED, "num_check_proposals": num})
    state, engine = table.sit(config, first_of(Teacher(), num), right)
    said: list[str] = []
    better = replace(engine, sampler=lambda *_: Scripted(engine.tokenizer, Teacher()))
    found = check_cold_start(state, better, said.append)
    assert [one.num_valid for one in found] == [1, 1]
    assert any(line.startswith("warning") for line in said) == (not is_enough)
    assert any("compact at temperature 0.8" in line for line in said) == (not is_enough)
    assert not any("compact at temperature 1.0" in line for line in said), "that is the run's own setting"


def test_one_kind_without_valid_proposals_is_enough_to_try_other_settings(table: Table) -> None:
    def outputs_only(prompt: str, slot: int, sample: int) -> str | None:
        if prompt.endswith(NEW["code_o"]):
            return teach(prompt, slot, sample)
        return garbage(prompt, slot, sample) if sample else None  # cut off: half of them, which is not most

    teach = Teacher()
    state, engine = table.sit(config_of(propose=ASKED), outputs_only, right)
    nothing = replace(engine, sampler=lambda *_: Scripted(engine.tokenizer, garbage))
    said: list[str] = []
    found = check_cold_start(state, nothing, said.append)
    assert [(one.num_valid, one.num_cut_off) for one in found] == [(6, 0), (0, 3)]
    assert [line for line in said if line.startswith("warning")] == [
        "warning: under 10% of the proposals of code_i are valid: teachers learn little from it"
    ]
    assert said[-1].startswith("no setting tried did better")


def test_another_base_is_not_advised_to_take_the_compact_format(table: Table) -> None:
    state, engine = table.sit(config_of(propose=ASKED), garbage, wrong)
    fewshot = PromptFormat(FRAMES["fewshot"], engine.config.verify)
    said: list[str] = []
    nothing = replace(engine, prompt_format=fewshot, sampler=lambda *_: Scripted(engine.tokenizer, garbage))
    check_cold_start(state, nothing, said.append)
    assert any("cold start, chat at temperature" in line for line in said)
    assert not any("compact" in line for line in said)


def test_at_most_eight_tasks_of_a_kind_are_attempted(table: Table) -> None:
    state, engine = table.sit(config_of(propose={**ASKED, "num_check_proposals": 10}), Teacher(), right)
    found = check_cold_start(state, engine, lambda line: None)
    num = 8 * engine.config.solve.num_attempts
    assert [(one.num_valid, one.num_attempts, one.num_right) for one in found] == [(10, num, num)] * 2


def test_a_format_whose_prompts_do_not_fit_the_base_is_passed_over(table: Table) -> None:
    state, engine = table.sit(config_of(propose=ASKED), garbage, wrong)

    class Strict(Scripted):
        def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
            if max(len(request.prompt) for request in requests) > 400:  # as those of examples are here
                raise UserError("a prompt of 878 tokens exceeds the base model's positions; shorten it")
            return super().sample(requests)

    said: list[str] = []
    check_cold_start(state, replace(engine, sampler=lambda *_: Strict(engine.tokenizer, garbage)), said.append)
    passed_over = [line for line in said if "cannot be asked of this base" in line]
    assert passed_over and all("878 tokens" in line for line in passed_over)
    assert said[-1].startswith("no setting tried did better")


def said_of_garbage(table: Table, max_new_tokens: int) -> tuple[list[str], list[int]]:
    """What the check says of a base whose texts are all cut off, and how many of each kind were."""
    config = config_of(propose={**ASKED, "max_new_tokens": max_new_tokens})
    state, engine = table.sit(config, lambda *_: None, wrong)
    limits = fit_limits(config, engine.limits.max_positions)
    said: list[str] = []
    nothing = replace(engine, limits=limits, sampler=lambda *_: Scripted(engine.tokenizer, garbage))
    found = check_cold_start(state, nothing, said.append)
    return said, [one.num_cut_off for one in found]


def test_proposals_that_are_cut_off_are_told_apart_from_those_that_are_wrong(table: Table) -> None:
    said, num_cut_off = said_of_garbage(table, 64)
    assert num_cut_off == [6, 6]
    remedy = "raise propose.max_new_tokens; a proposal gets at most half of the positions of model.base"
    assert f"warning: most are cut off at 64 tokens: {remedy}" in said
    assert said[-1].startswith("no setting tried did better") and said[-1].endswith(remedy)


def test_no_check_is_made_when_none_is_asked_for(table: Table) -> None:
    state, engine = table.sit(config_of(propose={"num_check_proposals": 0}), Teacher(), right)
    assert check_cold_start(state, engine, pytest.fail) == [] and engine.proposer.requests == []
