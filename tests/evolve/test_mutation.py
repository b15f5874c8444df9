"""Each mutation does what its formula says, in numbers."""

import math

import pytest
import torch
from small_adapters import SHAPES, adapter, dense

from redqueen.adapters.genotype import Genotype, layer_norms
from redqueen.evolve.operators import apply, find, tuned
from redqueen.evolve.spectrum import balanced, revived, spectrum

NAME = "model.layers.0.mlp.up_proj"


def singular_values(genotype: Genotype, name: str = NAME) -> torch.Tensor:
    return torch.linalg.svdvals(dense(genotype, name))[: genotype.rank]


def child_of(operator: str, parent: Genotype, seed: int = 1, **constants: float) -> Genotype:
    return apply(tuned(find(operator), constants), [parent], [0.0], seed).genotype


def test_delta_space_writes_the_child_balanced() -> None:
    a, b = child_of("M4", adapter(0), mutation_std=0).factors[NAME]
    assert torch.allclose(a @ a.T, b.T @ b, atol=1e-5)
    assert torch.allclose(torch.diag(a @ a.T), (singular_values(adapter(0)) / 2).float(), rtol=1e-4)


def test_m1_turns_directions_by_about_e_and_scales_by_about_e() -> None:
    wide = Genotype({"m": (torch.randn(16, 200), torch.randn(200, 16))}, 16.0)
    child = child_of("M1", wide, mutation_std=0.1)
    old_u, old_s, _ = torch.linalg.svd(dense(wide, "m"), full_matrices=False)
    child_u, _, _ = torch.linalg.svd(dense(child, "m"), full_matrices=False)
    # The column space stays: the child's directions are inside the parent's.
    assert float((old_u[:, :16].T @ child_u[:, :16]).norm() ** 2) == pytest.approx(16, rel=1e-4)
    change = float((dense(child, "m") - dense(wide, "m")).norm() / old_s.norm())
    # Three independent turns of size e: e sqrt(3) = 0.17.
    assert 0.12 < change < 0.23


def test_m1_log_singular_values_move_with_standard_deviation_e() -> None:
    parent = Genotype({"m": (torch.eye(64), torch.diag(torch.logspace(0, 2, 64)))}, 64.0)
    child = child_of("M1", parent, seed=3, mutation_std=1e-3)
    moved = torch.log(singular_values(child, "m") / singular_values(parent, "m"))
    assert float(moved.std()) == pytest.approx(1e-3, rel=0.3)


def test_m2_leaves_all_but_a_third_of_the_modules_bit_for_bit() -> None:
    parent = adapter(2)
    child = child_of("M2", parent, layer_frac=0.33)
    pairs = {name: zip(child.factors[name], parent.factors[name], strict=True) for name in SHAPES}
    same = [name for name, pair in pairs.items() if all(torch.equal(x, y) for x, y in pair)]
    assert len(same) == 2


def test_m3_removes_exactly_the_stated_number_of_components() -> None:
    parent = adapter(3, rank=10)
    child = child_of("M3", parent, mask_frac=0.3)
    left = singular_values(child)
    assert int((left > 1e-5 * left[0]).sum()) == 7
    # What is left are components of the parent, untouched.
    for value in left[:7]:
        assert float((singular_values(parent) - value).abs().min()) < 1e-5 * float(value)


def test_m3_masks_each_module_on_its_own_and_revives_rows_as_a_new_adapter_draws_them() -> None:
    def masked(seed: int, name: str) -> list[bool]:
        return (child_of("M3", adapter(3), seed, mask_frac=0.25).factors[name][1] == 0).all(dim=0).tolist()

    alike = "model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"  # of one shape
    assert any(masked(seed, alike[0]) != masked(seed, alike[1]) for seed in range(8))
    rows, _ = revived(torch.zeros(1, 2, 100), torch.zeros(1, 5, 2), torch.Generator().manual_seed(0))
    assert 0.09 < float(rows.abs().max()) <= 0.1  # 1 / sqrt(100)


def test_m3_keeps_the_row_of_a_so_that_the_component_can_learn_again() -> None:
    child = child_of("M3", adapter(3), mask_frac=0.5)
    a, b = child.factors[NAME]
    masked = (b == 0).all(dim=0)
    assert int(masked.sum()) == 2
    assert bool((a[masked].norm(dim=1) > 0.1).all())


def balanced_writing(a: torch.Tensor, b: torch.Tensor) -> Genotype:
    a, b = balanced(spectrum((a[None], b[None])))
    return Genotype({"m": (a[0], b[0])}, 8.0)


@pytest.mark.parametrize("operator", ["M4", "M5"])
def test_noise_has_the_stated_size_in_the_balanced_factors(operator: str) -> None:
    parent = balanced_writing(3 * torch.randn(8, 500), 0.2 * torch.randn(400, 8))
    child = child_of(operator, parent, mutation_std=0.2)
    for i, expected in enumerate([0.2, 0.2 if operator == "M4" else 0.0]):
        noise = child.factors["m"][i] - parent.factors["m"][i]
        assert float(noise.std()) == pytest.approx(expected * float(parent.factors["m"][i].std()), rel=0.05, abs=1e-5)


def test_m5_noise_is_uniform() -> None:
    parent = balanced_writing(torch.randn(8, 500), torch.randn(400, 8))
    child = child_of("M5", parent, mutation_std=0.2)
    noise = child.factors["m"][0] - parent.factors["m"][0]
    # A uniform variable never passes sqrt(3) standard deviations; a normal one of 4000 would.
    assert float(noise.abs().max() / noise.std()) < 1.05 * math.sqrt(3)


def test_m6_redraws_the_weakest_and_keeps_the_strongest() -> None:
    wide = Genotype({"m": (torch.randn(8, 300), torch.randn(300, 8) @ torch.diag(torch.logspace(0, -1, 8)))}, 8.0)
    child = child_of("M6", wide, redraw_frac=0.25)
    u, s, vh = torch.linalg.svd(dense(wide, "m"), full_matrices=False)
    strong = u[:, :6] @ torch.diag(s[:6]) @ vh[:6]
    rest = dense(child, "m") - strong
    assert float(rest.norm()) == pytest.approx(float(s[6:8].norm()), rel=0.05)
    # In 300 dimensions a fresh direction has next to nothing of the old one.
    assert float((u[:, 6:8].T @ rest @ vh[6:8].T).norm()) < 0.2 * float(s[6:8].norm())


def test_m6_passes_dead_components_over() -> None:
    # Rank 4 of 8: the weakest live ones are redrawn, not the dead, which would change nothing.
    parent = Genotype({"m": (torch.randn(8, 30), torch.cat([torch.randn(20, 4), torch.zeros(20, 4)], dim=1))}, 8.0)
    child = child_of("M6", parent, redraw_frac=0.25)
    assert layer_norms(child)["m"] > 0
    assert float((dense(child, "m") - dense(parent, "m")).norm()) > 0.05 * layer_norms(parent)["m"]
