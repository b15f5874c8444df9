"""The engine: everything that a step uses and that stays the same in all steps, built once from the config."""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Base, choose_precision, device_type, freeze
from redqueen.adapters.base_shape import DEQUANTIZED, base_shape, is_gguf, pretrained
from redqueen.adapters.decoding import StopStrings
from redqueen.adapters.fused_decode import fused_decoder
from redqueen.adapters.memory import (
    TextLimits,
    fit_limits,
    keep_freed_memory,
    prompt_cache_tokens,
    refuse_what_cannot_fit,
)
from redqueen.adapters.protocols import AdapterStore, Learner, Sampler
from redqueen.adapters.threads import LaneSampler
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import EMBEDDED, Config
from redqueen.domains.prompt_format import FRAMES, PromptFormat, choose_format, end_tokens
from redqueen.domains.registry import JobRunner
from redqueen.errors import UserError, first_line
from redqueen.evolve.generation import check_rules
from redqueen.evolve.probe import NUM_ATTEMPTS, Prober
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.propose.filters import ContentFilter, load_content_filter
from redqueen.records import ShardEvent
from redqueen.remote.fleet import open_fleet
from redqueen.remote.sampler import RemoteSampler
from redqueen.streams import Streams
from redqueen.timing import Report, unheard
from redqueen.verifying import open_sandbox

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IMPORTANCE_CAP = 2.0
"""Largest weight p / q of a token in the loss, with p its probability for the learner and q for the server. Ours:
truncated importance sampling, whose authors and most trainers cap at 2."""


class MakeSampler(Protocol):
    """Makes a sampler of the members; omitted arguments have the solver's values."""

    def __call__(
        self, temperature: float, max_new_tokens: int | None = None, stops: Sequence[str] | None = None
    ) -> Sampler: ...


@dataclass(frozen=True)
class Adapters:
    """The part of the engine that may be in another process: store, samplers, learner, and the base's tokenizer.

    ``sampler`` makes a solver at another temperature (0 is greedy), for evaluation and probes, and for the cold-start
    check also with another length and stop strings. ``close`` ends what was started for the adapters; ``take_events``
    returns the events of their shards since the last call. ``shard_verifier``, if any, replaces the verifier of this
    process.
    """

    tokenizer: PreTrainedTokenizerBase
    limits: TextLimits
    store: AdapterStore
    proposer: Sampler
    solver: Sampler
    sampler: MakeSampler
    learner: Learner
    close: Callable[[], None] = field(default=lambda: None, kw_only=True)
    take_events: Callable[[], Sequence[ShardEvent]] = field(default=tuple, kw_only=True)
    shard_verifier: JobRunner | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Engine(Adapters):
    """The adapters, the verifier, the prompt format and the content filter of a config."""

    config: Config
    prompt_format: PromptFormat
    verifier: JobRunner
    content_filter: ContentFilter

    def prober(self, streams: Streams) -> Prober:
        """Return a prober that samples at ``solve.temperature``, ignoring the members' genes."""
        sampler = self.sampler(self.config.solve.temperature)
        return Prober(sampler, self.verifier, self.prompt_format, self.tokenizer, streams, NUM_ATTEMPTS)


LoadAdapters = Callable[[Config], Adapters]
"""Opens the adapters of a run, in this or another process."""


@contextmanager
def open_engine(config: Config, load: LoadAdapters | None = None, report: Report = unheard) -> Iterator[Engine]:
    """Build the engine of a config; the verifier's processes end with the context.

    ``load`` opens adapters in another process; by default they are in this one (``load_adapters``). ``report`` gets the
    progress of sampling, grading and learning. Raises UserError when memory cannot hold the run, the model cannot be
    loaded, no sandbox is available, or a constant of evolution or a rule of the content filter is wrong.
    """
    check_rules(config)
    prompt_format = choose_format(config)
    content_filter = load_content_filter(config.propose)
    set_up_torch(config)
    adapters = load(config) if load else load_adapters(config, report)
    remote = adapters.shard_verifier
    with closing(adapters), nullcontext(remote) if remote else open_sandbox(config, report=report) as verifier:
        yield Engine(
            **vars(adapters),
            config=config,
            prompt_format=prompt_format,
            verifier=verifier,
            content_filter=content_filter,
        )


