"""Sampling by servers, against a small server of our own: the protocol, its silent faults, and servers that die."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from serving import END, PROMPTS, SmallServer, faulty, learn, members, opened, sampler

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.decoding import StopStrings
from redqueen.errors import UserError
from redqueen.records import BASE_SLOT, Completion, Request
from redqueen.remote.server import ServerLost

Pair = tuple[SmallServer, SmallServer]
Complete = Callable[[dict], Awaitable[list]]

REQUESTS = [
    Request(slot=1, prompt=PROMPTS[0], num_samples=3, rng_seed=10),
    Request(slot=0, prompt=PROMPTS[1], num_samples=1, rng_seed=11),
    Request(slot=BASE_SLOT, prompt=PROMPTS[2], num_samples=2, rng_seed=12),
    Request(slot=2, prompt=PROMPTS[3], num_samples=2, rng_seed=1 << 63, temperature=1.5),
]


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was printed of servers since the last call."""
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("the server at")]


def plain_logprobs(bank: AdapterBank, request: Request, completion: Completion, temperature: float) -> list[float]:
    tokens = torch.tensor([[*request.prompt, *completion.tokens]])
    with torch.no_grad(), bank.routed([request.slot]):
        logits = bank.base.model(tokens).logits[0, len(request.prompt) - 1 : -1]
    logp = torch.log_softmax(logits / temperature, dim=-1)
    return logp[torch.arange(len(completion.tokens)), torch.tensor(completion.tokens)].tolist()


# The protocol --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_all_members_and_the_base_are_sampled_with_their_own_log_probabilities(
    server: SmallServer, model: Path, temperature: float
) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        answers = sampler(fleet, temperature=temperature).sample(REQUESTS)
    assert [len(answer) for answer in answers] == [3, 1, 2, 2]
    for request, answer in zip(REQUESTS, answers, strict=True):
        for completion in answer:
            heat = temperature * request.temperature
            expected = plain_logprobs(store.bank, request, completion, heat)
            assert completion.logprobs == pytest.approx(expected, abs=1e-4)
            assert completion.entropy == pytest.approx(-np.mean(expected), abs=1e-4)
            assert completion.finished == (completion.tokens[-1] == END)
            assert completion.finished or len(completion.tokens) == 8


def test_a_request_is_sampled_by_its_seed_whatever_is_asked_beside_it(server: SmallServer, model: Path) -> None:
    with opened(members(model), server) as fleet:
        solver = sampler(fleet)
        together = solver.sample(REQUESTS)
        assert solver.sample(REQUESTS[:1]) == together[:1]
        assert solver.sample([replace(REQUESTS[0], rng_seed=99)]) != together[:1]
        assert solver.sample([replace(REQUESTS[0], num_samples=0)]) == [[]]


def test_greedy_samples_of_a_request_are_the_same(server: SmallServer, model: Path) -> None:
    with opened(members(model), server) as fleet:
        (answer,) = sampler(fleet, temperature=0.0).sample(REQUESTS[:1])
    assert answer[0] == answer[1] == answer[2]


def test_completions_end_where_our_own_rules_end_them(server: SmallServer, model: Path) -> None:
    (request,) = [replace(REQUESTS[0], num_samples=1)]
    with opened(members(model), server) as fleet:
        ((free,),) = sampler(fleet, end_tokens=[]).sample([request])
        assert not free.finished and len(free.tokens) == 8
        third = free.tokens[2]
        until = free.tokens.index(third) + 1
        ((ended,),) = sampler(fleet, end_tokens=[third]).sample([request])
        assert (ended.tokens, ended.finished) == (free.tokens[:until], True)
        assert ended.logprobs == pytest.approx(free.logprobs[:until], abs=1e-5)
        ((marked,),) = sampler(fleet, end_tokens=[]).sample([replace(request, stop_token=third, stop_count=1)])
        assert (marked.tokens, marked.finished) == (free.tokens[:until], True)
        stopper = StopStrings([f"<{free.tokens[3]}>"], lambda tokens: "".join(f"<{t}>" for t in tokens))
        ((stopped,),) = sampler(fleet, end_tokens=[], stopper=stopper).sample([request])
        assert (stopped.tokens[-1], stopped.finished) == (free.tokens[3], True)


