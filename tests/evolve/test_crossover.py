"""Each crossover does what its formula says, in numbers."""

import math

import pytest
import torch
from small_adapters import SHAPES, adapter, dense, distance

from redqueen.adapters.genotype import Genotype, norm
from redqueen.evolve.crossover import DareConstants, _drop_by_rank, _elected_mean, _trimmed, dare_dense, slerp_weights
from redqueen.evolve.operators import apply, find, tuned

NAME = "model.layers.0.mlp.up_proj"


def diagonal(values: list[float], start: int) -> Genotype:
    """dW = diag with ``values`` from place ``start`` on, 6 x 6, rank len(values), scale 1."""
    rank = len(values)
    a, b = torch.zeros(rank, 6), torch.zeros(6, rank)
    for i, value in enumerate(values):
        a[i, start + i], b[start + i, i] = 1.0, value
    return Genotype({"m": (a, b)}, float(rank))


def crossed(operator: str, parents: list[Genotype], seed: int = 1, fitness: tuple = (0.0, 0.0), **constants: float):
    return apply(tuned(find(operator), constants), parents, fitness, seed)


def test_a_mean_of_two_adapters_is_the_best_one_of_their_rank() -> None:
    one, other = adapter(0), adapter(1)
    child = crossed("linear_0_5", [one, other]).genotype
    u, s, vh = torch.linalg.svd((dense(one, NAME) + dense(other, NAME)) / 2, full_matrices=False)
    best = u[:, :4] @ torch.diag(s[:4]) @ vh[:4]
    assert torch.allclose(dense(child, NAME), best, atol=1e-5)


def test_x1_before_the_cut_has_the_parents_mean() -> None:
    one, other = adapter(0), adapter(1)
    parents, rng = [one.factors[NAME], other.factors[NAME]], torch.Generator().manual_seed(0)
    draws = torch.stack([dare_dense(parents, rng, DareConstants(drop_frac=0.7)) for _ in range(3000)]).double()
    draws *= one.scale
    mean = (dense(one, NAME) + dense(other, NAME)) / 2
    # Each entry's error in standard errors: a standard normal, if the claim holds.
    z = (draws.mean(dim=0) - mean) / (draws.std(dim=0) / math.sqrt(len(draws)))
    assert float(z.abs().max()) < 5
    assert float(z.square().mean()) == pytest.approx(1.0, abs=0.5)
    # And the draws do differ from their mean.
    assert float((draws[0] - mean).norm() / mean.norm()) > 0.3


def test_x1_drops_the_stated_share_of_each_parent() -> None:
    parents, rng = [adapter(seed).factors[NAME] for seed in (0, 1)], torch.Generator().manual_seed(0)
    drawn = [dare_dense(parents, rng, DareConstants(0.7)) for _ in range(200)]
    zeros = [float((part == 0).float().mean()) for part in drawn]
    assert sum(zeros) / 200 == pytest.approx(0.7**2, abs=0.02)


def test_x1_stays_near_the_parents_mean_in_a_wide_module() -> None:
    """As for two relatives after training: a common part, singular values that fall like 1 / i."""
    width, rank, rng = 3584, 32, torch.Generator().manual_seed(0)
    falling = (1 / torch.arange(1, rank + 1)).sqrt()
    common = torch.randn(rank, width, generator=rng), torch.randn(width, rank, generator=rng)
    parents = []
    for _ in range(2):
        a, b = (part + 0.5 * torch.randn(part.shape, generator=rng) for part in common)
        parents.append(Genotype({"m": (falling[:, None] * a, b * falling)}, 64.0))
    child = crossed("X1", parents).genotype
    mean = (dense(parents[0], "m") + dense(parents[1], "m")) / 2
    cosine = float((dense(child, "m") * mean).sum() / dense(child, "m").norm() / mean.norm())
    assert cosine >= 0.85


def test_x2_takes_every_module_whole_from_one_of_the_parents() -> None:
    one, other = adapter(0), adapter(1)
    origins = set()
    for seed in range(12):
        made = crossed("X2", [one, other], seed)
        picks = []
        for name in SHAPES:
            from_other = torch.equal(made.genotype.factors[name][0], other.factors[name][0])
            source = other if from_other else one
            assert all(
                torch.equal(x, y) for x, y in zip(made.genotype.factors[name], source.factors[name], strict=True)
            )
            picks.append(from_other)
        assert made.constants["num_from_second"] == sum(picks)
        origins.add(tuple(picks))
    assert len(origins) > 4


def test_x3_takes_the_strong_of_one_and_the_weak_of_the_other() -> None:
    made = crossed("X3", [diagonal([9.0, 5.0, 1.0], 0), diagonal([8.0, 4.0, 2.0], 3)], num_leading=2)
    # Components 1..2 of parent 1 (9, 5) and 3 of parent 2 (2).
    expected = torch.diag(torch.tensor([9.0, 5.0, 0.0, 0.0, 0.0, 2.0], dtype=torch.float64))
    assert torch.allclose(dense(made.genotype, "m"), expected, atol=1e-6)