def set_up_torch(config: Config) -> None:
    """Set torch's threads and seed, on which results depend, and let the process keep the memory that it frees."""
    keep_freed_memory()
    torch.set_num_threads(config.run.num_threads or max(1, (os.cpu_count() or 1) // config.run.num_lanes))
    torch.manual_seed(config.run.rng_seed)


@dataclass(frozen=True)
class LoadedBase:
    """The frozen base and its tokenizer, which all banks of this process can share."""

    base: Base
    tokenizer: PreTrainedTokenizerBase


def load_frozen(config: Config) -> LoadedBase:
    """Load the base that the config names and freeze it. Raises UserError when memory cannot hold the run."""
    device = choose_device(config.run.device)
    refuse_what_cannot_fit(config, device)
    model, tokenizer = load_base(config.model.base)
    return LoadedBase(freeze(model, device, choose_precision(config.model.precision, device.type)), tokenizer)


def load_adapters(config: Config, report: Report = unheard) -> Adapters:
    """Load the base and build bank, samplers and learner in this process."""
    return build_adapters(config, load_frozen(config), range(config.num_adapters), report)


def build_adapters(config: Config, loaded: LoadedBase, slots: Sequence[int], report: Report) -> Adapters:
    """Build bank, samplers and learner for these slots of the population; inside, slots are numbered from 0."""
    base, tokenizer = loaded.base, loaded.tokenizer
    bank = build_bank(config, base, slots)
    solve, limits = config.solve, fit_limits(config, base.max_positions)
    pad_id, elsewhere = pad_token(tokenizer), config.sampler.kind == "vllm"
    num_lanes = config.run.num_lanes if base.device.type == "cpu" else 1
    learner = TorchLearner(
        bank,
        config.learn,
        temperature=solve.temperature,
        pad_id=pad_id,
        importance_cap=IMPORTANCE_CAP if elsewhere else None,
        num_lanes=num_lanes,
        report=report,
    )
    store = TorchStore(bank, learner)
    fleet = open_fleet(config, bank, tokenizer, limits) if elsewhere else None

    fused = None if fleet else fused_decoder(bank)
    usual_stops, ends = choose_format(config).stops, end_tokens(tokenizer, bank.base.model.generation_config)

    def sampler(
        temperature: float,
        max_new_tokens: int | None = None,
        stops: Sequence[str] | None = None,
    ) -> Sampler:
        made: Sampler
        length, strings = max_new_tokens or limits.solve_new_tokens, usual_stops if stops is None else stops
        stopper = stop_strings(strings, tokenizer)
        if fleet:
            made = RemoteSampler(fleet, length, ends, temperature, strings, stopper, report)
        else:
            made = TorchSampler(
                bank, length, ends, temperature, solve.max_rows,
                pad_id=pad_id, stopper=stopper, fused=fused, report=report,
                prompt_cache_tokens=prompt_cache_tokens(config, limits),
            )  # fmt: skip
            made = LaneSampler(made, num_lanes) if num_lanes > 1 else made
        return made

    return Adapters(
        tokenizer=tokenizer,
        limits=limits,
        store=store,
        proposer=sampler(config.propose_temperature, limits.propose_new_tokens),
        solver=sampler(solve.temperature),
        sampler=sampler,
        learner=learner,
        close=fleet.close if fleet else lambda: None,
    )


def build_bank(config: Config, base: Base, slots: Sequence[int] | None = None) -> AdapterBank:
    """Return a bank of founders for these slots (None: all adapters of the config)."""
    population = config.population
    slots = range(config.num_adapters) if slots is None else slots
    rank, alpha, targets = population.lora_rank, population.lora_alpha, population.lora_targets
    return AdapterBank(base, len(slots), rank, alpha, targets, config.run.rng_seed, slots)


def choose_device(name: str) -> torch.device:
    """Return the device for ``auto``, ``cpu`` or ``cuda``. Raises UserError for ``cuda`` without a CUDA device."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("run.device is cuda, but this machine shows no CUDA device: set run.device = cpu")
    return torch.device(device_type(name))


def load_base(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the base and its tokenizer: embedded, from a folder or a GGUF file, or by name from the hub.

    Raises UserError when the base does not exist, is damaged, or lacks weights, which would be drawn at random.
    """
    disable_progress_bar()  # it would overwrite our progress display
    tokenizer = load_tokenizer(name)  # fails before any weights are read if this is not a model
    options: dict[str, Any] = {"dtype": "auto"}
    if is_gguf(name):
        options = {"dtype": torch.bfloat16, "quantization_config": DEQUANTIZED}
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(**pretrained(name), **options, output_loading_info=True)
    except Exception as error:  # libraries raise many types of errors for a damaged folder
        raise _not_loaded(name, error) from None
    model, info = loaded
    if missing := sorted(info["missing_keys"]):
        raise UserError(
            f"model.base {name} lacks {len(missing)} of its tensors ({missing[0]}...), which would be drawn at random: "
            "restore the model folder"
        )
    _check_weights(name, model, tokenizer)
    return model, tokenizer


@torch.no_grad()
def _check_weights(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise UserError for weights that are not finite, and for tokens without a row in the embedding."""
    for tensor, weight in model.named_parameters():
        if weight.is_floating_point() and weight.numel() and not torch.stack(weight.aminmax()).isfinite().all():
            raise UserError(f"model.base {name} has NaN or infinity in {tensor}: restore the model folder")
    layers = model.get_input_embeddings(), model.get_output_embeddings()
    token, number = max(tokenizer.get_vocab().items(), key=itemgetter(1))
    rows = [len(layer.weight) for layer in layers if isinstance(layer, nn.Embedding | nn.Linear)]
    num_rows = min(rows, default=number + 1)
    if number >= num_rows:
        raise UserError(
            f"the tokenizer of model.base {name} has the token {token!r} as number {number:,}, and the model has only "
            f"{num_rows:,} tokens: give the tokenizer that belongs to the model, or enlarge its embedding"
        )


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a base, without its weights."""
    base_shape(name)
    source = pretrained(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(**source)
    except Exception as error:  # as above
        if not Path(source["pretrained_model_name_or_path"]).is_dir():
            raise _not_loaded(name, error) from None
        tokenizer = None
    if tokenizer is None or len(tokenizer) < 2:
        raise UserError(
            f"model.base {name} has no tokenizer that can be read: put its tokenizer.json and tokenizer_config.json "
            "next to the weights"
        )
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"the tokenizer of model.base {name} has no end token, so completions would not end: set eos_token in "
            "its tokenizer_config.json"
        )
    if name != EMBEDDED:
        _check_foreign_tokenizer(name, tokenizer)
    return tokenizer  # type: ignore[no-any-return]


TRIAL_S, TRIAL_BYTES = 20, 4 << 30
"""Limits of CPU time and memory within which a foreign tokenizer must encode one short prompt (ours)."""

TRIAL_TEXT = "def f(x):\n    return [x, 'a_1', 2.5]  # Gr\u00fc\u00dfe, \u4f60\u597d \U0001f600\n\n" + "ab  12\t-- " * 8


def _check_foreign_tokenizer(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise UserError when a foreign tokenizer or chat template loses a short text, hangs, or kills the process.

    Templates are programs, and regular expressions may run forever, so both are tried in a child process with limits.
    Ordinary errors are ignored here: they are raised again when the first prompt is encoded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking is safe: the child only encodes a text and exits
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hides the message of a crash
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(3 * TRIAL_S)
            resource.setrlimit(resource.RLIMIT_CPU, (TRIAL_S, TRIAL_S))
            held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (held + TRIAL_BYTES, held + TRIAL_BYTES))
            code = int("return" not in tokenizer.decode(list(FRAMES["chat"].encode(tokenizer, TRIAL_TEXT))))
        except MemoryError:
            pass
        except Exception:
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise UserError(
            f"the tokenizer or the chat template of model.base {name} does not write a short prompt within {TRIAL_S} s "
            "and 4 GB, or crashes: restore the model folder, or choose another base"
        )


def stop_strings(stops: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> StopStrings | None:
    """Return a finder of the strings that end a completion; None if only end tokens do."""
    return StopStrings(stops, lambda tokens: str(tokenizer.decode(list(tokens)))) if stops else None


def _not_loaded(name: str, error: Exception) -> UserError:
    """Return the error for a base that was not loaded: the library's reason for a folder, the remedies for a name."""
    if Path(name).is_dir() or base_shape(name) is not None:
        return UserError(f"model.base {name} cannot be loaded: {first_line(error):.300}")
    return UserError(
        f"model.base {name} is not a folder, is not in the hub's cache on this machine, and could not be downloaded: "
        "check the name and the connection (`hf auth login` for a private model), or give a folder"
    )


def pad_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id that pads rows: the padding token, or the end token if there is none."""
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return int(pad)  # type: ignore[arg-type]
