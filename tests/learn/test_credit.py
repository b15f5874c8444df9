"""Credit: rewards and advantages of a hand-made step, computed by hand."""

import math
from dataclasses import replace

import pytest

from redqueen.config import LearnConfig
from redqueen.learn.rewards import Baselines, Credit, add_latest_rewards, assign_credit, solve_fracs
from redqueen.propose.proposing import Proposal
from redqueen.records import Attempt, Candidate, Completion, Grade, Individual, Outcome, Rating, Rejection, Task
from redqueen.solve import GradedAttempts

RIGHT, WRONG, UNREADABLE = Grade(True, "ok"), Grade(False, "ok"), Grade(False, "unparsable")
LOST = Grade(False, "infra", lost=True)
CONFIG = LearnConfig()
STUDENTS = {name: Individual(name, "student", slot, Rating(25, 8)) for name, slot in (("S1", 2), ("S2", 3))}


def completion(mark: int) -> Completion:
    return Completion((mark, 1), (-0.5, -0.1), 0.3, True)


def proposal(
    name: str, slot: int = 0, kind: str = "code_o", prompt: tuple[int, ...] = (5, 6), mark: int = 9
) -> Proposal:
    return Proposal(Candidate(name, f"T{slot + 1}", "S1", kind, "text"), slot, prompt, completion(mark))


def task(name: str, teacher: str = "T1", kind: str = "code_o") -> Task:
    return Task(name, teacher, "S1", kind, "def f(x):\n    return x\n", ("1",), ("1",))


def answered(of: Task, grades: list[Grade], student: str = "S1") -> GradedAttempts:
    outcomes = tuple(Outcome(Attempt(of.id, student, "text", "1"), grade) for grade in grades)
    completions = tuple(completion(20 + i) for i in range(len(grades)))
    return GradedAttempts(of, STUDENTS[student], (7, 8), completions, outcomes)


def credit_of(
    verdicts: dict[str, Task | Rejection],
    answers: list[GradedAttempts],
    config: LearnConfig = CONFIG,
    **proposals: Proposal,
) -> Credit:
    written = [proposals.get(name, proposal(name)) for name in verdicts]
    return assign_credit(written, list(verdicts.values()), answers, config)


def rejected(name: str, reason: str = "syntax") -> Rejection:
    return Rejection(proposal(name).candidate, reason)


def test_a_task_that_can_be_guessed_pays_its_teacher_only_beyond_chance() -> None:
    guessed, solved, open_ = (replace(task(name), chance=chance) for name, chance in (("g", 0.5), ("s", 0.5), ("o", 0)))
    credit = credit_of(
        {"g": guessed, "s": solved, "o": open_},
        [
            answered(guessed, [RIGHT] * 6 + [WRONG] * 2),
            answered(solved, [RIGHT] * 7 + [WRONG]),
            answered(open_, [RIGHT] * 6 + [WRONG] * 2),
        ],
    )
    assert credit.proposal_rewards == (0.0, 0.25, 0.25)  # 6 of 8 may be luck; 7 of 8 are (0.875 - 0.5) / 0.5 = 0.75


def test_whether_a_solve_rate_is_luck_depends_on_the_attempts_of_all_students_that_were_not_lost() -> None:
    shared, lossy = (replace(task(name), chance=0.5) for name in ("s", "l"))
    answers = [
        answered(shared, [RIGHT] * 4, "S1"),
        answered(shared, [RIGHT] * 3 + [WRONG], "S2"),
        answered(lossy, [RIGHT] * 6 + [WRONG] * 2 + [LOST] * 8),
    ]
    # 7 of 8 are beyond 0.791, the bound of 8 attempts, and not beyond 0.911, that of 4. 6 of 8 are beyond 0.706, the
    # bound of 16 attempts, but 8 were lost.
    assert credit_of({"s": shared, "l": lossy}, answers).proposal_rewards == (0.25, 0.0)


