"""The engine at the shape of Qwen2.5-7B with random weights: tax, decoding, training and memory against their bounds.

The tax of 8 members over one; decoding compared with the time to read weights and cache once; training compared with
the measured matrix rate; peak memory with 8 and with 100 members. Meant for a CUDA machine. Without one it runs a model
of an eighth of the width and two layers on the CPU, which tests the code but not the speed. Prints a table and, as its
last line, a JSON object.

``--dry`` runs the same code paths at full shape with tensors without data (``_fake_gpu``), on any machine.

    python bench/shape_7b.py [--dry] [--layers 28] [--repeats 5] [--members 8 100]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch
from _fake_gpu import decode, fake_base, fake_gpu, learn, skeleton
from _shared import interleaved, median_ratio, print_result, print_table, synchronise
from torch import nn
from transformers import AutoModelForCausalLM, Qwen2Config

from redqueen.adapters.attention import kv_shape
from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Base, freeze
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Completion, Request, Rollout

ATTEMPTS = 8


@dataclass(frozen=True)
class Sizes:
    """Shapes of model and workload; ``width_divisor`` shrinks widths and vocabulary (for a machine without GPU)."""

    layers: int
    width_divisor: int
    prompt_tokens: int
    new_tokens: int
    train_groups: int
    micro_batch_tokens: int


def shape_of(sizes: Sizes) -> Qwen2Config:
    d = sizes.width_divisor
    return Qwen2Config(
        vocab_size=152064 // d,
        hidden_size=3584 // d,
        intermediate_size=18944 // d,
        num_hidden_layers=sizes.layers,
        num_attention_heads=28,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=False,
    )


def build_base(sizes: Sizes, device: str) -> Base:
    """Make the model with random weights, directly on the device and in bf16."""
    config = shape_of(sizes)
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return freeze(model, device, "bf16")


def matrix_rate(device: str) -> float:
    """Return the floating-point operations per second of a large bf16 product."""
    n = 8192 if device == "cuda" else 1024
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = interleaved({"product": lambda: [a @ b for _ in range(10)]}, 5)["product"]
    return 10 * 2.0 * n**3 / statistics.median(seconds)


def bandwidth(device: str) -> float:
    """Return the bytes per second that a large copy reads and writes."""
    a = torch.zeros(2**30 if device == "cuda" else 2**26, device=device, dtype=torch.bfloat16)
    b = torch.empty_like(a)
    seconds = interleaved({"copy": lambda: [b.copy_(a) for _ in range(5)]}, 5)["copy"]
    return 5 * 2.0 * a.numel() * a.element_size() / statistics.median(seconds)


def requests_for(rows: int, members: int, sizes: Sizes, vocabulary: int) -> list[Request]:
    generator = torch.Generator().manual_seed(rows)
    prompts = torch.randint(0, vocabulary, (rows // ATTEMPTS, sizes.prompt_tokens), generator=generator).tolist()
    return [Request(i % members, tuple(p), ATTEMPTS, rng_seed=i) for i, p in enumerate(prompts)]


def decode_job(bank: AdapterBank, rows: int, members: int, new_tokens: int, sizes: Sizes) -> Callable[[], object]:
    """Return a job that samples ``rows`` completions of ``new_tokens``."""
    requests = requests_for(rows, members, sizes, bank.base.head.out_features)
    sampler = TorchSampler(bank, new_tokens, end_tokens=[], max_rows=rows)
    return lambda: sampler.sample(requests)


def decode_floor_s(bank: AdapterBank, rows: int, members: int, sizes: Sizes, bytes_per_s: float) -> float:
    """Return the seconds to read once the data of a decoding step: weights, factors, keys and values (halfway)."""
    base = bank.base
    weights = sum(m.weight.numel() * m.weight.element_size() for m in base.model.modules() if isinstance(m, nn.Linear))
    kv_heads, head_dim = kv_shape(base.model.config)
    per_token = 2 * sizes.layers * kv_heads * head_dim * 2
    cached = per_token * (rows // ATTEMPTS * sizes.prompt_tokens + rows * sizes.new_tokens // 2)
    return (weights + members * bank.num_parameters * 2 + cached) / bytes_per_s


def train_job(bank: AdapterBank, members: int, sizes: Sizes) -> tuple[Callable[[], object], int, float]:
    """Return a job of one update, its number of tokens, and the minimum of floating-point operations it needs."""
    generator = torch.Generator().manual_seed(1)
    vocabulary = bank.base.head.out_features

    def draw(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(0, vocabulary, (length,), generator=generator).tolist())

    rollouts = []
    for i in range(sizes.train_groups):
        completions = tuple(
            Completion(draw(sizes.new_tokens), (0.0,) * sizes.new_tokens, 0.0, True) for _ in range(ATTEMPTS)
        )
        signs = tuple((-1.0) ** k for k in range(ATTEMPTS))
        rollouts.append(Rollout(i % members, draw(sizes.prompt_tokens), completions, signs))
    completion_tokens = sizes.train_groups * ATTEMPTS * sizes.new_tokens
    tokens = sizes.train_groups * sizes.prompt_tokens + completion_tokens
    head = bank.base.head.weight.numel()
    linears = sum(m.weight.numel() for m in bank.base.model.modules() if isinstance(m, nn.Linear)) - head
    # Forward and the gradient of the inputs for frozen weights; for factors also their own gradient.
    operations = 4.0 * linears * tokens + 4.0 * head * completion_tokens + 6.0 * bank.num_parameters * tokens
    config = LearnConfig(learning_rate=1e-5, gradient_checkpointing=True, micro_batch_tokens=sizes.micro_batch_tokens)
    learner = TorchLearner(bank, config)

    def update() -> None:
        """Update with the gradients of eight members in memory at a time."""
        for start in range(0, members, 8):
            learner.update([one for one in rollouts if start <= one.slot < start + 8])

    return update, tokens, operations


def peak_gigabytes(bank: AdapterBank, members: int, sizes: Sizes) -> float | None:
    """Return the peak memory of one round of sampling and learning; None without a GPU."""
    if bank.base.device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats()
    decode_job(bank, 256, members, sizes.new_tokens, sizes)()
    train_job(bank, members, sizes)[0]()
    synchronise()
    return torch.cuda.max_memory_allocated() / 1e9


def dry(layers: int, members: int, rank: int) -> None:
    """Run prefill, decoding and an update at full shape without data; raise where a GPU would fail or synchronize."""
    with fake_gpu():
        base = fake_base(skeleton(shape_of(Sizes(layers, 1, 0, 0, 0, 0))))
        bank = AdapterBank(base, members, rank, 2.0 * rank)
        decode(bank, prompt_tokens=512, new_tokens=128)
        print(f"decoding: {members} members and the bare base in one batch, nothing waits for the host")
        learn(bank, prompt_tokens=512, new_tokens=128, checkpointing=True)
        print("learning: gradients and one step of every member, on one device")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=28, help="use fewer if memory is short")
    parser.add_argument("--members", type=int, nargs="+", default=[8, 100], help="bank sizes whose memory is measured")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="only test the GPU's code paths, without data and results")
    options = parser.parse_args()
    if options.dry:
        return dry(options.layers, 8, options.rank)
    if torch.cuda.is_available():
        device, sizes = "cuda", Sizes(options.layers, 1, 512, 128, 32, 16384)
    else:
        device, sizes = "cpu", Sizes(2, 8, 64, 16, 8, 2048)
        print("no CUDA device: a small model on the CPU; the figures mean nothing for a 7B model")
    rate, bytes_per_s = matrix_rate(device), bandwidth(device)
    base = build_base(sizes, device)
    peaks: dict[str, float | None] = {}
    for size in sorted(options.members, reverse=True):
        bank = AdapterBank(base, size, options.rank, 2.0 * options.rank)
        peaks[str(size)] = peak_gigabytes(bank, min(size, sizes.train_groups), sizes)
        bank.detach_from_base()
        del bank
        if device == "cuda":
            torch.cuda.empty_cache()
    bank = AdapterBank(base, 8, options.rank, 2.0 * options.rank)
    rows: list[list[object]] = []
    result: dict[str, object] = {"matrix_tflops": rate / 1e12, "bandwidth_gb_s": bytes_per_s / 1e9, "peak_gb": peaks}
    for num_rows in (64, 256):
        # The first token of a completion comes from the prefill, so the time of one token is not decoding.
        jobs = {
            f"{members} x {new}": decode_job(bank, num_rows, members, new, sizes)
            for members in (1, 8)
            for new in (1, sizes.new_tokens)
        }
        seconds = interleaved(jobs, options.repeats)
        steps = {
            members: [
                (b - a) / (sizes.new_tokens - 1)
                for a, b in zip(seconds[f"{members} x 1"], seconds[f"{members} x {sizes.new_tokens}"], strict=True)
            ]
            for members in (1, 8)
        }
        step = statistics.median(steps[8])
        floor = decode_floor_s(bank, num_rows, 8, sizes, bytes_per_s)
        tax = median_ratio(steps[8], steps[1])
        rows.append([f"decode, {num_rows} rows", step, num_rows / step, floor / step, tax])
        result[f"decode_{num_rows}"] = {
            "step_s": step,
            "tokens_per_s": num_rows / step,
            "floor_s": floor,
            "share_of_floor_speed": floor / step,
            "tax_8": tax,
        }
    (one, _, _), (eight, tokens, operations) = train_job(bank, 1, sizes), train_job(bank, 8, sizes)
    seconds = interleaved({"1": one, "8": eight}, options.repeats)
    median = statistics.median(seconds["8"])
    tax = median_ratio(seconds["8"], seconds["1"])
    share = operations / median / rate
    rows.append(["train", median, tokens / median, share, tax])
    result["train"] = {"step_s": median, "tokens_per_s": tokens / median, "share_of_matrix_rate": share, "tax_8": tax}
    print_table(["phase", "step s", "tokens/s", "share of bound", "tax of 8"], rows)
    print(f"matrix rate {rate / 1e12:.3g} TFLOP/s, bandwidth {bytes_per_s / 1e9:.4g} GB/s, peak GB {peaks}")
    print_result(result | {"settings": vars(options), "sizes": vars(sizes)})


if __name__ == "__main__":
    main()
