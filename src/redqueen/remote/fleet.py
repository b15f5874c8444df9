"""The servers together: every adapter in its current version on each, requests spread over them, the lost ones awaited.

A version gets a name and a folder of its own, is loaded beside the one before, checked by the canary, and only then
used; the one before is forgotten last. A server that is lost is asked again when it is back, with everything loaded
anew.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from torch import Tensor

from redqueen.config.sampler import SamplerConfig
from redqueen.errors import UserError
from redqueen.remote.canary import STEPS, TIMES_ALONE, Probe, judge_all
from redqueen.remote.server import TOP, LoadRefused, Sampled, Server, ServerLost
from redqueen.remote.versions import Version, Versions
from redqueen.timing import Report, unheard

MOST_LOSSES = 3
"""Losses of one server over one call before the run stops: a call that kills a server each time is at fault itself."""
TRIES = 3
"""Times that a server is asked to load an adapter."""
BETWEEN_LOOKS_S = 1.0
"""Seconds between two looks for a server that is awaited, and between two tries to load."""
STRONG_SEEDS = (1, 2)
BEFORE = "the version before"
TIMES_TOLERANCE = 1.5
"""How much, in tolerances, each sort of module of the first canary's adapters moves the answers."""

PLAIN = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
PLAIN |= {"presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Every setting that a server would else take from the model's generation config, as if it were not there."""


@dataclass(frozen=True)
class Wish:
    """A request for completions to the adapter of ``slot``: its body without the name."""

    slot: int
    body: Mapping[str, Any]


@dataclass(eq=False)
class Replica:
    """A server and the versions that it serves, by slot; ``checked``: it passed its first canary. ``names``: what it
    was asked to load and not yet to forget, also before it was lost. ``believed``: slots that were checked since
    anything was loaded there."""

    server: Server
    serving: dict[int, Version] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    believed: set[int] = field(default_factory=set)
    checked: bool = False
    why_lost: str = ""
    rests_until: float = 0.0
    """While it is lost and another is ready it is not tried before then, on the monotonic clock."""


class Fleet:
    """All servers of a run. ``say`` is told in words of servers that are lost and found."""

    def __init__(
        self,
        config: SamplerConfig,
        versions: Versions,
        probe: Probe,
        longest: int,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.config, self.versions, self.probe, self.longest, self.say = config, versions, probe, longest, say
        self.replicas = [Replica(Server(url, config, probe.vocabulary)) for url in config.urls]
        whole = tuple(token for prompt in probe.prompts for token in prompt)
        long_prompt = (whole * (longest // len(whole) + 1))[: longest - STEPS]
        self.long_probe = Probe(probe.bank, [long_prompt], probe.temperature)
        self.strong = [probe.strong(seed, TIMES_TOLERANCE * config.canary_tolerance) for seed in STRONG_SEEDS]

    def open(self) -> None:
        """Wait for every server and check it. Raises UserError when one does not come or fails its canary."""
        deadline = time.monotonic() + self.config.reconnect_s
        while lost := [r for r in self.replicas if not self._is_ready(r, {})]:
            if time.monotonic() > deadline:
                raise self._gone(lost)
            time.sleep(BETWEEN_LOOKS_S)

    def ask(self, wishes: Sequence[Wish], report: Report = unheard) -> list[list[Sampled]]:
        """Return the completions of each wish, by the members as they are now.

        Raises UserError when no server is left for ``reconnect_s``, one is lost again and again, an adapter cannot be
        loaded or a canary fails.
        """
        wanted = {slot: self.versions.of(slot) for slot in dict.fromkeys(wish.slot for wish in wishes)}
        found: dict[int, list[Sampled]] = {}
        losses: dict[str, int] = {}
        while waiting := [i for i in range(len(wishes)) if i not in found]:
            ready = self._await(wanted, lambda: report(len(found), len(wishes)))
            self._forget_old()
            for replica in self._spread(ready, waiting, wishes, found, report):
                url = replica.server.url
                losses[url] = losses.get(url, 0) + 1
                if losses[url] == MOST_LOSSES:
                    raise UserError(
                        f"the server at {url} was lost {MOST_LOSSES} times over the same requests "
                        f"({replica.why_lost}): look into its log"
                    )
        return [found[i] for i in range(len(wishes))]

    def close(self) -> None:
        """Forget all adapters here and on the servers that still answer."""
        for replica in self.replicas:
            replica.serving = {}
            with suppress(ServerLost, UserError):
                self._unload_others(replica)
            replica.server.close()
        self.versions.close()

    # Asking ----------------------------------------------------------------------------------------------------

    def _spread(
        self,
        ready: Sequence[Replica],
        waiting: Sequence[int],
        wishes: Sequence[Wish],
        found: dict[int, list[Sampled]],
        report: Report,
    ) -> list[Replica]:
        """Ask the wishes that wait, in turn of the servers; put answers into ``found`` and return the servers lost.

        Once a server is lost nothing more is asked of it, and nobody waits for what it was asked before. ``report`` is
        told at least once in ``BETWEEN_LOOKS_S``; when it raises nothing is waited for either.
        """
        lost: dict[int, Replica] = {}
        written = 0
        shares = [list(waiting[at :: len(ready)]) for at in range(len(ready))]
        queues = [deque(share) for share in shares]
        told: SimpleQueue[tuple[int, int, list[Sampled] | Exception]] = SimpleQueue()

        def ask_on(at: int) -> None:
            with suppress(IndexError):
                while True:
                    i = queues[at].popleft()
                    answer = self._answer(ready[at], wishes[i])
                    if isinstance(answer, ServerLost):
                        queues[at].clear()
                    told.put((at, i, answer))

        for at, share in enumerate(shares):
            for _ in range(min(len(share), self.config.max_requests)):
                Thread(target=ask_on, args=(at,), daemon=True).start()  # a thread that hangs holds nobody up
        left = set(waiting)
        try:
            while left:
                try:
                    at, i, answer = told.get(timeout=BETWEEN_LOOKS_S)
                except Empty:
                    report(len(found), len(wishes), written)
                    continue
                if at in lost:
                    continue
                if isinstance(answer, ServerLost):
                    lost[at] = ready[at]
                    left -= set(shares[at])
                    self._lose(ready[at], answer)
                elif isinstance(answer, Exception):
                    raise answer
                else:
                    found[i] = answer
                    left.discard(i)
                    written += sum(len(one.tokens) for one in answer)
                    report(len(found), len(wishes), written)
        finally:
            for at, queue in enumerate(queues):
                if left or at in lost:
                    queue.clear()
                    ready[at].server.renew()
        return list(lost.values())

    def _answer(self, replica: Replica, wish: Wish) -> list[Sampled] | Exception:
        try:
            return replica.server.complete(self._body(wish.body, replica.serving[wish.slot]))
        except Exception as error:  # is raised where the answers are read
            return error

    def _body(self, body: Mapping[str, Any], version: Version) -> dict[str, Any]:
        # The salt keeps prefix caches of versions apart even where a server does not.
        return {**PLAIN, **body, "model": version.name, "cache_salt": version.name}

    # Servers that come and go ----------------------------------------------------------------------------------

    def _await(self, wanted: Mapping[int, Version], look: Callable[[], None]) -> list[Replica]:
        """Return the servers that serve all these versions, waiting for the first.

        Those that are lost are tried once more, but where another is ready at most a tenth of the time goes into that:
        one that is half dead takes minutes to fail.

        ``look`` is called between two tries: it may raise, where a run is to be stopped.
        """
        deadline = time.monotonic() + self.config.reconnect_s
        while True:
            lost = [replica for replica in self.replicas if replica.why_lost]
            ready = [one for one in self.replicas if one not in lost and self._is_ready(one, wanted)]
            ready += [one for one in lost if self._is_back(one, wanted, bool(ready))]
            if ready:
                return ready
            if time.monotonic() > deadline:
                raise self._gone(self.replicas)
            look()
            time.sleep(BETWEEN_LOOKS_S)

    def _is_back(self, replica: Replica, wanted: Mapping[int, Version], others_are_ready: bool) -> bool:
        began_s = time.monotonic()
        if others_are_ready and began_s < replica.rests_until:
            return False
        is_ready = self._is_ready(replica, wanted)
        now_s = time.monotonic()
        replica.rests_until = now_s + 9 * (now_s - began_s)
        return is_ready

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
            self.say(f"the server at {replica.server.url} is back; its adapters are loaded and checked")
            replica.why_lost = ""
        return True

    def _lose(self, replica: Replica, error: ServerLost) -> None:
        if not replica.why_lost:
            self.say(f"the server at {replica.server.url} is lost ({error})")
        replica.serving, replica.believed = {}, set()
        replica.checked, replica.why_lost = False, str(error) or "no answer"

    def _gone(self, lost: Sequence[Replica]) -> UserError:
        names = ", ".join(f"{replica.server.url} ({replica.why_lost})" for replica in lost)
        return UserError(
            f"no answer for {self.config.reconnect_s:g} seconds (sampler.reconnect_s) from {names}: start it again, as "
            "`redqueen train CONFIG --dry-run` says, then resume the run"
        )

    # Versions and canaries -------------------------------------------------------------------------------------

    def _update(self, replica: Replica, wanted: Mapping[int, Version]) -> None:
        """Load and check the versions that a server does not serve yet; those before them are kept until then.

        Who was there already is checked again too: what is loaded may have taken the place of another.
        """
        serving = replica.serving
        if lacking := {version.name for version in serving.values()} - set(replica.server.models()):
            raise ServerLost(f"it does not know {min(lacking)} any more")  # another one, started in its place
        new = {slot: version for slot, version in wanted.items() if serving.get(slot) != version}
        olds = {slot: serving[slot] for slot in new if slot in serving}
        if new:
            replica.believed = set()
        doubted = [(slot, version) for slot, version in wanted.items() if slot not in replica.believed]
        with self._taking_back(replica):
            for version in new.values():
                self._load(replica, version)
            for start in range(0, len(doubted), self.probe.at_once):
                part = dict(doubted[start : start + self.probe.at_once])
                rows = [self.versions.row(version) for version in part.values()]
                others = [{BEFORE: self.versions.row(olds[slot])} if slot in olds else {} for slot in part]
                self._canary(replica, list(part.values()), rows, others)
        replica.serving = {**serving, **new}
        replica.believed |= wanted.keys()
        self._unload_others(replica)

    @contextmanager
    def _taking_back(self, replica: Replica) -> Iterator[None]:
        """Let a server forget what was loaded inside when that ends with an error."""
        try:
            yield
        except UserError:
            with suppress(ServerLost):
                self._unload_others(replica)
            raise

    def _unload_others(self, replica: Replica) -> None:
        """Let a server forget what it does not serve; one that was lost and is back may still have it."""
        for name in sorted(replica.names - {version.name for version in replica.serving.values()}):
            replica.server.unload(name)
            replica.names.discard(name)

    def _load(self, replica: Replica, version: Version) -> None:
        replica.names.add(version.name)
        for left in reversed(range(TRIES)):
            try:
                return replica.server.load(version.name, version.folder)
            except LoadRefused as error:
                if not left:
                    raise UserError(
                        f"the server at {replica.server.url} does not load the adapter in {version.folder}: {error} "
                        "(the version before is still there; mend the server, then resume the run)"
                    ) from None
                time.sleep(BETWEEN_LOOKS_S)

    def _first_canary(self, replica: Replica) -> None:
        """Check a server with adapters that differ widely, whatever the members have learned so far.

        Two are loaded and asked together, and one of them behind a text as long as this run's longest; then the first
        is replaced, as a new version of a member would be.
        """
        lengths = [length for length in replica.server.models().values() if length is not None]
        if lengths and min(lengths) < self.longest:
            raise UserError(
                f"the server at {replica.server.url} takes texts of {min(lengths)} tokens, and this run's may have "
                f"{self.longest}: start it with --max-model-len {self.longest}"
            )
        one, other = self.strong
        named = (("canary-1", one), ("canary-2", other), ("canary-1", one + other))
        first, second, third = (self.versions.write(name, row) for name, row in named)
        with self._taking_back(replica):
            self._load(replica, first)
            self._load(replica, second)
            self._canary(replica, [first, second], [one, other], [self.probe.ablated(row) for row in (one, other)])
            self._canary(replica, [second], [other], [{}], self.long_probe)
            self._load(replica, third)
            self._canary(replica, [third], [one + other], [{BEFORE: one}])
        self._unload_others(replica)

    def _canary(
        self,
        replica: Replica,
        loaded: Sequence[Version],
        rows: Sequence[Tensor],
        others: Sequence[Mapping[str, Tensor]],
        probe: Probe | None = None,
    ) -> None:
        """Ask for a few tokens and the likeliest of each behind every prompt, and compare.

        Raises UserError naming what was served.
        """
        probe = probe or self.probe
        tolerance = self.config.canary_tolerance * (TIMES_ALONE if len(probe.prompts) == 1 else 1)
        wish = {"n": 1, "max_tokens": STEPS, "temperature": probe.temperature, "seed": 0, "logprobs": TOP}
        wish |= {"ignore_eos": True, "return_token_ids": True, "return_tokens_as_token_ids": True}
        bodies = [
            self._body({**wish, "prompt": list(prompt)}, version) for version in loaded for prompt in probe.prompts
        ]
        with ThreadPoolExecutor(min(len(bodies), self.config.max_requests)) as pool:
            told = [sampled for (sampled,) in pool.map(replica.server.complete, bodies)]
        if any(len(one.tokens) != STEPS for one in told):
            raise UserError(f"the server at {replica.server.url} does not write the {STEPS} tokens it is asked for")
        num = len(probe.prompts)
        answers = [told[i * num : (i + 1) * num] for i in range(len(loaded))]
        for version, finding in zip(loaded, judge_all(probe, answers, rows, others, tolerance), strict=True):
            if finding.culprit:
                raise UserError(
                    f"the server at {replica.server.url} does not serve {version.name} as it was given it: its answers "
                    f"are those of {finding.culprit}, {finding.mean_abs:.3g} nats a token from the learner's "
                    f"(sampler.canary_tolerance {tolerance:g}); nothing was learned from it: mend or restart the "
                    "server, then resume the run"
                )

    def _forget_old(self) -> None:
        """Remove the folders that no server reads any more."""
        self.versions.keep_only(self._served())

    def _served(self) -> Iterable[Version]:
        return [version for replica in self.replicas for version in replica.serving.values()]
