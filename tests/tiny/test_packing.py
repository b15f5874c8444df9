"""Packed groups: layout by hand, the mask by hand, and that packing loses and repeats nothing."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.tiny.packing import Group, pack

PAD = 99


def test_a_group_is_laid_out_prompt_first_and_each_completion_goes_on_from_the_prompts_end():
    packed = pack([Group((1, 2), ((3, 4), (5,)))], row_tokens=8, pad_id=PAD)
    assert packed.tokens.tolist() == [[1, 2, 3, 4, 5]]
    assert packed.positions.tolist() == [[0, 1, 2, 3, 2]]
    assert packed.branch.tolist() == [[0, 0, 1, 1, 2]]


def test_the_last_prompt_token_predicts_the_first_token_of_every_completion():
    packed = pack([Group((1, 2), ((3, 4), (5,)))], row_tokens=8, pad_id=PAD)
    links = list(zip(packed.source.tolist(), packed.target.tolist(), packed.completion.tolist(), strict=True))
    assert links == [(1, 2, 0), (2, 3, 0), (1, 4, 1)]


def test_a_completion_sees_its_prompt_and_itself_but_no_sibling_and_no_other_group():
    packed = pack([Group((1, 2), ((3, 4), (5,))), Group((6,), ((7,),))], row_tokens=8, pad_id=PAD)
    seen = packed.mask()[0, 0].int().tolist()
    assert seen == [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1],
    ]


def test_groups_of_different_owners_never_share_a_row():
    packed = pack([Group((1,), ((2,),), owner=0), Group((3,), ((4,),), owner=1)], row_tokens=16, pad_id=PAD)
    assert packed.owner.tolist() == [0, 1]
    assert packed.tokens.shape == (2, 2)


def test_a_group_too_long_for_a_row_is_split_and_its_prompt_repeated():
    packed = pack([Group((1, 2), ((3, 4), (5, 6), (7, 8)))], row_tokens=6, pad_id=PAD)
    assert sorted(packed.tokens.tolist()) == [[1, 2, 3, 4, 5, 6], [1, 2, 7, 8, PAD, PAD]]


def test_padding_always_has_something_to_look_at():
    packed = pack([Group((1, 2), ((3, 4),)), Group((1,), ((2,),), owner=1)], row_tokens=4, pad_id=PAD)
    assert packed.mask().any(dim=-1).all()


tokens = st.integers(0, 50)
groups = st.builds(
    Group,
    prompt=st.lists(tokens, min_size=1, max_size=6).map(tuple),
    completions=st.lists(st.lists(tokens, min_size=1, max_size=5).map(tuple), min_size=1, max_size=5).map(tuple),
    owner=st.integers(0, 2),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(groups, min_size=1, max_size=8), st.integers(4, 24))
def test_every_completion_token_is_predicted_exactly_once_and_is_the_right_token(listed, row_tokens):
    packed = pack(listed, row_tokens, PAD)
    found = {}
    values = packed.tokens[packed.row, packed.target]
    for g, c, o, token in zip(
        packed.group.tolist(), packed.completion.tolist(), packed.offset.tolist(), values.tolist(), strict=True
    ):
        assert (g, c, o) not in found
        found[g, c, o] = token
    wanted = {
        (g, c, o): token
        for g, group in enumerate(listed)
        for c, completion in enumerate(group.completions)
        for o, token in enumerate(completion)
    }
    assert found == wanted
    owners = torch.tensor([listed[g].owner for g in packed.group.tolist()])
    assert torch.equal(packed.owner[packed.row], owners)
