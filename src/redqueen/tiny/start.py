"""Begin a training with the finished weights of an earlier base whose vocabulary may be another one."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from redqueen.domains.compact import MARKS
from redqueen.errors import UserError


def begin_with(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, start: Path, earlier_sharpness: float
) -> None:
    """Give ``model`` the weights of the finished base in ``start``.

    Embedding rows are carried over by token text. A new token's row is the mean of its bytes' rows, a new mark's that
    of the marks that were there. ``earlier_sharpness`` was folded into the last norm and is divided out. Raises
    UserError when the folder holds no base or one of another shape.
    """
    refuse_no_base(start)
    known = PreTrainedTokenizerFast.from_pretrained(start)
    weights = {name: tensor.float() for name, tensor in load_file(start / "model.safetensors").items()}
    rows = weights.pop("model.embed_tokens.weight")
    weights.pop("lm_head.weight", None)  # tied to the embedding
    weights["model.norm.weight"] = weights["model.norm.weight"] / earlier_sharpness
    state = model.state_dict()
    other = {name for name in state if name not in ("model.embed_tokens.weight", "lm_head.weight")}
    if other != weights.keys() or any(state[name].shape != tensor.shape for name, tensor in weights.items()):
        raise UserError(f"--start {start}: the base there has another architecture than the recipe's")
    model.load_state_dict(weights, strict=False)
    with torch.no_grad():
        embedding = model.model.embed_tokens.weight
        embedding.copy_(carried_rows(rows, known, tokenizer, len(embedding)))


def refuse_no_base(start: Path) -> None:
    """Raise UserError when the folder holds no base."""
    if not (start / "model.safetensors").exists() or not (start / "tokenizer.json").exists():
        raise UserError(f"--start {start}: there is no base; name the base/ folder of a training that ended")


def carried_rows(
    rows: Tensor, known: PreTrainedTokenizerFast, wanted: PreTrainedTokenizerFast, num_rows: int
) -> Tensor:
    """Return the embedding (num_rows, width) of the wanted tokenizer's tokens; rows beyond them are the mean row."""
    earlier = known.get_vocab()
    marks = torch.stack([rows[earlier[mark]] for mark in MARKS if mark in earlier]).mean(0)
    result = rows[: len(earlier)].mean(0).repeat(num_rows, 1)
    for token, index in wanted.get_vocab().items():
        if token in earlier:
            result[index] = rows[earlier[token]]
        elif token in MARKS:
            result[index] = marks
        else:  # a token is spelled in the characters that stand for its bytes, and each of these is a token
            result[index] = torch.stack([rows[earlier[character]] for character in token]).mean(0)
    return result
