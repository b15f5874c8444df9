"""A command line that kills its own process (SIGKILL) at a chosen moment: ``killed_run.py WHEN N FOLDER words...``.

WHEN is ``file`` (at the N-th opening, renaming, making or removing of a file in FOLDER), ``statement`` (at the N-th
SQL statement of the journal), ``write`` (N microseconds after a checkpoint began to be written) or ``never``.
"""

import os
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

WATCHED = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Dies at the last count."""

    def __init__(self, number: int):
        self.left = number

    def count(self, *_: object) -> None:
        self.left -= 1
        if self.left <= 0:
            die()


def watch_files(folder: str, countdown: Countdown) -> None:
    name = Path(folder).name

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in WATCHED and name in str(arguments[0]):
            countdown.count()

    sys.addaudithook(hook)


def watch_statements(countdown: Countdown) -> None:
    connect = sqlite3.connect

    def watched(*args: Any, **settings: Any) -> sqlite3.Connection:
        connection = connect(*args, **settings)
        connection.set_trace_callback(countdown.count)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]


def watch_writes(folder: str, delay_us: int) -> None:
    def watch() -> None:
        place = Path(folder) / "checkpoints"
        while not list(place.glob(".writing-*")):
            time.sleep(0.0002)
        time.sleep(delay_us / 1e6)
        die()

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    when, number, folder, *words = sys.argv[1:]
    if when == "file":
        watch_files(folder, Countdown(int(number)))
    elif when == "statement":
        watch_statements(Countdown(int(number)))
    elif when == "write":
        watch_writes(folder, int(number))
    from redqueen import cli

    sys.argv = ["redqueen", *words]
    cli.main()


if __name__ == "__main__":
    main()
