"""Attention over a shared prompt and a row's own tokens, and the key-value cache that feeds it.

The G attempts at one prompt share its keys and values: they are computed once, stored once and read once for all
attempts of a step, as one product of G queries. A row's own tokens have a cache of their own; the two partial softmaxes
are merged through their log-sum-exp, which is exact. (Known as bifurcated or cascade attention: Athiwaratkun et al.
2024.) Every layer of any Hugging Face decoder reaches this through the library's attention interface.
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
    """Make this file's attention known to transformers under ``ATTENTION_NAME``."""
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
    """Attend through ``prefix_cache`` while decoding, along ``tree`` in packed rows, else plainly as the model asks.

    The signature, open ``kwargs`` included, is the one transformers calls. ``query`` (rows, heads, length, head_dim).
    Returns (rows, length, heads, head_dim). Keys and values are stored here: transformers is given no cache, since the
    methods that it calls on one, and the argument that takes it, differ between its releases.
    """
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if prefix_cache is not None:
        prefix_cache.store(key, value, cast(int, module.layer_idx))
    if tree is not None:
        packed = prefix_cache.packed if prefix_cache else None
        cached = prefix_cache.beginnings(packed, cast(int, module.layer_idx)) if prefix_cache and packed else None
        return tree_attention(query, key, value, tree, scale, cached), None
    if prefix_cache is None or not prefix_cache.decoding:
        plain: Callable[..., tuple[Tensor, None]] = sdpa_attention_forward
        return plain(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs)
    mixed = prefix_cache.attend(cast(int, module.layer_idx), query[:, :, 0], scale)  # (rows, heads * head_dim)
    return mixed.to(query.dtype).view(query.shape[0], 1, -1), None  # (rows, 1, heads * head_dim)


@dataclass
class Reading:
    """What a decoding step reads of the cache; rebuilt when rows come or go, ``own_*`` each step.

    ``grouped`` (groups * ``group_size``,): the rows of each group, padded with any row; ``ungrouped`` (rows,): the
    index of a row among them; both None when the rows lie so already. ``prompt_bias`` (groups, 1, 1, prompt length) and
    ``own_bias`` (rows, 1, 1, own length): 0 where there is a token and -inf elsewhere. ``own_place`` (rows * kv
    heads,): where the new key of a row goes in the flat own cache.
    """

    grouped: Tensor | None
    ungrouped: Tensor | None
    group_size: int
    prompt_bias: Tensor
    own_bias: Tensor
    own_place: Tensor


