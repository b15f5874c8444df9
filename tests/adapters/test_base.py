"""The frozen base: what its precision touches and what it leaves, and how long its texts may be."""

from typing import Any
from unittest import mock

import pytest
import torch
from tiny_models import CONFIGS, SHAPE, tiny_model
from transformers import AutoModelForCausalLM, Phi3Config

from redqueen.adapters.base import freeze
from redqueen.adapters.base_shape import positions_of
from redqueen.errors import UserError


@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_in_bf16_the_frequencies_of_positions_are_not_rounded(architecture: str, device: str) -> None:
    model = tiny_model(architecture)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with mock.patch(
        "redqueen.adapters.base._problem_of", return_value=""
    ):  # reads values, which nothing has on this device
        base = freeze(model, device, "bf16")
    found = dict(base.model.named_buffers())
    assert any("inv_freq" in name for name in found)
    assert {name: one.dtype for name, one in found.items()} == {name: one.dtype for name, one in before.items()}
    assert device == "meta" or all(torch.equal(found[name], before[name]) for name in before)
    weights = {parameter.dtype for name, parameter in base.model.named_parameters() if "_proj" in name}
    assert weights == {torch.bfloat16}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"max_position_embeddings": 512}, 512),
        ({}, 1 << 30),
        ({"max_position_embeddings": 512, "sliding_window": 128}, 128),
        ({"max_position_embeddings": 512, "sliding_window": 128, "use_sliding_window": False}, 512),
        ({"max_position_embeddings": 512, "rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, 512),
        ({"max_position_embeddings": 512, "rope_scaling": None}, 512),
        (
            {
                "max_position_embeddings": 131_072,
                "original_max_position_embeddings": 4096,
                "rope_scaling": {"type": "longrope", "long_factor": [], "short_factor": []},
            },
            4096,
        ),
        (
            {
                "max_position_embeddings": 512,
                "rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 64},
            },
            64,
        ),
    ],
)
def test_a_text_is_as_long_as_the_base_reads_it_by_the_same_frequencies(shape: dict[str, Any], expected: int) -> None:
    assert positions_of(shape) == expected


@pytest.mark.parametrize(
    "shape",
    [
        {"max_position_embeddings": "many"},
        {"max_position_embeddings": [4096]},
        {"max_position_embeddings": 1e400},
        {"max_position_embeddings": -5},
        {"max_position_embeddings": 1},
        {"max_position_embeddings": True},
        {"max_position_embeddings": 4096, "sliding_window": "a lot"},
        {"original_max_position_embeddings": "4096", "rope_scaling": {"type": "longrope"}},
    ],
)
def test_a_length_that_is_none_is_refused(shape: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="that is not a length: restore the model folder"):
        positions_of(shape)


def test_a_rope_that_is_no_object_says_nothing_of_the_length() -> None:
    assert positions_of({"max_position_embeddings": 64, "rope_scaling": "longrope"}) == 64


def test_a_longrope_base_as_loaded_has_the_positions_of_its_first_training() -> None:
    rope = {"rope_type": "longrope", "rope_theta": 10_000.0, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    config = Phi3Config(**SHAPE, original_max_position_embeddings=32, pad_token_id=0, rope_parameters=rope)
    assert freeze(AutoModelForCausalLM.from_config(config).eval()).max_positions == 32
