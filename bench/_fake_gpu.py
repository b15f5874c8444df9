"""A fake GPU: tensors with device, shape and type but no data, to test the GPU code paths on any machine.

Every operation checks that its tensors are on one device, and reading a value on the host raises, so a decoding step
that runs here never synchronizes with the host. It cannot test results, speed, or CUDA graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from transformers import PretrainedConfig, PreTrainedModel

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Base, freeze
from redqueen.adapters.decoding import Decoding
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.batches import by_member
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Completion, Request, Rollout

NAME = "gpu"
DEVICE = f"{NAME}:0"


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Allow tensors on ``DEVICE`` in this block. Use it once per process: the device stays registered."""
    types = [torch.bfloat16, torch.float16]
    module = SimpleNamespace(
        is_available=lambda: False,  # otherwise known values would be computed on the device
        device_count=lambda: 1,
        current_device=lambda: 0,
        get_amp_supported_dtype=lambda: types,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
    )
    _setup_privateuseone_for_python_backend(NAME, module)
    with FakeTensorMode():
        yield


def fake_base(model: PreTrainedModel) -> Base:
    """Freeze a model of fake tensors on the fake device, in bf16 as on a GPU."""
    placed: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and id(tensor) not in placed:
                    is_weight = tensors is module._parameters
                    there = torch.empty(
                        tensor.shape, dtype=torch.bfloat16 if is_weight else tensor.dtype, device=DEVICE
                    )
                    kept = nn.Parameter(there, False) if is_weight else there
                    placed[id(tensor)] = tensor, kept  # keeping the tensor prevents reuse of its id
                if tensor is not None:
                    tensors[name] = placed[id(tensor)][1]
    # Fake tensors cannot be swapped, as moving does, and have no values for the check of the head to compare.
    with (
        mock.patch.object(PreTrainedModel, "to", lambda self, *_, **__: self),
        mock.patch("redqueen.adapters.base._problem_of", return_value=""),
    ):
        return freeze(model, DEVICE, "bf16")


def skeleton(config: PretrainedConfig) -> PreTrainedModel:
    """Make a model of fake tensors; call it inside ``fake_gpu``."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


def decode(bank: AdapterBank, prompt_tokens: int = 5, new_tokens: int = 40, steps: int = 3) -> None:
    """Admit two waves of prompts, prefill, decode, grow and shrink, for all members and the base in one batch.

    Raises when a tensor is on the wrong device or a decoding step reads a value on the host.
    """
    sampler = TorchSampler(bank, new_tokens, end_tokens=[2], temperature=0.7)
    slots = [*range(bank.num_members), -1]
    requests = [Request(slot, tuple(range(1, prompt_tokens + i)), 2, i) for i, slot in enumerate(slots)]
    queue = deque(sampler._jobs(requests))
    rows = 2 * (len(slots) - 1)  # not all fit at once
    decoding = Decoding(bank.base, new_tokens, rows, prompt_tokens + len(slots), len(requests))
    sampler._prefill(decoding, decoding.admit(queue))
    route = sampler._route_step(decoding, None)
    decoding.prepare(steps)
    for _ in range(steps):
        sampler._decode_one(decoding, route)
    first = decoding.jobs[0]
    assert first is not None
    for row in first.rows:
        decoding.row_job[row] = None
    decoding.jobs[0] = None
    sampler._prefill(decoding, decoding.admit(queue))
    for row in [row for row, job in enumerate(decoding.row_job) if job is decoding.jobs[-1]]:
        decoding.row_job[row] = None
    decoding.jobs[-1] = None
    decoding.shrink()
    sampler._decode_one(decoding, sampler._route_step(decoding, route))
    decoding.cache.grow_own(2 * decoding.own_tokens)
    where = {str(t.device) for t in (decoding.tokens, decoding.logprobs, decoding.last, *decoding.cache.own_k)}
    assert where == {DEVICE}, f"written on {where}"


def learn(bank: AdapterBank, prompt_tokens: int = 7, new_tokens: int = 5, checkpointing: bool = False) -> None:
    """Take the gradients of all members and one optimiser step."""
    config = LearnConfig(gradient_checkpointing=checkpointing)
    learner = TorchLearner(bank, config, temperature=0.7)
    completions = tuple(Completion((1,) * (new_tokens + i), (-1.0,) * (new_tokens + i), 1.0, True) for i in range(2))
    rollouts = [Rollout(slot, (1,) * prompt_tokens, completions, (1.0, -1.0)) for slot in range(bank.num_members)]
    gradients, sums = learner.gradients(by_member(rollouts))
    assert {str(t.device) for t in (gradients, sums)} == {DEVICE}
    for member, gradient in zip(learner.members, gradients, strict=True):
        member.grad = gradient
    learner.optimiser.step()
