"""All servers of a run: each has every adapter in its current version, and requests are spread over them.

Each version has its own name and folder. It is loaded in addition to the previous one, checked by the canary, and only
then used; finally the previous one is unloaded. A lost server is tried again, and everything is loaded and checked
again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from torch import Tensor

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.memory import TextLimits
from redqueen.config import Config
from redqueen.errors import UserError
from redqueen.remote.canary import STEPS, Probe, judge_all, probe_prompts
from redqueen.remote.server import TOP, Sampled, Server, ServerLost
from redqueen.remote.versions import Version, Versions, name_of
from redqueen.timing import Report, unheard

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NUM_TRIES = 3
"""Losses of one server over one call before the run stops, and times that a server is asked to load an adapter."""
PAUSE_S = 1.0
"""Seconds between two tries of a server, and between two reports of progress."""
RETRY_S = 60.0
"""Seconds between tries of a lost server while another is ready: a half-dead server takes long to fail."""
BEFORE = "the version before"
RECONNECT_S = 600.0
"""Seconds that a run waits for a server before it stops, when none is left (ours): a large base loads for minutes."""
CANARY_TOLERANCE = 0.2
"""Mean difference in nats between a server's log-probabilities and the learner's own above which the run stops. Ours:
at temperature 0.7 two engines in bfloat16 differ by 0.12 on 30 layers; a missing type of module differs by more."""
TIMES_TOLERANCE = 1.5
"""Effect of each type of module of the first canary's adapters on the answers, in tolerances."""