def test_x3_draws_every_cut_from_one_to_the_rank_less_one() -> None:
    drawn = {crossed("X3", [adapter(0), adapter(1)], seed).constants["num_leading"] for seed in range(40)}
    assert drawn == {1.0, 2.0, 3.0}


def test_x4_goes_past_the_better_parent_and_away_from_the_worse() -> None:
    better, worse = diagonal([4.0], 0), diagonal([2.0], 0)
    for parents, fitness in (
        ([better, worse], (1.0, 0.0)),
        ([worse, better], (0.0, 1.0)),
        ([better, worse], (1.0, 1.0)),  # of equals the first counts as the better
    ):
        made = crossed("X4", parents, fitness=fitness, eta_low=1.5, eta_high=1.5)
        # 2 + 1.5 (4 - 2) = 5
        assert float(dense(made.genotype, "m")[0, 0]) == pytest.approx(5.0)


def test_x4_draws_its_reach_between_one_and_one_and_a_half() -> None:
    reaches = [crossed("X4", [adapter(0), adapter(1)], seed).constants["eta"] for seed in range(60)]
    assert 1.0 <= min(reaches) < 1.1 and 1.4 < max(reaches) <= 1.5


def test_x5_lies_between_the_parents_at_the_recorded_share() -> None:
    made = crossed("X5", [diagonal([4.0], 0), diagonal([2.0], 0)], seed=4)
    share = made.constants["share_frac"]
    assert float(dense(made.genotype, "m")[0, 0]) == pytest.approx(4 - 2 * share)


def test_x6_elects_a_sign_and_averages_those_that_agree() -> None:
    one = torch.tensor([[[4.0, -3.0, 0.0, 1.0]]])
    other = torch.tensor([[[2.0, 1.0, 5.0, -1.0]]])
    # 4 and 2 agree: 3. -3 wins over 1: -3. Only the other has 5: 5. 1 and -1 cancel: nobody is elected.
    assert _elected_mean(one, other, 0.5).tolist() == [[[3.0, -3.0, 5.0, 0.0]]]


def test_x6_trims_to_the_largest_share() -> None:
    entries = torch.tensor([[[4.0, -3.0, 0.5, 1.0, -9.0]]])
    assert _trimmed(entries, 0.4).tolist() == [[[4.0, 0.0, 0.0, 0.0, -9.0]]]
    assert _trimmed(entries, 1.0).tolist() == entries.tolist()


def test_x7_drops_the_small_more_often_than_the_large() -> None:
    drop = _drop_by_rank(torch.tensor([[[4.0, -3.0, 0.5, -9.0]]]), 0.2, 0.8)
    assert drop[0, 0].tolist() == pytest.approx([0.4, 0.6, 0.8, 0.2])


def test_x8_keeps_the_length_of_parents_at_a_right_angle() -> None:
    made = crossed("X8", [diagonal([3.0], 0), diagonal([3.0], 2)])
    # At 90 degrees both weights are sin 45 / sin 90, so |dW| would stay 3; cut to rank 1 one direction is left.
    left = norm(made.genotype)
    assert left == pytest.approx(3 * math.sin(math.pi / 4))
    assert slerp_weights(0.0, 9.0, 9.0, 0.5) == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)))


def test_x8_is_linear_where_there_is_no_arc() -> None:
    for product, squares in ((9.0, (9.0, 9.0)), (-9.0, (9.0, 9.0)), (0.0, (0.0, 9.0))):
        assert slerp_weights(product, *squares, 0.25) == (0.75, 0.25)


def test_x9_leans_to_the_larger_entry() -> None:
    made = crossed("X9", [diagonal([3.0], 0), diagonal([1.0], 0)])
    # (27 + 1) / (9 + 1) = 2.8, where the plain mean is 2.
    assert float(dense(made.genotype, "m")[0, 0]) == pytest.approx(2.8)


def test_entrywise_crossovers_see_parents_in_unlike_directions_apart() -> None:
    # Orthogonal parents share no entry of the joint bases, so X6 and X9 keep both at full size (then cut to the rank).
    one, other = diagonal([5.0, 4.0], 0), diagonal([3.0, 2.0], 3)
    for operator in ("X6", "X9"):
        child = crossed(operator, [one, other]).genotype
        expected = torch.diag(torch.tensor([5.0, 4.0, 0, 0, 0, 0], dtype=torch.float64))
        assert torch.allclose(dense(child, "m"), expected, atol=1e-6)


def test_a_copy_is_the_first_parent_in_other_memory() -> None:
    parent = adapter(0)
    child = apply(find("copy_parent"), [parent], [0.0], 0).genotype
    assert distance(child, parent) == 0.0
    child.factors[NAME][0].zero_()
    assert float(parent.factors[NAME][0].norm()) > 0
