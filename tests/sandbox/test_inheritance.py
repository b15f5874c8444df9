"""What a child inherits: secrets of 1,000 earlier jobs are in no byte of its memory and in no frame or object of it."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.domains.registry import grade as grade_all
from redqueen.records import Task
from redqueen_sandbox import Program, Result, Sandbox
from redqueen_sandbox.inside import zygote as inside
from redqueen_sandbox.records import Limits
from redqueen_sandbox.unit_tests import UnitTest, UnitTester
from redqueen_sandbox.zygotes import ZygoteSettings

PRELOAD = ("ctypes", "gc", "inspect", "os", "sys", "types")
LIMITS = Limits(cpu_ms=20_000, wall_ms=60_000, memory_bytes=1 << 30)
MARK = "QZSECRET"
"""Every secret begins with it. The programs below build it from halves, so that they find no copy of their own."""

SCAN = """
import ctypes, os, sys
def f(ranges):
    # The places of this very text and of what it has made are left out: they say the half that is not the mark.
    mark = ("ETERCES"[::-1][:6]).join(["QZ", ""]).encode()
    found = 0
    for start, end in ranges:
        data = ctypes.string_at(start, end - start)
        at = data.find(mark)
        while at >= 0:
            tail = data[at + len(mark):at + len(mark) + 16]
            found += len(tail) == 16 and all(c in b"0123456789abcdef" for c in tail)
            at = data.find(mark, at + 1)
        del data
    return found
"""
"""Reads the memory it is told to: native reach, as a program that has broken out of the interpreter has it."""

REACH = """
import gc, sys, types
def f(x):
    mark = ("ETERCES"[::-1][:6]).join(["QZ", ""])
    seen, todo, found = set(), [], 0
    def frames(frame):
        while frame is not None:
            yield frame
            frame = frame.f_back
    try:
        1 / 0
    except ZeroDivisionError as error:
        for frame in [*frames(error.__traceback__.tb_frame), *frames(sys._getframe())]:
            todo += [frame.f_locals, frame.f_globals, frame.f_builtins, frame.f_code]
    todo += gc.get_objects() + list(sys.modules.values()) + gc.get_referrers(None)[:10_000]
    for kind in object.__subclasses__():
        todo += type.__subclasses__(kind)
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, (str, bytes, bytearray)):
            text = thing if isinstance(thing, str) else bytes(thing).decode("latin-1")
            for part in text.split(mark)[1:]:
                found += len(part) >= 16 and all(c in "0123456789abcdef" for c in part[:16])
            continue
        todo += gc.get_referents(thing)
    many = len(seen) > 20_000
    seen.clear()
    return [found, many]
"""
"""Goes from every frame, object and class to all that they refer to."""


def secret() -> str:
    return MARK + secrets.token_hex(16)


def planting(number: int) -> Program:
    """A program with secrets in its text, its input, its output and its exception's message."""
    code = (
        f"held = {secret()!r}\n"
        f"def f(x):\n    # {secret()}\n    if x == 1:\n        raise ValueError({secret()!r})\n    return [x, held]"
    )
    given = "1" if number % 5 == 0 else repr(secret())
    return Program(str(number), code, (given,))


def mappings(pid: int) -> str:
    """The readable memory of a zygote, which is that of its forks, as the text of a list of pairs."""
    ranges = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights, *rest = line.split()
        if "r" in rights and not (rest and rest[-1].startswith("[v")):
            ranges.append([int(word, 16) for word in place.split("-")])
    return repr(ranges)


@pytest.fixture(scope="module")
def haunted() -> Iterator[Sandbox]:
    """A verifier of one zygote that has run 1,000 jobs full of secrets, and graded with such expected values."""
    settings = ZygoteSettings(preload=PRELOAD)
    with Sandbox(workers=1, num_seeds=1, gated=False, limits=LIMITS, settings=settings) as verifier:
        results = verifier.run([planting(i) for i in range(1_000)])
        assert {result.verdict for result in results} == {"ok", "error"}
        expected = tuple(repr(secret()) for _ in range(4))
        task = Task("t", "T", "S", "code_f", "", ("1", "2", "3", "4"), expected, message=secret(), num_shown=2)
        assert not grade_all([(task, "def f(x):\n    return x")], verifier)[0].correct
        yield verifier


def ask(verifier: Sandbox, code: str, given: str) -> Result:
    return verifier.run([Program("scan", code, (given,))])[0]


def test_a_child_that_reads_its_whole_memory_finds_nothing_of_1000_earlier_jobs(haunted: Sandbox) -> None:
    given = mappings(haunted.process_ids()[0])
    assert ask(haunted, SCAN, given).outputs == ("0",)
    # The same scan sees a secret of its own job, so it would have seen those.
    assert int(ask(haunted, f"own = {secret()!r}" + SCAN, given).outputs[0]) > 0


def test_a_child_that_follows_every_frame_object_and_class_finds_nothing_of_1000_earlier_jobs(
    haunted: Sandbox,
) -> None:
    assert ask(haunted, REACH, "1").outputs == ("[0, True]",)
    found = ask(haunted, f"own = {secret()!r}" + REACH, "1").outputs[0]
    assert found.endswith("True]") and not found.startswith("[0")


