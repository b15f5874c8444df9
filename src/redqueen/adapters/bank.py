"""The adapter bank: the LoRA factors of all members stacked on one frozen base, and rows routed to members.

A member's factors are one row of ``flat`` (members, parameters), module after module, A before B, so a member is
copied, checkpointed, clipped and stepped as one vector. A forward hook on each targeted linear layer adds scale * B (A
x) of the row's member with two batched products; without a route the hook does nothing and the model is the base.
Source: LoRA (Hu et al. 2021), PEFT's conventions; the stacking is ours.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.adapters.base import Base
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.routing import Layout, lay_out
from redqueen.errors import UserError
from redqueen.records import BASE_SLOT

Hook = Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor | None]


@dataclass(frozen=True)
class Site:
    """One targeted linear layer: its name, and the position of its factors in a member's row of ``flat``."""

    name: str
    num_in: int
    num_out: int
    start: int
    rank: int

    @property
    def a_slice(self) -> slice:
        """The position of A (rank, num_in)."""
        return slice(self.start, self.start + self.rank * self.num_in)

    @property
    def b_slice(self) -> slice:
        """The position of B (num_out, rank)."""
        return slice(self.a_slice.stop, self.a_slice.stop + self.rank * self.num_out)


@dataclass
class Route:
    """Rows of a batch assigned to members: the layout and the active members' factors in the compute dtype.

    ``a[i]`` (active, rank, in) and ``b[i]`` (active, out, rank) belong to site i. For training they are leaves
    that accumulate gradients (``AdapterBank.collect_gradients``).
    """

    layout: Layout
    a: list[Tensor]
    b: list[Tensor]


class _ThreadState(threading.local):
    """The route of a thread's forward passes, and the last layer input with its cast."""

    route: Route | None = None
    cast: tuple[Tensor, Tensor] | None = None


class _ActiveRoute(threading.local):
    """The bank and the route that a thread's forward passes use; None without a route."""

    routed: tuple[AdapterBank, Route] | None = None


_ACTIVE_ROUTE = _ActiveRoute()


def checkpoint_contexts() -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """The contexts of ``torch.utils.checkpoint`` for a forward pass and its recomputation, which uses the same route.

    The recomputation is part of the backward pass, which on a GPU runs in a thread of autograd.
    """
    if _ACTIVE_ROUTE.routed is None:
        return nullcontext(), nullcontext()
    bank, route = _ACTIVE_ROUTE.routed
    return nullcontext(), bank.routed(route)