def test_each_version_has_a_name_of_its_own_and_the_one_before_goes(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        solver = sampler(fleet)
        before = solver.sample(REQUESTS)
        first = server.adapters
        assert [name.rpartition("-")[0] for name in first] == ["base", "slot-0", "slot-1", "slot-2"]
        store.reset(1, rng_seed=5)
        after = solver.sample(REQUESTS)
        assert len(server.adapters) == 4 and len(set(server.adapters) & set(first)) == 3
        assert after[0] != before[0] and after[1:] == before[1:]
        root = fleet.versions.root
        solver.sample(REQUESTS)
        assert sorted(folder.name for folder in root.iterdir()) == server.adapters
    assert server.adapters == [] and not root.exists()


def test_every_server_has_every_adapter_and_requests_are_spread(pair: Pair, model: Path) -> None:
    store = members(model)
    with opened(store, pair[0]) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
    with opened(store, *pair) as fleet:
        asked: list[str] = []
        for replica in fleet.replicas:
            complete, url = replica.server.complete, replica.server.url

            async def count(body: dict, complete: Complete = complete, url: str = url) -> list:
                asked.append(url)
                return await complete(body)

            replica.server.complete = count
        answers = sampler(fleet).sample(REQUESTS)
        assert pair[0].adapters == pair[1].adapters and len(pair[0].adapters) == 4
    assert {asked.count(server.url) - 4 * len(PROMPTS) for server in pair} == {2}  # the rest were the canary's
    assert [[c.tokens for c in answer] for answer in answers] == [[c.tokens for c in answer] for answer in expected]


# Silent faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("base", "the base model"),
        ("wrong", "of adapter . of those loaded with it"),
        pytest.param("missing", "the adapter without its down_proj", marks=pytest.mark.slow),
        pytest.param("stale", "the version before", marks=pytest.mark.slow),
        ("raw", r"no known adapter .*--logprobs-mode processed_logprobs"),
        pytest.param("narrow", "no known adapter", marks=pytest.mark.slow),
        pytest.param("decode", "no known adapter", marks=pytest.mark.slow),
    ],
)
def test_a_silent_fault_is_found_before_anything_is_sampled(
    server: SmallServer, model: Path, fault: str, named: str
) -> None:
    founders = members(model, spread=0.0)  # all members are the base still: the canary has adapters of its own
    with faulty(server, fault), pytest.raises(UserError, match=named), opened(founders, server):
        pass
    with opened(founders, server) as fleet:
        assert len(sampler(fleet).sample(REQUESTS)) == 4


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("stale", "the version before"),
        pytest.param("base", "the base model", marks=pytest.mark.slow),
        pytest.param("wrong", "of (adapter|the version)", marks=pytest.mark.slow),
    ],
)
def test_a_fault_that_begins_later_is_found_though_members_have_moved_little(
    server: SmallServer, model: Path, fault: str, named: str
) -> None:
    store = members(model, spread=0.002)
    with opened(store, server, canary_tolerance=10.0) as fleet:  # so that only being nearer to another counts
        sampler(fleet).sample(REQUESTS)
        learn(store.bank, 0.002, seed=2)
        with faulty(server, fault), pytest.raises(UserError, match=named):
            sampler(fleet).sample(REQUESTS)
    assert server.adapters == []


