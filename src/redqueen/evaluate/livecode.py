"""LiveCodeBench: reading its test cases, and running programs on them in the sandbox.

A program that reads standard input is run inside a function: the argument is its standard input, the returned value is
its standard output. Programs never see the expected output, and their output is treated as text only.
"""

from __future__ import annotations

import base64
import json
import pickletools
import re
import zlib
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from redqueen.domains.code.values import value_of
from redqueen.domains.rows import Row
from redqueen.errors import UserError
from redqueen.evaluate.questions import Case, ContestQuestion
from redqueen.records import Grade
from redqueen_sandbox import Limits, Program, Result, Sandbox
from redqueen_sandbox.guard import VERDICT, guarded
from redqueen_sandbox.zygotes import ZygoteSettings

CONTEST_LIMITS = Limits(
    cpu_ms=6_000,
    accept_cpu_ms=6_000,
    wall_ms=20_000,
    memory_bytes=1 << 30,
    max_code_chars=1 << 20,
    max_input_chars=7 << 20,
    max_output_chars=1 << 20,
)
"""Limits of each case of a problem: six seconds of CPU (LiveCodeBench); the other limits are ours."""

PRELOADED = (
    "cmath", "datetime", "fileinput", "fractions", "io", "os", "queue", "statistics", "sys", "threading", "time",
)  # fmt: skip
"""Modules that contest programs import, in addition to the usual ones: the sandbox cannot load modules itself."""

_MAX_TESTS_BYTES = 256 << 20
_STRING_OPCODES = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_FRAME_OPCODES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})
"""The other opcodes of a pickle of a single string, in all protocols."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_WHITESPACE = " \t\r\f\v"
_WORDS = re.compile(rf"[^{_WHITESPACE}]+")

_PROGRAM = """
import builtins as _builtins, io as _io, os as _os, sys as _sys, threading as _threading, types as _types

class _Stream(_io.BytesIO):
    pass

def f(_text):
    _in, _said = _Stream(_text.encode()), _Stream()
    _in.fileno, _said.fileno = lambda: 100, lambda: 101  # of 0 and 1 ``input`` asks what they are
    _write, _exit = _os.write, _os._exit
    _os.read = lambda fd, size: _in.read(size)
    _os.write = lambda fd, data: _said.write(data) if fd in (1, 101) else len(data)
    _os.fstat = lambda fd: _types.SimpleNamespace(st_size=len(_in.getvalue()))
    _out = _sys.stdout = _sys.__stdout__ = _io.TextIOWrapper(_said, "utf-8", newline="")
    _sys.stdin = _sys.__stdin__ = _io.TextIOWrapper(_in, "utf-8")
    _open = _builtins.open
    _builtins.exit = _builtins.quit = _sys.exit  # the module that defines them is not loaded here
    _streams = {{0: _sys.stdin, 100: _sys.stdin, "/dev/stdin": _sys.stdin, 1: _out, 101: _out}}
    def _opened(file, mode="r", *a, **k):
        stream = _streams.get(file)
        return (stream.buffer if "b" in mode else stream) if stream else _open(file, mode, *a, **k)
    _builtins.open = _os.fdopen = _opened
    _os._exit = _sys.exit
    _thread = _threading.Thread  # programs start one for its large stack: it runs at once, since none can be had here
    _thread.start, _thread.join = _thread.run, lambda self, timeout=None: None
    try:
        exec(compile({code!r}, "<program\\ud800>", "exec"), {{"__name__": "__main__"}})
    except SystemExit:
        pass
    finally:
        _os.write, _os._exit = _write, _exit  # the harness writes its replies and ends by them
    _out.flush()
    return _said.getvalue().decode("utf-8", "replace")
"""
"""The file name cannot be encoded, so a syntax error does not open it; see ``redqueen_sandbox/inside/child.py``."""

_METHOD = """
import json as _json
from typing import *
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *

_space = dict(globals())

def f(*_arguments):
    exec(compile({code!r}, "<program\\ud800>", "exec"), _space)
    return getattr(_space["Solution"](), {entry!r})(*_arguments)
