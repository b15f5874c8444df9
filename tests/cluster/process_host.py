"""A host whose shards are processes of their own, which can be killed at any moment; backups stay here as bytes."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from typing import Any

from processes import APART

from redqueen.cluster.host import Answer, Connection, ShardLost
from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config

DEADLINE_S = 300.0
"""An answer that takes longer is a hang, and fails the test."""

NOT_YET = object()
"""In place of an answer that is still awaited."""


def serve(pipe: Pipe, config: Config, slots: Sequence[int]) -> None:
    """Be a shard until the other side is gone."""
    shard = Shard(config, slots)
    pipe.send_bytes(pickle.dumps(None))
    while True:
        try:
            method, arguments = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            answer = getattr(shard, method)(*arguments)
        except Exception as error:
            answer = error
        pipe.send_bytes(pickle.dumps(answer))


class ProcessHost:
    """Implements ``Host``."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.connections: dict[int, ProcessConnection] = {}
        self.backups: dict[int, bytes] = {}

    def open(self, index: int, slots: Sequence[int]) -> ProcessConnection:
        ours, theirs = APART.Pipe()
        process = APART.Process(target=serve, args=(theirs, self.config, tuple(slots)), daemon=True)
        process.start()
        theirs.close()
        connection = self.connections[index] = ProcessConnection(ours, process)
        opened = ProcessPending(connection)
        connection.awaited.append(opened)
        opened()
        return connection

    def keep(self, index: int, connection: Connection) -> Answer:
        begun = connection.send("backup")

        def keep() -> None:
            self.backups[index] = pickle.dumps(begun())

        return keep

    def kept(self, index: int) -> Backup | None:
        return pickle.loads(self.backups[index]) if index in self.backups else None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        return []

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


class ProcessConnection:
    """Implements ``Connection``."""

    def __init__(self, pipe: Pipe, process: Any) -> None:
        self.pipe, self.process, self.killed = pipe, process, False
        self.node = f"process {process.pid}"
        self.awaited: deque[ProcessPending] = deque()

    def send(self, method: str, *arguments: object) -> Answer:
        pending = ProcessPending(self)
        try:
            self.pipe.send_bytes(pickle.dumps((method, arguments)))
            self.awaited.append(pending)
        except OSError as error:
            pending.answer = error
        return pending

    def receive(self) -> None:
        """Take the next answer, which is that to the oldest question."""
        assert self.pipe.poll(DEADLINE_S), f"a shard has not answered for {DEADLINE_S:.0f} s"
        try:
            self.awaited[0].answer = pickle.loads(self.pipe.recv_bytes())
            self.awaited.popleft()
        except (EOFError, OSError) as error:
            for pending in self.awaited:
                pending.answer = error
            self.awaited.clear()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.killed = True
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        if not self.killed:
            self.kill()
        self.process.join()
        self.pipe.close()


@dataclass
class ProcessPending:
    """Implements ``Answer``."""

    connection: ProcessConnection
    answer: Any = NOT_YET

    def __call__(self) -> Any:
        while self.answer is NOT_YET:
            self.connection.receive()
        if isinstance(self.answer, (EOFError, OSError)):
            raise ShardLost(f"its process is gone ({type(self.answer).__name__})")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Killing:
    """A progress display that kills: at chosen phases of chosen steps, some seconds after they began."""

    plan: Mapping[tuple[int, str], float]
    kill: Callable[[int], None]
    """Is told the step."""
    done: list[tuple[int, str]] = field(default_factory=list)
    threads: list[threading.Timer] = field(default_factory=list)
    num_steps: int = 0
    num_lost: int = 0

    def __enter__(self) -> Killing:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self.threads:
            thread.join()

    def phase(self, step: int, phase: str) -> None:
        if (step, phase) not in self.plan or (step, phase) in self.done:
            return
        self.done.append((step, phase))
        delay_s = self.plan[step, phase]
        if delay_s == 0:
            self.kill(step)
        else:
            self.threads.append(threading.Timer(delay_s, self.kill, [step]))
            self.threads[-1].start()

    def part(self, words: str) -> None:
        pass

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        pass

    def say(self, text: str) -> None:
        self.num_lost += " lost (" in text

    def finish_step(self, *_: object) -> None:
        self.num_steps += 1