PLAIN = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
PLAIN |= {"presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Neutral values of all settings that a server would otherwise take from the model's generation config."""

Ask = tuple[int, Mapping[str, Any]]
"""A slot, and the body of a request for completions without the adapter's name."""


@dataclass(eq=False)
class Replica:
    """A server and the versions that it serves, by slot.

    ``checked``: it passed its first canary. ``names``: adapters that were loaded and not yet unloaded, also from before
    it was lost. ``verified``: slots that were checked since the last load. ``retry_at``: when a lost server is tried
    again while another is ready.
    """

    server: Server
    serving: dict[int, Version] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    verified: set[int] = field(default_factory=set)
    checked: bool = False
    why_lost: str = ""
    retry_at: float = 0.0


def open_fleet(config: Config, bank: AdapterBank, tokenizer: PreTrainedTokenizerBase, limits: TextLimits) -> Fleet:
    """Open the fleet of a run. Raises UserError when a server is missing or fails its canary."""
    probe = Probe(bank, probe_prompts(config, tokenizer, limits.max_positions - STEPS))
    fleet = Fleet(config.sampler.urls, Versions(bank, config.sampler.adapter_folder), probe)
    try:
        fleet.open()
    except BaseException:
        fleet.close()
        raise
    return fleet


class Fleet:
    """All servers of a run. Prints on stderr when a server is lost or back."""

    def __init__(self, urls: Sequence[str], versions: Versions, probe: Probe) -> None:
        self.versions, self.probe = versions, probe
        self.replicas = [Replica(Server(url, probe.vocabulary)) for url in urls]

    def open(self) -> None:
        """Wait for every server and check it. Raises UserError when one is missing or fails its canary."""
        least = TIMES_TOLERANCE * CANARY_TOLERANCE
        self.strong = [self.probe.strong(seed, least) for seed in (1, 2)]
        deadline = time.monotonic() + RECONNECT_S
        while lost := [replica for replica in self.replicas if not self._is_ready(replica, {})]:
            self._pause(lost, deadline)

    def ask(self, asks: Sequence[Ask], report: Report = unheard) -> list[list[Sampled]]:
        """Return the completions of each request, sampled by the current versions of the members.

        ``report`` gets progress at least every ``PAUSE_S``; if it raises, all requests are cancelled. Raises UserError
        when no server is available for ``RECONNECT_S``, when one is lost ``NUM_TRIES`` times, when an adapter cannot be
        loaded, and when a canary fails.
        """
        wanted = {slot: self.versions.of(slot) for slot in dict.fromkeys(slot for slot, _ in asks)}
        found: dict[int, list[Sampled]] = {}
        losses = dict.fromkeys(self.replicas, 0)
        while waiting := [i for i in range(len(asks)) if i not in found]:
            ready = self._await(wanted, lambda: report(len(found), len(asks)))
            self.versions.keep_only([version for replica in self.replicas for version in replica.serving.values()])
            for replica in self._spread(ready, {i: asks[i] for i in waiting}, found, report):
                losses[replica] += 1
                if losses[replica] == NUM_TRIES:
                    raise UserError(
                        f"the server at {replica.server.url} was lost {NUM_TRIES} times over the same requests "
                        f"({replica.why_lost}): check its log"
                    )
        return [found[i] for i in range(len(asks))]

    def close(self) -> None:
        """Remove all adapters, here and on the servers that still answer."""
        for replica in self.replicas:
            replica.serving = {}
            with suppress(ServerLost, UserError):
                self._unload_others(replica)
            replica.server.close()
        self.versions.close()

    def _spread(
        self, ready: Sequence[Replica], asks: Mapping[int, Ask], found: dict[int, list[Sampled]], report: Report
    ) -> list[Replica]:
        """Send the requests to the servers in turn; put answers into ``found`` and return servers that were lost."""
        total, num_tokens = len(found) + len(asks), 0
        done: SimpleQueue[Future[list[Sampled]]] = SimpleQueue()
        pending: dict[Future[list[Sampled]], tuple[int, Replica]] = {}
        lost: list[Replica] = []
        for at, (i, (slot, body)) in enumerate(asks.items()):
            replica = ready[at % len(ready)]
            future = replica.server.begin(_named(body, replica.serving[slot]))
            pending[future] = i, replica
            future.add_done_callback(done.put)
        try:
            while pending:
                with suppress(Empty):
                    future = done.get(timeout=PAUSE_S)
                    if future not in pending:
                        continue
                    i, replica = pending.pop(future)
                    try:
                        found[i] = future.result()
                        num_tokens += sum(len(one.tokens) for one in found[i])
                    except ServerLost as error:
                        lost.append(replica)
                        self._lose(replica, error)
                        for other in [other for other, (_, asked) in pending.items() if asked is replica]:
                            del pending[other]
                            other.cancel()
                report(len(found), total, num_tokens)
        finally:
            for future in pending:
                future.cancel()
        return lost

    def _await(self, wanted: Mapping[int, Version], report: Callable[[], None]) -> list[Replica]:
        """Wait until at least one server serves all these versions; return all that do. ``report`` may end the wait."""
        deadline = time.monotonic() + RECONNECT_S
        while True:
            ready = [one for one in self.replicas if not one.why_lost and self._is_ready(one, wanted)]
            for replica in [one for one in self.replicas if one not in ready and one.why_lost]:
                if (not ready or time.monotonic() > replica.retry_at) and self._is_ready(replica, wanted):
                    ready.append(replica)
            if ready:
                return ready
            report()
            self._pause(self.replicas, deadline)

    def _is_ready(self, replica: Replica, wanted: Mapping[int, Version]) -> bool:
        try:
            if not replica.checked:
                self._first_canary(replica)
                replica.checked = True
            self._update(replica, wanted)
        except ServerLost as error:
            self._lose(replica, error)
            return False
        if replica.why_lost:
            print(f"the server at {replica.server.url} is back; its adapters are loaded and checked", file=sys.stderr)
            replica.why_lost = ""
        return True

    def _lose(self, replica: Replica, error: ServerLost) -> None:
        if not replica.why_lost:
            print(f"the server at {replica.server.url} is lost ({error})", file=sys.stderr)
        replica.serving, replica.verified = {}, set()
        replica.checked, replica.why_lost = False, str(error) or "no answer"
        replica.retry_at = time.monotonic() + RETRY_S

    def _pause(self, lost: Sequence[Replica], deadline: float) -> None:
        if time.monotonic() > deadline:
            names = ", ".join(f"{replica.server.url} ({replica.why_lost})" for replica in lost)
            raise UserError(
                f"no answer for {RECONNECT_S:g} seconds from {names}: start it "
                "again, as `redqueen train CONFIG --dry-run` says, then resume the run"
            )
        time.sleep(PAUSE_S)

    def _update(self, replica: Replica, wanted: Mapping[int, Version]) -> None:
        """Load and check the versions that a server does not serve yet; their previous versions are unloaded last.

        Adapters that are already loaded are checked again too: a new one may have replaced another by mistake.
        """
        serving = replica.serving
        if lacking := {name_of(version) for version in serving.values()} - replica.server.models():
            raise ServerLost(f"it no longer knows {min(lacking)}")  # another server was started in its place
        new = {slot: version for slot, version in wanted.items() if serving.get(slot) != version}
        if new:
            replica.verified = set()
        unverified = [slot for slot in wanted if slot not in replica.verified]
        for version in new.values():
            self._load(replica, version)
        for start in range(0, len(unverified), self.probe.at_once):
            part = unverified[start : start + self.probe.at_once]
            rows = [self.versions.row(wanted[slot]) for slot in part]
            olds = [serving[slot] if slot in new and slot in serving else None for slot in part]
            others = [{BEFORE: self.versions.row(old)} if old else {} for old in olds]
            self._canary(replica, [wanted[slot] for slot in part], rows, others)
        replica.serving = {**serving, **new}
        replica.verified |= wanted.keys()
        self._unload_others(replica)

    def _unload_others(self, replica: Replica) -> None:
        """Unload adapters that a server should not serve; one that was lost and is back may still have old ones."""
        for name in sorted(replica.names - {name_of(version) for version in replica.serving.values()}):
            replica.server.unload(name)
            replica.names.discard(name)

    def _load(self, replica: Replica, version: Version) -> None:
        replica.names.add(name_of(version))
        for _ in range(NUM_TRIES):
            if not (refusal := replica.server.load(name_of(version), version)):
                return
            time.sleep(PAUSE_S)
        raise UserError(
            f"the server at {replica.server.url} does not load the adapter in {version}: {refusal}; repair the server, "
            "then resume the run"
        )

    def _first_canary(self, replica: Replica) -> None:
        """Check a server with two random adapters, which differ widely even if the members have learned nothing yet.

        Both are checked together; then one is replaced by a new version, as a member would be.
        """
        one, other = self.strong
        named = (("canary-1", one), ("canary-2", other), ("canary-1", one + other))
        first, second, third = (self.versions.write(name, row) for name, row in named)
        self._load(replica, first)
        self._load(replica, second)
        self._canary(replica, [first, second], [one, other], [self.probe.ablated(row) for row in (one, other)])
        self._load(replica, third)
        self._canary(replica, [third], [one + other], [{BEFORE: one}])
        self._unload_others(replica)

    def _canary(
        self,
        replica: Replica,
        loaded: Sequence[Version],
        rows: Sequence[Tensor],
        others: Sequence[Mapping[str, Tensor]],
    ) -> None:
        """Compare a server's log-probabilities for a few tokens after every prompt with our own.

        Raises UserError when they are wrong, naming what was served instead.
        """
        probe, tolerance = self.probe, CANARY_TOLERANCE
        body = {"n": 1, "max_tokens": STEPS, "temperature": probe.temperature, "seed": 0, "logprobs": TOP}
        body |= {"ignore_eos": True, "return_token_ids": True, "return_tokens_as_token_ids": True}
        begun = [
            [replica.server.begin(_named({**body, "prompt": list(prompt)}, version)) for prompt in probe.prompts]
            for version in loaded
        ]
        answers = [[future.result()[0] for future in futures] for futures in begun]
        if any(len(one.tokens) != STEPS for answer in answers for one in answer):
            raise UserError(f"the server at {replica.server.url} does not write the {STEPS} tokens it is asked for")
        findings = judge_all(probe, answers, rows, others, tolerance)
        for version, (mean_abs, culprit) in zip(loaded, findings, strict=True):
            if culprit:
                raise UserError(
                    f"the server at {replica.server.url} does not serve {name_of(version)}: its answers are those of "
                    f"{culprit}, {mean_abs:.3g} nats a token from the learner's "
                    f"(at most {tolerance:g} are allowed); nothing was learned from it: repair or restart the "
                    "server, then resume the run"
                )


def _named(body: Mapping[str, Any], version: Version) -> dict[str, Any]:
    """Return the request to a version. The salt separates prefix caches where a server does not."""
    return {**PLAIN, **body, "model": name_of(version), "cache_salt": name_of(version)}
