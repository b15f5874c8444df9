"""Running baselines of teachers, worked out by hand."""

import math

import numpy as np
import pytest

from redqueen.learn.rewards import Baselines


def arrays(**groups: list[float]) -> dict[str, np.ndarray]:
    return {kind: np.array(rewards) for kind, rewards in groups.items()}


def test_the_first_group_of_a_kind_is_centred_on_itself() -> None:
    found = Baselines().advantages("T1", arrays(code_o=[0.5, -1.0, 0.5, -1.0]))
    assert found["code_o"].tolist() == pytest.approx([1.0, -1.0, 1.0, -1.0])  # mean -1/4, spread 3/4


def test_a_wholly_invalid_group_has_a_gradient_against_what_was_earned_before() -> None:
    known = Baselines({"T1": {"code_f": (0.0, 0.25)}})  # mean 0, spread 1/2
    assert known.advantages("T1", arrays(code_f=[-1.0, -1.0]))["code_f"].tolist() == [-2.0, -2.0]


def test_the_spread_is_that_of_all_kinds_of_the_step() -> None:
    known = Baselines({"T1": {"code_o": (0.5, 0.25 + 0.09), "code_f": (-1.0, 1.0 + 0.01)}})
    found = known.advantages("T1", arrays(code_o=[1.0], code_f=[-1.0, 0.0]))
    spread = math.sqrt((0.09 + 0.25) / 2)  # of code_f the step's own, which is wider than what was known
    assert found["code_o"].tolist() == pytest.approx([0.5 / spread])
    assert found["code_f"].tolist() == pytest.approx([0.0, 1.0 / spread])


def test_the_baseline_moves_by_a_share_towards_what_was_earned_and_each_teachers_apart() -> None:
    known = Baselines({"T1": {"code_o": (0.5, 0.4)}, "T2": {"code_o": (0.0, 0.1)}})
    moved = known.updated("T1", arrays(code_o=[-1.0, 0.0]), keep_frac=0.9)
    assert moved.by_teacher["T1"]["code_o"] == pytest.approx((0.9 * 0.5 - 0.05, 0.9 * 0.4 + 0.1 * 0.5))
    assert moved.by_teacher["T2"] == known.by_teacher["T2"]
    assert moved.keep_only(["T2"]).by_teacher == {"T2": {"code_o": (0.0, 0.1)}}


def test_a_teacher_that_never_earned_anything_else_learns_nothing() -> None:
    known = Baselines().updated("T1", arrays(code_f=[-1.0, -1.0]), 0.9)
    assert known.advantages("T1", arrays(code_f=[-1.0]))["code_f"].tolist() == [0.0]


@pytest.mark.parametrize("num_dead_steps", [1, 60])
def test_the_first_success_after_nothing_but_failures_counts_by_the_spread_it_makes(num_dead_steps: int) -> None:
    known = Baselines()
    for _ in range(num_dead_steps):
        known = known.updated("T1", arrays(code_f=[-1.0] * 8), 0.9)
    found = known.advantages("T1", arrays(code_f=[-1.0] * 7 + [0.5]))["code_f"]
    assert found.tolist() == pytest.approx([0.0] * 7 + [1.5 / math.sqrt(7 / 64 * 1.5**2)], abs=1e-9)  # about 3


def test_the_gradient_out_of_a_wholly_invalid_kind_fades_and_does_not_blow_up() -> None:
    known, sizes = Baselines({"T1": {"code_f": (0.25, 0.3)}}), []
    for _ in range(80):
        sizes.append(-float(known.advantages("T1", arrays(code_f=[-1.0] * 4))["code_f"][0]))
        known = known.updated("T1", arrays(code_f=[-1.0] * 4), 0.9)
    assert sizes[0] > 1 > sizes[10] > 0.1 > sizes[70]
    assert sizes == sorted(sizes, reverse=True)
