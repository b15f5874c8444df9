"""External fitness: right answers are counted right, over members, modes, strata and kinds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from recipes.embedded_base.tokenizer import build_tokenizer
from redqueen.domains.code.grading import grade_literal
from redqueen.domains.code.kinds import ABDUCTION, CODE, DEDUCTION, INDUCTION
from redqueen.domains.code.suite import Function, build_items
from redqueen.domains.frames import END_THINK, EOS, THINK
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import DOMAINS
from redqueen.evaluate.fitness_suite import Score, build_score, difference, pool, score
from redqueen.records import Completion, Grade, Request, Task
from redqueen_sandbox import Sandbox
from redqueen_sandbox.programs import Rules

FORMAT = PromptFormat(FRAMES["compact"])
NUM_SAMPLES = 4
ALWAYS, NEVER, SILENT, ONCE_OF_FOUR, DEDUCES, THINKS, CUT_OFF = range(7)


def function(name: str, level: int, code: str, rule: str) -> Function:
    outputs = tuple(str(eval(rule, {"x": x})) for x in range(10))
    inputs = tuple(str(x) for x in range(10))
    return Function(name, level, (), code, "4", outputs[4], inputs, outputs, "A hint.")


FUNCTIONS = [
    function("mini/1", 1, "def f(x):\n    return x + 1", "x + 1"),
    function("mini/2", 2, "def f(x):\n    return x * 3", "x * 3"),
    function("other/1", 1, "def f(x):\n    return x - 7", "x - 7"),
]
ITEMS = build_items(FUNCTIONS)
PLACES = ((1, 1), (1, 2), (2, 1), (2, 2))
OF_TWO_STRATA = build_items(
    [function(f"mini/{level}{part}", level, f"def f(x):\n    return x + {level}{part}", "x") for level, part in PLACES]
)


def right_answer(task: Task) -> str:
    return {"code_o": task.outputs[0], "code_i": task.inputs[0], "code_f": task.code}[task.kind]


def wrong_answer(task: Task) -> str:
    return "def f(x):\n    return None" if task.kind == "code_f" else "99"


@dataclass
class ScriptedSampler:
    """Members of known skill: what each writes follows from its slot, the item and the number of the sample."""

    tokenizer: PreTrainedTokenizerFast
    temperature: float
    asked: list[Request]

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        tasks = {FORMAT.encode(self.tokenizer, FORMAT.solve(item.task)): item.task for item in ITEMS}
        self.asked += requests
        return [
            [
                self.complete(self.text(one.slot, tasks[one.prompt], number), finished=one.slot != CUT_OFF)
                for number in range(one.num_samples)
            ]
            for one in requests
        ]

    def text(self, slot: int, task: Task, number: int) -> str:
        right, wrong = right_answer(task), wrong_answer(task)
        if slot in (ALWAYS, CUT_OFF):
            return right
        if slot == ONCE_OF_FOUR:
            return right if number == 1 else wrong
        if slot == DEDUCES:
            return right if task.kind == "code_o" else wrong
        if slot == THINKS:
            return f"{THINK}hm{END_THINK}{right}" if self.temperature == 0 or number == 0 else wrong
        return wrong if slot == NEVER else ""

    def complete(self, text: str, finished: bool) -> Completion:
        tokens = tuple(self.tokenizer(text + EOS * finished, add_special_tokens=False)["input_ids"])
        return Completion(tokens, (0.0,) * len(tokens), 0.0, finished)


def losing_wrong_deductions(task: Task, answer: str, rules: Rules) -> Grade:
    """The real grader, but its workers die over wrong deductions."""
    grade = grade_literal(task, answer, rules)
    return grade if grade.correct else Grade(False, "infra", lost=True)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer([])


@pytest.fixture
def asked() -> list[Request]:
    return []


def run(
    slots: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
    verifier: Sandbox,
    asked: list[Request] | None = None,
    rng_seed: int = 1,
) -> list[Score]:
    record = [] if asked is None else asked
    return score(
        slots,
        ITEMS,
        lambda temperature: ScriptedSampler(tokenizer, temperature, record),
        FORMAT,
        tokenizer,
        verifier,
        NUM_SAMPLES,
        rng_seed,
    )


def test_samples_are_drawn_at_the_temperature_that_is_asked_for_and_greedy_ones_at_zero(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox
) -> None:
    heats: list[float] = []

    def sampler(temperature: float) -> ScriptedSampler:
        heats.append(temperature)
        return ScriptedSampler(tokenizer, temperature, [])

    score([ALWAYS], ITEMS[:3], sampler, FORMAT, tokenizer, verifier, 2, 1, temperature=0.7)
    assert heats == [0.7, 0.0]


def test_a_suite_of_one_stratum_counts_each_item_once(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    items = [replace(item, stratum="sums") for item in ITEMS[:3]]
    [_, greedy] = score(
        [NEVER], items, lambda heat: ScriptedSampler(tokenizer, heat, []), FORMAT, tokenizer, verifier, 1, 1
    )
    assert {stratum: cell.num_items for (stratum, kind), cell in greedy.cells.items() if kind == "all"} == {
        "all": 3,
        "sums": 3,
    }


def test_a_member_that_knows_scores_one_and_a_member_that_does_not_scores_zero(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox
) -> None:
    scores = run([ALWAYS, NEVER, SILENT], tokenizer, verifier)
    assert [(one.slots, one.mode) for one in scores] == [
        ((slot,), mode) for slot in (ALWAYS, NEVER, SILENT) for mode in ("sampled", "greedy")
    ]
    assert [one.overall.mean for one in scores] == [1, 1, 0, 0, 0, 0]
    assert scores[0].overall.interval == (1, 1)
    assert all(one.num_lost == 0 for one in scores)


def test_one_right_sample_of_four_scores_a_quarter(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    sampled, greedy = run([ONCE_OF_FOUR], tokenizer, verifier)
    assert sampled.item_means == (0.25,) * 9
    assert greedy.item_means == (0.0,) * 9


def test_an_answer_that_was_cut_off_is_none_however_right_it_looks(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox
) -> None:
    sampled, greedy = run([CUT_OFF], tokenizer, verifier)
    assert (sampled.overall.mean, greedy.overall.mean, sampled.num_lost) == (0, 0, 0)


def test_cells_cover_every_stratum_suite_and_kind(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    cells = run([DEDUCES], tokenizer, verifier)[0].cells
    counts = {key: cell.num_items for key, cell in cells.items() if key[1] in ("all", "code_o")}
    assert counts == {
        ("all", "all"): 9, ("mini", "all"): 6, ("other", "all"): 3,
        ("mini/1", "all"): 3, ("mini/2", "all"): 3, ("other/1", "all"): 3,
        ("all", "code_o"): 3, ("mini", "code_o"): 2, ("other", "code_o"): 1,
        ("mini/1", "code_o"): 1, ("mini/2", "code_o"): 1, ("other/1", "code_o"): 1,
    }  # fmt: skip
    assert cells["all", "all"].mean == pytest.approx(1 / 3)
    assert [cells["mini", kind].mean for kind in ("code_o", "code_i", "code_f")] == [1, 0, 0]


def test_an_interval_draws_the_tasks_of_a_function_together(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox
) -> None:
    # every function has one right item of three, so every resample of functions has the mean 1/3
    assert run([DEDUCES], tokenizer, verifier)[0].overall.interval == pytest.approx((1 / 3, 1 / 3))


def test_thoughts_and_tokens_are_counted(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    sampled, greedy = run([THINKS], tokenizer, verifier)
    assert (sampled.overall.thought_frac, greedy.overall.thought_frac) == (0.25, 1.0)
    assert greedy.overall.mean == 1
    # deductions: "5", "12" and "-3"; a thought adds two marks and "hm"; the end mark counts
    lengths = [3 + len("hm") + digits for digits in (1, 2, 2)]
    assert greedy.cells["all", "code_o"].mean_tokens == pytest.approx(sum(lengths) / 3)


def test_an_attempt_whose_grading_was_lost_is_no_sample(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing = replace(DEDUCTION, grade=losing_wrong_deductions)
    monkeypatch.setitem(DOMAINS, "code", replace(CODE, kinds=(losing, ABDUCTION, INDUCTION)))
    sampled, greedy = run([ONCE_OF_FOUR], tokenizer, verifier)
    assert sampled.num_lost == 9 and sampled.cells["all", "code_o"].mean == 1
    assert greedy.num_lost == 3 and greedy.cells["all", "code_o"].num_items == 0
    assert isnan(greedy.cells["all", "code_o"].mean) and greedy.overall.num_items == 6


def test_a_members_samples_do_not_depend_on_who_else_is_scored(
    tokenizer: PreTrainedTokenizerFast, verifier: Sandbox
) -> None:
    alone: list[Request] = []
    together: list[Request] = []
    again: list[Request] = []
    run([NEVER], tokenizer, verifier, alone)
    run([SILENT, NEVER], tokenizer, verifier, together)
    run([NEVER], tokenizer, verifier, again, rng_seed=2)
    assert alone == [request for request in together if request.slot == NEVER]
    assert len({request.rng_seed for request in together if request.num_samples == NUM_SAMPLES}) == 18
    assert {one.rng_seed for one in alone}.isdisjoint(one.rng_seed for one in again)


def test_pooling_averages_members_item_by_item(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    scores = run([ALWAYS, NEVER, DEDUCES], tokenizer, verifier)
    pooled = pool([one for one in scores if one.mode == "greedy"], ITEMS, rng_seed=1)
    assert pooled.slots == (ALWAYS, NEVER, DEDUCES)
    assert pooled.item_means == pytest.approx((2 / 3, 1 / 3, 1 / 3) * 3)
    assert pooled.overall.mean == pytest.approx(4 / 9)
    with pytest.raises(ValueError, match="one mode"):
        pool(scores, ITEMS, rng_seed=1)


def scored(*means: float) -> Score:
    """One figure for each function of two strata, the same for its three items."""
    columns = np.array([[mean for mean in means for _ in range(3)], [0.0] * 12, [1.0] * 12])
    return build_score((0,), "greedy", OF_TWO_STRATA, columns, 0, rng_seed=1)


def test_an_item_lost_for_one_member_has_the_mean_of_the_others() -> None:
    pooled = pool([scored(1.0, nan, nan, 0.0), scored(0.0, 0.25, nan, 0.0)], OF_TWO_STRATA, rng_seed=1)
    assert pooled.item_means[::3] == pytest.approx((0.5, 0.25, nan, 0.0), nan_ok=True)
    assert pooled.overall.mean == pytest.approx(0.25)


def test_intervals_do_not_count_the_spread_between_the_strata_of_a_suite() -> None:
    one, other = scored(1.0, 1.0, 0.5, 0.5), scored(0.0, 0.0, 0.5, 0.5)
    assert one.overall.interval == (0.75, 0.75)
    assert difference(one, other, OF_TWO_STRATA, rng_seed=1) == (0.5, 0.5)


def test_a_difference_is_paired(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    one, _, other, _ = run([ALWAYS, DEDUCES], tokenizer, verifier)
    assert difference(one, other, ITEMS, rng_seed=1) == pytest.approx((2 / 3, 2 / 3))


def test_scoring_nothing_is_refused(tokenizer: PreTrainedTokenizerFast, verifier: Sandbox) -> None:
    with pytest.raises(ValueError, match="at least one item"):
        score([0], [], lambda t: ScriptedSampler(tokenizer, t, []), FORMAT, tokenizer, verifier, 1, 1)
