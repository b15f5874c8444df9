"""The mean of several adapters in delta space."""

import pytest
import torch

from redqueen.adapters.genotype import Genotype
from redqueen.evolve.spectrum import cut_dense, mean_of

SHAPES = {"layers.0.q": (7, 6), "layers.1.q": (7, 6), "layers.0.up": (9, 5)}


def adapter(seed: int, rank: int = 3, alpha: float = 6.0) -> Genotype:
    rng = torch.Generator().manual_seed(seed)
    factors = {
        name: (torch.randn(rank, n_in, generator=rng), torch.randn(n_out, rank, generator=rng))
        for name, (n_out, n_in) in SHAPES.items()
    }
    return Genotype(factors, alpha)


def dense(genotype: Genotype) -> dict[str, torch.Tensor]:
    return {name: genotype.scale * b @ a for name, (a, b) in genotype.factors.items()}


def best_of_rank(matrix: torch.Tensor, rank: int) -> torch.Tensor:
    u, s, vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vh[:rank]


@pytest.mark.parametrize("num", [2, 4])
def test_the_mean_is_that_of_the_dense_matrices_cut_to_the_rank(num: int) -> None:
    members = [adapter(seed) for seed in range(num)]
    mean = dense(mean_of(members))
    for name in SHAPES:
        expected = best_of_rank(sum(dense(m)[name] for m in members) / num, 3)
        assert torch.allclose(mean[name].double(), expected, atol=1e-4)


def test_a_dense_matrix_is_cut_nearly_as_well_as_can_be_however_slowly_its_spectrum_falls() -> None:
    rng = torch.Generator().manual_seed(0)
    whole = torch.randn(80, 60, generator=rng)
    a, b = cut_dense(whole, 4, rng)
    least = (whole - best_of_rank(whole, 4)).norm()
    assert a.shape == (4, 60) and float((whole - b @ a).norm() / least) < 1.01


def test_where_the_mean_has_no_more_than_the_rank_it_is_exact() -> None:
    one = adapter(0)
    doubled = Genotype({n: (a, 3.0 * b) for n, (a, b) in one.factors.items()}, one.alpha)
    mean = dense(mean_of([one, doubled]))
    assert all(torch.allclose(mean[n], 2.0 * dense(one)[n], atol=1e-4) for n in SHAPES)


def test_the_mean_does_not_depend_on_how_a_member_is_written() -> None:
    one, other = adapter(0), adapter(1)
    mix = torch.eye(3) + 0.3 * torch.randn(3, 3, generator=torch.Generator().manual_seed(5))
    rewritten = Genotype({n: (torch.linalg.inv(mix) @ a, b @ mix) for n, (a, b) in one.factors.items()}, one.alpha)
    first, second = dense(mean_of([one, other])), dense(mean_of([rewritten, other]))
    assert all(torch.allclose(first[n], second[n], atol=1e-3) for n in SHAPES)


def test_the_mean_of_one_is_its_copy_and_of_founders_a_founder_that_can_learn() -> None:
    one = adapter(3)
    copy = mean_of([one])
    assert all(torch.equal(a, copy.factors[n][0]) and a is not copy.factors[n][0] for n, (a, _) in one.factors.items())
    fresh = [Genotype({n: (a, 0 * b) for n, (a, b) in adapter(s).factors.items()}, 6.0) for s in range(3)]
    mean = mean_of(fresh)
    assert all(bool((b == 0).all()) and bool((a != 0).all()) for a, b in mean.factors.values())


def test_adapters_of_other_shapes_have_no_mean() -> None:
    with pytest.raises(ValueError, match="same modules, shapes, rank and alpha"):
        mean_of([adapter(0), adapter(1, rank=2)])
