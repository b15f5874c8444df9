"""Tiny random models of every supported architecture, and a bank of members that differ from the base."""

import torch
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    PhiConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Precision, freeze

SHAPE = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    # Random embeddings this wide make next tokens differ from position to position.
    "initializer_range": 0.2,
}

CONFIGS: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(**SHAPE),
    "qwen2": Qwen2Config(**SHAPE),
    "qwen3": Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True),
    "mistral": MistralConfig(**SHAPE),
    "gemma": GemmaConfig(**SHAPE, head_dim=16),
    "phi": PhiConfig(**SHAPE),
}


def tiny_model(architecture: str = "qwen3", rng_seed: int = 0) -> PreTrainedModel:
    torch.manual_seed(rng_seed)
    return AutoModelForCausalLM.from_config(CONFIGS[architecture]).eval()


def tiny_bank(
    architecture: str = "qwen3",
    num_members: int = 3,
    precision: Precision = "fp32",
    trained: bool = True,
    rank: int = 4,
    model: PreTrainedModel | None = None,
) -> AdapterBank:
    """``trained``: with B drawn at random, as if every member had learned something of its own."""
    base = freeze(model or tiny_model(architecture), precision=precision)
    bank = AdapterBank(base, num_members, rank=rank, alpha=8.0)
    if trained:
        generator = torch.Generator().manual_seed(1)
        for slot in range(num_members):
            for _, b in bank.factors(slot).values():
                b.normal_(0.0, 0.3, generator=generator)
    return bank
