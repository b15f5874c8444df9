"""The same items through lm-eval: its chat template, `generate` and stop strings against our sampler, with one grader.

Both use the same prompts, greedily, and redqueen reads and grades both texts, so that only chat template and sampling
differ. Prints a table and, as its last line, JSON. Needs lm-eval (extra: compare).

    python bench/vs_lm_eval.py MODEL_FOLDER --suite gsm8k --data gsm8k.jsonl [--limit 20] [--tokens 256]
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

from _shared import print_result, print_table

from redqueen.commands.evaluate import examine
from redqueen.commands.examinees import open_examination
from redqueen.domains.frames import ChatFrame
from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.given_answers import summary_of
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import prompt_for, read_answer, stops_of, styled


def texts_of_lm_eval(model: str, rows: list[dict[str, str]], stops: list[str], tokens: int, chat: bool) -> list[str]:
    """Return lm-eval's greedy answers to the prompts of ``rows``, in order."""
    from datasets import Dataset
    from lm_eval import simple_evaluate
    from lm_eval.api.task import ConfigurableTask

    task = ConfigurableTask(
        config={
            "task": "redqueen",
            "custom_dataset": lambda **_: {"test": Dataset.from_list(rows)},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "{{prompt}}",
            "doc_to_target": "",
            "generation_kwargs": {"until": stops, "max_gen_toks": tokens, "do_sample": False},
            "metric_list": [{"metric": "bypass"}],
        }
    )
    settings = {"pretrained": model, "dtype": "float32"}
    found = simple_evaluate("hf", settings, [task], device="cpu", batch_size=8, apply_chat_template=chat)
    samples = sorted(found["samples"]["redqueen"], key=lambda one: one["doc_id"])
    return [str(one["resps"][0][0]) for one in samples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a model folder")
    parser.add_argument("--suite", default="gsm8k")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=256, help="longest answer")
    parser.add_argument("--style", default="auto")
    options = parser.parse_args()
    questions = load_questions(options.suite, options.data, options.limit)
    with Judge() as judge:
        with open_examination(options.model, ["model.precision=fp32"]) as examination:
            engine = examination.engine
            chat = bool(engine.tokenizer.chat_template)
            forms = [styled(options.style, q, engine.prompt_format, chat) for q in questions]
            answers = examine(examination, questions, judge, 0, 1.0, style=options.style, answer_tokens=options.tokens)
        chat, tokenizer = chat and isinstance(forms[0].frame, ChatFrame), engine.tokenizer
        posed = list(zip(questions, forms, strict=True))
        stops = sorted({stop for q, form in posed for stop in stops_of(q, form)})
        del examination, engine
        gc.collect()
        rows = [{"prompt": prompt_for(q, form)} for q, form in posed]
        texts = texts_of_lm_eval(options.model, rows, stops, options.tokens, chat)
        lengths = [len(tokenizer.encode(text, add_special_tokens=False)) for text in texts]  # lm-eval reports no end
        read = zip(posed, texts, lengths, strict=True)
        theirs = judge.grade([(q, read_answer(q, form, text, n < options.tokens)) for (q, form), text, n in read])
    ours = [answer.grade for answer in answers]
    found = {
        "redqueen": summary_of(ours, [q.id for q in questions]),
        "lm-eval": summary_of(theirs, [q.id for q in questions]),
    }
    print_table(
        ["who", "items", "right", "score", "interval"], [[who, *list(one.values())[1:]] for who, one in found.items()]
    )
    same = sum(a.correct == b.correct for a, b in zip(ours, theirs, strict=True))
    equal = sum(answer.text.strip() == text.strip() for answer, text in zip(answers, texts, strict=True))
    print(f"equal texts: {equal}, equal verdicts: {same}, of {len(ours)}")
    settings = {name: str(value) for name, value in vars(options).items()}
    print_result({"scores": found, "equal_texts": equal, "equal_verdicts": same, "settings": settings})


if __name__ == "__main__":
    main()
