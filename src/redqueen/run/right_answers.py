"""The right answers of a run as examples to learn from: one of each task, whoever gave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from redqueen.domains.prompt_format import PromptFormat
from redqueen.journal import Journal
from redqueen.journal.read import TASK_COLUMNS, as_task, with_pairs
from redqueen.learn.distillation import Example
from redqueen.nouns import Task
from redqueen.propose.buffer import task_key

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def right_answers(
    journal: Journal,
    held_back: Collection[Task],
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    rng: np.random.Generator,
) -> list[Example]:
    """Return an example of each task that was solved, in the order in which the tasks were first posed.

    What was posed several times, with equal code and inputs, counts once, so that rare successes count like common
    ones; which of its right answers is taken is drawn. Tasks that ask the same as one ``held_back`` are left out.
    """
    apart = {task_key(task) for task in held_back}
    posed: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for seq, *words in journal.tuples("SELECT seq, kind, code, inputs FROM task WHERE num_correct > 0 ORDER BY seq"):
        posed[words[0], words[1], words[2]].append(seq)
    found = []
    for seqs in posed.values():
        seq = int(rng.choice(seqs)) if len(seqs) > 1 else seqs[0]
        [row] = journal.query(f"SELECT {', '.join(TASK_COLUMNS)} FROM task WHERE seq = ?", [seq])
        task = as_task(with_pairs(row))
        texts = journal.tuples(
            "SELECT text FROM attempt WHERE task = ? AND correct = 1 AND lost = 0 ORDER BY seq", [seq]
        )
        if texts and task_key(task) not in apart:
            [text] = texts[int(rng.integers(len(texts)))]
            found.append(example(task, text, prompt_format, tokenizer))
    return found


def solved_until(journal: Journal, step: int) -> set[str]:
    """Return the keys (``task_key``) of the tasks that were solved up to ``step``."""
    rows = journal.query(f"SELECT {', '.join(TASK_COLUMNS)} FROM task WHERE num_correct > 0 AND step <= ?", [step])
    return {task_key(as_task(with_pairs(row))) for row in rows}


def example(task: Task, text: str, prompt_format: PromptFormat, tokenizer: PreTrainedTokenizerBase) -> Example:
    """Return a student's text behind the prompt that it was asked with, and the end of it.

    A text that a stop string ended holds that; any other is followed by the end token.
    """
    tokens = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    if not any(stop in text for stop in prompt_format.stops):
        tokens = (*tokens, int(tokenizer.eos_token_id))  # type: ignore[arg-type]
    return Example(tuple(prompt_format.encode(tokenizer, prompt_format.solve(task))), tokens)
