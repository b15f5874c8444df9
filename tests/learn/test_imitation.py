"""Right answers of all steps as examples that students imitate."""

import numpy as np
import torch
from test_sharing import LOST, RIGHT, STUDENTS, WRONG, answered, completion
from tiny_models import tiny_bank

from redqueen.config import LearnConfig
from redqueen.learn.imitation import Example, Examples
from redqueen.learn.torch_learner import TorchLearner
from redqueen.nouns import Rollout


def test_the_first_right_answer_of_each_student_to_each_task_is_an_example() -> None:
    answers = [answered("a", 1, WRONG, RIGHT, RIGHT), answered("a", 2, RIGHT), answered("b", 1, WRONG, LOST)]
    assert Examples(9).add(answers).entries == (
        Example("S1", (7, 8), completion(11).tokens),
        Example("S2", (7, 8), completion(20).tokens),
    )


def test_the_latest_examples_are_kept_and_none_where_there_is_no_room() -> None:
    examples = Examples(2)
    for name, student in (("a", 1), ("b", 2), ("c", 3)):
        examples = examples.add([answered(name, student, RIGHT)])
    assert [one.by for one in examples.entries] == ["S2", "S3"]
    assert Examples(0).add([answered("a", 1, RIGHT)]).entries == ()


def test_every_student_draws_its_own_different_examples() -> None:
    examples = Examples(9, tuple(Example(f"S{1 + i % 2}", (i,), (i,)) for i in range(8)))
    drawn = examples.draw(STUDENTS[:2], 4, np.random.default_rng(0), own=False)
    shown = {s.slot: [r.prompt[0] for r in drawn if r.slot == s.slot] for s in STUDENTS[:2]}
    assert all(len(set(prompts)) == 4 for prompts in shown.values()) and shown[1] != shown[2]
    own = examples.draw(STUDENTS, 9, np.random.default_rng(0), own=True)
    assert sorted((r.slot, r.prompt[0]) for r in own) == [(1 + i % 2, i) for i in (0, 2, 4, 6, 1, 3, 5, 7)]
    assert Examples(9).draw(STUDENTS, 4, np.random.default_rng(0), own=False) == []


def test_an_update_on_a_draw_makes_the_answer_likelier() -> None:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-2))
    examples = Examples(1, (Example("S1", (3, 4, 5), (6, 7, 8)),))

    def logprob() -> float:
        route = bank.route([1], tokens_per_row=6)
        with torch.no_grad(), bank.routed(route):
            logits = bank.base.model(torch.tensor([[3, 4, 5, 6, 7, 8]])).logits[0, 2:5]
        return float(logits.log_softmax(-1)[[0, 1, 2], [6, 7, 8]].sum())

    before = logprob()
    for _ in range(5):
        drawn: list[Rollout] = examples.draw(STUDENTS[:1], 48, np.random.default_rng(0), own=False)
        (stats,) = learner.update(drawn)
        assert stats.ok and stats.num_tokens == 3
    assert logprob() > before + 0.1
