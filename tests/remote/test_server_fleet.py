"""Sampling by servers, against a small server of our own: the protocol, its silent faults, and servers that die."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from serving import END, PROMPTS, SmallServer, faulty, learn, members, opened, sampler

from redqueen.errors import UserError
from redqueen.nouns import BASE_SLOT, Completion, Request
from redqueen.policy.bank import AdapterBank
from redqueen.policy.decoding import StopStrings
from redqueen.remote.server import ServerLost

Pair = tuple[SmallServer, SmallServer]

REQUESTS = [
    Request(slot=1, prompt=PROMPTS[0], num_samples=3, rng_seed=10),
    Request(slot=0, prompt=PROMPTS[1], num_samples=1, rng_seed=11),
    Request(slot=BASE_SLOT, prompt=PROMPTS[2], num_samples=2, rng_seed=12),
    Request(slot=2, prompt=PROMPTS[3], num_samples=2, rng_seed=1 << 63, temperature=1.5),
]


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


def test_a_prompt_that_leaves_no_room_is_refused_before_anything_is_asked(server: SmallServer, model: Path) -> None:
    with opened(members(model), server) as fleet, pytest.raises(UserError, match="room for 1 to 248"):
        sampler(fleet).sample([replace(REQUESTS[0], prompt=(5,) * 249)])


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
            replica.server.complete = lambda body, c=complete, u=url: (asked.append(u), c(body))[1]
        answers = sampler(fleet).sample(REQUESTS)
        assert pair[0].adapters == pair[1].adapters and len(pair[0].adapters) == 4
    assert {asked.count(server.url) - 4 * len(PROMPTS) for server in pair} == {2}  # the rest were the canary's
    assert [[c.tokens for c in answer] for answer in answers] == [[c.tokens for c in answer] for answer in expected]


# Silent faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("base", "the bare base"),
        ("wrong", "of adapter . of those loaded with it"),
        ("missing", "the adapter without its down_proj"),
        ("stale", "the version before"),
        ("raw", r"log-probabilities at temperature 1 .start it with --logprobs-mode processed_logprobs"),
        ("narrow", "nothing that is known"),
        ("decode", "nothing that is known, after the first token"),
        ("long", "the bare base"),
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
    [("base", "the bare base"), ("wrong", "of (adapter|the version)"), ("stale", "the version before")],
)
def test_a_fault_that_begins_later_is_found_though_members_have_moved_little(
    server: SmallServer, model: Path, fault: str, named: str
) -> None:
    store = members(model, spread=0.002)
    with opened(store, server, canary_tolerance=10.0) as fleet:  # so that only being nearer to another counts
        sampler(fleet).sample(REQUESTS)
        before = server.adapters
        learn(store.bank, 0.002, seed=2)
        with faulty(server, fault), pytest.raises(UserError, match=named):
            sampler(fleet).sample(REQUESTS)
        assert server.adapters == before


def test_modules_that_are_missing_in_a_later_version_are_found(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet:
        sampler(fleet).sample(REQUESTS)
        learn(store.bank, 0.05, seed=2)
        with faulty(server, "missing"), pytest.raises(UserError, match="nothing that is known"):
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


def test_a_server_whose_texts_are_too_short_is_refused(model: Path) -> None:
    short, wanted = SmallServer(model, longest=63), r"takes texts of 63 tokens.*--max-model-len 64"
    try:
        with pytest.raises(UserError, match=wanted), opened(members(model), short):
            pass
    finally:
        short.kill()


# Loading -------------------------------------------------------------------------------------------------------


def test_a_load_that_fails_is_tried_again(server: SmallServer, model: Path) -> None:
    store = members(model)
    with opened(store, server) as fleet, faulty(server, "load", 2):
        sampler(fleet).sample(REQUESTS)
        assert len(server.adapters) == 4


def test_the_version_before_is_kept_when_a_load_fails_for_good(server: SmallServer, model: Path) -> None:
    store, wanted = members(model), r"no room for this adapter.*version before is still"
    with opened(store, server) as fleet:
        sampler(fleet).sample(REQUESTS)
        before = server.adapters
        store.reset(1, rng_seed=5)
        with faulty(server, "load"), pytest.raises(UserError, match=wanted):
            sampler(fleet).sample(REQUESTS)
        assert server.adapters == before
        sampler(fleet).sample(REQUESTS)
        assert len(server.adapters) == 4 and server.adapters != before


# Servers that die ----------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_and_comes_back_is_given_everything_again(model: Path) -> None:
    server, store = SmallServer(model), members(model)
    try:
        with opened(store, server) as fleet:
            solver = sampler(fleet)
            expected = solver.sample(REQUESTS)
            server.kill()
            back = threading.Timer(1.0, server.start)
            back.start()
            assert solver.sample(REQUESTS) == expected
            back.join()
            assert len(server.adapters) == 4
            assert [sentence.split(" ", 4)[4].split(" (")[0] for sentence in fleet.said] == [
                "is lost",
                "is back; its adapters are loaded and checked",
            ]
    finally:
        server.kill()


def test_a_server_that_is_another_one_since_the_last_call_is_checked_from_the_start(model: Path) -> None:
    server, store = SmallServer(model), members(model)
    try:
        with opened(store, server) as fleet:
            sampler(fleet).sample(REQUESTS[:2])
            server.kill()
            server.start()
            for slot in (0, 1):  # all that is asked for now is new
                store.reset(slot, rng_seed=5 + slot)
            sampler(fleet).sample(REQUESTS[:2])
            assert "does not know" in fleet.said[0] and "is back" in fleet.said[1]
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


def test_the_other_server_goes_on_alone_when_one_is_lost(pair: Pair, model: Path) -> None:
    other, store = SmallServer(model), members(model)
    with opened(store, pair[0], other) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        other.kill()
        again = sampler(fleet).sample(REQUESTS)
        assert [[c.tokens for c in answer] for answer in again] == [[c.tokens for c in answer] for answer in expected]
        assert len(fleet.said) == 1 and other.url in fleet.said[0]


def test_a_server_that_hangs_counts_as_lost_and_is_asked_again(server: SmallServer, model: Path) -> None:
    with opened(members(model), server, answer_s=3.0) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        with faulty(server, "hang", 1):
            assert sampler(fleet).sample(REQUESTS[:1]) == expected[:1]
        assert len(fleet.said) == 2


def test_nothing_more_is_asked_of_a_server_once_it_is_lost(pair: Pair, model: Path) -> None:
    with opened(members(model), *pair, max_requests=2) as fleet:
        expected = sampler(fleet).sample(REQUESTS * 4)
        asked, complete = [], fleet.replicas[1].server.complete

        def lose_the_first(body: dict) -> list:
            if not body["logprobs"]:  # no canary
                asked.append(body)
                if len(asked) <= 2:
                    time.sleep(0.3)
                    raise ServerLost("it hangs")
            return complete(body)

        fleet.replicas[1].server.complete = lose_the_first
        assert sampler(fleet).sample(REQUESTS * 4) == expected
        assert len(fleet.said) == 2 and "is lost (it hangs)" in fleet.said[0]
        # two of its eight requests, at once, and in a second round half of the eight that it had not answered
        assert len(asked) == 2 + 4


def test_a_half_dead_server_is_seldom_tried_while_another_is_ready(pair: Pair, model: Path) -> None:
    with opened(members(model), *pair) as fleet:
        expected = sampler(fleet).sample(REQUESTS)
        tried, models = [], fleet.replicas[1].server.models

        def fail_slowly() -> dict:
            tried.append(time.sleep(1))
            raise ServerLost("half dead")

        fleet.replicas[1].server.models = fail_slowly
        for _ in range(5):
            assert sampler(fleet).sample(REQUESTS) == expected
        assert len(tried) == 2  # once when it was lost, and once more
        fleet.replicas[1].server.models = models
        fleet.replicas[1].rests_until = 0.0
        assert sampler(fleet).sample(REQUESTS) == expected
        assert fleet.replicas[1].why_lost == "" and "is back" in fleet.said[-1]


def test_a_run_is_stopped_while_all_requests_hang_and_waits_for_none(server: SmallServer, model: Path) -> None:
    released, ended = threading.Event(), []

    def hang(body: dict) -> list:
        released.wait(60)
        ended.append(body)
        raise ServerLost("stopped")

    def stop(done: int, total: int, written: int = 0) -> None:
        raise InterruptedError

    with opened(members(model), server) as fleet:
        sampler(fleet).sample(REQUESTS)
        complete, fleet.replicas[0].server.complete = fleet.replicas[0].server.complete, hang
        with pytest.raises(InterruptedError):
            sampler(fleet, report=stop).sample(REQUESTS)
        assert ended == []
        released.set()
        fleet.replicas[0].server.complete = complete


def test_a_server_that_was_lost_and_never_died_keeps_nothing_of_before(server: SmallServer, model: Path) -> None:
    with opened(members(model), server, answer_s=3.0) as fleet:
        sampler(fleet).sample(REQUESTS)
        assert len(server.adapters) == 4
        with faulty(server, "hang", 1):
            sampler(fleet).sample(REQUESTS[:1])
        assert len(server.adapters) == 1  # the others were loaded before it was lost
    assert server.adapters == []


def test_a_server_that_is_lost_over_each_try_ends_the_run(server: SmallServer, model: Path) -> None:
    with opened(members(model), server) as fleet:
        asked = fleet.replicas[0].server
        complete = asked.complete

        def forget(body: dict) -> list:
            if not body["logprobs"]:  # no canary
                asked.unload(body["model"])
            return complete(body)

        asked.complete = forget
        with pytest.raises(UserError, match=r"was lost 3 times over the same requests .*does not exist"):
            sampler(fleet).sample(REQUESTS[:1])
