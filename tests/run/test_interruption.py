"""The first Ctrl-C is a request, the second acts at once."""

import os
import signal
import threading

import pytest

from redqueen.run.interruption import BEFORE_LEARNING, Stopped, StopRequest, catching_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_interrupts(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    with catching_signals() as request:
        assert not request.asked
        os.kill(os.getpid(), number)
        assert request.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert "press Ctrl-C again to stop at once" in capfd.readouterr().err


def test_what_the_signals_did_before_they_do_again(capfd: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with catching_signals():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_step_is_dropped_only_while_no_adapter_has_changed() -> None:
    StopRequest(asked=False).enter("match")
    request = StopRequest(asked=True)
    for phase in BEFORE_LEARNING:
        with pytest.raises(Stopped):
            request.enter(phase)
    for phase in ("evolve", "evaluate", "checkpoint"):
        request.enter(phase)


def test_a_phase_is_cut_between_batches_only_where_no_adapter_changes() -> None:
    request = StopRequest(asked=True)
    for phase in ("propose", "verify", "solve", "evaluate"):
        StopRequest(asked=False).between_batches(phase)
        with pytest.raises(Stopped):
            request.between_batches(phase)
    for phase in ("load", "learn", "evolve", "checkpoint"):
        request.between_batches(phase)


def test_outside_the_main_thread_nothing_is_caught_and_nothing_breaks() -> None:
    seen: list[bool] = []

    def watch() -> None:
        with catching_signals() as request:
            seen.append(request.asked)

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert seen == [False]
