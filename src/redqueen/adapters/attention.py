"""Attention over a shared prompt and a row's own tokens, and the key-value cache for both.

The G attempts at one prompt share its keys and values: they are computed once, stored once, and read once per decoding
step as one product with G queries. A row's own tokens have a separate cache; the two partial softmaxes are merged
through their log-sum-exp, which is exact. (Known as bifurcated or cascade attention: Athiwaratkun et al. 2024.) Every
layer of any Hugging Face decoder calls this through the library's attention interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PretrainedConfig
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from redqueen.adapters.shared_prefixes import PackedPrompts
from redqueen.adapters.tree_attention import TreePlan, tree_attention

ATTENTION_NAME = "redqueen"


def register_attention() -> None:
    """Register ``attention`` with transformers under ``ATTENTION_NAME``."""
    AttentionInterface.register(ATTENTION_NAME, attention)
    AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    prefix_cache: PrefixCache | None = None,
    tree: TreePlan | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """Attend through ``prefix_cache`` while decoding, along ``tree`` in packed rows, and otherwise as the model asks.

    transformers calls this signature, including ``kwargs``. ``query`` (rows, heads, length, head_dim). Returns (rows,
    length, heads, head_dim). Keys and values are stored here; transformers gets no cache, since the methods that it
    calls on one, and the argument that takes it, differ between its releases.
    """
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if prefix_cache is not None:
        prefix_cache.store(key, value, cast(int, module.layer_idx))
    if tree is not None:
        packed = prefix_cache.packed if prefix_cache else None
        layer = cast(int, module.layer_idx)
        cached = prefix_cache.cached_keys_values(packed, layer) if prefix_cache and packed else None
        return tree_attention(query, key, value, tree, scale, cached), None
    if prefix_cache is None or not prefix_cache.decoding:
        plain: Callable[..., tuple[Tensor, None]] = sdpa_attention_forward
        return plain(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs)
    mixed = prefix_cache.attend(cast(int, module.layer_idx), query[:, :, 0], scale)  # (rows, heads * head_dim)
    return mixed.to(query.dtype).view(query.shape[0], 1, -1), None  # (rows, 1, heads * head_dim)


@dataclass
class StepIndex:
    """Indices and masks of a decoding step; rebuilt when rows are added or removed, ``own_*`` in each step.

    ``grouped`` (groups * ``group_size``,): the rows of each group, padded with any row; ``ungrouped`` (rows,): the
    index of a row among them; both None when the rows are already in this order. ``prompt_bias`` (groups, 1, 1, prompt
    length) and ``own_bias`` (rows, 1, 1, own length): 0 where there is a token and -inf elsewhere. ``own_place`` (rows
    * kv heads,): the index of a row's new key in the flat own cache.
    """

    grouped: Tensor | None
    ungrouped: Tensor | None
    group_size: int
    prompt_bias: Tensor
    own_bias: Tensor
    own_place: Tensor


class PrefixCache:
    """Keys and values of ``num_groups`` prompts and of the own tokens of ``num_rows`` rows, for every layer.

    Per layer, in ``dtype``: ``prompt_k``, ``prompt_v`` (groups * kv heads, prompt length, head_dim); ``own_k``,
    ``own_v`` (rows * kv heads, own length, head_dim).
    """

    def __init__(
        self,
        config: PretrainedConfig,
        num_groups: int,
        prompt_tokens: int,
        num_rows: int,
        own_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.kv_heads, self.head_dim = kv_shape(config)
        layers = range(config.num_hidden_layers)

        def zeros(count: int, length: int) -> list[Tensor]:
            shape = (count * self.kv_heads, length, self.head_dim)
            return [torch.zeros(shape, dtype=dtype, device=device) for _ in layers]

        self.prompt_k, self.prompt_v = zeros(num_groups, prompt_tokens), zeros(num_groups, prompt_tokens)
        self.own_k, self.own_v = zeros(num_rows, own_tokens), zeros(num_rows, own_tokens)
        self.decoding = False
        self.filling: Tensor | None = None
        self.packed: PackedPrompts | None = None
        self.step_index: StepIndex | None = None

    def store(self, key: Tensor, value: Tensor, layer: int) -> None:
        """Store a layer's new keys and values (rows, kv heads, length, head_dim), before any query attends to them.

        While decoding, they are one token for each row. Otherwise they are whole prompts of the groups ``filling``, or
        the rows into which these prompts are ``packed``.
        """
        if self.decoding:
            assert self.step_index is not None
            for store, new in ((self.own_k, key), (self.own_v, value)):
                flat = store[layer].view(-1, self.head_dim)  # (rows * kv heads * own length, head_dim)
                # new (rows, kv heads, 1, head_dim) -> (rows * kv heads, head_dim)
                flat.index_copy_(0, self.step_index.own_place, new.reshape(-1, self.head_dim).to(flat.dtype))
        else:
            assert self.filling is not None
            if key.shape[1] != self.kv_heads:
                raise ValueError(f"its config has {self.kv_heads} key-value heads, but the model has {key.shape[1]}")
            if self.packed is not None:
                before_k, before_v = self.cached_keys_values(self.packed, layer).chunk(2, dim=1)
                # (n, kv heads, length, head_dim) each, n = the groups that are filled
                key, value = self._whole(self.packed, key, before_k), self._whole(self.packed, value, before_v)
            for store, whole in ((self.prompt_k, key), (self.prompt_v, value)):
                # (groups, kv heads, prompt length, head_dim)
                prompts = store[layer].view(-1, self.kv_heads, store[layer].shape[1], self.head_dim)
                length = whole.shape[2]
                prompts[self.filling, :, :length] = whole.to(prompts.dtype)
                # Values of an earlier prompt are masked, but a masked NaN would still spoil the product.
                prompts[self.filling, :, length:] = 0.0

    def cached_keys_values(self, packed: PackedPrompts, layer: int) -> Tensor:
        """Return keys, then values (tokens, 2 * kv heads, head_dim), of the tokens ``packed.in_cache``."""
        place, position = packed.in_cache
        shape = (-1, self.kv_heads, self.prompt_tokens, self.head_dim)
        stores = self.prompt_k[layer].view(shape), self.prompt_v[layer].view(shape)
        return torch.cat([store[place, :, position] for store in stores], dim=1)

    def _whole(self, packed: PackedPrompts, rows: Tensor, before: Tensor) -> Tensor:
        """Gather prompts (n, kv heads, length, head_dim) from packed rows (rows, kv heads, row length, head_dim) and
        the tokens ``before`` (tokens, kv heads, head_dim)."""
        # (rows * row length, kv heads, head_dim)
        flat = rows.transpose(1, 2).reshape(-1, self.kv_heads, self.head_dim)
        found = torch.cat((flat, before.to(flat.dtype)))[packed.sources.clamp(min=0)]  # (n, length, kv heads, head_dim)
        return torch.where((packed.sources >= 0)[..., None, None], found, 0.0).transpose(1, 2)

    def clear_own(self, rows: Tensor) -> None:
        """Zero the own cache of ``rows`` before new attempts use it, so that a broken member leaves no NaN."""
        for store in (*self.own_k, *self.own_v):
            store.view(-1, self.kv_heads, store.shape[1], self.head_dim)[rows] = 0.0

    @property
    def prompt_tokens(self) -> int:
        """The length of the prompt cache."""
        return self.prompt_k[0].shape[1]

    def cut_prompts(self, prompt_tokens: int) -> None:
        """Shorten the prompt cache, when only shorter prompts are left."""
        for layers in (self.prompt_k, self.prompt_v):
            for i, store in enumerate(layers):
                layers[i] = store[:, :prompt_tokens].contiguous()

    def grow_own(self, own_tokens: int) -> None:
        """Extend every row's own cache to ``own_tokens`` tokens."""
        for layers in (self.own_k, self.own_v):
            for i, store in enumerate(layers):
                # (rows * kv heads, own_tokens, head_dim)
                longer = store.new_zeros(store.shape[0], own_tokens, self.head_dim)
                longer[:, : store.shape[1]] = store
                layers[i] = longer

    def keep(self, groups: Tensor | None, rows: Tensor) -> None:
        """Keep only the given ``rows`` and, unless None, ``groups``, in the given order."""
        for stores, kept in (((self.prompt_k, self.prompt_v), groups), ((self.own_k, self.own_v), rows)):
            if kept is None:
                continue
            for layers in stores:
                for i, store in enumerate(layers):
                    # (groups or rows, kv heads, length, head_dim)
                    blocks = store.view(-1, self.kv_heads, store.shape[1], self.head_dim)
                    layers[i] = blocks.index_select(0, kept).view(-1, store.shape[1], self.head_dim)

    def attend(self, layer: int, query: Tensor, scale: float) -> Tensor:
        """Attend with one query for each row to its prompt and its own tokens.

        ``query`` (rows, heads, head_dim). Returns (rows, heads * head_dim) of the cache's dtype.
        """
        assert self.step_index is not None
        step_index, heads, dim = self.step_index, self.kv_heads, self.head_dim
        num_rows, num_heads, _ = query.shape
        shared = num_heads // heads  # query heads that share one key-value head
        q = query.to(self.own_k[layer].dtype)  # (rows, heads, head_dim)
        # own (rows * kv heads, shared, head_dim), own_lse (rows, kv heads, shared)
        own, own_lse = partial_attention(
            q.reshape(num_rows * heads, shared, dim),
            self.own_k[layer],
            self.own_v[layer],
            step_index.own_bias,
            heads,
            scale,
        )
        groups, size = step_index.prompt_bias.shape[0], step_index.group_size
        if step_index.grouped is not None:
            q = q.index_select(0, step_index.grouped)  # (groups * group_size, heads, head_dim)
        # The rows of a group become more queries of its prompt: (groups * kv heads, group_size * shared, head_dim)
        grouped = q.reshape(groups, size, heads, shared, dim).transpose(1, 2).reshape(-1, size * shared, dim)
        # out (groups * kv heads, group_size * shared, head_dim), lse (groups, kv heads, group_size * shared)
        out, lse = partial_attention(
            grouped, self.prompt_k[layer], self.prompt_v[layer], step_index.prompt_bias, heads, scale
        )
        # Back to one entry per row: out (groups * group_size, heads, head_dim), lse (groups * group_size, heads, 1)
        out = out.view(groups, heads, size, shared, dim).transpose(1, 2).reshape(-1, num_heads, dim)
        lse = lse.view(groups, heads, size, shared).transpose(1, 2).reshape(-1, num_heads, 1)
        if step_index.ungrouped is not None:
            out, lse = out.index_select(0, step_index.ungrouped), lse.index_select(0, step_index.ungrouped)
        # Softmax over both parts: weights e^lse of each, normalised = a sigmoid of their difference.
        share = torch.sigmoid(lse - own_lse.view(num_rows, num_heads, 1)).to(out.dtype)  # (rows, heads, 1)
        return torch.lerp(own.view(num_rows, num_heads, dim), out, share).view(num_rows, num_heads * dim)