def test_running_baselines_are_those_before_the_step_and_keep_the_kinds_that_were_not_written() -> None:
    before = Baselines({"T1": {"code_o": (0.0, 0.25), "code_f": (-1.0, 1.0)}})
    one, config = task("a"), LearnConfig(teacher_baseline="running")
    answers = [answered(one, [RIGHT] * 3 + [WRONG])]  # earns 1/4
    credit = assign_credit([proposal("a")], [one], answers, config, baselines=before)
    assert credit.proposal_advantages == pytest.approx((0.5,))  # (1/4 - 0) / sqrt(1/4)
    after = credit.baselines.by_teacher["T1"]
    assert after["code_o"] == pytest.approx((0.1 * 0.25, 0.9 * 0.25 + 0.1 * 0.0625))
    assert after["code_f"] == (-1.0, 1.0)


def test_the_mean_rewards_of_the_last_steps_are_kept_for_those_that_are_asked_for() -> None:
    latest = {"S1": (0.1, 0.2), "S2": (0.3,), "S3": (0.4,)}
    found = add_latest_rewards(latest, ["S1", "S2", "S4"], {"S1": (1.0, -0.5), "S3": (1.0,)}, num_kept=2)
    assert found == {"S1": (0.2, 0.25), "S2": (0.3,), "S4": ()}


def test_rewards_and_advantages_of_one_teachers_proposals_are_those_worked_out_by_hand() -> None:
    easy, hard = task("easy"), task("hard")
    credit = credit_of(
        {"easy": easy, "bad": rejected("bad"), "hard": hard},
        [answered(easy, [RIGHT, RIGHT, RIGHT, WRONG]), answered(hard, [WRONG, WRONG, WRONG, UNREADABLE])],
    )
    # s = 3/4 earns 1/4, invalid costs 1, s = 0 earns 0. The mean is -1/4, so centred: 1/2, -3/4, 1/4. Their mean is 0
    # and their variance (1/4 + 9/16 + 1/16) / 3 = 7/24.
    assert credit.proposal_rewards == (0.25, -1.0, 0.0)
    spread = math.sqrt(7 / 24)
    assert credit.proposal_advantages == pytest.approx((0.5 / spread, -0.75 / spread, 0.25 / spread))


def test_rewards_and_advantages_of_one_students_attempts_are_those_worked_out_by_hand() -> None:
    first, second = task("a"), task("b")
    credit = credit_of(
        {"a": first, "b": second},
        [answered(first, [RIGHT, WRONG, WRONG, RIGHT]), answered(second, [WRONG, UNREADABLE, WRONG, WRONG])],
    )
    assert credit.attempt_rewards == ((1.0, -0.5, -0.5, 1.0), (-0.5, -1.0, -0.5, -0.5))
    # Centred by task: means 1/4 and -5/8 give +-3/4 and 1/8, -3/8. The variance over all eight is
    # (4 * 9/16 + 3 * 1/64 + 9/64) / 8 = 39/128.
    spread = math.sqrt(39 / 128)
    assert credit.attempt_advantages[0] == pytest.approx([x / spread for x in (0.75, -0.75, -0.75, 0.75)])
    assert credit.attempt_advantages[1] == pytest.approx([x / spread for x in (0.125, -0.375, 0.125, 0.125)])


def test_a_teachers_proposals_are_centred_within_their_kind() -> None:
    tasks = {name: task(name) for name in ("o1", "o2", "i1", "i2")}
    kinds: dict[str, str] = {"o1": "code_o", "o2": "code_o", "i1": "code_i", "i2": "code_i"}
    credit = credit_of(
        dict(tasks),
        [
            answered(tasks["o1"], [RIGHT, WRONG, WRONG, WRONG]),  # earns 3/4
            answered(tasks["o2"], [RIGHT, RIGHT, RIGHT, WRONG]),  # earns 1/4
            answered(tasks["i1"], [WRONG] * 4),  # earns 0
            answered(tasks["i2"], [WRONG] * 4),  # earns 0
        ],
        **{name: proposal(name, kind=kind) for name, kind in kinds.items()},
    )
    # Centred by kind: 1/4, -1/4, 0, 0; variance over all four 1/32. Centred over all, i1 would have got -1/4.
    root = math.sqrt(32)
    assert credit.proposal_advantages == pytest.approx((root / 4, -root / 4, 0.0, 0.0))


