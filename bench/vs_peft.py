"""The engine compared with PEFT and Hugging Face's ``generate``, on one base, in one run with the same threads.

Both sides have eight adapters with the same factors. Decoding: the engine; PEFT's mixed batch (``adapter_names``); PEFT
adapter by adapter (``set_adapter``); ``generate`` of the bare base. Training on the decoded texts with one loss and
optimiser: the engine; the ``set_adapter`` loop; the mixed batch (in eval mode: PEFT refuses it in train mode). Results
are compared in fp32; times are measured in ``--precision``. Prints a table and, as its last line, JSON.

    python bench/vs_peft.py [--base embedded] [--repeats 5] [--threads 2] [--precision fp32]
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import peft
import torch
from _shared import interleaved, load_model, median_ratio, print_result, print_table
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import PreTrainedModel

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Base, Precision, choose_precision, freeze
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.learn.batches import by_member
from redqueen.learn.torch_learner import TorchLearner
from redqueen.records import Completion, Request, Rollout


@dataclass
class Setting:
    """Both sides of the comparison in one precision: the engine, and PEFT on a base prepared in the same way."""

    bank: AdapterBank
    sampler: TorchSampler
    learner: TorchLearner
    base: Base
    peft: PeftModel
    bare: Base
    prompts: Tensor
    owners: list[int]
    options: argparse.Namespace

    def autocast(self) -> AbstractContextManager[None]:
        """The precision of either side."""
        return self.bank.base.autocast()


def build(options: argparse.Namespace, precision: Precision) -> Setting:
    """Make the engine and the models to compare with, all with the same weights and factors."""
    alpha = 2.0 * options.rank
    bank = AdapterBank(freeze(load_model(options.base), precision=precision), options.members, options.rank, alpha)
    generator = torch.Generator().manual_seed(0)
    for slot in range(options.members):
        for _, b in bank.factors(slot).values():
            b.normal_(0.0, 0.02, generator=generator)
    theirs = freeze(load_model(options.base), precision=precision)
    theirs.model.set_attn_implementation("sdpa")
    bare = freeze(load_model(options.base), precision=precision)
    bare.model.set_attn_implementation("sdpa")
    vocabulary = bank.base.head.out_features
    prompts = torch.randint(3, vocabulary, (options.prompts, options.prompt_tokens), generator=generator)
    return Setting(
        bank=bank,
        sampler=TorchSampler(bank, options.new_tokens, end_tokens=[], temperature=0.0),
        learner=TorchLearner(bank, LearnConfig(learning_rate=1e-4, micro_batch_tokens=options.micro_batch_tokens)),
        base=theirs,
        peft=as_peft(theirs.model, bank),
        bare=bare,
        prompts=prompts,
        owners=[i % options.members for i in range(options.prompts)],
        options=options,
    )


def as_peft(model: PreTrainedModel, bank: AdapterBank) -> PeftModel:
    """Wrap ``model`` in PEFT with one adapter for each member of ``bank``, factors copied."""
    config = LoraConfig(
        r=bank.rank, lora_alpha=int(bank.alpha), target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.0
    )
    wrapped = get_peft_model(model, config, adapter_name="m0")
    for slot in range(1, bank.num_members):
        wrapped.add_adapter(f"m{slot}", config)
    wrapped.eval()
    parameters = dict(wrapped.named_parameters())
    with torch.no_grad():
        for slot in range(bank.num_members):
            for name, (a, b) in bank.factors(slot).items():
                parameters[f"base_model.model.{name}.lora_A.m{slot}.weight"].copy_(a)
                parameters[f"base_model.model.{name}.lora_B.m{slot}.weight"].copy_(b)
    for name, parameter in parameters.items():
        parameter.requires_grad_("lora_" in name)
    return wrapped


# Decoding ------------------------------------------------------------------------------------------------------


def decode_ours(s: Setting) -> list[list[Completion]]:
    """Decode every prompt ``attempts`` times, greedily, with the engine."""
    return s.sampler.sample(requests_of(s))


def requests_of(s: Setting) -> list[Request]:
    return [
        Request(owner, tuple(prompt), s.options.attempts, rng_seed=i)
        for i, (owner, prompt) in enumerate(zip(s.owners, s.prompts.tolist(), strict=True))
    ]


def generate(s: Setting, model: torch.nn.Module, prompts: Tensor, adapters: Sequence[str] | None = None) -> Tensor:
    """Decode with the library's ``generate``, each prompt ``attempts`` times; return the new tokens."""
    rows = prompts.repeat_interleave(s.options.attempts, dim=0)
    extra = {} if adapters is None else {"adapter_names": [a for a in adapters for _ in range(s.options.attempts)]}
    model.eval()
    with torch.no_grad(), s.autocast():
        whole = model.generate(
            input_ids=rows,
            attention_mask=torch.ones_like(rows),
            max_new_tokens=s.options.new_tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            **extra,
        )
    return whole[:, prompts.shape[1] :]


