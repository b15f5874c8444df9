"""`redqueen experiment WORDS` leading a process group, which hears Ctrl-C also where it began in the background.

Its runs, which import this file too, time one text and wait shortly for a signal of their own.
"""

import os
import signal
import sys

from redqueen.cli import main
from redqueen.experiment import runner
from redqueen.run import duration

runner.SECONDS_FOR_A_SIGNAL = 0.5
duration.NUM_ROWS = 1

if __name__ == "__main__":
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.argv[1:] = ["experiment", *globals()["WORDS"]]  # given by the caller
    main()
