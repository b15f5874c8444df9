"""What the tests of sampling by servers share: a small server in a process of its own, and members to serve."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import torch
from processes import APART
from small_server import serve
from tiny_models import tiny_model
from torch import Tensor
from transformers import AutoModelForCausalLM

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import freeze
from redqueen.config import LearnConfig
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.remote.canary import Probe
from redqueen.remote.fleet import Fleet
from redqueen.remote.sampler import RemoteSampler
from redqueen.remote.versions import Versions

END = 3
PROMPTS = [tuple(range(5 + 7 * i, 15 + 9 * i)) for i in range(4)]


@dataclass
class SmallServer:
    """A process that serves a model folder (``small_server.py``)."""

    folder: Path
    port: int = 0
    process: BaseProcess = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, again on the same port, and wait until it listens."""
        listening, told = APART.Pipe(duplex=False)
        self.process = APART.Process(target=serve, args=(self.folder, self.port, told), daemon=True)
        self.process.start()
        told.close()
        self.port = listening.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def fault(self, name: str, times: int = -1) -> None:
        body = json.dumps({"name": name, "times": times}).encode()
        request = urllib.request.Request(f"{self.url}/fault", body, {"Content-Length": str(len(body))})
        urllib.request.urlopen(request).read()

    def models(self) -> dict:
        return json.loads(urllib.request.urlopen(f"{self.url}/v1/models").read())

    @property
    def adapters(self) -> list[str]:
        """The names of the adapters that are loaded, without the word of the session."""
        return sorted(card["id"].split("-", 2)[2] for card in self.models()["data"] if card["id"] != "base")


@contextmanager
def faulty(server: SmallServer, name: str, times: int = -1) -> Iterator[None]:
    """Switch a fault on inside."""
    server.fault(name, times)
    try:
        yield
    finally:
        server.fault(name, 0)


def saved_model(folder: Path) -> Path:
    """A random Qwen3 of two layers, as a folder."""
    tiny_model().save_pretrained(folder)
    return folder


def members(folder: Path, num: int = 3, spread: float = 0.05) -> TorchStore:
    """Members on the model in ``folder`` that have learned something of their own: ``spread`` is the size of B."""
    base = freeze(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    bank = AdapterBank(base, num, rank=4, alpha=8.0)
    learn(bank, spread, seed=1)
    return TorchStore(bank, TorchLearner(bank, LearnConfig()))


def learn(bank: AdapterBank, spread: float, seed: int) -> None:
    """Move every member by a random step of its own."""
    generator = torch.Generator().manual_seed(seed)
    for slot in range(bank.num_members):
        for _, b in bank.factors(slot).values():
            b.add_(spread * torch.randn(b.shape, generator=generator))


class SharedProbe(Probe):
    """Searches for the canary's own adapters once: they depend on the model alone, which all tests share."""

    found: ClassVar[dict[tuple[int, float], Tensor]] = {}

    def strong(self, seed: int, least: float) -> Tensor:
        if (seed, least) not in self.found:
            self.found[seed, least] = super().strong(seed, least)
        return self.found[seed, least]


@contextmanager
def opened(store: TorchStore, *servers: SmallServer, **settings: float) -> Iterator[Fleet]:
    """A fleet over servers, opened and closed again."""
    options = {"reconnect_s": 60.0, "canary_tolerance": 0.01, "pause_s": 0.1} | settings
    with ExitStack() as stack:
        for name, value in options.items():
            module = "server" if name in ("answer_s", "max_requests") else "fleet"
            stack.enter_context(patch(f"redqueen.remote.{module}.{name.upper()}", value))
        fleet = Fleet([server.url for server in servers], Versions(store.bank, ""), SharedProbe(store.bank, PROMPTS))
        stack.callback(fleet.close)
        fleet.open()
        yield fleet


def sampler(fleet: Fleet, **options: object) -> RemoteSampler:
    settings: dict = {"max_new_tokens": 8, "end_tokens": [END]} | options
    return RemoteSampler(fleet, **settings)