class PrefixCache:
    """Keys and values of ``num_groups`` prompts and of ``num_rows`` rows' own tokens, for every layer.

    Per layer ``prompt_k``, ``prompt_v``: (groups * kv heads, prompt length, head_dim), ``own_k``, ``own_v``:
    (rows * kv heads, own length, head_dim), of ``dtype``.
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
        self.reading: Reading | None = None

    def store(self, key: Tensor, value: Tensor, layer: int) -> None:
        """Store a layer's new keys and values (rows, kv heads, length, head_dim), before anything attends to them.

        Filling: they are whole prompts, for the groups ``filling``, or the rows in which these are ``packed``.
        Decoding: one token for each row.
        """
        if self.decoding:
            assert self.reading is not None
            for store, new in ((self.own_k, key), (self.own_v, value)):
                flat = store[layer].view(-1, self.head_dim)  # (rows * kv heads * own length, head_dim)
                # new (rows, kv heads, 1, head_dim) -> (rows * kv heads, head_dim)
                flat.index_copy_(0, self.reading.own_place, new.reshape(-1, self.head_dim).to(flat.dtype))
        else:
            assert self.filling is not None
            if key.shape[1] != self.kv_heads:
                raise ValueError(f"its config says {self.kv_heads} heads of keys, and it has {key.shape[1]}")
            if self.packed is not None:
                before_k, before_v = self.beginnings(self.packed, layer).chunk(2, dim=1)
                # (n, kv heads, length, head_dim) each, n = the groups that are filled
                key, value = self._whole(self.packed, key, before_k), self._whole(self.packed, value, before_v)
            for store, whole in ((self.prompt_k, key), (self.prompt_v, value)):
                # (groups, kv heads, prompt length, head_dim)
                prompts = store[layer].view(-1, self.kv_heads, store[layer].shape[1], self.head_dim)
                length = whole.shape[2]
                prompts[self.filling, :, :length] = whole.to(prompts.dtype)
                # What an earlier prompt left behind is masked, but a masked NaN would still spoil the product.
                prompts[self.filling, :, length:] = 0.0

    def beginnings(self, packed: PackedPrompts, layer: int) -> Tensor:
        """Return keys, then values (tokens, 2 * kv heads, head_dim), of what ``packed`` finds in the cache."""
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
        """Zero the own cache of ``rows`` before new attempts move in, so that a broken member leaves no NaN."""
        for store in (*self.own_k, *self.own_v):
            store.view(-1, self.kv_heads, store.shape[1], self.head_dim)[rows] = 0.0

    @property
    def prompt_tokens(self) -> int:
        """The length of the prompts' part."""
        return self.prompt_k[0].shape[1]

    def cut_prompts(self, prompt_tokens: int) -> None:
        """Shorten the prompts' part, when only shorter prompts are left."""
        for layers in (self.prompt_k, self.prompt_v):
            for i, store in enumerate(layers):
                layers[i] = store[:, :prompt_tokens].contiguous()

    def grow_own(self, own_tokens: int) -> None:
        """Make room for ``own_tokens`` tokens in every row's own cache."""
        for layers in (self.own_k, self.own_v):
            for i, store in enumerate(layers):
                # (rows * kv heads, own_tokens, head_dim)
                longer = store.new_zeros(store.shape[0], own_tokens, self.head_dim)
                longer[:, : store.shape[1]] = store
                layers[i] = longer

    def keep(self, groups: Tensor | None, rows: Tensor) -> None:
        """Shrink to the given ``rows`` and, unless None, ``groups``, in the given order."""
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
        assert self.reading is not None
        reading, heads, dim = self.reading, self.kv_heads, self.head_dim
        num_rows, num_heads, _ = query.shape
        shared = num_heads // heads  # query heads that share one key-value head
        q = query.to(self.own_k[layer].dtype)  # (rows, heads, head_dim)
        # own (rows * kv heads, shared, head_dim), own_lse (rows, kv heads, shared)
        own, own_lse = partial_attention(
            q.reshape(num_rows * heads, shared, dim),
            self.own_k[layer],
            self.own_v[layer],
            reading.own_bias,
            heads,
            scale,
        )
        groups, size = reading.prompt_bias.shape[0], reading.group_size
        if reading.grouped is not None:
            q = q.index_select(0, reading.grouped)  # (groups * group_size, heads, head_dim)
        # The rows of a group become further queries of its prompt: (groups * kv heads, group_size * shared, head_dim)
        grouped = q.reshape(groups, size, heads, shared, dim).transpose(1, 2).reshape(-1, size * shared, dim)
        # out (groups * kv heads, group_size * shared, head_dim), lse (groups, kv heads, group_size * shared)
        out, lse = partial_attention(
            grouped, self.prompt_k[layer], self.prompt_v[layer], reading.prompt_bias, heads, scale
        )
        # Back to one line for each row: out (groups * group_size, heads, head_dim), lse (groups * group_size, heads, 1)
        out = out.view(groups, heads, size, shared, dim).transpose(1, 2).reshape(-1, num_heads, dim)
        lse = lse.view(groups, heads, size, shared).transpose(1, 2).reshape(-1, num_heads, 1)
        if reading.ungrouped is not None:
            out, lse = out.index_select(0, reading.ungrouped), lse.index_select(0, reading.ungrouped)
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
