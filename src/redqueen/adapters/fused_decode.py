"""A faster decoding step for Llama, Mistral, Qwen2 and Qwen3 models on a CPU.

At a few hundred rows of a small model a step is bound by the number of operations, not by their size. Here a layer's
query, key and value projections are one product, gate and up another, each with concatenated factors of the members,
and norms are single operations. The result equals that of the library's layers up to rounding; prompts and training use
the library's layers. The concatenated weights are copies, made once for all samplers of a bank.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PretrainedConfig

from redqueen.adapters.attention import PrefixCache
from redqueen.adapters.bank import AdapterBank, Route, apply_delta
from redqueen.adapters.routing import Layout

FUSED_TYPES = ("llama", "mistral", "qwen2", "qwen3")
QKV, GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")


@dataclass(frozen=True)
class Projection:
    """Linear layers with the same input, fused: ``weight`` (out of all, in), and the modules' names in order."""

    names: tuple[str, ...]
    weight: Tensor
    bias: Tensor | None
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Deltas:
    """The active members' factors for one projection: ``a`` (active, ranks, in) of all its modules together, and for
    each module its columns of the output and its B (active, out, rank)."""

    a: Tensor
    b: tuple[tuple[slice, Tensor], ...]


@dataclass(frozen=True)
class Layer:
    """One decoder layer. ``head_norm`` (query and key heads, head_dim): Qwen3's norms of single heads, or None."""

    input_norm: Tensor
    qkv: Projection
    head_norm: Tensor | None
    output: Projection
    mlp_norm: Tensor
    gate_up: Projection
    down: Projection

    @property
    def projections(self) -> tuple[Projection, Projection, Projection, Projection]:
        """The projections in the order in which a step runs them."""
        return self.qkv, self.output, self.gate_up, self.down


def is_known(config: PretrainedConfig) -> bool:
    """Whether this file supports the model's layers."""
    return config.model_type in FUSED_TYPES and getattr(config, "hidden_act", "") == "silu"


def num_copied_weights(model: nn.Module) -> int:
    """Return how many weights of a supported model are copied for the fused projections."""
    return sum(m.weight.numel() for n, m in model.named_modules() if n.rpartition(".")[2] in (*QKV, *GATE_UP))


def fused_decoder(bank: AdapterBank) -> FusedDecoder | None:
    """Return a decoder for a supported base on a CPU, else None."""
    known = bank.base.device.type == "cpu" and is_known(bank.base.model.config)
    return FusedDecoder(bank) if known else None


