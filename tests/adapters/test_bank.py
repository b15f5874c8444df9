"""The adapter bank: routing, fresh members, genotypes in and out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import CONFIGS, tiny_bank, tiny_model

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import freeze
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.routing import lay_out
from redqueen.errors import UserError
from redqueen.records import BASE_SLOT


def logits_of(bank: AdapterBank, tokens: torch.Tensor, slots: list[int]) -> torch.Tensor:
    with torch.no_grad(), bank.routed(slots), bank.base.autocast():
        return bank.base.model(input_ids=tokens).logits.float()


def some_tokens(rows: int, length: int = 6) -> torch.Tensor:
    return torch.randint(0, 61, (rows, length), generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_fresh_member_is_the_base_bit_for_bit(architecture: str, precision: str) -> None:
    bank = tiny_bank(architecture, precision=precision, trained=False)
    tokens = some_tokens(4)
    with torch.no_grad(), bank.base.autocast():
        base = bank.base.model(input_ids=tokens).logits.float()
    assert torch.equal(logits_of(bank, tokens, [2, 0, 2, 1]), base)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_member_computes_the_base_with_its_deltas_added_to_the_weights(architecture: str) -> None:
    bank = tiny_bank(architecture)
    tokens = some_tokens(3)
    routed = logits_of(bank, tokens, [1, 1, 1])
    merged = tiny_model(architecture)
    for name, (a, b) in bank.factors(1).items():
        merged.get_submodule(name).weight.data += bank.scale * b @ a
    torch.testing.assert_close(routed, merged(tokens).logits, rtol=1e-4, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(slots=st.lists(st.integers(BASE_SLOT, 2), min_size=1, max_size=9), data=st.data())
def test_routing_is_a_permutation_equivariant_map(slots: list[int], data: st.DataObject) -> None:
    bank = tiny_bank()
    order = data.draw(st.permutations(range(len(slots))))
    tokens = some_tokens(len(slots))
    straight = logits_of(bank, tokens, slots)
    permuted = logits_of(bank, tokens[order], [slots[i] for i in order])
    torch.testing.assert_close(permuted, straight[order], rtol=1e-5, atol=1e-5)


def test_a_members_output_does_not_depend_on_another_member_even_a_broken_one() -> None:
    bank = tiny_bank()
    tokens = some_tokens(5)
    slots = [0, 1, 0, 1, 1]
    before = logits_of(bank, tokens, slots)
    bank.flat[0] = float("nan")
    after = logits_of(bank, tokens, slots)
    mine = [i for i, slot in enumerate(slots) if slot == 1]
    assert torch.equal(after[mine], before[mine])
    assert after[0].isnan().any()


def test_a_row_of_the_bare_base_ignores_the_members_beside_it() -> None:
    bank = tiny_bank()
    tokens = some_tokens(3)
    base = logits_of(bank, tokens, [BASE_SLOT] * 3)
    torch.testing.assert_close(logits_of(bank, tokens, [BASE_SLOT, 1, 2])[0], base[0])


@settings(deadline=None)
@given(slots=st.lists(st.integers(0, 7), min_size=1, max_size=40), tokens=st.integers(1, 50))
def test_blocks_hold_one_member_each_and_give_every_row_back(slots: list[int], tokens: int) -> None:
    layout = lay_out(slots, tokens, torch.device("cpu"))
    rows = torch.arange(len(slots), dtype=torch.float32)[:, None, None]
    blocks = layout.into_blocks(rows)
    block_slots = layout.slots if layout.block_member is None else layout.slots[layout.block_member]
    for block, slot in zip(blocks, block_slots, strict=True):
        assert {slots[int(row)] for row in block.flatten()} == {int(slot)}
    assert torch.equal(layout.out_of_blocks(blocks, 1), rows)


def test_rows_sorted_by_member_in_equal_numbers_need_no_copy() -> None:
    layout = lay_out([2, 2, 5, 5, 7, 7], 1, torch.device("cpu"))
    assert layout.gather is None and layout.block_member is None and layout.num_blocks == 3


def test_a_genotype_taken_out_and_loaded_elsewhere_is_the_same_member() -> None:
    bank = tiny_bank()
    tokens = some_tokens(2)
    expected = logits_of(bank, tokens, [2, 2])
    bank.load(0, bank.genotype(2))
    assert torch.equal(logits_of(bank, tokens, [0, 0]), expected)


def test_a_genotype_is_a_copy() -> None:
    bank = tiny_bank()
    genotype = bank.genotype(0)
    before = bank.flat[0].clone()
    for factors in genotype.factors.values():
        for factor in factors:
            factor.zero_()
    assert torch.equal(bank.flat[0], before)


def test_a_genotype_with_another_alpha_keeps_its_delta() -> None:
    bank = tiny_bank()
    genotype = bank.genotype(0)
    bank.load(1, Genotype(genotype.factors, alpha=24.0))
    name = bank.names[0]
    a, b = bank.factors(1)[name]
    a0, b0 = genotype.factors[name]
    torch.testing.assert_close(bank.scale * b @ a, (24.0 / 4) * b0 @ a0)


def test_founders_differ_by_slot_and_return_with_the_seed() -> None:
    bank = tiny_bank(trained=False)
    again = tiny_bank(trained=False)
    assert torch.equal(bank.flat, again.flat)
    assert not torch.equal(bank.flat[0], bank.flat[1])
    bank.flat.normal_()
    bank.reset(1, rng_seed=0)
    assert torch.equal(bank.flat[1], again.flat[1])


def test_a_genotype_of_another_rank_is_refused_with_the_remedy() -> None:
    with pytest.raises(UserError, match="lora_rank 2 and this population 4"):
        tiny_bank().load(0, tiny_bank(rank=2).genotype(0))


def test_a_target_that_names_no_layer_is_refused() -> None:
    for target in ("w_pack", "proj"):  # "proj" is not the last part of a name, only the end of one
        with pytest.raises(UserError, match=f"'{target}'"):
            AdapterBank(freeze(tiny_model()), 2, targets=["q_proj", target])


def test_targets_may_be_named_by_their_last_part() -> None:
    bank = AdapterBank(freeze(tiny_model()), 2, rank=2, targets=["q_proj", "v_proj"])
    assert len(bank.names) == 4 and all(name.endswith(("q_proj", "v_proj")) for name in bank.names)


def test_removing_the_bank_gives_the_base_back() -> None:
    bank = tiny_bank()
    tokens = some_tokens(2)
    with bank.routed([0, 1]):
        bank.detach_from_base()
        assert torch.equal(bank.base.model(tokens).logits, tiny_model()(tokens).logits)


def test_a_fresh_a_is_uniform_within_the_bound_of_peft() -> None:
    for a, _ in tiny_bank(trained=False).factors(0).values():
        bound = a.shape[1] ** -0.5
        assert 0.9 * bound < a.abs().max() <= bound
        assert a.std() == pytest.approx(bound / 3**0.5, rel=0.2)


def test_a_slot_outside_the_bank_is_refused() -> None:
    bank = tiny_bank()
    for slot in (-1, 3):
        with pytest.raises(IndexError, match=rf"slot {slot} is outside the bank's 0..2"):
            bank.genotype(slot)
    for slots in ([0, 3], [BASE_SLOT - 1, 0], []):
        with pytest.raises(IndexError, match=r"row slots must be -1\.\.2 and at least one"):
            bank.route(slots)


def test_a_genotype_of_other_modules_or_shapes_is_refused() -> None:
    bank = tiny_bank()
    part = AdapterBank(freeze(tiny_model()), 1, rank=4, targets=["q_proj"])
    for into, other in ((bank, part.genotype(0)), (part, bank.genotype(0))):
        with pytest.raises(UserError, match="do not adapt the same modules"):
            into.load(0, other)
    narrow = {name: (a[:, :1], b) for name, (a, b) in bank.genotype(0).factors.items()}
    with pytest.raises(UserError, match="do not have the shapes"):
        bank.load(0, Genotype(narrow, bank.alpha))