def test_members_are_whitened_apart_so_that_one_does_not_move_another() -> None:
    tasks = {name: task(name) for name in ("a", "b", "c", "d")}
    slots = {"a": 0, "b": 0, "c": 1, "d": 1}
    students = {"a": "S1", "b": "S1", "c": "S2", "d": "S2"}
    answers = [
        answered(tasks[name], [RIGHT] * k + [WRONG] * (8 - k), students[name])
        for name, k in zip("abcd", (1, 7, 4, 5), strict=True)
    ]
    credit = credit_of(dict(tasks), answers, **{n: proposal(n, slot=s) for n, s in slots.items()})
    # Each teacher has two proposals, so whitened they are +1 and -1 whatever their distance.
    assert credit.proposal_advantages == pytest.approx((1.0, -1.0, 1.0, -1.0))
    # In units of 1.5, a right answer to a task of solve rate p is 1 - p above its mean, and the variance is p (1 - p):
    # 7/64 in both tasks of S1, (1/4 + 15/64) / 2 over those of S2.
    assert credit.attempt_advantages[0][0] == pytest.approx(7 / 8 / math.sqrt(7 / 64))
    assert credit.attempt_advantages[2][0] == pytest.approx(1 / 2 / math.sqrt(31 / 128))
    assert [(r.slot, len(r.completions)) for r in credit.rollouts] == [(0, 2), (1, 2), (2, 8), (2, 8), (3, 8), (3, 8)]


def test_with_several_students_a_teacher_earns_by_the_mean_of_their_solve_rates() -> None:
    shared = task("shared")
    answers = [answered(shared, [RIGHT, WRONG], "S1"), answered(shared, [RIGHT, RIGHT, RIGHT, WRONG], "S2")]
    assert solve_fracs(answers) == {"shared": (0.5 + 0.75) / 2}
    credit = credit_of({"shared": shared}, answers)
    assert credit.proposal_rewards == (1 - 0.625,)


def test_a_lost_attempt_is_no_sample_neither_in_the_solve_rate_nor_in_training() -> None:
    some = task("a")
    one = answered(some, [RIGHT, LOST, WRONG])
    assert one.solve_frac == 0.5
    credit = credit_of({"a": some}, [one])
    assert credit.proposal_rewards == (0.5,)
    assert credit.attempt_rewards == ((1.0, None, -0.5),)
    assert credit.attempt_advantages[0][1] is None
    assert credit.attempt_advantages[0][0] == pytest.approx(1.0)  # centred on the two that count
    (rollout,) = [r for r in credit.rollouts if r.slot == STUDENTS["S1"].slot]
    assert rollout.completions == (one.completions[0], one.completions[2])
    assert rollout.advantages == pytest.approx((1.0, -1.0))


def test_a_task_whose_attempts_were_all_lost_gives_its_teacher_no_sample() -> None:
    lost, kept = task("lost"), task("kept")
    answers = [answered(lost, [LOST, LOST]), answered(kept, [RIGHT, WRONG])]
    assert solve_fracs(answers) == {"kept": 0.5}
    credit = credit_of({"lost": lost, "kept": kept, "bad": rejected("bad")}, answers)
    assert credit.proposal_rewards == (None, 0.5, -1.0)
    assert credit.proposal_advantages[0] is None
    assert [len(r.completions) for r in credit.rollouts if r.slot == 0] == [2]


def test_a_proposal_whose_check_failed_for_the_infrastructures_own_reasons_is_no_sample() -> None:
    credit = credit_of({"a": rejected("a", "infra"), "b": rejected("b", "timeout")}, [])
    assert credit.proposal_rewards == (None, -1.0)
    assert credit.proposal_advantages == (None, 0.0)