class FusedDecoder:
    """Runs decoding steps of ``bank``'s base with its members' factors, for any number of samplers and lanes."""

    def __init__(self, bank: AdapterBank) -> None:
        self.bank, self.base = bank, bank.base
        config = self.base.model.config
        decoder = self.base.decoder
        self.eps = float(config.rms_norm_eps)
        self.heads = int(config.num_attention_heads)
        self.embedding = _weight(decoder.embed_tokens)
        self.rotary = cast(nn.Module, decoder.rotary_emb)
        self._table = (self.embedding.new_zeros(0), self.embedding.new_zeros(0))
        self.norm = _weight(decoder.norm)
        self.names = {module: name for name, module in self.base.model.named_modules()}
        self.layers = [self._read_layer(layer) for layer in cast(nn.ModuleList, decoder.layers)]

    def _read_layer(self, layer: nn.Module) -> Layer:
        attention, mlp = cast(nn.Module, layer.self_attn), cast(nn.Module, layer.mlp)
        head_norm = None
        if hasattr(attention, "q_norm"):
            kv_heads = int(self.base.model.config.num_key_value_heads)
            of_q, of_k = _weight(attention.q_norm), _weight(attention.k_norm)  # (head_dim,) each
            head_norm = torch.cat([of_q.expand(self.heads, -1), of_k.expand(kv_heads, -1)])
        return Layer(
            input_norm=_weight(layer.input_layernorm),
            qkv=self._fuse(*(getattr(attention, name) for name in QKV)),
            head_norm=head_norm,
            output=self._fuse(attention.o_proj),
            mlp_norm=_weight(layer.post_attention_layernorm),
            gate_up=self._fuse(*(getattr(mlp, name) for name in GATE_UP)),
            down=self._fuse(mlp.down_proj),
        )

    def _fuse(self, *modules: object) -> Projection:
        linears = [cast(nn.Linear, module) for module in modules]
        biases = [_weight(m).new_zeros(m.out_features) if m.bias is None else m.bias.detach() for m in linears]
        return Projection(
            names=tuple(self.names[m] for m in linears),
            weight=_weight(linears[0]) if len(linears) == 1 else torch.cat([_weight(m) for m in linears]),
            bias=torch.cat(biases) if any(m.bias is not None for m in linears) else None,
            widths=tuple(m.out_features for m in linears),
        )

    def deltas(self, route: Route) -> list[list[Deltas | None]]:
        """Concatenate a route's factors for each layer and projection; None where nothing is adapted."""
        index = {name: i for i, name in enumerate(self.bank.names)}
        return [[_fuse_factors(p, index, route) for p in layer.projections] for layer in self.layers]

    def step(
        self, tokens: Tensor, positions: Tensor, cache: PrefixCache, layout: Layout, deltas: list[list[Deltas | None]]
    ) -> Tensor:
        """Run one token of every row, ``tokens`` and ``positions`` (rows,); return hidden states (rows, width) fp32."""
        x = F.embedding(tokens, self.embedding)  # (rows, width)
        cos, sin = self._turns(x, positions)  # (rows, 1, head_dim)
        for i, layer in enumerate(self.layers):
            x = self._layer(i, layer, x, cos, sin, cache, layout, deltas[i])
        return F.rms_norm(x, x.shape[-1:], self.norm, self.eps)

    def _turns(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rotary cosines and sines (rows, 1, head_dim) of ``positions``, from a cached table.

        Rotary embeddings whose angles depend on the length of the text are computed each time.
        """
        if getattr(self.rotary, "rope_type", "default") != "default":
            cos, sin = self.rotary(x[:, None], positions[:, None])  # (rows, 1, head_dim)
            return cos, sin
        longest, table = int(positions.max()) + 1, self._table  # read once: another lane may set it meanwhile
        if len(table[0]) < longest:
            size = min(self.base.max_positions, max(256, 2 * longest))
            cos, sin = self.rotary(x[:, None], torch.arange(size, device=x.device)[None])  # (1, size, head_dim)
            self._table = table = (cos[0, :, None].clone(), sin[0, :, None].clone())  # (size, 1, head_dim)
        cos, sin = table
        return cos.index_select(0, positions), sin.index_select(0, positions)

    def _layer(
        self,
        i: int,
        layer: Layer,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        cache: PrefixCache,
        layout: Layout,
        deltas: list[Deltas | None],
    ) -> Tensor:
        dtype, rows = self.base.compute_dtype, x.shape[0]
        normed = F.rms_norm(x, x.shape[-1:], layer.input_norm, self.eps).to(dtype)  # (rows, width)
        # (rows, heads + 2 * kv heads, head_dim)
        qkv = self._project(layer.qkv, normed, layout, deltas[0]).view(rows, -1, cache.head_dim)
        # q_and_k (rows, heads + kv heads, head_dim), v (rows, kv heads, head_dim)
        q_and_k, v = qkv[:, : self.heads + cache.kv_heads].float(), qkv[:, self.heads + cache.kv_heads :]
        if layer.head_norm is not None:
            q_and_k = F.rms_norm(q_and_k, (cache.head_dim,), None, self.eps) * layer.head_norm
        first, second = q_and_k.chunk(2, dim=-1)  # (rows, heads + kv heads, head_dim / 2)
        q_and_k = (q_and_k * cos).addcmul_(torch.cat((-second, first), dim=-1), sin).to(dtype)
        cache.store(q_and_k[:, self.heads :], v, i)  # without a dimension for the length, which is 1
        mixed = cache.attend(i, q_and_k[:, : self.heads], cache.head_dim**-0.5)  # (rows, heads * head_dim)
        x = x + self._project(layer.output, mixed, layout, deltas[1])  # (rows, width)
        normed = F.rms_norm(x, x.shape[-1:], layer.mlp_norm, self.eps).to(dtype)
        gate, up = self._project(layer.gate_up, normed, layout, deltas[2]).chunk(2, dim=-1)  # (rows, hidden width) each
        return x + self._project(layer.down, F.silu(gate).mul_(up), layout, deltas[3])

    def _project(self, projection: Projection, x: Tensor, layout: Layout, deltas: Deltas | None) -> Tensor:
        y = F.linear(x, projection.weight, projection.bias)  # (rows, out of all)
        if deltas is None:
            return y
        if len(projection.names) == 1:
            return apply_delta(x, y, layout, deltas.a, deltas.b[0][1], self.bank.scale)
        member = layout.block_member
        a = deltas.a if member is None else deltas.a.index_select(0, member)  # (blocks, ranks, in)
        hidden = torch.bmm(layout.into_blocks(x[:, None]), a.transpose(1, 2))  # (blocks, rows a block, ranks)
        for (columns, b), low in zip(deltas.b, hidden.split(self.bank.rank, dim=-1), strict=True):
            b = b if member is None else b.index_select(0, member)  # (blocks, out, rank)
            delta = layout.out_of_blocks(torch.bmm(low, b.transpose(1, 2)), 1)  # (rows, 1, out)
            y[:, columns].add_(delta[:, 0], alpha=self.bank.scale)
        return y


def _weight(module: object) -> Tensor:
    return cast(Tensor, cast(nn.Module, module).weight).detach()


def _fuse_factors(projection: Projection, index: dict[str, int], route: Route) -> Deltas | None:
    """Concatenate the modules' A, so that one product serves them all; None where nothing is adapted."""
    adapted = [name for name in projection.names if name in index]
    if not adapted:
        return None
    ends = dict(zip(projection.names, accumulate(projection.widths), strict=True))
    b = [(ends[name], route.b[index[name]]) for name in adapted]
    return Deltas(
        torch.cat([route.a[index[name]] for name in adapted], dim=1),  # (active, ranks, in)
        tuple((slice(end - one.shape[1], end), one) for end, one in b),
    )
