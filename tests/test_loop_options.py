"""What the loop makes of its options: other fitness and replacement, a hall of fame, diversity terms, a policy."""

import json
from dataclasses import fields, replace

import pytest
import torch
from scripted import OUTPUTS, Table, Teacher, config_of, half, right, wrong

from redqueen.errors import UserError
from redqueen.evolve.generation import check_rules
from redqueen.loop import run_step
from redqueen.match import STANDARD
from redqueen.records import Rating, Rejection
from redqueen.state import state_from_plain, state_to_plain
from redqueen.timing import Clock

EVOLVING = {"enabled": True, "every_steps": 2, "replaced_frac": 0.5, "operators": ["copy_parent"]}


# Fitness and replacement ---------------------------------------------------------------------------------------


def test_by_reward_the_student_that_solves_less_leaves_though_its_rating_is_the_better(table: Table) -> None:
    def by_slot(prompt: str, slot: int, sample: int) -> str:
        return right(prompt, slot, sample) if slot == 2 else wrong(prompt, slot, sample)

    state, engine = table.sit(config_of(evolve={**EVOLVING, "fitness": "reward"}), Teacher(), by_slot)
    strong = replace(state.individuals[3], rating=Rating(60.0, 1.0))
    state = replace(state, individuals=(*state.individuals[:3], strong))
    for _ in range(2):
        state, report = run_step(state, engine, Clock())
    assert [b.replaced for b in report.births if b.child.startswith("S")] == ["S2"]
    assert state.rewards["S1"] == (1.0, 1.0) and "S2" not in state.rewards


def test_by_rating_it_is_the_other_that_leaves(table: Table) -> None:
    def by_slot(prompt: str, slot: int, sample: int) -> str:
        return right(prompt, slot, sample) if slot == 2 else wrong(prompt, slot, sample)

    state, engine = table.sit(config_of(evolve=EVOLVING), Teacher(), by_slot)
    strong = replace(state.individuals[3], rating=Rating(60.0, 1.0))
    state = replace(state, individuals=(*state.individuals[:3], strong))
    for _ in range(2):
        state, report = run_step(state, engine, Clock())
    assert [b.replaced for b in report.births if b.child.startswith("S")] == ["S1"]


def test_constants_of_an_operator_reach_the_child_and_its_lineage(table: Table) -> None:
    evolve = {**EVOLVING, "operators": ["M4"], "constants": {"M4": {"mutation_std": 0.0}}}
    _, reports, _ = table.play(config_of(evolve=evolve), Teacher(), half, num_steps=2)
    birth = next(b for b in reports[1].births if b.child.startswith("S"))
    assert birth.constants == {"mutation_std": 0.0}
    assert birth.relative_change == pytest.approx(0.0, abs=1e-6)
    assert birth.layer_changes and all(c == pytest.approx(0.0, abs=1e-6) for c in birth.layer_changes.values())


def test_a_constant_that_an_operator_does_not_have_is_refused_before_the_run() -> None:
    with pytest.raises(UserError, match=r"evolve\.constants: operator M4 has no constant 'strength'"):
        check_rules(config_of(evolve={"constants": {"M4": {"strength": 1.0}}}))
    with pytest.raises(UserError, match="constants names 'M99', which is not an operator of the run"):
        config_of(evolve={"constants": {"M99": {}}})


@pytest.mark.parametrize("field", ["operators", "fitness"])
def test_an_operator_or_a_fitness_that_cannot_be_imported_is_refused_before_the_run(field: str) -> None:
    named = ["M4", "nowhere:mine"] if field == "operators" else "nowhere:mine"
    with pytest.raises(UserError, match=rf"evolve\.{field}: nowhere:mine cannot be imported"):
        check_rules(config_of(evolve={field: named}))


def test_more_leading_components_than_an_adapter_has_are_refused_before_the_run() -> None:
    evolve = {"constants": {"X3": {"num_leading": 4}}}
    check_rules(config_of(evolve=evolve, population={"lora_rank": 4}))
    with pytest.raises(UserError, match=r"evolve\.constants\.X3\.num_leading is 4, and an adapter has 3 components"):
        check_rules(config_of(evolve=evolve, population={"lora_rank": 3}))


