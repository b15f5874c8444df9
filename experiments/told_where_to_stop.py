"""How much a base would gain on CRUXEval-O if an oracle ended its answers at the right place: an upper bound.

    python experiments/told_where_to_stop.py ANSWERS --data cruxeval.jsonl

ANSWERS is the output of ``redqueen evaluate base --suite cruxeval-o --out ANSWERS`` for a base in the few-shot format.
An answer without end mark reached the token limit; it counts as right if any prefix of its first line, with open
brackets and quotes closed, is the right value.
"""

import argparse
import ast
import json
from pathlib import Path

from redqueen.evaluate.benchmarks import load_questions

CLOSING = {"[": "]", "(": ")", "{": "}"}


def closed_prefixes(line: str) -> list[str]:
    """Return every prefix of a line, with open brackets and quotes closed."""
    found, stack, quote = [], [], ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[at - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in CLOSING:
            stack.append(CLOSING[char])
        elif stack and char == stack[-1]:
            stack.pop()
        found.append(line[: at + 1].rstrip(", ") + quote + "".join(reversed(stack)))
    return found


def is_value(text: str, wanted: object) -> bool:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return type(value) is type(wanted) and value == wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    wanted = {}
    for question in load_questions("cruxeval-o", args.data, None):
        try:
            wanted[question.id] = ast.literal_eval(question.task.outputs[0])
        except ValueError:
            continue
    rows = [json.loads(line) for line in args.answers.read_text(encoding="utf-8").splitlines()]
    unfinished = [row for row in rows if row.get("mode", "greedy") == "greedy" and "###" not in row["text"]]
    name = "question" if "question" in rows[0] else "id"
    gained = sum(
        row[name] in wanted
        and any(is_value(text, wanted[row[name]]) for text in closed_prefixes(row["text"].split("\n")[0]))
        for row in unfinished
    )
    print(f"{len(unfinished)} of {len(rows)} answers have no end mark; an oracle would make {gained} of them right")


if __name__ == "__main__":
    main()
