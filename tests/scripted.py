"""A sampler that writes what a test tells it: the loop, the verifier and the learner are the real ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from transformers import PreTrainedTokenizerBase

from redqueen.config import Config, parse_config
from redqueen.domains.code.prompts_compact import ANSWER
from redqueen.domains.frames import BOS, IN, OUT
from redqueen.engine import Engine, open_engine
from redqueen.evolve.generation import check_rules
from redqueen.loop import StepReport, run_step
from redqueen.propose.filters import load_content_filter
from redqueen.records import Completion, Request
from redqueen.state import State, initial_state
from redqueen.timing import Clock

Reply = Callable[[str, int, int], str | None]
"""(prompt, slot, which sample) -> what is written; None: something that never ends."""


@dataclass
class Scripted:
    """Implements ``Sampler``; ``requests`` remembers what was asked for."""

    tokenizer: PreTrainedTokenizerBase
    reply: Reply
    requests: list[Request] = field(default_factory=list)

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.requests += requests
        return [[self._write(request, i) for i in range(request.num_samples)] for request in requests]

    def _write(self, request: Request, sample: int) -> Completion:
        prompt = self.tokenizer.decode(list(request.prompt), clean_up_tokenization_spaces=False)
        text = self.reply(prompt, request.slot, sample)
        tokens = self.tokenizer(text or "cut", add_special_tokens=False)["input_ids"]
        tokens = (*tokens, self.tokenizer.eos_token_id) if text is not None else tuple(tokens)
        return Completion(tokens, (-1.0,) * len(tokens), 1.0, text is not None)


@dataclass
class Teacher:
    """Writes programs that add a number, a new one each time, with the input 1; ``num_written`` counts them."""

    num_written: int = 0

    def __call__(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        return f"def f(x):\n    return x + {self.num_written}{IN}1"


def garbage(prompt: str, slot: int, sample: int) -> str:
    """Write what is neither a task nor an answer."""
    return f"{OUT} what?"


def right(prompt: str, slot: int, sample: int) -> str:
    """Answer a task that ``Teacher`` wrote correctly: the output where one is asked for, else the input 1."""
    if prompt.endswith(ANSWER["code_i"]):
        return "1"
    code, input_ = prompt.removeprefix(BOS).removesuffix(ANSWER["code_o"]).split(IN)
    scope: dict[str, object] = {}
    exec(code, scope)  # a program of ``Teacher``
    return repr(eval(f"f({input_})", scope))


def wrong(prompt: str, slot: int, sample: int) -> str:
    """Answer well formed and wrong."""
    return "-999"


def half(prompt: str, slot: int, sample: int) -> str:
    """Answer every other attempt correctly, beginning with the first."""
    return right(prompt, slot, sample) if sample % 2 == 0 else wrong(prompt, slot, sample)


def either(propose: Reply, answer: Reply) -> Reply:
    """Write by the first script where the prompt asks for a proposal, else by the second."""
    return lambda prompt, slot, sample: (propose if "<|new" in prompt else answer)(prompt, slot, sample)


BASIC = {
    "run": {"num_threads": 1, "num_steps": 100, "device": "cpu"},
    "population": {"num_teachers": 2, "num_students": 2, "lora_rank": 2, "lora_alpha": 4.0},
    "propose": {"num_proposals": {"code_o": 2, "code_i": 1, "code_f": 0}, "num_per_prompt": 2, "num_references": 1},
    "verify": {"num_workers": 1},
    "solve": {"num_attempts": 4, "max_rows": 64},  # fits a small machine, in float32 too
    "learn": {"learning_rate": 1e-2},
    "evolve": {"enabled": False},
}


OUTPUTS = {"num_proposals": {"code_o": 2, "code_i": 0, "code_f": 0}}
"""A section `propose` that asks for outputs alone."""


def config_of(**changes: dict[str, object]) -> Config:
    """Return the basic config of these tests with some fields changed, section by section."""
    sections = {name: {**BASIC.get(name, {}), **changes.get(name, {})} for name in {**BASIC, **changes}}
    return parse_config(sections, "test")


class Table:
    """One open engine of four members, at which tests play steps; every game begins from fresh adapters."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._fresh = engine.store.bank.flat.clone()

    def sit(self, config: Config, teach: Reply, answer: Reply) -> tuple[State, Engine]:
        """Return the founding state and the engine with these two scripts in place of its samplers."""
        self.engine.store.bank.flat.copy_(self._fresh)
        self.engine.learner.load_state({})
        tokenizer = self.engine.tokenizer
        proposer, solver = Scripted(tokenizer, teach), Scripted(tokenizer, answer)
        check_rules(config)
        seats = {"proposer": proposer, "solver": solver, "content_filter": load_content_filter(config.propose)}
        return initial_state(config), replace(self.engine, config=config, **seats)

    def play(
        self, config: Config, teach: Reply, answer: Reply, num_steps: int = 1
    ) -> tuple[State, list[StepReport], Engine]:
        """Play some steps; return the last state, the reports and the engine."""
        state, engine = self.sit(config, teach, answer)
        reports = []
        for _ in range(num_steps):
            state, report = run_step(state, engine, Clock())
            reports.append(report)
        return state, reports, engine


@contextmanager
def open_table() -> Iterator[Table]:
    """Open the engine once for many games: four members, whatever their roles, and a hall of two for each role.

    The limits of CPU time are wide: a busy machine must not make a time-out of a sum.
    """
    wide = {"accept_cpu_ms": 4000, "kill_cpu_ms": 8000}
    with open_engine(config_of(match={"hall_of_fame_frac": 0.5, "hall_of_fame_size": 2}, verify=wide)) as engine:
        yield Table(engine)