def test_crossovers_alone_are_refused_where_one_member_of_a_role_survives() -> None:
    def check(num_teachers: int, num_students: int, *added: str, **changes: dict[str, object]) -> None:
        population = {"num_teachers": num_teachers, "num_students": num_students}
        evolve = {"enabled": True, "operators": ["X1", "linear_0_5", *added]}
        check_rules(config_of(**{"evolve": evolve, "population": population, **changes}))

    with pytest.raises(UserError, match="only one of a role's 2 members survives a generation: add an operator"):
        check(2, 4)
    with pytest.raises(UserError, match="a role's 2 members"):
        check(4, 2)
    for num_members in (1, 3, 4):  # of one none leaves
        check(num_members, num_members)
    check(2, 2, "M1")
    check(2, 2, evolve={"enabled": False, "operators": ["X1"]})
    clones: dict[str, dict[str, object]] = {
        "distill": {"every_steps": 4}, "run": {"product": "distilled"}, "learn": {"train_students": False},
    }  # fmt: skip
    check(4, 2, **clones)  # students that are one adapter are not bred


# Broken members ------------------------------------------------------------------------------------------------


def test_a_broken_single_agent_begins_anew_from_the_base_at_the_next_generation(table: Table) -> None:
    config = config_of(population={"num_teachers": 1, "num_students": 1, "single": True}, evolve=EVOLVING)
    state, engine = table.sit(config, Teacher(), wrong)  # nobody is stepped, so nobody gets sound again
    state, _ = run_step(state, engine, Clock())
    state = replace(state, broken=frozenset({"A1"}))
    state, report = run_step(state, engine, Clock())
    (birth,) = report.births
    assert (birth.child, birth.replaced, birth.parents, birth.operator) == ("A1.2", "A1", (), "founder")
    assert [(i.id, i.role, i.slot) for i in state.individuals] == [("A1.2", "both", 0)]
    assert all(bool((b == 0).all()) for _, b in engine.store.bank.factors(0).values())
    assert state.broken == frozenset()
    assert not any(key.startswith("0.") for key in engine.learner.state_dict())


# Hall of fame --------------------------------------------------------------------------------------------------

HALL = {"hall_of_fame_frac": 1.0, "hall_of_fame_size": 2}


def test_the_fittest_of_each_role_enters_the_hall_as_a_copy_that_is_never_trained(table: Table) -> None:
    config = config_of(match=HALL, evolve={**EVOLVING, "enabled": False})
    state, engine = table.sit(config, Teacher(), half)
    for _ in range(2):
        state, report = run_step(state, engine, Clock())
    entered = {e.member[0]: e for e in report.admitted}
    assert set(entered) == {"T", "S"}
    assert {e.individual.slot for e in report.admitted} == {4, 6}
    student = entered["S"]
    assert student.individual.id == f"{student.member}@2"
    original = state.by_id()[student.member].slot
    assert torch.equal(engine.store.bank.flat[student.individual.slot], engine.store.bank.flat[original])
    frozen = engine.store.bank.flat[4:].clone()
    for _ in range(3):
        state, report = run_step(state, engine, Clock())
        assert {u.slot for u in report.updates} <= {0, 1, 2, 3}
    past = engine.store.bank.flat[[4, 6]]
    assert torch.equal(past, frozen[[0, 2]])
    assert not torch.equal(engine.store.bank.flat[original], frozen[2])


def test_past_members_play_and_are_recorded_while_their_ratings_stay(table: Table) -> None:
    config = config_of(match=HALL, evolve={**EVOLVING, "enabled": False})
    state, engine = table.sit(config, Teacher(), half)
    for _ in range(2):
        state, _ = run_step(state, engine, Clock())
    before = {i.id: i.rating for i in (*state.individuals, *state.past)}
    seen = set()
    for _ in range(3):  # until the hall thins itself out at step 6
        previous = state.past
        state, report = run_step(state, engine, Clock())
        for game in report.games:
            ids = {game.match.teacher, game.match.student}
            past = {name for name in ids if "@" in name}
            assert len(past) == 1
            seen |= past
        assert set(previous) <= set(state.past)
        written = {p.candidate.teacher for p in report.proposals}
        assert written == {g.match.teacher for g in report.games}
        assert {a.student.id for a in report.graded} <= {g.match.student for g in report.games}
        for entry in state.past:
            assert entry.rating == before.setdefault(entry.id, entry.rating)
    assert {name[0] for name in seen} == {"T", "S"}


def test_without_a_hall_nobody_enters_and_no_slot_is_kept() -> None:
    config = config_of(evolve=EVOLVING)
    assert (config.num_hall_places, config.num_adapters) == (0, 4)
    assert config_of(match=HALL).num_adapters == 8
    with pytest.raises(UserError, match="hall_of_fame_frac needs two roles"):
        config_of(population={"num_teachers": 1, "num_students": 1, "single": True}, match=HALL)


# Diversity terms and policy ----------------------------------------------------------------------------------