class AdapterBank:
    """``num_members`` LoRA adapters of one rank on ``base``, with dropout 0 and fp32 factors.

    ``targets`` is "all-linear" (every linear layer but the output head) or module names as in PEFT (a full name, or its
    last parts: "q_proj"). Fresh members equal the base bit for bit: B = 0, A uniform in +-1/sqrt(in) as in PEFT, seeded
    by (``rng_seed``, slot). ``numbers``: for a bank with only some members of a population, their slots in the whole
    population, which then determine the seeds.
    """

    def __init__(
        self,
        base: Base,
        num_members: int,
        rank: int = 32,
        alpha: float = 64.0,
        targets: str | Sequence[str] = "all-linear",
        rng_seed: int = 0,
        numbers: Sequence[int] | None = None,
    ) -> None:
        if num_members < 1 or rank < 1:
            raise UserError("an adapter bank needs at least one member and a lora_rank of at least 1")
        self.base = base
        self.num_members, self.rank, self.alpha = num_members, rank, float(alpha)
        self.numbers = tuple(range(num_members) if numbers is None else numbers)
        modules = find_targets(base.model, targets)
        self.sites: list[Site] = []
        start = 0
        for name, module in modules.items():
            site = Site(name, module.in_features, module.out_features, start, rank)
            self.sites.append(site)
            start = site.b_slice.stop
        self.num_parameters = start
        self.flat = torch.zeros(num_members, start, device=base.device)  # (members, parameters) fp32
        for slot in range(num_members):
            self.reset(slot, rng_seed)
        self._thread = _ThreadState()
        self._handles = [m.register_forward_hook(self._make_hook(i)) for i, m in enumerate(modules.values())]
        if base.compute_dtype != torch.float32:
            self._handles += [m.register_forward_pre_hook(self._cast_once) for m in modules.values()]

    @property
    def scale(self) -> float:
        """alpha / rank, the factor in front of B A."""
        return self.alpha / self.rank

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targeted modules, in the order of their factors."""
        return tuple(site.name for site in self.sites)

    def shortest_targets(self) -> list[str]:
        """Name the targeted modules by their last parts if these match no other module, and otherwise in full."""
        endings = sorted({name.rpartition(".")[2] for name in self.names})
        return endings if set(find_targets(self.base.model, endings)) == set(self.names) else list(self.names)

    def detach_from_base(self) -> None:
        """Remove the hooks, which restores the base model."""
        for handle in self._handles:
            handle.remove()

    # Members ---------------------------------------------------------------------------------------------------

    def factors(self, slot: int) -> dict[str, tuple[Tensor, Tensor]]:
        """Views of a member's factors by module name: A (rank, in), B (out, rank). Writing to them changes it."""
        row = self.flat[self._checked(slot)]
        return {
            s.name: (row[s.a_slice].view(self.rank, s.num_in), row[s.b_slice].view(s.num_out, self.rank))
            for s in self.sites
        }

    @torch.no_grad()
    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a fresh member, determined by (``rng_seed``, its number) only."""
        seed = int(
            np.random.SeedSequence([rng_seed, self.numbers[self._checked(slot)]]).generate_state(1, np.uint64)[0]
            >> np.uint64(1)
        )
        generator = torch.Generator().manual_seed(seed)
        row = torch.zeros(self.num_parameters)  # (parameters,)
        for site in self.sites:
            bound = 1.0 / math.sqrt(site.num_in)  # kaiming_uniform with a = sqrt(5), PEFT's default for lora_A
            row[site.a_slice].uniform_(-bound, bound, generator=generator)
        self.flat[slot].copy_(row)

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU), each with its own memory.

        Each view of one tensor would be pickled with the whole tensor.
        """
        row = self.flat[self._checked(slot)].detach().to("cpu")  # (parameters,)
        factors = {}
        for s in self.sites:
            a, b = row[s.a_slice].clone(), row[s.b_slice].clone()  # (rank * in,), (out * rank,)
            factors[s.name] = (a.view(self.rank, s.num_in), b.view(s.num_out, self.rank))
        return Genotype(factors, self.alpha)

    @torch.no_grad()
    def load(self, slot: int, genotype: Genotype) -> None:
        """Write ``genotype`` into ``slot``. B absorbs a different alpha, so that dW is kept.

        Raises UserError when the modules, shapes or the rank are not this bank's.
        """
        own = self.factors(slot)
        if genotype.rank != self.rank:
            raise UserError(
                f"the adapter has lora_rank {genotype.rank} and this population {self.rank}; set lora_rank to match"
            )
        if missing := sorted(set(own) ^ set(genotype.factors)):
            raise UserError(
                f"the adapter and this population do not adapt the same modules (first difference: {missing[0]}); "
                "set lora_targets to the adapter's target_modules"
            )
        ratio = (genotype.alpha / genotype.rank) / self.scale
        for name, (a, b) in genotype.factors.items():
            if a.shape != own[name][0].shape or b.shape != own[name][1].shape:
                raise UserError(f"the adapter's factors of {name} do not have the shapes of the base model's module")
            own[name][0].copy_(a)
            own[name][1].copy_(b if ratio == 1.0 else b.float() * ratio)

    def load_all(self, factors: Tensor) -> None:
        """Write all members' factors (members, parameters). Raises UserError when their shape is not this bank's."""
        check_shape(factors, self.flat.shape)
        self.flat.copy_(factors)

    @torch.no_grad()
    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit."""
        self.flat[self._checked(into)].copy_(self.flat[self._checked(slot)])

    def _checked(self, slot: int) -> int:
        if not 0 <= slot < self.num_members:
            raise IndexError(f"slot {slot} is outside the bank's 0..{self.num_members - 1}")
        return slot

    # Routing ---------------------------------------------------------------------------------------------------

    def route(
        self,
        row_slots: Sequence[int] | Tensor,
        tokens_per_row: int = 1,
        train: bool = False,
        like: Route | None = None,
        factors: Tensor | None = None,
    ) -> Route:
        """Assign the rows of a batch to members (``BASE_SLOT`` for the bare base), in any order and any mix.

        ``tokens_per_row`` only influences the layout. With ``train`` the factors become leaves for autograd.
        ``factors`` (any number, parameters): use these adapters instead of the members'; slots are their indices.
        A route is a snapshot: later changes of the factors do not affect it. ``like``: an earlier route; if it has the
        same members, its tensors are reused, and with them anything that was computed from them.
        """
        slots, flat = [int(s) for s in row_slots], self.flat if factors is None else factors
        if not slots or min(slots) < BASE_SLOT or max(slots) >= len(flat):
            raise IndexError(f"row slots must be {BASE_SLOT}..{len(flat) - 1} and at least one")
        # rows in blocks of one member each
        layout = lay_out(slots, tokens_per_row, self.base.device)
        if like is not None and like.layout.members == layout.members:
            return Route(layout, like.a, like.b)
        with torch.no_grad():
            # (active, parameters); the slot of the bare base is -1, which is clamped here and zeroed below
            active = flat.index_select(0, layout.slots.clamp(min=0).to(flat.device)).to(self.base.device)
            active = active.to(self.base.compute_dtype)
            if min(slots) == BASE_SLOT:
                active[0] = 0.0  # slots ascend, so the base comes first; with B = 0 it adds nothing
            n = len(active)
            # For each site: A (active, rank, in) and B (active, out, rank)
            a = [active[:, s.a_slice].reshape(n, self.rank, s.num_in).contiguous() for s in self.sites]
            b = [active[:, s.b_slice].reshape(n, s.num_out, self.rank).contiguous() for s in self.sites]
        if train:
            for leaf in (*a, *b):
                leaf.requires_grad_()
        return Route(layout, a, b)

    @contextmanager
    def routed(self, rows: Route | Sequence[int] | Tensor) -> Iterator[Route]:
        """Run the enclosed forward passes of the base model with their rows routed to members."""
        route = rows if isinstance(rows, Route) else self.route(rows)
        before, _ACTIVE_ROUTE.routed = _ACTIVE_ROUTE.routed, (self, route)
        previous, self._thread.route = self._thread.route, route
        try:
            yield route
        finally:
            self._thread.route, self._thread.cast = previous, None
            _ACTIVE_ROUTE.routed = before

    def collect_gradients(self, route: Route, into: Tensor, places: Sequence[int]) -> None:
        """Add the route's gradients to ``into`` (n, num_parameters) fp32: active member i goes to row places[i]."""
        index = torch.tensor(places, device=into.device)
        for site, a, b in zip(self.sites, route.a, route.b, strict=True):
            for leaf, where in ((a, site.a_slice), (b, site.b_slice)):
                if leaf.grad is not None:
                    # leaf.grad (active, rank, in) or (active, out, rank) -> (active, rank * in) or (active, out * rank)
                    into[:, where].index_add_(0, index, leaf.grad.reshape(len(leaf), -1).float())

    def _cast_once(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor] | None:
        """Cast a layer's input to the compute dtype; layers that share an input (q, k, v) share the cast."""
        state = self._thread
        if state.route is None or inputs[0].dtype == self.base.compute_dtype:
            return None
        if state.cast is None or state.cast[0] is not inputs[0]:
            state.cast = inputs[0], inputs[0].to(self.base.compute_dtype)  # both (rows, length, in)
        return (state.cast[1],)

    def _make_hook(self, i: int) -> Hook:
        def add_delta(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
            route = self._thread.route
            if route is None:
                return None
            return apply_delta(inputs[0], output, route.layout, route.a[i], route.b[i], self.scale)

        return add_delta


OTHER_ADAPTERS = (
    "the checkpoint's adapters do not match config.json: restore the config.json that the run began with, and --set no "
    "field of the population"
)


def check_shape(factors: Tensor, shape: tuple[int, ...]) -> None:
    """Raise UserError unless a checkpoint's factors have the shape (members, parameters) of the config."""
    if factors.shape != shape:
        raise UserError(OTHER_ADAPTERS)


def apply_delta(x: Tensor, y: Tensor, layout: Layout, a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return y + scale * B (A x), each row with its member's factors.

    ``x`` (rows, length, in) or flattened over rows; ``y`` the base layer's output of the same leading shape;
    ``a`` (active, rank, in); ``b`` (active, out, rank).
    """
    if layout.block_member is not None:
        # One copy of the factors for each block: (blocks, rank, in), (blocks, out, rank)
        a, b = a.index_select(0, layout.block_member), b.index_select(0, layout.block_member)
    x_rows = x.to(a.dtype).reshape(layout.num_rows, -1, x.shape[-1])  # (rows, length, in)
    hidden = torch.bmm(layout.into_blocks(x_rows), a.transpose(1, 2))  # (blocks, rows a block * length, rank)
    if layout.gather is None:
        # The blocks contain the rows in order, so one product adds to y: (blocks, rows a block * length, out)
        out = torch.baddbmm(y.reshape(layout.num_blocks, -1, y.shape[-1]), hidden, b.transpose(1, 2), alpha=scale)
        return out.view(y.shape)
    delta = layout.out_of_blocks(torch.bmm(hidden, b.transpose(1, 2)), x_rows.shape[1])  # (rows, length, out)
    return torch.add(y, delta.reshape(y.shape), alpha=scale)


def find_targets(model: PreTrainedModel, targets: str | Sequence[str]) -> dict[str, nn.Linear]:
    """Return the linear layers that ``targets`` names, by full name and in the model's order.

    Raises UserError when a target does not name a linear layer.
    """
    head = model.get_output_embeddings()
    linear = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head}
    if targets == "all-linear":
        if not linear:
            raise UserError(f"base model type {model.config.model_type!r} has no linear layers to adapt")
        return linear
    wanted = [targets] if isinstance(targets, str) else list(targets)
    for target in wanted:
        if not any(_matches(name, target) for name in linear):
            names = sorted({name.rpartition(".")[2] for name in linear})
            raise UserError(
                f"population.lora_targets names {target!r}, which is not a linear layer of the base model: choose from "
                f"{', '.join(names)}, or all-linear"
            )
    return {n: m for n, m in linear.items() if any(_matches(n, target) for target in wanted)}


def _matches(name: str, target: str) -> bool:
    return name == target or name.endswith("." + target)
