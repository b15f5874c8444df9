"""Lanes: the same samples from several threads, with one report, and errors that end all of them."""

import threading
from collections.abc import Callable

import pytest
import torch
from test_torch_sampler import REQUESTS, sampler
from tiny_models import tiny_bank

from redqueen.adapters.threads import LaneSampler, run_in_threads
from redqueen.records import Completion, Request
from redqueen.timing import Report


def check_equal(found: list[list[Completion]], expected: list[list[Completion]]) -> None:
    """Check that these are the same tokens, as likely up to rounding."""
    assert [[c.tokens for c in group] for group in found] == [[c.tokens for c in group] for group in expected]
    for one, other in zip((c for g in found for c in g), (c for g in expected for c in g), strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("num_lanes", [2, 3, len(REQUESTS), 9])
@pytest.mark.parametrize("architecture", ["qwen3", "phi"])
def test_lanes_write_what_one_sampler_writes(num_lanes: int, architecture: str) -> None:
    bank = tiny_bank(architecture)
    alone = sampler(bank).sample(REQUESTS)
    check_equal(LaneSampler(sampler(bank), num_lanes).sample(REQUESTS), alone)
    check_equal(LaneSampler(sampler(bank), num_lanes).sample(REQUESTS[:1]), alone[:1])
    assert LaneSampler(sampler(bank), num_lanes).sample([]) == []


def test_each_lane_is_routed_to_its_own_members() -> None:
    bank, both_inside = tiny_bank(), threading.Barrier(2)
    tokens = torch.tensor([[5, 6, 7]])

    def hidden(slot: int) -> Callable[[Report], torch.Tensor]:
        def run(report: Report) -> torch.Tensor:
            with torch.no_grad(), bank.routed([slot]):
                both_inside.wait(timeout=30)
                return bank.base.model(tokens).logits

        return run

    found = run_in_threads([hidden(1), hidden(2)])
    for slot, logits in zip((1, 2), found, strict=True):
        with torch.no_grad(), bank.routed([slot]):
            assert torch.equal(logits, bank.base.model(tokens).logits)
    assert not torch.equal(found[0], found[1])


def test_what_lanes_report_is_added_up_on_the_callers_thread() -> None:
    heard: list[tuple[int, int, int]] = []
    threads: set[threading.Thread] = set()

    def report(done: int, total: int, tokens: int = 0) -> None:
        heard.append((done, total, tokens))
        threads.add(threading.current_thread())

    mine = sampler(tiny_bank())
    mine.report = report
    completions = LaneSampler(mine, 2).sample(REQUESTS)
    assert threads == {threading.current_thread()}
    num, written = sum(r.num_samples for r in REQUESTS), sum(len(c.tokens) for group in completions for c in group)
    assert heard[-1][:2] == (num, num)
    assert 0 < heard[-1][2] <= written  # a prompt's reading draws the first token, which no decoding step counts


def test_a_listener_that_raises_ends_all_lanes() -> None:
    def report(done: int, total: int, tokens: int = 0) -> None:
        raise KeyboardInterrupt

    mine = sampler(tiny_bank())
    mine.report = report
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        LaneSampler(mine, 2).sample(REQUESTS)
    assert threading.active_count() == before


def test_a_lane_that_fails_ends_the_others_and_its_error_is_the_callers() -> None:
    def endless(report: Report) -> None:
        while True:
            report(0, 1)

    def failing(report: Report) -> None:
        report(0, 1)
        raise ValueError("no such member")

    with pytest.raises(ValueError, match="no such member"):
        run_in_threads([endless, failing, endless])


def test_a_thread_that_cannot_be_started_ends_those_that_were(monkeypatch: pytest.MonkeyPatch) -> None:
    class Second(threading.Thread):
        def start(self) -> None:
            if threading.active_count() > before:
                raise RuntimeError("can't start new thread")
            super().start()

    def endless(report: Report) -> None:
        while True:
            report(0, 1)

    before = threading.active_count()
    monkeypatch.setattr("redqueen.adapters.threads.Thread", Second)
    with pytest.raises(RuntimeError, match="new thread"):
        run_in_threads([endless, endless])
    assert threading.active_count() == before


def test_nothing_is_said_to_be_done_while_a_lane_has_not_said_how_much_it_has() -> None:
    spoken, heard = threading.Event(), []

    def first(report: Report) -> None:
        report(3, 3)
        spoken.set()

    def second(report: Report) -> None:
        spoken.wait(timeout=30)
        report(1, 3)

    run_in_threads([first, second], lambda done, total, tokens=0: heard.append((done, total)))
    assert heard == [(4, 6)]


def test_lanes_divide_the_rows_among_those_that_have_work() -> None:
    mine = sampler(tiny_bank())
    mine.max_rows = 8
    lanes = LaneSampler(mine, 4)
    for requests, rows in ((REQUESTS[:1], 8), (REQUESTS[:2], 4)):
        lanes.sample(requests)
        assert {lane.max_rows for lane in lanes._lanes} == {rows}
    mine.max_rows = 1
    check_equal(lanes.sample(REQUESTS), sampler(tiny_bank()).sample(REQUESTS))


def test_a_sampler_in_lanes_can_be_asked_again_after_an_error() -> None:
    lanes = LaneSampler(sampler(tiny_bank()), 2)
    with pytest.raises(IndexError):
        lanes.sample([REQUESTS[0], Request(slot=99, prompt=(5,), num_samples=1, rng_seed=0)])
    check_equal(lanes.sample(REQUESTS), sampler(tiny_bank()).sample(REQUESTS))
