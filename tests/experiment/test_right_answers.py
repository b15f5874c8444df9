"""What is taken from a run to be taught as text: each solved task's own prompt, with a right answer to it."""

import json
import random
import sys
from pathlib import Path

from task_run import TASKS, write_task_run
from transformers import AutoTokenizer

from redqueen.config import Config
from redqueen.policy.base_shape import model_source
from redqueen.run.store import CONFIG

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from right_answers import answers_of, as_many, num_tokens


def test_every_solved_pair_of_program_and_input_gives_the_prompt_it_was_posed_with_and_a_right_answer(
    tmp_path: Path,
) -> None:
    run = write_task_run(tmp_path / "run")
    (run / CONFIG).write_text(json.dumps(Config().model_dump(mode="json")))
    tokenizer = AutoTokenizer.from_pretrained(model_source("embedded"))
    samples = answers_of(run, tokenizer, random.Random(0))
    assert len(samples) == 3  # the fourth task was never solved
    texts = [(tokenizer.decode(prompt), tokenizer.decode(answer[:-1]).strip()) for prompt, answer in samples]
    for task, right in zip(TASKS, ("6", "5", "def f(y):\n    return y + y"), strict=False):
        prompt, answer = next(text for text in texts if text[1].endswith(right))
        shown = task.outputs[0] if task.kind == "code_i" else task.inputs[0]
        assert task.code.strip() in prompt or task.kind == "code_f"
        assert shown in prompt
        assert answer
    assert all(answer[-1] == tokenizer.eos_token_id for _, answer in samples)


def test_the_control_has_answers_whatever_their_verdict_and_as_many_tokens(tmp_path: Path) -> None:
    run = write_task_run(tmp_path / "run")
    (run / CONFIG).write_text(json.dumps(Config().model_dump(mode="json")))
    tokenizer = AutoTokenizer.from_pretrained(model_source("embedded"))
    right = answers_of(run, tokenizer, random.Random(0))
    judged = answers_of(run, tokenizer, random.Random(0), only_right=False)
    assert len(judged) == 4
    drawn = as_many(right[:2], judged, random.Random(0))
    assert len({tuple(prompt) for prompt, _ in drawn}) == len(drawn)
    assert num_tokens(drawn) >= num_tokens(right[:2]) > num_tokens(drawn[:-1])