def decode_mixed(s: Setting) -> Tensor:
    """Decode with PEFT's mixed batch."""
    return generate(s, s.peft, s.prompts, [f"m{owner}" for owner in s.owners])


def decode_loop(s: Setting) -> None:
    """Decode with PEFT, one adapter after the other."""
    for slot in range(s.bank.num_members):
        s.peft.set_adapter(f"m{slot}")
        generate(s, s.peft, s.prompts[[i for i, owner in enumerate(s.owners) if owner == slot]])


# Training ------------------------------------------------------------------------------------------------------


def advantages_of(s: Setting) -> tuple[float, ...]:
    return tuple((-1.0) ** i for i in range(s.options.attempts))


def rollouts_of(s: Setting, groups: Sequence[Sequence[Completion]]) -> list[Rollout]:
    """Give each attempt an advantage of +-1; attempts of one prompt must differ, so each is rotated by its number."""
    result = []
    for request, group in zip(requests_of(s), groups, strict=True):
        turned = [
            Completion(c.tokens[k:] + c.tokens[:k], c.logprobs, c.entropy, c.finished) for k, c in enumerate(group)
        ]
        result.append(Rollout(request.slot, request.prompt, tuple(turned), advantages_of(s)))
    return result


def peft_loss(s: Setting, rollouts: Sequence[Rollout], adapters: Sequence[str] | None = None) -> Tensor:
    """Return the engine's loss, the mean over each member's tokens, on rows of prompt + completion."""
    rows = torch.tensor([r.prompt + c.tokens for r in rollouts for c in r.completions])
    start = s.options.prompt_tokens
    share = s.bank.num_members if adapters is not None else 1
    extra = {} if adapters is None else {"adapter_names": list(adapters)}
    with s.autocast():
        hidden_logits = s.peft(input_ids=rows, use_cache=False, logits_to_keep=s.options.new_tokens + 1, **extra).logits
    logp = hidden_logits[:, :-1].float().log_softmax(-1).gather(2, rows[:, start:, None])[:, :, 0]
    weights = torch.tensor([a for r in rollouts for a in r.advantages])[:, None]
    ratio = torch.exp(logp - logp.detach())
    return -(ratio * weights).sum() * share / logp.numel()


def train_loop(s: Setting, rollouts: Sequence[Rollout], optimiser: torch.optim.Optimizer) -> None:
    """Train one step of every adapter, one after the other."""
    s.peft.train()
    for slot in range(s.bank.num_members):
        s.peft.set_adapter(f"m{slot}")
        peft_loss(s, [r for r in rollouts if r.slot == slot]).backward()
    finish(s, optimiser)