def test_proposals_of_one_prompt_go_to_the_learner_as_one_group_and_others_apart() -> None:
    names = ("a", "b", "c")
    tasks = {name: task(name) for name in names}
    prompts = {"a": (5, 6), "b": (5, 6), "c": (5, 7)}
    written = {name: proposal(name, prompt=prompts[name], mark=40 + i) for i, name in enumerate(names)}
    answers = [answered(tasks[name], [RIGHT] * k + [WRONG] * (4 - k)) for k, name in enumerate(names, start=1)]
    credit = credit_of(dict(tasks), answers, **written)
    groups = [r for r in credit.rollouts if r.slot == 0]
    assert [(g.prompt, [c.tokens[0] for c in g.completions]) for g in groups] == [((5, 6), [40, 41]), ((5, 7), [42])]
    assert [a for g in groups for a in g.advantages] == pytest.approx(credit.proposal_advantages)


def test_attempts_that_all_fared_alike_teach_nothing_and_are_left_out() -> None:
    alike, open_ = task("alike"), task("open")
    credit = credit_of(
        {"alike": alike, "open": open_}, [answered(alike, [WRONG, WRONG]), answered(open_, [RIGHT, WRONG])]
    )
    assert credit.attempt_advantages[0] == (0.0, 0.0)
    assert len([r for r in credit.rollouts if r.slot == STUDENTS["S1"].slot]) == 1


def test_a_role_that_is_frozen_gets_rewards_but_nothing_to_learn_from() -> None:
    some = task("a")
    verdicts: dict[str, Task | Rejection] = {"a": some, "bad": rejected("bad")}
    answers = [answered(some, [RIGHT, WRONG])]
    for frozen, slots in (("train_teachers", {2}), ("train_students", {0})):
        credit = credit_of(verdicts, answers, CONFIG.model_copy(update={frozen: False}))
        assert {r.slot for r in credit.rollouts} == slots
        assert credit.proposal_rewards == (0.5, -1.0)
        assert credit.attempt_rewards == ((1.0, -0.5),)


def test_the_single_agent_learns_from_both_its_roles_each_whitened_apart() -> None:
    some = task("a")
    both = Individual("A1", "both", 0, Rating(25, 8))
    one = replace(answered(some, [RIGHT, WRONG]), student=both)
    credit = credit_of({"a": some, "bad": rejected("bad")}, [one])
    assert {r.slot for r in credit.rollouts} == {0}
    assert credit.proposal_advantages == pytest.approx((1.0, -1.0))
    assert credit.attempt_advantages[0] == pytest.approx((1.0, -1.0))


def test_the_ends_are_paid_as_the_config_says() -> None:
    nobody, everybody = task("nobody"), task("everybody")
    answers = [answered(nobody, [WRONG, WRONG]), answered(everybody, [RIGHT, RIGHT])]
    verdicts: dict[str, Task | Rejection] = {"nobody": nobody, "everybody": everybody}
    assert credit_of(verdicts, answers).proposal_rewards == (0.0, 0.0)
    config = LearnConfig(unsolved_reward=-0.5, certain_reward=-0.25)
    assert credit_of(verdicts, answers, config).proposal_rewards == (-0.5, -0.25)


def test_a_step_in_which_nothing_was_proposed_or_answered_gives_no_credit() -> None:
    assert credit_of({}, []) == Credit((), (), (), (), ())


def test_the_weight_of_proposals_scales_what_is_learned_from_them_and_nothing_else() -> None:
    some = task("a")
    one = replace(answered(some, [RIGHT, WRONG]), student=Individual("A1", "both", 0, Rating(25, 8)))
    verdicts: dict[str, Task | Rejection] = {"a": some, "bad": rejected("bad")}
    credit = credit_of(verdicts, [one], CONFIG.model_copy(update={"proposal_weight": 0.25}))
    assert credit.proposal_advantages == pytest.approx((1.0, -1.0))
    proposals, attempts = credit.rollouts
    assert proposals.advantages == pytest.approx((0.25, -0.25))
    assert attempts.advantages == pytest.approx((1.0, -1.0))