def test_modules_that_are_missing_in_a_later_version_are_found(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        sampler(fleet).sample(REQUESTS)
        learn(store.bank, 0.05, seed=2)
        with faulty(server, "missing"), pytest.raises(UserError, match="no known adapter"):
            sampler(fleet).sample(REQUESTS)


def test_an_adapter_whose_place_a_later_one_takes_is_found_though_it_has_not_changed(
    server: SmallServer, model: Path
) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        sampler(fleet).sample(REQUESTS)
        store.reset(0, rng_seed=5)
        with faulty(server, "displace"), pytest.raises(UserError, match=r"slot-1-.* are those of"):
            sampler(fleet).sample(REQUESTS)


def test_a_member_that_learned_alone_is_told_from_those_that_did_not(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server, canary_tolerance=10.0) as fleet:  # so that only being nearer to another counts
        sampler(fleet).sample(REQUESTS)
        store.reset(0, rng_seed=5)
        with faulty(server, "wrong"), pytest.raises(UserError, match=r"slot-0-.* are those of adapter 1 of"):
            sampler(fleet).sample(REQUESTS)


def test_adapters_that_are_equal_are_no_fault(server: SmallServer, model: Path) -> None:
    store = members(model)
    store.copy(0, into=1)
    with opened(store, server) as fleet:
        assert len(sampler(fleet).sample(REQUESTS)) == 4


def test_a_server_that_answers_in_other_words_is_named(server: SmallServer, model: Path) -> None:
    wanted = "did not answer with token ids of this base with log-probabilities"
    with opened(members(model), server) as fleet, faulty(server, "strange"), pytest.raises(UserError, match=wanted):
        sampler(fleet).sample(REQUESTS)


# Loading -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_load_that_fails_is_tried_again(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet, faulty(server, "load", 2):
        sampler(fleet).sample(REQUESTS)
        assert len(server.adapters) == 4


def test_a_load_that_fails_for_good_ends_the_run(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        sampler(fleet).sample(REQUESTS)
        store.reset(1, rng_seed=5)
        with (
            faulty(server, "load"),
            pytest.raises(UserError, match=r"does not load .*no room for this adapter; repair"),
        ):
            sampler(fleet).sample(REQUESTS)
    assert server.adapters == []


# Servers that die ----------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_and_comes_back_is_given_everything_again(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = SmallServer(model), members(model)
    try:
        with opened(store, server) as fleet:
            solver = sampler(fleet)
            expected = solver.sample(REQUESTS)
            server.kill()
            back = threading.Timer(0.3, server.start)
            back.start()
            assert solver.sample(REQUESTS) == expected
            back.join()
            assert len(server.adapters) == 4
            lost, back_again = said(capsys)
            assert f"{server.url} is lost (" in lost
            assert back_again == f"the server at {server.url} is back; its adapters are loaded and checked"
    finally:
        server.kill()


def test_a_server_that_is_another_one_since_the_last_call_is_checked_from_the_start(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, store = SmallServer(model), members(model)
    try:
        with opened(store, server) as fleet:
            sampler(fleet).sample(REQUESTS[:2])
            server.kill()
            server.start()
            for slot in (0, 1):  # all that is asked for now is new
                store.reset(slot, rng_seed=5 + slot)
            sampler(fleet).sample(REQUESTS[:2])
            lost, back = said(capsys)
            assert "no longer knows" in lost and "is back" in back
    finally:
        server.kill()


def test_a_server_that_does_not_come_back_ends_the_run_with_a_sentence(model: Path) -> None:
    server = SmallServer(model)
    with opened(members(model), server, reconnect_s=1.0) as fleet:
        sampler(fleet).sample(REQUESTS)
        server.kill()
        began = time.monotonic()
        with pytest.raises(UserError, match=r"no answer for 1 seconds .*start it again.*then resume"):
            sampler(fleet).sample(REQUESTS)
        assert time.monotonic() - began >= 1.0


def test_a_run_that_waits_for_a_server_can_be_stopped(model: Path) -> None:
    server, told = SmallServer(model), []

    def stop(done: int, total: int, tokens: int = 0) -> None:
        told.append((done, total))
        raise InterruptedError

    with opened(members(model), server) as fleet:
        server.kill()
        with pytest.raises(InterruptedError):
            sampler(fleet, report=stop).sample(REQUESTS)
    assert told == [(0, 4)]


def test_the_other_server_goes_on_alone_when_one_is_lost(
    pair: Pair, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, store = SmallServer(model), members(model)
    with opened(store, pair[0], other) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        other.kill()
        again = sampler(fleet).sample(REQUESTS)
        assert [[c.tokens for c in answer] for answer in again] == [[c.tokens for c in answer] for answer in expected]
        (lost,) = said(capsys)
        assert f"{other.url} is lost" in lost


def test_a_server_that_hangs_counts_as_lost_and_is_asked_again(
    server: SmallServer, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(members(model), server, answer_s=2.0) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        with faulty(server, "hang", 1):
            assert sampler(fleet).sample(REQUESTS[:1]) == expected[:1]
        assert len(said(capsys)) == 2


@pytest.mark.slow
def test_what_was_asked_of_a_server_is_given_up_once_it_is_lost(
    pair: Pair, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(members(model), *pair, max_requests=2) as fleet:
        expected = sampler(fleet).sample(REQUESTS * 4)
        asked, complete = [], fleet.replicas[1].server.complete

        async def lose_the_first(body: dict) -> list:
            asked.append(body)
            if len(asked) == 1:
                raise ServerLost("it hangs")
            await asyncio.sleep(60)
            return []

        fleet.replicas[1].server.complete = lose_the_first
        began = time.monotonic()
        assert sampler(fleet).sample(REQUESTS * 4) == expected
        assert time.monotonic() - began < 20
        assert "is lost (it hangs)" in capsys.readouterr().err
        fleet.replicas[1].server.complete = complete


@pytest.mark.slow
def test_a_half_dead_server_is_seldom_tried_while_another_is_ready(
    pair: Pair, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(members(model), *pair) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        tried, models = [], fleet.replicas[1].server.models

        def fail() -> set[str]:
            tried.append(1)
            raise ServerLost("half dead")

        fleet.replicas[1].server.models = fail
        for _ in range(5):
            assert sampler(fleet).sample(REQUESTS) == expected
        assert len(tried) == 1
        fleet.replicas[1].server.models = models
        fleet.replicas[1].retry_at = 0.0
        assert sampler(fleet).sample(REQUESTS) == expected
        assert fleet.replicas[1].why_lost == "" and "is back" in capsys.readouterr().err


def test_a_run_is_stopped_while_all_requests_hang_and_waits_for_none(server: SmallServer, model: Path) -> None:
    cancelled = []

    async def hang(body: dict) -> list:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(body)
            raise
        return []

    def stop(done: int, total: int, written: int = 0) -> None:
        raise InterruptedError

    with opened(members(model), server) as fleet:
        sampler(fleet).sample(REQUESTS)
        complete, fleet.replicas[0].server.complete = fleet.replicas[0].server.complete, hang
        with pytest.raises(InterruptedError):
            sampler(fleet, report=stop).sample(REQUESTS)
        fleet.replicas[0].server.complete = complete
    assert len(cancelled) == 4


@pytest.mark.slow
def test_a_server_that_was_lost_and_never_died_keeps_nothing_of_before(server: SmallServer, model: Path) -> None:
    with opened(members(model), server, answer_s=2.0) as fleet:
        sampler(fleet).sample(REQUESTS)
        assert len(server.adapters) == 4
        with faulty(server, "hang", 1):
            sampler(fleet).sample(REQUESTS[:1])
        assert len(server.adapters) == 1  # the others were loaded before it was lost
    assert server.adapters == []


@pytest.mark.slow
def test_a_server_that_is_lost_over_each_try_ends_the_run(server: SmallServer, model: Path) -> None:
    with opened(members(model), server) as fleet:
        asked = fleet.replicas[0].server
        complete = asked.complete

        async def forget(body: dict) -> list:
            return await complete(body if body["logprobs"] else {**body, "model": "forgotten"})  # but for canaries

        asked.complete = forget
        with pytest.raises(UserError, match=r"was lost 3 times over the same requests .*does not exist"):
            sampler(fleet).sample(REQUESTS[:1])