def partial_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, heads: int, scale: float) -> tuple[Tensor, Tensor]:
    """Softmax attention over one part of the keys, with the log-sum-exp that is needed to merge parts.

    ``q`` (batch * heads, queries, dim); ``k``, ``v`` (batch * heads, keys, dim); ``bias`` (batch, 1, 1, keys) fp32.
    Returns the output like ``q`` and the log-sum-exp of the scores (batch, heads, queries) fp32.
    """
    # (batch, heads, queries, keys)
    products = torch.bmm(q, k.transpose(1, 2)).view(bias.shape[0], heads, q.shape[1], k.shape[1])
    scores = torch.add(bias, products, alpha=scale)
    weights = torch.softmax(scores, dim=-1)
    # The largest weight is e^(max - lse): two cheap maxima instead of another pass of exponentials.
    lse = scores.amax(dim=-1) - weights.amax(dim=-1).log_()  # (batch, heads, queries)
    return torch.bmm(weights.view(q.shape[0], q.shape[1], -1).to(v.dtype), v), lse


def kv_shape(config: PretrainedConfig) -> tuple[int, int]:
    """Return (key-value heads, head dimension) of a decoder's configuration."""
    heads = int(config.num_attention_heads)
    kv_heads = int(getattr(config, "num_key_value_heads", None) or heads)
    head_dim = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    return kv_heads, head_dim
