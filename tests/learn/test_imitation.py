"""Right answers that students read as text."""

from collections import Counter

import numpy as np
import torch
from test_sharing import LOST, RIGHT, STUDENTS, WRONG, answered, completion
from tiny_models import tiny_bank

from redqueen.config import LearnConfig
from redqueen.learn.imitation import Example, Examples, imitated
from redqueen.learn.torch_learner import TorchLearner


def test_the_first_right_answer_of_each_student_to_each_task_is_an_example() -> None:
    answers = [answered("a", 1, WRONG, RIGHT, RIGHT), answered("a", 2, RIGHT), answered("b", 1, WRONG, LOST)]
    assert Examples().add(answers, epochs=2).entries == (
        Example("S1", (7, 8), completion(11).tokens, owed=2),
        Example("S2", (7, 8), completion(20).tokens, owed=2),
    )
    assert Examples().add(answers, epochs=0) == Examples()


def test_every_example_is_read_as_often_as_it_is_owed_and_never_twice_in_a_batch() -> None:
    examples, rng = Examples(tuple(Example("S1", (i,), (i,), owed=3) for i in range(7))), np.random.default_rng(0)
    read: Counter[int] = Counter()
    while examples.num_owed:
        drawn, after = examples.read(4, rng)
        prompts = [one.prompt[0] for one in drawn]
        assert len(set(prompts)) == len(prompts) == min(4, len(examples.entries))
        assert after.num_owed == examples.num_owed - len(drawn)
        read.update(prompts)
        examples = after
    assert read == dict.fromkeys(range(7), 3)


def test_students_read_all_examples_or_their_own() -> None:
    drawn = [Example("S1", (1,), (5,), 1), Example("S2", (2,), (6,), 1)]
    everybody = imitated(drawn, STUDENTS, own=False)
    assert [(r.slot, r.prompt, r.advantages) for r in everybody] == [
        (slot, prompt, (1.0,)) for slot in (1, 2, 3) for prompt in ((1,), (2,))
    ]
    assert [(r.slot, r.prompt) for r in imitated(drawn, STUDENTS, own=True)] == [(1, (1,)), (2, (2,))]


def test_reading_an_answer_makes_it_likelier() -> None:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-2))

    def logprob() -> float:
        route = bank.route([1], tokens_per_row=6)
        with torch.no_grad(), bank.routed(route):
            logits = bank.base.model(torch.tensor([[3, 4, 5, 6, 7, 8]])).logits[0, 2:5]
        return float(logits.log_softmax(-1)[[0, 1, 2], [6, 7, 8]].sum())

    before = logprob()
    for _ in range(5):
        (stats,) = learner.update(imitated([Example("S1", (3, 4, 5), (6, 7, 8), 1)], STUDENTS[:1], own=False))
        assert stats.ok and stats.num_tokens == 3
    assert logprob() > before + 0.1