def test_a_new_class_is_paid_more_the_first_time_and_no_more_the_second(table: Table) -> None:
    config = config_of(learn={"novelty_bonus": 0.6}, propose=OUTPUTS)
    _, reports, _ = table.play(config, Teacher(), half, num_steps=2)
    assert {p.behaviour_class for r in reports for p in r.crowding.values()} == {"code_o int->int plain"}
    # Four tasks of the new class share the bonus of 0.6.
    assert reports[0].credit.proposal_rewards == pytest.approx((0.5 + 0.15,) * 4)
    assert reports[1].credit.proposal_rewards == pytest.approx((0.5,) * 4)


def test_a_class_that_all_write_costs_its_teachers(table: Table) -> None:
    config = config_of(learn={"crowding_penalty": 0.2}, propose=OUTPUTS)
    _, (report,), _ = table.play(config, Teacher(), half)
    assert report.credit.proposal_rewards == pytest.approx((0.3,) * 4)


def test_running_baselines_are_carried_to_the_next_step(table: Table) -> None:
    state, (report,), _ = table.play(config_of(learn={"teacher_baseline": "running"}), Teacher(), half)
    assert state.baselines == report.credit.baselines
    assert state.baselines.by_teacher["T1"] == {"code_o": (0.5, 0.25), "code_i": (0.5, 0.25)}


def test_without_counter_pressures_their_measures_are_there_and_cost_nothing(table: Table) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), half)
    assert report.credit.proposal_rewards == (0.5,) * 6
    assert {p.novelty for p in report.crowding.values()} == {1 / 4, 1 / 2}  # four code_o, two code_i
    assert state.memory.ever == {"code_o int->int plain", "code_i int->int plain"}
    assert {t: sum(c.values()) for t, c in state.memory.by_teacher.items()} == {"T1": 3.0, "T2": 3.0}


def test_what_the_policy_forbids_is_refused_and_costs_like_an_invalid_proposal(table: Table) -> None:
    config = config_of(propose={"policy_rules": [r"x \+ [1-3]\b"]})
    state, (report,), _ = table.play(config, Teacher(), half)
    refused = [v for v in report.verdicts if isinstance(v, Rejection)]
    assert [v.reason for v in refused] == ["policy"] * 3
    assert refused[0].detail == r"matches the rule x \+ [1-3]\b"
    assert report.credit.proposal_rewards == (-1.0,) * 3 + (0.5,) * 3
    assert len(state.buffer.tasks) == 1 + 3


def test_the_ratings_of_newcomers_do_not_depend_on_the_options(table: Table) -> None:
    state, _ = table.sit(config_of(match=HALL), Teacher(), half)
    assert {i.rating for i in state.individuals} == {STANDARD.newcomer()}


# Resuming ------------------------------------------------------------------------------------------------------


def test_with_every_option_on_a_game_taken_up_from_its_checkpoint_ends_like_the_one_that_went_on(table: Table) -> None:
    config = config_of(
        match={"hall_of_fame_frac": 0.6, "hall_of_fame_size": 1},
        propose={"policy_rules": [r"x \+ 1[0-3]\b"]},
        learn={"novelty_bonus": 0.3, "crowding_penalty": 0.2, "size_guard_frac": 1.0},
        evolve={
            **EVOLVING,
            "operators": ["M4"],
            "constants": {"M4": {"mutation_std": 0.1}},
            "fitness": "reward",
            "protected_steps": 3,
            "child_rating": "inherit",
        },
    )
    teacher = Teacher()
    state, engine = table.sit(config, teacher, half)
    for _ in range(4):
        state, _ = run_step(state, engine, Clock())
    kept = (
        json.dumps(state_to_plain(state)),
        engine.store.bank.flat.clone(),
        {name: tensor.clone() for name, tensor in engine.learner.state_dict().items()},
        teacher.num_written,
    )
    first = [run_step(state, engine, Clock())]
    first.append(run_step(first[0][0], engine, Clock()))
    ended = engine.store.bank.flat.clone()

    text, flat, moments, teacher.num_written = kept
    engine.store.bank.flat.copy_(flat)
    engine.learner.load_state(moments)
    second = [run_step(state_from_plain(json.loads(text)), engine, Clock())]
    second.append(run_step(second[0][0], engine, Clock()))
    for (state_1, report_1), (state_2, report_2) in zip(first, second, strict=True):
        for field in fields(report_1):
            if field.name != "seconds":
                assert getattr(report_1, field.name) == getattr(report_2, field.name), field.name
        for field in fields(state_1):
            assert getattr(state_1, field.name) == getattr(state_2, field.name), field.name
    assert torch.equal(ended, engine.store.bank.flat)
    assert first[-1][1].births and first[-1][1].admitted
    assert any("@" in g.match.teacher + g.match.student for _, report in first for g in report.games)