def train_mixed(s: Setting, rollouts: Sequence[Rollout], optimiser: torch.optim.Optimizer) -> None:
    """Train one step of every adapter in mixed batches with as many tokens as the engine's."""
    s.peft.eval()
    for _, parameter in adapter_parameters(s.peft):
        parameter.requires_grad_()
    tokens = s.options.attempts * (s.options.prompt_tokens + s.options.new_tokens)
    size = max(1, s.options.micro_batch_tokens // tokens)
    for start in range(0, len(rollouts), size):
        some = rollouts[start : start + size]
        loss = peft_loss(s, some, [f"m{r.slot}" for r in some for _ in r.completions])
        (loss * len(some) / len(rollouts)).backward()
    finish(s, optimiser)


def finish(s: Setting, optimiser: torch.optim.Optimizer) -> None:
    """Clip each adapter's gradient separately and step."""
    for slot in range(s.bank.num_members):
        own = [p for name, p in adapter_parameters(s.peft) if f".m{slot}." in name]
        torch.nn.utils.clip_grad_norm_(own, 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def adapter_parameters(model: PeftModel) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if "lora_" in name]


# Agreement -----------------------------------------------------------------------------------------------------


def differences(s: Setting) -> dict[str, float]:
    """Return the largest fp32 differences of log-probabilities, and of gradients relative to their norm."""
    names = [f"m{owner}" for owner in s.owners]
    with torch.no_grad():
        theirs = s.peft(input_ids=s.prompts, adapter_names=names).logits.log_softmax(-1)
        with s.bank.routed(s.owners):
            ours = s.bank.base.model(input_ids=s.prompts).logits.log_softmax(-1)
    groups = decode_ours(s)
    tokens = torch.tensor([c.tokens for group in groups for c in group])
    rollouts = rollouts_of(s, groups)
    gradients = s.learner.gradients(by_member(rollouts))[0]
    worst = 0.0
    for slot in range(s.bank.num_members):
        s.peft.set_adapter(f"m{slot}")
        peft_loss(s, [r for r in rollouts if r.slot == slot]).backward()
    parameters = dict(s.peft.named_parameters())
    for slot in range(s.bank.num_members):
        flat = []
        for name in s.bank.names:
            for part in ("lora_A", "lora_B"):
                gradient = parameters[f"base_model.model.{name}.{part}.m{slot}.weight"].grad
                assert gradient is not None
                flat.append(gradient.flatten())
        expected = torch.cat(flat)
        worst = max(worst, float((gradients[slot] - expected).norm() / expected.norm()))
    return {
        "logprobs": float((ours - theirs).abs().max()),
        "gradients": worst,
        "decoded_tokens_equal_frac": float((tokens == decode_mixed(s)).float().mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--base", default="embedded", help="as model.base of a config")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default=choose_precision("auto", "cpu"))
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--rank", type=int, default=8, help="lora_rank; the shipped configuration has 8")
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument(
        "--micro-batch-tokens", type=int, default=8192, help="tokens of one pass; with 2048 SmolLM2 fits in 24 GB"
    )
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    agreement = differences(build(options, "fp32"))
    s = build(options, options.precision)
    rollouts = rollouts_of(s, decode_ours(s))
    optimiser = torch.optim.AdamW([p for _, p in adapter_parameters(s.peft)], lr=1e-4, weight_decay=0.0, fused=True)
    decode: dict[str, Callable[[], object]] = {
        "redqueen": lambda: decode_ours(s),
        "peft mixed": lambda: decode_mixed(s),
        "peft loop": lambda: decode_loop(s),
        "hf generate, bare base": lambda: generate(s, s.bare.model, s.prompts),
    }
    train: dict[str, Callable[[], object]] = {
        "redqueen": lambda: s.learner.update(rollouts),
        "peft loop": lambda: train_loop(s, rollouts, optimiser),
        "peft mixed": lambda: train_mixed(s, rollouts, optimiser),
    }
    decode_s, train_s = interleaved(decode, options.repeats), interleaved(train, options.repeats)
    new = options.prompts * options.attempts * options.new_tokens
    run = options.prompts * options.attempts * (options.prompt_tokens + options.new_tokens)
    rows: list[list[object]] = []
    for phase, seconds, tokens in (("decode", decode_s, new), ("train", train_s, run)):
        for name, values in seconds.items():
            median = statistics.median(values)
            rows.append([phase, name, median, tokens / median, median_ratio(values, seconds["redqueen"])])
    print_table(["phase", "who", "s", "tokens/s", "times ours"], rows)
    print(f"agreement in fp32: {agreement}")
    print_result(
        {
            "decode_ratio": median_ratio(decode_s["peft mixed"], decode_s["redqueen"]),
            "decode_ratio_loop": median_ratio(decode_s["peft loop"], decode_s["redqueen"]),
            "decode_ratio_bare_generate": median_ratio(decode_s["hf generate, bare base"], decode_s["redqueen"]),
            "train_ratio": median_ratio(train_s["peft loop"], train_s["redqueen"]),
            "train_ratio_mixed": median_ratio(train_s["peft mixed"], train_s["redqueen"]),
            "differences_fp32": agreement,
            "settings": vars(options),
            "peft": peft.__version__,
        }
    )


if __name__ == "__main__":
    main()
