"""Score a base on HumanEval or MBPP+ with EvalPlus's prompt for instruct models, which also begins the answer.

    python experiments/evalplus_words.py MODEL_FOLDER --suite humaneval --data humaneval.jsonl.gz

Shows how much of the difference from a published score is due to our prompt (`redqueen evaluate --style plain`).
Greedy, at most 512 tokens. Prints the score, then 1 (right) or 0 for each item in order. Source: EvalPlus 0.3.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from redqueen.commands.examinees import open_examination
from redqueen.domains.prompt_format import FRAMES, completion_text
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.records import Request

WORDS = "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
BEGINNING = (
    "Below is a Python script with a self-contained function that solves the problem "
    "and passes corresponding tests:\n```python\n"
)
STOPS = ("\n```", "\nif __name__", "\ndef main(", "\nprint(", "\nassert ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--suite", default="humaneval")
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    questions = load_questions(options.suite, options.data)
    with Judge() as judge, open_examination(options.model, []) as examination:
        tokenizer, [base, *_] = examination.engine.tokenizer, examination.examinees
        beginning, requests = tokenizer.encode(BEGINNING, add_special_tokens=False), []
        for number, question in enumerate(questions):
            prompt = FRAMES["plain"].encode(tokenizer, f"{WORDS}\n```\n{question.text.strip()}\n```\n")
            requests.append(Request(base.slot, (*prompt, *beginning), 1, rng_seed=number))
        groups = examination.engine.sampler(0.0, 512, STOPS).sample(requests)
        texts = [completion_text(tokenizer, group[0], STOPS) for group in groups]
        programs = [text[: min((text.find(s) for s in STOPS if s in text), default=len(text))] for text in texts]
        grades = judge.grade(list(zip(questions, programs, strict=True)))
    right = sum(grade.correct for grade in grades)
    print(f"{options.suite}: {right} of {len(questions)} right, {100 * right / len(questions):.1f} %")
    print("".join(str(int(grade.correct)) for grade in grades))


if __name__ == "__main__":
    main()
