"""The recipe of the embedded base: architecture, corpus and schedule, in one record that goes into the model card."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from random import Random

from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from redqueen.tiny.corpus import Author, Teaching
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.mixture import lessons_of, words_of
from redqueen.tiny.tokenizer import build_tokenizer, build_vocabulary
from redqueen.tiny.worlds import WORLDS


@dataclass(frozen=True)
class Recipe:
    """Every number that makes the embedded base (all ours)."""

    rng_seed: int = 0
    hidden_size: int = 256
    num_layers: int = 4
    num_heads: int = 8
    num_kv_heads: int = 4
    intermediate_size: int = 640
    max_positions: int = 1024
    num_steps: int = 5200
    """Optimiser steps; one step is ``num_rows * row_tokens`` tokens."""
    num_rows: int = 40
    row_tokens: int = 256
    muon_lr: float = 5e-3
    """Step size of the hidden matrices (Muon, scaled to match the RMS of an AdamW update)."""
    adamw_lr: float = 5e-3
    """Step size of embeddings and norms."""
    weight_decay: float = 0.05
    warmup_steps: int = 60
    """Both step sizes rise over these, and from there fall linearly to zero at the last step."""
    vocabulary_programs: int = 10_000
    vocabulary_seed: int = 0
    """Of the programs that the vocabulary is read off: a recipe that continues another keeps its words with it."""
    max_grad_norm: float = 1.0
    sharpness: float = 1.25
    """What the finished model's logits are multiplied by (folded into its last norm). A model this small, fitted to
    chance programs, spreads its probability wide; self-play samples at temperature 1."""
    think_habit_frac: float = 0.12
    """Share of code_o and code_i answers that open with a thought, as the weight of the first token teaches it."""
    input_proposal_frac: float = 0.2
    """Chance that a problem is used to teach a code_f proposal (a message and inputs) too."""
    num_proposed_inputs: int = 10
    """Inputs of such a proposal. The verifier takes the first ten that differ, so a few more forgive repetitions."""
    most_wrong_guesses: int = 1
    """Wrong guesses that a thought holds at most before the right one; half of the thoughts have another one."""
    tries_programs: bool = False
    """Whether code_f answers think too: candidates, each traced on shown pairs, until one fits."""
    mixture: dict[str, float] = field(default_factory=lambda: {"basic": 1.0})
    """Share of the corpus' tokens (relative weight) by source: a world of programs (``basic``, ``everyday``), or the
    name of a domain that brings lessons. A batch is filled by whoever is furthest behind its share."""
    continues: str = ""
    """Name of the recipe whose finished weights this one begins with; "": from nothing."""

    def teaching(self) -> Teaching:
        """Return the fields that say how the corpus teaches."""
        return Teaching(
            self.think_habit_frac,
            self.input_proposal_frac,
            self.num_proposed_inputs,
            self.most_wrong_guesses,
            self.tries_programs,
        )


RECIPES: dict[str, Recipe] = {
    "basic": Recipe(),
    "everyday": Recipe(
        think_habit_frac=0.97,
        input_proposal_frac=0.4,
        num_proposed_inputs=12,
        mixture={"basic": 0.27, "everyday": 0.48, "maths": 0.09, "logic": 0.08, "proofs": 0.08},
        continues="basic",
        num_steps=1_000,
        num_rows=32,
        row_tokens=320,
        muon_lr=3e-3,
        adamw_lr=3e-3,
    ),
    "broad": Recipe(
        rng_seed=1,
        think_habit_frac=0.97,
        input_proposal_frac=0.4,
        num_proposed_inputs=12,
        mixture={"basic": 0.2, "everyday": 0.35, "maths": 0.11, "logic": 0.17, "proofs": 0.17},
        continues="everyday",
        num_steps=1_000,
        num_rows=32,
        row_tokens=320,
        muon_lr=3e-3,
        adamw_lr=3e-3,
    ),
    "young": Recipe(
        rng_seed=3,
        think_habit_frac=0.97,
        input_proposal_frac=0.4,
        num_proposed_inputs=12,
        mixture={"basic": 0.25, "everyday": 0.42, "maths": 0.11, "logic": 0.11, "proofs": 0.11},
        num_steps=1_200,
        num_rows=32,
        row_tokens=320,
    ),
    "search": Recipe(
        rng_seed=2,
        think_habit_frac=0.97,
        input_proposal_frac=0.4,
        num_proposed_inputs=12,
        most_wrong_guesses=3,
        tries_programs=True,
        mixture={"basic": 0.25, "everyday": 0.45, "maths": 0.09, "logic": 0.11, "proofs": 0.1},
        continues="broad",
        num_steps=900,
        num_rows=24,
        row_tokens=448,
        muon_lr=3e-3,
        adamw_lr=3e-3,
    ),
    "maths": Recipe(
        rng_seed=4,
        think_habit_frac=0.97,
        mixture={"maths": 1.0},
        continues="broad",
        num_steps=220,
        num_rows=32,
        row_tokens=320,
        muon_lr=3e-3,
        adamw_lr=3e-3,
        warmup_steps=20,
    ),
}
"""By name. ``basic`` begins from nothing and seldom thinks; ``everyday`` goes on from it with a wider world, thinks by
habit and practises code_f proposals; ``broad`` goes on from that one with more mathematics, logic and proofs, from
other problems than before; ``search`` goes on from that one with thoughts that try several programs or inputs.
``young`` begins from nothing and ends after a sixth of what ``broad`` has seen; ``maths`` goes on from ``broad`` with
nothing but mathematics, as much as that one has seen of it. The weights in the package are those of ``broad``."""


def build_recipe_tokenizer(recipe: Recipe, held_out: Set[str]) -> PreTrainedTokenizerFast:
    """Read the vocabulary off freshly written programs and lessons of the mixture and return the tokenizer."""
    programs: list[str] = []
    others: list[str] = []
    rng = Random(f"vocabulary/{recipe.vocabulary_seed}")
    for name in recipe.mixture:
        if name in WORLDS:
            author = Author(rng, held_out, world=WORLDS[name])
            problems = [author.problem(LEVELS[i % len(LEVELS)]) for i in range(recipe.vocabulary_programs)]
            programs += [p.code for p in problems]
            others += [p.message for p in problems]
        else:
            write = lessons_of(name)
            lessons = [lesson for _ in range(recipe.vocabulary_programs // 5) for lesson in write(rng)]
            others += [text for lesson in lessons for text in words_of(lesson)]
    return build_tokenizer(build_vocabulary(programs, others, min_count=30))


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return the untrained model; call ``torch.manual_seed`` first."""
    vocab_size = -(-len(tokenizer) // 32) * 32
    config = Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=recipe.hidden_size,
        num_hidden_layers=recipe.num_layers,
        num_attention_heads=recipe.num_heads,
        num_key_value_heads=recipe.num_kv_heads,
        head_dim=recipe.hidden_size // recipe.num_heads,
        intermediate_size=recipe.intermediate_size,
        max_position_embeddings=recipe.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    config._attn_implementation = "sdpa"
    return Qwen3ForCausalLM(config)