"""


def read_question(row: Row, name: str) -> ContestQuestion:
    """Return a LiveCodeBench item with its public and private cases. Raises UserError when they cannot be read."""
    cases: list[Case] = []
    for field in ("public_test_cases", "private_test_cases"):
        if row.has(field):
            cases += _cases(row, field)
    if not cases:
        raise UserError(f"{row.where}: no test cases (public_test_cases, private_test_cases); is it this suite's file?")
    metadata = row.fields.get("metadata") or "{}"
    try:
        facts = json.loads(metadata) if isinstance(metadata, str) else metadata
        entry = str(facts.get("func_name") or "")
    except (ValueError, AttributeError):
        raise UserError(f"{row.where}: the field metadata is not a JSON object") from None
    starter = row.text("starter_code") if row.has("starter_code") else ""
    gold = row.text("solution") if row.has("solution") else None
    return ContestQuestion(name, row.text("question_content"), tuple(cases), entry, starter, gold)


def _cases(row: Row, name: str) -> list[Case]:
    value = row.fields[name]
    try:
        if isinstance(value, str):
            value = json.loads(value if value.lstrip().startswith("[") else _unpack(value))
        return [Case(str(case["input"]), str(case["output"])) for case in value]
    except (ValueError, KeyError, TypeError, zlib.error, RecursionError) as error:
        raise UserError(f"{row.where}: the field {name} cannot be read ({error})") from None


def _unpack(text: str) -> str:
    """Decode private cases: base64 of zlib of the pickle of one string. The pickle's opcodes are only parsed, never
    executed."""
    data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), _MAX_TESTS_BYTES)
    found = None
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in _STRING_OPCODES and found is None:
            found = argument
        elif opcode.name not in _FRAME_OPCODES:
            raise ValueError(f"it is more than a packed text ({opcode.name})")
    if not isinstance(found, str):
        raise ValueError("not a packed text")
    return found


class ContestJudge(Sandbox):
    """Grades answers to contest problems."""

    def __init__(self, workers: int = 2, allow_weak: bool = False, limits: Limits = CONTEST_LIMITS) -> None:
        super().__init__(workers, limits, 1, allow_weak, gated=False, settings=ZygoteSettings(preload=PRELOADED))

    def grade(self, pairs: Sequence[tuple[ContestQuestion, str]]) -> list[Grade]:
        """Grade programs in order: all on their first case, then those that passed it on the other cases."""
        grades = [_worst(done) for done in self._on_cases(pairs, [(question.cases[:1]) for question, _ in pairs])]
        left = [i for i, grade in enumerate(grades) if grade.correct and len(pairs[i][0].cases) > 1]
        rest = self._on_cases([pairs[i] for i in left], [pairs[i][0].cases[1:] for i in left])
        for i, done in zip(left, rest, strict=True):
            grades[i] = _worst(done)
        return grades

    def _on_cases(
        self, pairs: Sequence[tuple[ContestQuestion, str]], cases: Sequence[Sequence[Case]]
    ) -> list[list[Grade]]:
        programs = [
            Program(
                question.id,
                (_METHOD if question.entry else _PROGRAM).format(code=code, entry=question.entry),
                (_arguments(question, case),),
            )
            for (question, code), several in zip(pairs, cases, strict=True)
            for case in several
        ]
        results = iter(self.run(programs))
        return [
            [
                guarded("contest", partial(_judge, question, case, next(results)), partial(Grade, False, VERDICT))
                for case in several
            ]
            for (question, _), several in zip(pairs, cases, strict=True)
        ]


def _worst(grades: Sequence[Grade]) -> Grade:
    """Return the first grade that is not right; a lost one only when nothing is wrong."""
    wrong = [grade for grade in grades if not grade.correct]
    return next((grade for grade in wrong if not grade.lost), wrong[0] if wrong else Grade(True, "ok"))


def _arguments(question: ContestQuestion, case: Case) -> str:
    if not question.entry:
        return repr(case.given)
    try:
        return ", ".join(repr(json.loads(line)) for line in case.given.split("\n") if line.strip())
    except ValueError:
        raise UserError(f"{question.id}: a case's input is not one JSON value a line; is the file damaged?") from None


def _judge(question: ContestQuestion, case: Case, result: Result) -> Grade:
    if result.verdict != "ok":
        return Grade(False, result.verdict, result.detail, lost=result.verdict == "infra")
    output = value_of(result.outputs[0])
    if question.entry:
        try:
            expected = json.loads(case.expected)
        except (ValueError, RecursionError):
            return Grade(False, "infra", "the case's expected value is no JSON", lost=True)
        return Grade(same_value(output, expected), "ok")
    if not isinstance(output, str):  # the program replaced the function that runs it
        return Grade(False, "bad-frame", "not what it printed")
    return Grade(same_output(output, case.expected), "ok")


def same_value(output: object, expected: object) -> bool:
    """Return whether a value equals a JSON value: tuples equal lists, numbers compare by value (LiveCodeBench)."""
    if isinstance(output, list | tuple) and isinstance(expected, list):
        return len(output) == len(expected) and all(same_value(a, b) for a, b in zip(output, expected, strict=True))
    if isinstance(output, dict) and isinstance(expected, dict):
        keyed = {str(key): value for key, value in output.items()}
        if len(keyed) != len(output) or keyed.keys() != expected.keys():
            return False
        return all(same_value(keyed[key], expected[key]) for key in expected)
    return output == expected


def same_output(output: str, expected: str) -> bool:
    """Return whether two outputs agree on every line: the same text, or the same numbers (LiveCodeBench)."""
    ours, theirs = (text.strip(_WHITESPACE + "\n").split("\n") for text in (output, expected))
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(output: str, expected: str) -> bool:
    ours, theirs = output.strip(_WHITESPACE), expected.strip(_WHITESPACE)
    if ours == theirs:
        return True
    words = [_WORDS.findall(line) for line in (ours, theirs)]
    are_numbers = all(_NUMBER.fullmatch(word) for line in words for word in line)
    return are_numbers and [*map(Decimal, words[0])] == [*map(Decimal, words[1])]
