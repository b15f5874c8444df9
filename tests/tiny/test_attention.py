"""Plain batched attention computes what PyTorch's masked kernel does."""

import dataclasses

import torch
from transformers import AutoTokenizer

from redqueen.policy.base_shape import embedded_folder
from redqueen.tiny.attention import PACKED, additive
from redqueen.tiny.corpus import Corpus
from redqueen.tiny.recipe import Recipe, build_model

SMALL = dataclasses.replace(Recipe(), hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, intermediate_size=32)


def test_the_hidden_states_and_gradients_of_packed_rows_are_those_of_the_masked_kernel() -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    pack = Corpus(tokenizer, 0, 1, 2, 256)[0].pack
    results = []
    for attention in ("sdpa", PACKED):
        torch.manual_seed(0)
        model = build_model(SMALL, tokenizer).double()  # float32 rounds by more than the bound on some processors
        model.config._attn_implementation = attention
        mask = additive(pack.mask(), torch.float64) if attention == PACKED else pack.mask()
        hidden = model.model(
            input_ids=pack.tokens, attention_mask=mask, position_ids=pack.positions, use_cache=False
        ).last_hidden_state
        kept = hidden[pack.segment >= 0]
        (kept[:, 0] ** 2).sum().backward()
        results.append((kept, model.model.embed_tokens.weight.grad))
    for one, two in zip(*results, strict=True):
        assert torch.allclose(one, two, atol=1e-4)


def test_what_is_added_is_nothing_where_one_may_look_and_the_lowest_number_where_not() -> None:
    added = additive(torch.tensor([[True, False]]), torch.bfloat16)
    assert added.tolist() == [[0.0, torch.finfo(torch.bfloat16).min]]
