"""How many calls of the frozen suites' functions the check against constant programs refuses.

    python experiments/honest_refusals.py [--inputs 4]

Each function of the suites is proposed with its own input and the first of its other ones, under
``verify.refuse_constant``. Prints a line a suite: calls, and those refused by reason.
"""

from __future__ import annotations

import argparse
from collections import Counter

from redqueen.config import VerifyConfig
from redqueen.domains.code.suite import SUITES, load_functions
from redqueen.domains.registry import check
from redqueen.domains.rows import frozen_files
from redqueen.nouns import Candidate, Rejection
from redqueen.verify import Verifier

TERMS = VerifyConfig(refuse_constant=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=4, help="inputs of each function")
    num_inputs = parser.parse_args().inputs
    with Verifier(workers=1) as verifier:
        for path in frozen_files(SUITES):
            calls = [
                Candidate(str(number), "T1", "S1", "code_o", one.code, one.code, (given,))
                for number, one in enumerate(load_functions(path))
                for given in list(dict.fromkeys([one.input, *one.io_inputs]))[:num_inputs]
            ]
            verdicts = check(calls, verifier, TERMS)
            refused = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Rejection))
            print(f"{path.stem}: {len(calls):,} calls, refused {dict(refused)}", flush=True)


if __name__ == "__main__":
    main()
