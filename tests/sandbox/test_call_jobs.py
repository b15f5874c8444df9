"""Our own functions run in the sandbox on texts of models: with their libraries, within their limits, and caged."""

from collections.abc import Generator, Iterator

import pytest

from redqueen_sandbox import Limits, Sandbox
from redqueen_sandbox.programs import Rules, call_job, run_once
from redqueen_sandbox.runs import Job, Run

MODULE = "caged_functions"
RULES = Rules(Limits(), 2, "full")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as running:
        yield running


def call(verifier: Sandbox, function: str, *texts: str, cpu_ms: int = 500) -> Run:
    def jobs(rules: Rules) -> Generator[Job, Run, Run]:
        return (yield from run_once(call_job(MODULE, function, texts, cpu_ms, rules)))

    return verifier.drive([jobs(verifier.rules)])[0]


def test_a_function_is_called_with_texts_and_returns_a_plain_value(verifier: Sandbox) -> None:
    assert call(verifier, "doubled", "3/4").items[0].text == "'3/2'"
    assert call(verifier, "reversed_words", "a", "b").items[0].text == "('b', 'a')"


@pytest.mark.parametrize(
    "text", ["'", '"', "\\", "\n", "'), leave('", "\x00", "{}", "🂡", "<|eos|>", "a" * 50_000, "', __import__('os'), '"]
)
def test_a_text_arrives_as_it_is_whatever_it_spells(verifier: Sandbox, text: str) -> None:
    run = call(verifier, "reversed_words", text, "end")
    assert run.verdict == "ok" and eval(run.items[0].text) == ("end", text)  # a literal that the judge has read


def test_what_it_raises_is_an_error_and_no_more(verifier: Sandbox) -> None:
    run = call(verifier, "doubled", "no number")
    assert (run.verdict, run.reason) == ("error", "ValueError")


@pytest.mark.parametrize(
    ("function", "verdict"),
    [("spin", "timeout"), ("fill", "memory"), ("read", "forbidden"), ("connect", "forbidden"), ("leave", "no-result")],
)
def test_the_cage_holds_around_our_own_code_too(verifier: Sandbox, function: str, verdict: str) -> None:
    assert call(verifier, function, "/etc/passwd").verdict == verdict
    assert call(verifier, "doubled", "1/2").items[0].text == "'1'", "the next call finds nothing of it"


def test_a_function_that_is_not_there_is_an_error_and_a_module_that_is_not_there_is_the_verifiers_failure() -> None:
    with Sandbox(workers=1) as verifier:
        assert call(verifier, "missing", "x").verdict == "error"

        def jobs(rules: Rules) -> Generator[Job, Run, Run]:
            return (yield from run_once(call_job("no_such_module", "f", ["x"], 500, rules)))

        assert verifier.drive([jobs(verifier.rules)])[0].ended == "infra"


@pytest.mark.parametrize("detail", ["asleep", "wall"])
def test_a_call_that_used_little_time_is_made_again_before_it_is_judged(detail: str) -> None:
    """On a busy machine a child can be without a core, or wait for its memory, for the 0.4 s that tell a sleeper."""
    made = run_once(call_job(MODULE, "f", ["x"], 500, RULES))
    next(made)
    made.send(Run("timeout", detail, cpu_ms=3.0))
    with pytest.raises(StopIteration) as ended:
        made.send(Run("ok"))
    assert ended.value.value == Run("ok")


def test_a_call_that_used_its_time_up_is_judged_at_once() -> None:
    made = run_once(call_job(MODULE, "f", ["x"], 500, RULES))
    next(made)
    with pytest.raises(StopIteration) as ended:
        made.send(Run("timeout", "wall", cpu_ms=480.0))
    assert ended.value.value.detail == "wall"