def test_a_program_finds_none_of_the_other_inputs_and_outputs_of_its_own_job(haunted: Sandbox) -> None:
    assert others_found(haunted, REACH) == 0


def others_found(verifier: Sandbox, code: str) -> int:
    """How many secrets more a program finds in any of three runs of one child than in a child that runs it once."""
    given = tuple(repr(secret()) for _ in range(3))
    code = code.replace("return [found, many]", "return [found, x, many]")
    several, alone = (verifier.run([Program("own", code, part)])[0] for part in (given, given[:1]))
    assert several.verdict == alone.verdict == "ok", several
    counts = [int(output.split(", ")[0].lstrip("[")) for output in (*several.outputs, *alone.outputs)]
    return max(counts) - counts[-1]


def test_no_descriptor_but_its_own_is_open_in_a_child_however_many_there_are() -> None:
    code = (
        "import os\ndef f(x):\n    found = []\n    for fd in range(70_000):\n        try:\n            os.fstat(fd)\n"
        "            found.append(fd)\n        except OSError:\n            pass\n    return found"
    )
    settings = ZygoteSettings(preload=PRELOAD, leave_out=frozenset({"seccomp"}))
    with Sandbox(
        workers=1, num_seeds=1, gated=False, limits=LIMITS, settings=settings, allow_weak=True, warn=False
    ) as v:
        assert ask(v, code, "1").outputs == ("[3]",)


def test_a_unit_test_s_player_finds_nothing_of_the_tests_or_of_players_before_it() -> None:
    settings = ZygoteSettings(preload=PRELOAD)
    with UnitTester(workers=1, limits=LIMITS, settings=settings) as tester:
        for _ in range(20):
            hidden = secret()
            test = UnitTest("a", f"def f(x):\n    return {secret()!r}", f"assert f({secret()!r}) == {hidden!r}", "f")
            assert not tester.grade([test])[0].correct
        given = mappings(tester._pairs[0].zygotes[0].process.pid)
        same = UnitTest("b", SCAN, f"assert f({given}) == 0 and {secret()!r}", "f")
        assert tester.grade([same])[0].correct
        assert (
            tester.grade([UnitTest("c", SCAN, f"assert f({given}) == 1 or f({given}) == 2", "f")])[0].correct is False
        )


LEAKS: dict[str, tuple[str, str]] = {
    "the zygote reads the job": (
        "        if interactive:\n            self.send(",
        "        self.held = os.pread(fd, 2_048, 0)\n        if interactive:\n            self.send(",
    ),
    "the zygote reads the reply": (
        "        return self.collect(pid, request.wall_ms, interactive)",
        "        header = self.collect(pid, request.wall_ms, interactive)\n"
        "        self.held = os.pread(fd, 2_048, 0)\n        return header",
    ),
    "the zygote runs the job before it forks": (
        "        pid = self.fork_child(",
        "        child.Job(child.read_head(fd), fd)\n        pid = self.fork_child(",
    ),
}
"""Ways to undo the defence, as changes of the zygote's source."""


@pytest.mark.parametrize("leak", LEAKS)
def test_the_scan_finds_what_a_zygote_holds_that_looks_at_jobs(
    leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = LEAKS[leak]
    changed_zygotes(tmp_path, monkeypatch, "zygote.py", before, after)
    settings = ZygoteSettings(preload=PRELOAD)
    with Sandbox(workers=1, num_seeds=1, gated=False, limits=LIMITS, settings=settings) as verifier:
        verifier.run([planting(i) for i in range(50)])
        found = ask(verifier, SCAN, mappings(verifier.process_ids()[0]))
    assert found.verdict == "ok" and int(found.outputs[0]) > 0


def test_without_closing_them_descriptors_stay_open_in_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_zygotes(tmp_path, monkeypatch, "zygote.py", "cage.close_descriptors(self.libc, wire.REPLY_FD)", "pass")
    with pytest.raises(AssertionError):
        test_no_descriptor_but_its_own_is_open_in_a_child_however_many_there_are()


KEEPING = {
    "inputs": (
        "    for form, num_bytes in job.inputs:",
        "    kept = os.pread(job.file, 65_536, 0)\n    for form, num_bytes in job.inputs:",
    ),
    "outputs": ("            del record", "            globals().setdefault('kept', []).append(record)"),
    "what the program left in a circle": ("gc.collect()", "pass"),
}
"""Ways to undo the care of the harness, as changes of the child's source."""


@pytest.mark.parametrize("kept", KEEPING)
def test_the_reach_finds_inputs_and_outputs_that_the_harness_keeps(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_zygotes(tmp_path, monkeypatch, "child.py", *KEEPING[kept])
    settings = ZygoteSettings(preload=PRELOAD)
    with Sandbox(workers=1, num_seeds=1, gated=False, limits=LIMITS, settings=settings) as verifier:
        assert others_found(verifier, REACH) > 0


def changed_zygotes(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str) -> None:
    """Have zygotes start from a copy of the sources in which a passage is another."""
    source = Path(inside.__file__).parent
    target = folder / "inside"
    target.mkdir()
    for path in source.glob("*.py"):
        text = path.read_text()
        if path.name == name:
            assert before in text
            text = text.replace(before, after)
        (target / path.name).write_text(text)
    monkeypatch.setattr("redqueen_sandbox.zygotes._CODE_FOLDER", str(folder))
