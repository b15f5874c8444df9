"""One step of self-play, with scripted teachers and students: what each phase makes of what was written."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch
from scripted import OUTPUTS, Reply, Table, Teacher, config_of, garbage, half, right, wrong

from redqueen.domains.code.kinds import CODE
from redqueen.domains.frames import IN
from redqueen.domains.registry import kind_of
from redqueen.engine import Engine
from redqueen.loop import StepReport, run_step, tasks_in
from redqueen.match import STANDARD, Winner
from redqueen.records import Attempt, Candidate, Grade, Individual, Match, Outcome, Rating, Rejection, Task
from redqueen.run.record import step_metrics
from redqueen.solve import GradedAttempts, score_games
from redqueen.state import State
from redqueen.timing import Clock

NEWCOMER = STANDARD.newcomer()


def metrics_of(report: StepReport, state: State) -> dict[str, float]:
    tasks = [v for v in report.verdicts if isinstance(v, Task)]
    return step_metrics(report, state.individuals, [kind_of(t).measure(t) for t in tasks], len(tasks), 1)


def moved_slots(engine: Engine, before: torch.Tensor) -> set[int]:
    return {slot for slot in range(len(before)) if not torch.equal(before[slot], engine.store.bank.flat[slot])}


# One ordinary step ---------------------------------------------------------------------------------------------


def test_a_step_hands_its_tasks_from_teachers_to_their_students_and_counts_itself(table: Table) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), half)
    assert (state.step, report.step) == (1, 1)
    assert sorted(m.match.teacher for m in report.games) == ["T1", "T2"]
    assert sorted(m.match.student for m in report.games) == ["S1", "S2"]
    opponent = {g.match.teacher: g.match.student for g in report.games}
    assert [(p.candidate.teacher, p.candidate.kind) for p in report.proposals] == [
        (teacher, kind) for teacher in ("T1", "T2") for kind in ("code_o", "code_o", "code_i")
    ]
    assert all(isinstance(v, Task) for v in report.verdicts)
    assert [(a.task.id, a.student.id) for a in report.graded] == [
        (p.candidate.id, opponent[p.candidate.teacher]) for p in report.proposals
    ]
    assert all(len(a.outcomes) == len(a.completions) == 4 for a in report.graded)
    assert set(report.seconds) == {"match", "propose", "verify", "solve", "learn", "distill", "evolve"}


def test_the_verifier_and_not_the_teacher_says_what_a_task_gives(table: Table) -> None:
    _, (report,), _ = table.play(config_of(), Teacher(), half)
    assert [t.outputs for t in report.verdicts if isinstance(t, Task)] == [(str(k + 1),) for k in range(1, 7)]


def test_half_right_attempts_pay_the_teacher_a_half_and_the_student_by_attempt(table: Table) -> None:
    _, (report,), _ = table.play(config_of(), Teacher(), half)
    assert [a.solve_frac for a in report.graded] == [0.5] * 6
    assert report.credit.proposal_rewards == (0.5,) * 6
    assert report.credit.attempt_rewards == ((1.0, -0.5, 1.0, -0.5),) * 6
    assert all(row == pytest.approx((1.0, -1.0, 1.0, -1.0)) for row in report.credit.attempt_advantages)


def test_only_members_with_something_to_learn_are_moved(table: Table) -> None:
    config = config_of()
    state, engine = table.sit(config, Teacher(), half)
    before = engine.store.bank.flat.clone()
    _, report = run_step(state, engine, Clock())
    # Every teacher's proposals all earned a half, so there is nothing to prefer; the students' attempts differ.
    assert moved_slots(engine, before) == {2, 3}
    assert {u.slot: u.grad_norm > 0 for u in report.updates} == {0: False, 1: False, 2: True, 3: True}
    assert all(u.ok for u in report.updates)


def test_a_frozen_role_is_not_moved(table: Table) -> None:
    state, engine = table.sit(config_of(learn={"train_students": False}), Teacher(), half)
    before = engine.store.bank.flat.clone()
    run_step(state, engine, Clock())
    assert moved_slots(engine, before) == set()


def test_valid_tasks_go_into_the_buffer_in_order_behind_the_seed(table: Table) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), half)
    assert [t.id for t in state.buffer.tasks] == ["seed", *(v.id for v in report.verdicts if isinstance(v, Task))]


def test_later_prompts_show_references_from_the_buffer(table: Table) -> None:
    _, _, engine = table.play(config_of(), Teacher(), half, num_steps=4)
    prompts = [engine.tokenizer.decode(list(r.prompt)) for r in engine.proposer.requests]
    assert "return x<|in|>" in prompts[0]  # at first there is only the identity program
    assert any("return x + " in prompt for prompt in prompts[4:])


def test_the_same_seed_plays_the_same_step_and_another_seed_another(table: Table) -> None:
    def pairs_of(seed: int) -> list[list[tuple[str, str]]]:
        _, reports, engine = table.play(config_of(run={"rng_seed": seed}), Teacher(), half, num_steps=2)
        seeds = [r.rng_seed for r in (*engine.proposer.requests, *engine.solver.requests)]
        assert len(set(seeds)) == len(seeds)
        return [[(g.match.teacher, g.match.student) for g in report.games] for report in reports]

    first = pairs_of(0)
    assert pairs_of(0) == first
    assert any(pairs_of(seed) != first for seed in (1, 2, 3))


# Ratings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "winner"), [(right, "student"), (half, "draw"), (wrong, "teacher")])
def test_who_solves_more_than_expected_wins_and_the_two_ratings_move_against_each_other(
    table: Table, answer: Reply, winner: Winner
) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), answer)
    ratings = {i.id: i.rating for i in state.individuals}
    for game in report.games:
        assert game.match.expected_win_frac == pytest.approx(0.5)
        assert (game.winner, game.num_tasks) == (winner, 3)
        teacher, student = STANDARD.update(NEWCOMER, NEWCOMER, winner)
        assert (ratings[game.match.teacher], ratings[game.match.student]) == (teacher, student)
        gain = ratings[game.match.student].mu - NEWCOMER.mu
        assert math.copysign(1, gain) * (gain != 0) == {"student": 1, "draw": 0, "teacher": -1}[winner]
        assert ratings[game.match.teacher].mu - NEWCOMER.mu == pytest.approx(-gain)


def test_a_second_step_expects_what_the_ratings_of_the_first_say(table: Table) -> None:
    config = config_of()
    state, engine = table.sit(config, Teacher(), right)
    state, _ = run_step(state, engine, Clock())
    ratings = {i.id: i.rating for i in state.individuals}
    _, report = run_step(state, engine, Clock())
    for game in report.games:
        expected = STANDARD.expected_win(ratings[game.match.student], ratings[game.match.teacher])
        assert game.match.expected_win_frac == pytest.approx(expected)
        assert expected > 0.5


def test_a_match_whose_attempts_were_all_lost_is_no_game() -> None:
    student = Individual("S1", "student", 1, NEWCOMER)
    task = Task("1-T1-0", "T1", "S1", "code_o", "def f(x): ...", ("1",), ("2",))
    lost = Outcome(Attempt(task.id, "S1", "", None), Grade(False, "infra", lost=True))
    match = Match("T1", "S1", 0.4)
    (game,) = score_games([match], [task], [GradedAttempts(task, student, (), (), (lost, lost))])
    assert (game.winner, game.solve_frac, game.num_tasks) == ("none", None, 1)


def test_a_teacher_without_a_valid_task_loses_unless_the_infrastructure_lost_them_all() -> None:
    def rejected(reason: str) -> Rejection:
        return Rejection(Candidate("1-T1-0", "T1", "S1", "code_o", "text"), reason)

    match = Match("T1", "S1", 0.4)
    (game,) = score_games([match], [rejected("infra"), rejected("syntax")], [])
    assert (game.winner, game.solve_frac, game.num_tasks) == ("student", None, 0)
    (game,) = score_games([match], [rejected("infra"), rejected("infra")], [])
    assert (game.winner, game.solve_frac, game.num_tasks) == ("none", None, 0)


# Steps in which something is missing ---------------------------------------------------------------------------


def test_a_step_without_a_valid_proposal_goes_on_and_is_counted(table: Table) -> None:
    config = config_of()
    state, engine = table.sit(config, garbage, right)
    before = engine.store.bank.flat.clone()
    after, report = run_step(state, engine, Clock())
    assert [v.reason for v in report.verdicts if isinstance(v, Rejection)] == ["unparsable"] * 6
    assert report.credit.proposal_rewards == (-1.0,) * 6
    assert report.graded == ()
    assert [g.winner for g in report.games] == ["student", "student"]
    assert moved_slots(engine, before) == set()
    assert (after.step, after.buffer.tasks) == (1, state.buffer.tasks)
    metrics = metrics_of(report, state)
    assert metrics["propose/valid_frac"] == 0.0
    assert metrics["propose/rejected/unparsable"] == 6.0
    assert math.isnan(metrics["solve/rate"])
    assert run_step(after, engine, Clock())[0].step == 2


def test_a_step_in_which_nothing_is_solved_goes_on_and_is_counted(table: Table) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), garbage)
    assert report.credit.proposal_rewards == (0.0,) * 6
    assert report.credit.attempt_rewards == ((-1.0,) * 4,) * 6
    assert [g.solve_frac for g in report.games] == [0.0, 0.0]
    metrics = metrics_of(report, state)
    assert (metrics["solve/rate"], metrics["solve/unparsable_frac"]) == (0.0, 1.0)


def test_a_step_in_which_everything_is_solved_goes_on_and_pays_no_teacher(table: Table) -> None:
    state, (report,), _ = table.play(config_of(), Teacher(), right)
    assert report.credit.proposal_rewards == (0.0,) * 6
    assert metrics_of(report, state)["solve/rate"] == 1.0


def test_a_proposal_cut_off_at_its_limit_is_unparsable_and_an_answer_cut_off_is_none(table: Table) -> None:
    _, (report,), _ = table.play(config_of(), lambda *_: None, right)
    assert {v.detail for v in report.verdicts if isinstance(v, Rejection)} == {"cut off at the token limit"}
    _, (report,), _ = table.play(config_of(), Teacher(), lambda *_: None)
    outcomes = [o for a in report.graded for o in a.outcomes]
    assert {(o.attempt.answer, o.grade.verdict) for o in outcomes} == {(None, "unparsable")}


def test_of_equal_proposals_of_all_teachers_a_drawn_one_stays_and_later_ones_are_refused(table: Table) -> None:
    def same(prompt: str, slot: int, sample: int) -> str:
        return f"def f(x):\n    return x * 7{IN}1"

    authors = set()
    for rng_seed in range(8):
        state, engine = table.sit(config_of(run={"rng_seed": rng_seed}, propose=OUTPUTS), same, half)
        state, report = run_step(state, engine, Clock())
        [task] = tasks_in(report.verdicts)
        authors.add(task.teacher)
        assert [v.reason for v in report.verdicts if isinstance(v, Rejection)] == ["duplicate"] * 3
        assert sorted(map(float, report.credit.proposal_rewards)) == [-1.0, -1.0, -1.0, 0.5]
    assert authors == {"T1", "T2"}
    state, report = run_step(state, engine, Clock())
    assert [v.reason for v in report.verdicts if isinstance(v, Rejection)] == ["duplicate"] * 4


def test_what_the_frozen_suite_asks_is_refused_and_costs_like_an_invalid_proposal(table: Table) -> None:
    item = next(one.task for one in CODE.suite() if one.kind == "code_o")

    def of_the_suite(prompt: str, slot: int, sample: int) -> str:
        return f"{item.code.strip()}{IN}{item.inputs[0]}"

    _, (report,), _ = table.play(config_of(propose=OUTPUTS), of_the_suite, right)
    assert [v.reason for v in report.verdicts if isinstance(v, Rejection)] == ["held-out"] * 4
    assert set(report.credit.proposal_rewards) == {-1.0}


def test_a_task_too_long_to_be_asked_is_refused_and_the_run_goes_on(table: Table) -> None:
    def long(prompt: str, slot: int, sample: int) -> str:
        return f"def f(x):\n    return list(range(x))[{slot + 10 * sample}:]{IN}1500"

    state, (report,), _ = table.play(config_of(), long, wrong)
    refused = [v for v in report.verdicts if isinstance(v, Rejection)]
    assert [v.candidate.kind for v in refused if v.reason == "too-long"] == ["code_i", "code_i"]
    assert state.step == 1


def test_a_task_too_long_to_be_asked_makes_no_other_a_duplicate(table: Table) -> None:
    def long_first(prompt: str, slot: int, sample: int) -> str:
        remark = "" if slot or sample else f"    # {'a long remark ' * 60}\n"
        return f"def f(x):\n{remark}    return x * 7{IN}1"

    state, (report,), _ = table.play(config_of(propose=OUTPUTS, solve={"max_prompt_tokens": 160}), long_first, half)
    refused = [v.reason for v in report.verdicts if isinstance(v, Rejection)]
    assert (
        refused == ["too-long", "duplicate", "duplicate"]
        and state.buffer.tasks[-1].code == "def f(x):\n    return x * 7\n"
    )


# Other numbers -------------------------------------------------------------------------------------------------


def test_with_more_students_than_teachers_the_rest_sit_the_step_out(table: Table) -> None:
    config = config_of(population={"num_teachers": 1, "num_students": 3})
    state, (report,), _ = table.play(config, Teacher(), right)
    (game,) = report.games
    assert {a.student.id for a in report.graded} == {game.match.student}
    idle = [i for i in state.students if i.id != game.match.student]
    assert [i.rating for i in idle] == [NEWCOMER] * 2


def test_with_more_teachers_than_students_one_student_meets_several(table: Table) -> None:
    config = config_of(population={"num_teachers": 3, "num_students": 1})
    state, (report,), _ = table.play(config, Teacher(), right)
    assert [(g.match.teacher, g.match.student) for g in report.games] == [("T1", "S1"), ("T2", "S1"), ("T3", "S1")]
    assert [a.task.teacher for a in report.graded] == ["T1"] * 3 + ["T2"] * 3 + ["T3"] * 3
    assert state.by_id()["S1"].rating.sigma < state.by_id()["T1"].rating.sigma  # it has played more


def test_all_pairs_asks_every_student_and_pays_the_teacher_by_their_mean(table: Table) -> None:
    def by_student(prompt: str, slot: int, sample: int) -> str:
        return right(prompt, slot, sample) if slot == 2 or sample == 0 else wrong(prompt, slot, sample)

    _, (report,), _ = table.play(config_of(match={"rule": "all_pairs"}), Teacher(), by_student)
    assert [(g.match.teacher, g.match.student, g.solve_frac) for g in report.games] == [
        ("T1", "S1", 1.0),
        ("T1", "S2", 0.25),
        ("T2", "S1", 1.0),
        ("T2", "S2", 0.25),
    ]
    assert {p.candidate.student for p in report.proposals} == {"S1,S2"}
    assert len(report.graded) == 12
    assert report.credit.proposal_rewards == (1 - fmean((1.0, 0.25)),) * 6


def test_the_single_agent_proposes_and_solves_with_one_adapter_and_is_not_rated(table: Table) -> None:
    config = config_of(population={"num_teachers": 1, "num_students": 1, "single": True}, evolve={"enabled": True})
    state, engine = table.sit(config, Teacher(), half)
    before = engine.store.bank.flat.clone()
    for _ in range(10):
        state, report = run_step(state, engine, Clock())
        (game,) = report.games
        assert (game.match.teacher, game.match.student, game.winner) == ("A1", "A1", "none")
        assert report.births == ()
    assert {r.slot for r in (*engine.proposer.requests, *engine.solver.requests)} == {0}
    assert moved_slots(engine, before) == {0}
    assert state.individuals[0].rating == NEWCOMER


# Evolution -----------------------------------------------------------------------------------------------------

EVOLVING = {"enabled": True, "every_steps": 2, "replaced_frac": 0.5, "operators": ["copy_parent"]}


def test_every_k_steps_the_weakest_of_each_role_gives_its_slot_to_a_child_of_the_fittest(table: Table) -> None:
    def by_student(prompt: str, slot: int, sample: int) -> str:
        return right(prompt, slot, sample) if slot == 2 and sample else wrong(prompt, slot, sample)

    config = config_of(evolve=EVOLVING)
    state, engine = table.sit(config, Teacher(), by_student)
    state, report = run_step(state, engine, Clock())
    assert report.births == ()
    middle = state
    state, report = run_step(state, engine, Clock())
    assert [(b.child, b.replaced) for b in report.births][1] == ("S2.2", "S2")
    assert [b.parents for b in report.births][1] == ("S1",)
    assert {b.operator for b in report.births} == {"copy_parent"}
    teacher = report.births[0].replaced
    assert teacher in ("T1", "T2") and report.births[0].child == f"{teacher}.2"
    assert [(i.slot, i.role) for i in state.individuals] == [(i.slot, i.role) for i in middle.individuals]
    child = state.by_id()["S2.2"]
    assert (child.slot, child.born_step, child.parents) == (3, 2, ("S1",))
    assert child.rating == state.by_id()["S1"].rating
    assert report.newborns == tuple(i for i in state.individuals if i.born_step == 2)


def test_a_copied_child_acts_as_its_parent_does_and_begins_with_a_fresh_optimiser(table: Table) -> None:
    state, reports, engine = table.play(config_of(evolve=EVOLVING), Teacher(), half, num_steps=2)
    birth = next(b for b in reports[1].births if b.child.startswith("S"))
    child, parent = state.by_id()[birth.child], state.by_id()[birth.parents[0]]
    assert birth.relative_change == pytest.approx(0.0, abs=1e-6)
    for name, (a, b) in engine.store.bank.factors(child.slot).items():
        a_parent, b_parent = engine.store.bank.factors(parent.slot)[name]
        torch.testing.assert_close(b @ a, b_parent @ a_parent, rtol=1e-4, atol=1e-6)
    slots = {key.split(".")[0] for key in engine.learner.state_dict()}
    assert str(parent.slot) in slots and str(child.slot) not in slots


def test_a_child_learns_on_in_its_slot(table: Table) -> None:
    state, engine = table.sit(config_of(evolve=EVOLVING), Teacher(), half)
    for _ in range(2):
        state, _ = run_step(state, engine, Clock())
    child = next(i for i in state.students if i.born_step == 2)
    before = engine.store.bank.flat.clone()
    state, report = run_step(state, engine, Clock())
    assert child.slot in moved_slots(engine, before)
    assert child.id in {a.student.id for a in report.graded}


def test_nobody_is_replaced_after_the_last_step_or_with_evolution_switched_off(table: Table) -> None:
    _, reports, _ = table.play(config_of(evolve=EVOLVING, run={"num_steps": 2}), Teacher(), half, num_steps=2)
    assert [r.births for r in reports] == [(), ()]
    _, reports, _ = table.play(config_of(evolve={**EVOLVING, "enabled": False}), Teacher(), half, num_steps=2)
    assert [r.births for r in reports] == [(), ()]


def test_a_role_of_one_is_not_replaced_for_its_fitness(table: Table) -> None:
    config = config_of(population={"num_teachers": 1, "num_students": 3}, evolve=EVOLVING)
    _, reports, _ = table.play(config, Teacher(), half, num_steps=2)
    assert [b.replaced[0] for b in reports[1].births] == ["S"]


def test_a_member_whose_update_is_not_finite_is_marked_left_as_it_was_and_the_first_to_leave(table: Table) -> None:
    state, engine = table.sit(config_of(evolve=EVOLVING), Teacher(), half)
    name, (_, b) = next(iter(engine.store.bank.factors(2).items()))
    b.fill_(float("nan"))
    best = replace(state.individuals[2], rating=Rating(60.0, 1.0))
    state = replace(state, individuals=(*state.individuals[:2], best, state.individuals[3]))
    before = engine.store.bank.flat.clone()
    state, report = run_step(state, engine, Clock())
    assert {u.slot: u.ok for u in report.updates}[2] is False
    assert state.broken == {"S1"}
    assert torch.equal(engine.store.bank.flat[2].nan_to_num(7.0), before[2].nan_to_num(7.0))
    assert not torch.equal(engine.store.bank.flat[3], before[3])
    state, report = run_step(state, engine, Clock())
    assert [(b.child, b.replaced, b.parents) for b in report.births][1] == ("S1.2", "S1", ("S2",))
    assert state.broken == frozenset()
    assert engine.store.bank.factors(2)[name][1].isfinite().all()


def test_a_broken_member_is_sound_again_once_it_has_been_stepped_and_no_sooner(table: Table) -> None:
    """Without evolution nobody is replaced: one bad update would keep a student out of hall and product for good."""
    for answer, still in ((half, frozenset()), (right, frozenset({"S1"}))):  # of equal rewards nothing is learned
        state, engine = table.sit(config_of(evolve={**EVOLVING, "enabled": False}), Teacher(), answer)
        state, report = run_step(replace(state, broken=frozenset({"S1"})), engine, Clock())
        assert (2 in {u.slot for u in report.updates if u.stepped}) is not bool(still)
        assert state.broken == still


def test_a_broken_member_that_is_alone_in_its_role_gives_its_place_to_a_fresh_founder(table: Table) -> None:
    config = config_of(population={"num_teachers": 3, "num_students": 1}, evolve=EVOLVING)
    state, engine = table.sit(config, Teacher(), right)
    state = replace(state, broken=frozenset({"S1"}), step=1)
    state, report = run_step(state, engine, Clock())
    birth = next(b for b in report.births if b.replaced == "S1")
    assert (birth.child, birth.parents, birth.operator) == ("S1.2", (), "founder")
    assert all(bool((b == 0).all()) for _, b in engine.store.bank.factors(3).values())  # it is the base model
