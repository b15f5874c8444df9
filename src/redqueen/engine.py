"""The engine: everything a step works with that does not change from step to step, built once from the config."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from redqueen.base_shape import refuse_missing_folder
from redqueen.config import EMBEDDED, Config
from redqueen.domains.prompt_format import PromptFormat
from redqueen.domains.prompts_chat import ChatFormat
from redqueen.domains.prompts_compact import MOST_INPUTS, CompactFormat
from redqueen.errors import UserError
from redqueen.evolve.generation import EvolutionRules, evolution_rules
from redqueen.learn.torch_learner import LearnerSettings, TorchLearner
from redqueen.limits import TextLimits, fit_limits
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import freeze
from redqueen.policy.memory import refuse_what_cannot_fit
from redqueen.policy.torch_sampler import TorchSampler
from redqueen.propose.policy_filter import PolicyFilter, load_policy
from redqueen.tiny import embedded_folder
from redqueen.verify import Verifier
from redqueen.verify.opening import open_verifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Engine:
    """The frozen base with its adapter bank, the samplers, the learner and the verifier."""

    config: Config
    tokenizer: PreTrainedTokenizerBase
    prompt_format: PromptFormat
    bank: AdapterBank
    proposer: TorchSampler
    solver: TorchSampler
    learner: TorchLearner
    verifier: Verifier
    limits: TextLimits
    rules: EvolutionRules
    policy: PolicyFilter

    def sampler(self, temperature: float) -> TorchSampler:
        """Return a solver at another temperature (0 is greedy): what evaluation uses."""
        return _sampler(self.bank, self.tokenizer, self.limits.solve_new_tokens, temperature, 1.0, self.config)


@contextmanager
def open_engine(config: Config) -> Iterator[Engine]:
    """Load the base, build the bank and start the verifier; its processes end with the context.

    Raises UserError when memory cannot hold the run, the model cannot be loaded, no sandbox can be had, or a rule of
    evolution or policy is wrong.
    """
    rules, policy = evolution_rules(config.evolve), load_policy(config.propose)
    torch.set_num_threads(config.run.num_threads or os.cpu_count() or 1)
    torch.manual_seed(config.run.rng_seed)
    device = choose_device(config.run.device)
    refuse_what_cannot_fit(config, device)
    model, tokenizer = load_base(config.model.base)
    population, learn = config.population, config.learn
    base = freeze(model, device, config.model.precision)
    bank = AdapterBank(
        base,
        config.num_adapters,
        population.lora_rank,
        population.lora_alpha,
        population.lora_targets,
        config.run.rng_seed,
    )
    propose, solve, limits = config.propose, config.solve, fit_limits(config, base.max_positions)
    settings = LearnerSettings(
        lr=learn.learning_rate,
        betas=(learn.beta1, learn.beta2),
        weight_decay=learn.weight_decay,
        max_grad_norm=learn.max_grad_norm,
        clip=learn.clip,
        temperature=solve.temperature,
        micro_batch_tokens=learn.micro_batch_tokens,
        checkpointing=learn.gradient_checkpointing,
        pad_id=pad_token(tokenizer),
    )
    learner = TorchLearner(bank, settings)
    with open_verifier(config) as verifier:
        yield Engine(
            config=config,
            tokenizer=tokenizer,
            prompt_format=choose_format(config),
            bank=bank,
            proposer=_sampler(bank, tokenizer, limits.propose_new_tokens, propose.temperature, propose.top_p, config),
            solver=_sampler(bank, tokenizer, limits.solve_new_tokens, solve.temperature, solve.top_p, config),
            learner=learner,
            verifier=verifier,
            limits=limits,
            rules=rules,
            policy=policy,
        )


def choose_format(config: Config) -> PromptFormat:
    """Return the prompt format that the config names or that fits its base.

    Raises UserError when ``code_f`` tasks need more inputs than the compact format's base was taught to write.
    """
    name, num_inputs = config.model.prompt_format, config.verify.num_inputs
    if name == "auto":
        name = "compact" if config.model.base == EMBEDDED else "chat"
    if name == "chat":
        return ChatFormat(num_inputs)
    if num_inputs > MOST_INPUTS and config.propose.num_code_f:
        raise UserError(
            f"verify.num_inputs is {num_inputs}, and a base of the compact format writes {MOST_INPUTS} at most, so no "
            f"code_f task would be valid: set it to {MOST_INPUTS} or less, or propose.num_code_f = 0"
        )
    return CompactFormat(forced=name == "compact-forced")


def choose_device(name: str) -> torch.device:
    """Return the device that ``auto``, ``cpu`` or ``cuda`` means here. Raises UserError when there is no such one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("run.device is cuda, but this machine shows no CUDA device: set run.device = cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def load_base(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the base and its tokenizer: embedded, from a folder, or by name from the hub."""
    folder = str(embedded_folder()) if name == EMBEDDED else name
    refuse_missing_folder(name)
    disable_progress_bar()  # it would write over ours
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(f"model.base {name} cannot be loaded: {first}") from None
    return model, tokenizer


def _sampler(
    bank: AdapterBank,
    tokenizer: PreTrainedTokenizerBase,
    max_new_tokens: int,
    temperature: float,
    top_p: float,
    config: Config,
) -> TorchSampler:
    return TorchSampler(
        bank,
        max_new_tokens=max_new_tokens,
        end_tokens=_end_tokens(bank, tokenizer),
        temperature=temperature,
        top_p=top_p,
        max_rows=config.solve.max_rows,
        pad_id=pad_token(tokenizer),
    )


def pad_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id that fills rows up: the padding token, or the end token where there is none."""
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return int(pad)  # type: ignore[arg-type]


def _end_tokens(bank: AdapterBank, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return what ends a completion: the tokenizer's end token and those of the model's generation config."""
    known = getattr(bank.base.model.generation_config, "eos_token_id", None)
    listed = known if isinstance(known, list) else [known]
    return sorted({int(t) for t in (*listed, tokenizer.eos_token_id) if t is not None})
