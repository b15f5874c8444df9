"""The process that compares answers in mathematics: one JSON line [gold, answer] in, one JSON line true or false out.

Answers come from models and are parsed by a large library, so this happens in a process of its own, which has a limit
on memory and is killed when an answer takes too long.
"""

from __future__ import annotations

import json
import resource
import sys

MEMORY_BYTES = 4 << 30


def main() -> None:
    """Serve until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is not for the judge
    from redqueen.domains.maths.equality import is_equal  # here, so that the limit holds for its libraries

    out.write("ready\n")
    out.flush()
    for line in sys.stdin:
        out.write(json.dumps(is_equal(*json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
