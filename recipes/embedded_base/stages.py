"""Every number of the recipe (all ours): the model's shape and the three training stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

HIDDEN_SIZE, NUM_LAYERS, NUM_HEADS, NUM_KV_HEADS, INTERMEDIATE_SIZE = 256, 4, 8, 4, 640
MAX_POSITIONS = 1024
WEIGHT_DECAY, MAX_GRAD_NORM = 0.05, 1.0
WARMUP_STEPS = 60
"""The learning rate rises over these steps, then falls linearly to zero at the last step."""
SHARPNESS = 1.25
"""Factor on the finished model's logits, folded into its last norm. A model this small, fitted to random programs, has
a flat distribution, and self-play samples at temperature 1."""
VOCABULARY_PROGRAMS = 10_000
"""Programs of each world from which the vocabulary is built."""


@dataclass(frozen=True)
class Stage:
    """One training run, which starts from the weights of the stage before it.

    ``mixture`` maps the name of a source to its share of the tokens (relative weight): a world of programs of
    ``problems.WORLDS``, or a domain of ``lessons.LESSONS``. ``learning_rate`` is that of Muon (hidden matrices) and of
    AdamW (embeddings and norms). ``think_frac`` is the share of ``code_o`` and ``code_i`` answers that begin with a
    thought, set only by the loss weight of the first token. ``input_proposal_frac`` is the probability that a problem
    also gives a ``code_f`` proposal, with ``num_inputs`` inputs; the verifier uses the first ten that differ.
    """

    name: str
    rng_seed: int
    mixture: Mapping[str, float]
    num_steps: int
    num_rows: int
    row_tokens: int
    learning_rate: float
    think_frac: float
    input_proposal_frac: float
    num_inputs: int


STAGES = (
    Stage("basic", 0, {"basic": 1.0}, 5_200, 40, 256, 5e-3, 0.12, 0.2, 10),
    Stage(
        "everyday",
        0,
        {"basic": 0.27, "everyday": 0.48, "maths": 0.09, "logic": 0.08, "proofs": 0.08},
        1_000, 32, 320, 3e-3, 0.97, 0.4, 12,
    ),
    Stage(
        "broad",
        1,
        {"basic": 0.2, "everyday": 0.35, "maths": 0.11, "logic": 0.17, "proofs": 0.17},
        1_000, 32, 320, 3e-3, 0.97, 0.4, 12,
    ),
)  # fmt: skip
"""The weights in the package are those of the last one."""


def build_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return an untrained model; call ``torch.manual_seed`` first."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=-(-len(tokenizer) // 32) * 32,
            hidden_size=HIDDEN_SIZE,
            num_hidden_layers=NUM_LAYERS,
            num_attention_heads=NUM_HEADS,
            num_key_value_heads=NUM_KV_HEADS,
            head_dim=HIDDEN_SIZE // NUM_HEADS,
            intermediate_size=INTERMEDIATE_SIZE,
            max_position_embeddings=MAX_POSITIONS,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
