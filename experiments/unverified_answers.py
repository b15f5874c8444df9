"""Q3, a control of distillation: distil as many answers as the run's product was distilled from, right or wrong.

    python experiments/unverified_answers.py RUN_DIR --num 1566 --out FOLDER --set model.base=BASE
    redqueen evaluate FOLDER --suite cruxeval-o --set model.prompt_format=fewshot --out FILE

From ``--num`` random tasks with attempts, one readable attempt each is drawn, right or wrong, and distilled with the
run's own settings. ``--verified`` draws only right ones, for comparison. The adapter is written as a PEFT folder.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from thicket import with_changes

from redqueen.adapters.peft import plain_config, write_adapter
from redqueen.engine import open_engine
from redqueen.journal import Journal
from redqueen.journal.read import as_task, with_pairs
from redqueen.learn.answers import VerifiedAnswer
from redqueen.learn.distillation import examples_of, fine_tune
from redqueen.run.store import JOURNAL, load_run_config
from redqueen.streams import Streams


def drawn_answers(run_dir: Path, num: int, verified: bool, seed: int) -> tuple[list[VerifiedAnswer], float]:
    """Return one attempt of each of ``num`` tasks, and the share of them that was right."""
    wanted = "correct" if verified else "verdict = 'ok'"
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        tasks = {row["seq"]: row for row in journal.query("SELECT * FROM task WHERE num_attempts > 0")}
        attempts = journal.query(f"SELECT task, text, correct FROM attempt WHERE {wanted} ORDER BY seq")
    rng, by_task = Streams(seed, 0).rng("unverified"), {}
    for row in attempts:
        by_task.setdefault(row["task"], []).append(row)
    if len(by_task) < num:
        raise SystemExit(f"{run_dir} has only {len(by_task):,} tasks with such an answer: choose a smaller --num")
    numbers = rng.permutation(sorted(by_task))[:num]
    chosen = [by_task[number][rng.integers(len(by_task[number]))] for number in numbers]
    answers = [VerifiedAnswer(as_task(with_pairs(tasks[row["task"]])), row["text"], 0) for row in chosen]
    return answers, sum(row["correct"] for row in chosen) / num


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--num", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--verified", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="section.field=value, over the run's config")
    options = parser.parse_args()
    answers, right = drawn_answers(options.run_dir, options.num, options.verified, options.seed)
    print(f"{len(answers):,} answers, {100 * right:.1f} % of them right", flush=True)
    one_pair = {"population": {"num_teachers": 1, "num_students": 1, "founders": []}}
    config, began = with_changes(load_run_config(options.run_dir), one_pair, options.set), time.monotonic()

    def progress(words: str) -> None:
        print(f"{words}, {time.monotonic() - began:,.0f} s", flush=True)

    with open_engine(config) as engine:
        [slot] = config.slots.distilled
        examples = examples_of(answers, engine.prompt_format, engine.tokenizer)
        streams = Streams(options.seed, 0)
        found = fine_tune(examples, engine.store, engine.learner, slot, config.distill, streams, progress)
        targets = engine.store.bank.shortest_targets()
        genotype = engine.store.genotype(slot)
        write_adapter(options.out, plain_config(genotype, config.model.base, targets), genotype)
    print(f"nats by epoch {', '.join(f'{x:.3f}' for x in found.nats)}; {options.out} written", flush=True)


if __name__ == "__main__":
    main()
