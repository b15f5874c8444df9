"""The process that compares answers in mathematics: one JSON line [gold, answer] in, one JSON line true or false out.

Answers come from models and are parsed by a large library, so this happens in a process of its own, which has a limit
on memory and is killed when an answer takes too long.
"""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import sys

MEMORY_BYTES = 4 << 30


def main() -> None:
    """Serve until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is not for the judge
    logging.disable(logging.CRITICAL)
    import math_verify  # here, so that the limit holds for it

    out.write("ready\n")
    out.flush()
    for line in sys.stdin:
        gold, answer = json.loads(line)
        equal = False
        with contextlib.suppress(Exception):  # whatever a strange answer makes the library raise, it is not equal
            read = [math_verify.parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (gold, answer)]
            equal = bool(math_verify.verify(read[0], read[1], timeout_seconds=None))
        out.write(json.dumps(equal) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
