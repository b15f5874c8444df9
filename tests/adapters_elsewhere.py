"""A second owner of the members' adapters: bank, samplers and learner stand in another process, behind a pipe.

Everything crosses as plain pickled bytes: no memory is shared, as between two machines.
"""

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from processes import APART
from torch import Tensor

from redqueen.adapters.genotype import Genotype
from redqueen.config import Config
from redqueen.engine import Adapters, LoadAdapters, load_adapters, set_up_torch
from redqueen.records import Completion, Request, Rollout, Tuning, UpdateStats


@dataclass
class Pipe:
    """Asks the other process; ``num_calls`` counts how often."""

    connection: Connection
    num_calls: int = 0

    def ask(self, part: str, method: str, *arguments: object) -> object:
        self.num_calls += 1
        self.connection.send_bytes(pickle.dumps((part, method, arguments)))
        answer = pickle.loads(self.connection.recv_bytes())
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class StoreElsewhere:
    """Implements ``AdapterStore``."""

    pipe: Pipe

    def genotype(self, slot: int) -> Genotype:
        return self.pipe.ask("store", "genotype", slot)

    def load(self, slot: int, genotype: Genotype) -> None:
        self.pipe.ask("store", "load", slot, genotype)

    def copy(self, slot: int, into: int) -> None:
        self.pipe.ask("store", "copy", slot, into)

    def reset(self, slot: int, rng_seed: int) -> None:
        self.pipe.ask("store", "reset", slot, rng_seed)

    def forget(self, slot: int) -> None:
        self.pipe.ask("store", "forget", slot)

    def state_dict(self) -> dict[str, Tensor]:
        return self.pipe.ask("store", "state_dict")

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        self.pipe.ask("store", "load_state", dict(tensors))


@dataclass
class SamplerElsewhere:
    """Implements ``Sampler``: the proposer, the solver, or a solver at a temperature."""

    pipe: Pipe
    part: str

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        return self.pipe.ask(self.part, "sample", list(requests))


@dataclass
class LearnerElsewhere:
    """Implements ``Learner``."""

    pipe: Pipe

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None) -> list[UpdateStats]:
        return self.pipe.ask("learner", "update", list(rollouts), tunings)


@contextmanager
def adapters_elsewhere() -> Iterator[tuple[LoadAdapters, list[Pipe]]]:
    """Give a way to load adapters in a process of their own, which ends with the context, and the pipes to it."""
    pipes: list[Pipe] = []
    processes = []

    def load(config: Config) -> Adapters:
        ours, theirs = APART.Pipe()
        processes.append(APART.Process(target=serve, args=(theirs, config), daemon=True))
        processes[-1].start()
        pipe = Pipe(ours)
        pipes.append(pipe)
        tokenizer, limits = pipe.ask("", "hello")
        return Adapters(
            tokenizer=tokenizer,
            limits=limits,
            store=StoreElsewhere(pipe),
            proposer=SamplerElsewhere(pipe, "proposer"),
            solver=SamplerElsewhere(pipe, "solver"),
            sampler=lambda *wishes: SamplerElsewhere(pipe, json.dumps(wishes)),
            learner=LearnerElsewhere(pipe),
        )

    try:
        yield load, pipes
    finally:
        for process in processes:
            process.terminate()
            process.join()


def serve(connection: Connection, config: Config) -> None:
    """Load the adapters here and answer until the other end is closed."""
    set_up_torch(config)
    adapters = load_adapters(config)
    parts = {"store": adapters.store, "learner": adapters.learner}
    parts |= {"proposer": adapters.proposer, "solver": adapters.solver}
    while True:
        try:
            part, method, arguments = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            if method == "hello":
                answer = adapters.tokenizer, adapters.limits
            else:
                owner = parts[part] if part in parts else adapters.sampler(*json.loads(part))
                answer = getattr(owner, method)(*arguments)
        except Exception as error:
            answer = error
        connection.send_bytes(pickle.dumps(answer))
