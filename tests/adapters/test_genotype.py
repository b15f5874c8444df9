"""Measures on dW in factored form, against the dense matrices of a small case."""

import math

import pytest
import torch

from redqueen.adapters.genotype import (
    Genotype,
    clone,
    is_finite,
    layer_norms,
    norm,
    pairwise_distances,
    relative_change,
    same_shape,
)

SHAPES = {"model.layers.0.self_attn.q_proj": (6, 5), "model.layers.0.mlp.up_proj": (9, 6)}


def adapter(seed: int, rank: int = 3, alpha: float = 6.0, size: float = 1.0) -> Genotype:
    rng = torch.Generator().manual_seed(seed)
    factors = {
        name: (torch.randn(rank, i, generator=rng), size * torch.randn(o, rank, generator=rng))
        for name, (o, i) in SHAPES.items()
    }
    return Genotype(factors, alpha)


def dense(genotype: Genotype) -> dict[str, torch.Tensor]:
    return {n: genotype.alpha / genotype.rank * (b @ a).double() for n, (a, b) in genotype.factors.items()}


def test_a_hand_computed_adapter_has_the_norm_on_paper() -> None:
    # dW = (alpha / rank) B A = (4 / 1) [1, 2]^T [3, 0, 4]; |[1, 2]| |[3, 0, 4]| = sqrt(5) 5.
    one = Genotype({"q": (torch.tensor([[3.0, 0.0, 4.0]]), torch.tensor([[1.0], [2.0]]))}, 4.0)
    assert norm(one) == pytest.approx(4 * 5 * math.sqrt(5))
    assert one.rank == 1 and one.scale == 4.0


def test_norms_and_distances_are_those_of_the_dense_matrices() -> None:
    one, other = adapter(0), adapter(1)
    for name in SHAPES:
        assert layer_norms(one)[name] == pytest.approx(float(dense(one)[name].norm()), rel=1e-6)
    total = math.hypot(*(float((dense(one)[n] - dense(other)[n]).norm()) for n in SHAPES))
    assert pairwise_distances([one, adapter(2), other])[0][2] == pytest.approx(total, rel=1e-6)


def test_two_writings_of_one_adapter_are_at_distance_zero() -> None:
    one = adapter(2)
    mix = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 1.0]])
    other = Genotype({n: (torch.linalg.inv(mix) @ a, b @ mix) for n, (a, b) in one.factors.items()}, one.alpha)
    assert relative_change(one, other).overall < 1e-6


def test_a_small_change_is_measured_and_not_drowned_in_rounding() -> None:
    parent = adapter(3)
    child = Genotype({n: (a, b * (1 + 2**-20)) for n, (a, b) in parent.factors.items()}, parent.alpha)
    change = relative_change(child, parent)
    assert change.overall == pytest.approx(2**-20, rel=0.1)
    assert change.per_layer.keys() == parent.factors.keys()


def test_a_doubled_adapter_has_changed_by_one_everywhere() -> None:
    parent = adapter(4)
    change = relative_change(Genotype(parent.factors, 2 * parent.alpha), parent)
    assert change.overall == pytest.approx(1.0)
    assert all(value == pytest.approx(1.0) for value in change.per_layer.values())


def test_the_change_from_nothing_is_zero_or_one_and_never_infinite() -> None:
    founder = adapter(5, size=0.0)
    assert relative_change(founder, founder).overall == 0.0
    assert relative_change(adapter(5), founder).overall == 1.0


def test_pairwise_distances_are_symmetric_with_a_zero_diagonal() -> None:
    members = [adapter(seed) for seed in range(3)]
    matrix = pairwise_distances(members)
    for i in range(3):
        assert matrix[i][i] == 0.0
        for j in range(3):
            assert matrix[i][j] == matrix[j][i]
    with pytest.raises(ValueError, match="same rank"):
        pairwise_distances([adapter(0), adapter(0, rank=2)])


def test_factors_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"k_proj: A \(2, 4\) and B \(4, 3\)"):
        Genotype(
            {"q_proj": (torch.zeros(2, 4), torch.zeros(4, 2)), "k_proj": (torch.zeros(2, 4), torch.zeros(4, 3))}, 1
        )


def test_another_rank_alpha_or_module_is_another_shape() -> None:
    assert same_shape(adapter(0), adapter(1))
    assert not same_shape(adapter(0), adapter(0, rank=2))
    assert not same_shape(adapter(0), adapter(0, alpha=8.0))
    fewer = Genotype({"model.layers.0.mlp.up_proj": adapter(0).factors["model.layers.0.mlp.up_proj"]}, 6.0)
    assert not same_shape(adapter(0), fewer)


def test_one_nan_makes_an_individual_broken() -> None:
    broken = clone(adapter(0))
    assert is_finite(broken)
    next(iter(broken.factors.values()))[1][0, 0] = float("nan")
    assert not is_finite(broken)
    assert is_finite(adapter(0))
