"""The plan of what travels, against what a call weighs when it is pickled as a shard gets it."""

import pickle
import random

import pytest

from redqueen.cluster.traffic import Texts, Traffic, Work, planned
from redqueen.nouns import Completion, Request, Rollout, UpdateStats

RNG = random.Random(0)
MEMBERS, PROMPTS, SAMPLES, PROMPT_TOKENS, TOKENS = 5, 40, 4, 80, 60


def requests(vocabulary: int) -> list[Request]:
    def prompt() -> tuple[int, ...]:
        return tuple(RNG.randrange(vocabulary // 2, vocabulary) for _ in range(PROMPT_TOKENS))

    return [Request(i % MEMBERS, prompt(), SAMPLES, RNG.getrandbits(63)) for i in range(PROMPTS)]


def completion(vocabulary: int) -> Completion:
    tokens = tuple(RNG.randrange(vocabulary // 2, vocabulary) for _ in range(TOKENS))
    return Completion(tokens, tuple(-RNG.random() for _ in tokens), RNG.random(), True)


@pytest.mark.parametrize("vocabulary", [2048, 150_000])
def test_the_plan_is_within_three_per_cent_of_what_is_pickled(vocabulary: int) -> None:
    asked = requests(vocabulary)
    answers = [[completion(vocabulary) for _ in range(SAMPLES)] for _ in asked]
    rollouts = [
        Rollout(r.slot, r.prompt, tuple(group), tuple(RNG.random() for _ in group))
        for r, group in zip(asked, answers, strict=True)
    ]
    stats = [UpdateStats(slot, RNG.random(), RNG.random(), RNG.random(), 999) for slot in range(MEMBERS)]
    texts = Texts(PROMPTS, PROMPTS * PROMPT_TOKENS, PROMPTS * SAMPLES, PROMPTS * SAMPLES * TOKENS)
    plan = planned(Work(MEMBERS, MEMBERS, 0, vocabulary, texts, texts))
    assert plan.sample_asked == pytest.approx(len(pickle.dumps(asked)), rel=0.03)
    assert plan.sample_answered == pytest.approx(len(pickle.dumps(answers)), rel=0.03)
    assert plan.learn_asked == pytest.approx(len(pickle.dumps(rollouts)), rel=0.03)
    assert plan.learn_answered == pytest.approx(len(pickle.dumps(stats)), rel=0.5), "a few hundred bytes"


def test_a_backup_has_all_factors_and_two_moments_of_each_member() -> None:
    # Three adapters (two members, one in the hall of fame) of 1,000 weights: 3 x 4 kB, and 2 x 2 x 4 kB of moments.
    assert planned(Work(2, 3, 1000, 2048, Texts(), Texts())).backup == 28_000


def test_ten_times_the_members_move_ten_times_the_bytes() -> None:
    work = Work(2, 4, 1000, 2048, Texts(3, 300, 12, 600), Texts(2, 200, 8, 400))
    one, ten = planned(work), planned(work.scaled(20))
    assert ten == Traffic(*(10 * value for value in vars(one).values()))
    assert one.by_purpose()["asked"] == one.sample_asked + one.learn_asked
