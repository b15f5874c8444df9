"""Untrusted run folders: reading changes nothing, waits for nothing, hides no other run, shows no hidden text."""

import hashlib
import json
import os
import resource
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import redqueen
from hostile_journals import ODD, PREPARED, edit, rollback_journal
from safetensors.torch import load_file, save_file
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent / "report"))
from synthetic_run import build_run
from task_run import write_task_run

from redqueen.commands.examinees import open_examination
from redqueen.commands.export import export_member
from redqueen.commands.tasks import list_text, task_text
from redqueen.display import HIDDEN_CATEGORIES
from redqueen.errors import UserError
from redqueen.journal import Journal, diff, read
from redqueen.journal.schema import RunRecord
from redqueen.journal.untrusted import TimeLimit
from redqueen.learn.torch_learner import FACTORS
from redqueen.report.pages import write_report
from redqueen.report.site import create_app
from redqueen.report.table_file import write_table
from redqueen.report.task_list import TaskFilter, find_tasks, read_task
from redqueen.run.checkpoint import MANIFEST, STATE, TENSORS, list_checkpoints
from redqueen.run.lifecycle import resume
from redqueen.run.store import JOURNAL, RunLock

ADDRESS = "http://127.0.0.1:8470"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "run"
    build_run(folder, 4, 2, 2, tasks_per_match=2, num_attempts=2, evolve_every=2)
    return folder


def state_of(folder: Path) -> dict[str, object]:
    """Return what may not change when somebody looks: names, kinds, sizes, times and contents."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        small = path.is_file() and not path.is_symlink() and facts.st_size < 100 << 20
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if small else ""
        found[str(path)] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_nlink, digest)
    return found


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(c) in HIDDEN_CATEGORIES and c not in "\n\t" for c in text)


def look_everywhere(folder: Path, aside: Path) -> list[str]:
    """Read the run by every function that reads one; return what each said that it could not."""
    said = []
    looks = (
        lambda: write_report([folder], aside / "r.html"),
        lambda: [list_text(find_tasks(folder, TaskFilter(limit=0)))],
        lambda: [task_text(read_task(folder, row["id"])) for row in find_tasks(folder, TaskFilter(limit=3))],
        lambda: diff(folder / JOURNAL, folder / JOURNAL),
        lambda: [write_table([folder], name, "csv", aside / "t.csv") for name in ("metric", "task", "session")],
    )
    for look in looks:
        try:
            look()
        except UserError as error:
            said.append(str(error))
    return said


SLOW = "a tree without end"  # it takes each question to its limit of time, which has a test of its own below
KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind == SLOW)) for kind in (*PREPARED, *ODD)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prepared_run_is_told_and_hides_no_other_and_nothing_in_its_folder_changes(
    kind: str, honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.report.runs.PAGE_QUERY_S", 0.3)
    monkeypatch.setattr(TimeLimit.__init__, "__defaults__", (0.3, float("inf"), 0.0))
    runs, aside = tmp_path / "runs", tmp_path / "aside"
    aside.mkdir()
    shutil.copytree(honest, runs / "honest")
    shutil.copytree(honest, runs / "hostile")
    (PREPARED | ODD)[kind](runs / "hostile")
    before = state_of(runs)
    began_s = time.monotonic()
    with TestClient(create_app(runs), base_url=ADDRESS, raise_server_exceptions=True) as client:
        answers = [
            client.get(f"/{page}")
            for page in ("", "run/hostile", "run/hostile/lineage", "run/hostile/tasks", "run/hostile/task/1",
                         "compare?run=honest&run=hostile")
        ]  # fmt: skip
    said = look_everywhere(runs / "hostile", aside)
    assert time.monotonic() - began_s < 60
    assert {answer.status_code for answer in answers} <= {200, 404, 409}
    assert answers[0].status_code == 200
    assert all(is_harmless(answer.text) for answer in answers)
    assert '<a href="/run/honest">' in answers[0].text
    told = said or any(answer.status_code == 409 for answer in answers) or "unreadable" in answers[0].text
    assert told or kind in ODD
    assert state_of(runs) == before


def test_no_text_of_a_journal_reaches_a_reader_unseen(honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "hostile"
    shutil.copytree(honest, folder)
    ODD["texts that command"](folder)
    shown = [redqueen("tasks", str(folder), "--limit", "0"), redqueen("tasks", str(folder), "--limit", "0", "--json")]
    ids = [row["id"] for row in find_tasks(folder, TaskFilter(limit=2))]
    shown += [redqueen("replay", str(folder), "--task", ids[0]), redqueen("diff", str(folder), str(honest))]
    shown += [redqueen("replay", str(folder), "--task", "\u202e\x1b[31mnone")]
    for _, out, err in shown:
        assert is_harmless(out) and is_harmless(err)
    page = write_report([folder], tmp_path / "r.html").read_text(encoding="utf-8")
    assert is_harmless(page) and "⟨U+202E⟩" in page
    found = page_json(tmp_path / "r.html")
    assert all(is_harmless(text) for text in texts_of(found))
    write_table([folder], "task", "csv", tmp_path / "t.csv")
    assert is_harmless((tmp_path / "t.csv").read_text(encoding="utf-8").replace("\r\n", "\n"))


def page_json(path: Path) -> object:
    text = path.read_text(encoding="utf-8").split('id="figures">')[1].split("</script>")[0]
    return json.loads(text)


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *texts_of(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def test_a_rollback_journal_that_names_a_file_deletes_nothing_by_looking_nor_by_resuming(
    honest: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "precious"
    victim.write_text("keep me")
    folder = tmp_path / "runs" / "hostile"
    shutil.copytree(honest, folder)
    rollback_journal(folder, victim)
    before = state_of(folder)
    with TestClient(create_app(tmp_path / "runs"), base_url=ADDRESS) as client:
        assert "was not finished cleanly" in client.get("/").text
    assert any("was not finished cleanly" in text for text in look_everywhere(folder, tmp_path))
    assert state_of(folder) == before
    with pytest.raises(UserError, match="names another file, which SQLite would delete"):
        Journal.open(folder / JOURNAL)
    assert victim.read_text() == "keep me"


def test_the_prepared_rollback_journal_is_one_that_would_delete(honest: Path, tmp_path: Path) -> None:
    """Without the guard SQLite deletes the named file: else the test above would prove nothing."""
    import sqlite3

    victim = tmp_path / "precious"
    victim.write_text("gone")
    shutil.copytree(honest, tmp_path / "run")
    rollback_journal(tmp_path / "run", victim)
    connection = sqlite3.connect(tmp_path / "run" / JOURNAL)
    with suppress(sqlite3.DatabaseError):
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    connection.close()
    assert not victim.exists()


def test_a_new_journal_is_not_made_beside_what_was_left_there(tmp_path: Path) -> None:
    (tmp_path / f"{JOURNAL}-journal").write_bytes(b"x" * 600)
    with pytest.raises(UserError, match=r"-journal exists already"):
        Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0))


def test_a_live_run_is_read_in_place_as_it_goes_on(tmp_path: Path) -> None:
    with (
        RunLock(tmp_path),
        Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0)) as writer,
        Journal.open(tmp_path / JOURNAL, read_only=True) as reader,
    ):
        with writer.step(0):
            pass
        assert read.last_step(reader) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [JOURNAL, "lock"]


def test_a_run_whose_writer_was_killed_is_read_from_a_copy(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0)) as writer:
        with writer.step(0), suppress(OSError):
            pass
        for ending in ("", "-wal"):
            shutil.copy(tmp_path / f"{JOURNAL}{ending}", kept)
    before = state_of(kept)
    with Journal.open(kept / JOURNAL, read_only=True) as reader:
        assert read.last_step(reader) == 0
    assert state_of(kept) == before


def test_a_question_ends_when_its_time_is_up_even_within_one_step_of_sqlite(honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(honest, folder)
    PREPARED["a tree without end"](folder)
    began_s = time.monotonic()
    with Journal.open(folder / JOURNAL, read_only=True, limit=TimeLimit(0.3)) as journal:
        for asked in ("SELECT count(*) AS num FROM session", "SELECT max(started_at_s) AS last FROM session"):
            with pytest.raises(UserError, match=r"a query took too long|it is damaged"):
                journal.query(asked)
    assert time.monotonic() - began_s < 6


@pytest.mark.parametrize("name", ["lock", "checkpoints", "config.json", "report.html", f"{JOURNAL}-wal", JOURNAL])
def test_resuming_follows_no_link_out_of_the_folder(name: str, honest: Path, tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(honest, folder)
    write_config(folder)
    outside.mkdir() if name == "checkpoints" else outside.write_text("keep me")
    if name == "checkpoints":
        (outside / ".writing-precious").mkdir()
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    before = state_of(outside) if outside.is_dir() else outside.read_text()
    with pytest.raises(UserError):
        resume(folder) if name != f"{JOURNAL}-wal" and name != JOURNAL else Journal.open(folder / JOURNAL)
    assert (state_of(outside) if outside.is_dir() else outside.read_text()) == before


def test_the_lock_empties_no_file_that_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    for make in (os.link, os.symlink):
        make(tmp_path / "precious", tmp_path / "lock")
        with pytest.raises(UserError), RunLock(tmp_path):
            pass
        (tmp_path / "lock").unlink()
    assert (tmp_path / "precious").read_text() == "keep me"


def write_config(folder: Path, **propose: object) -> None:
    from redqueen.config import Config

    data = Config().model_dump(mode="json")
    data["propose"] |= propose
    (folder / "config.json").write_text(json.dumps(data))


def test_a_hook_that_a_run_folder_names_is_not_imported_unless_it_is_trusted(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(honest, folder)
    (tmp_path / "hostile_hook.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    write_config(folder, policy_hook="hostile_hook:refuse")
    with pytest.raises(UserError, match=r"names the hook 'hostile_hook:refuse', .*--trust-hooks"):
        resume(folder)
    assert "hostile_hook" not in sys.modules
    with pytest.raises(SystemExit, match="imported"):
        resume(folder, trust_hooks=True)


def test_evaluating_a_run_folder_drops_its_hook_and_its_word_on_the_sandbox(honest: Path, tmp_path: Path) -> None:
    from redqueen.commands.examinees import _safe_config
    from redqueen.config import parse_config
    from redqueen.run.store import load_run_config

    write_config(tmp_path, policy_hook="a:b", policy_rules=["("])
    config = load_run_config(tmp_path)
    evolve = config.evolve.model_copy(update={"operators": ("a:B",), "constants": {"a:B": {}}, "fitness": "a:b"})
    data = _safe_config(config.model_copy(update={"evolve": evolve}))
    assert not parse_config(data, "test").evolve.imported
    assert data["propose"]["policy_hook"] == "" and data["propose"]["policy_rules"] == []
    assert data["verify"]["allow_weak"] is False


def test_a_journal_cannot_talk_the_sandbox_away(tmp_path: Path) -> None:
    from redqueen.commands.tasks import journal_config

    folder = write_task_run(tmp_path / "run")
    edit(folder, 'UPDATE run SET config = \'{"verify": {"allow_weak": true}}\'')
    assert journal_config(folder).verify.allow_weak is False
    assert journal_config(folder, allow_weak=True).verify.allow_weak is True
    edit(folder, 'UPDATE run SET config = \'{"verify": {"kill_cpu_ms": 100000000}}\'')
    with pytest.raises(UserError, match=r"is 100,000,000 ms per program"):
        journal_config(folder)


@pytest.mark.parametrize("content", ["pipe", "link", "large", "deep", "no UTF-8"])
def test_a_config_that_is_no_plain_file_is_refused_without_waiting(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    match content:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/dev/zero")
        case "large":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "deep":
            path.write_text("[" * 200_000)
        case _:
            path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"config\.json"):
        resume(tmp_path)


def test_a_folder_of_many_entries_and_of_links_is_found_in_bounded_time(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redqueen.report import runs as find

    shutil.copytree(honest, tmp_path / "a")
    (tmp_path / "z").symlink_to("/")
    (tmp_path / "y").symlink_to(honest)
    (tmp_path / "b").mkdir()
    for number in range(300):
        (tmp_path / "b" / str(number)).mkdir()
    assert list(find.find_runs(tmp_path)) == ["a"]
    monkeypatch.setattr(find, "MAX_ENTRIES", 100)
    assert set(find.find_runs(tmp_path)) <= {"a"}


def spoil(run: Path, how: str) -> None:
    """Change a checkpoint's state or tensors and give it a manifest that fits."""
    [(_, folder)] = list_checkpoints(run / "checkpoints")[-1:]
    state, tensors = json.loads((folder / STATE).read_text()), load_file(folder / TENSORS)
    members = state["state"]["individuals"]
    match how:
        case "no state":
            del state["state"]
        case "no factors":
            del tensors[FACTORS]
        case "a list":
            state["state"] = [[]] * 3
        case "fewer adapters":
            tensors[FACTORS] = tensors[FACTORS][:-1].contiguous()
        case "narrower adapters":
            tensors[FACTORS] = tensors[FACTORS][:, :-1].contiguous()
        case "a number":
            tensors[FACTORS] = tensors[FACTORS][0, 0].clone()
        case "one slot twice":
            members[0]["slot"] = members[1]["slot"]
        case "a slot beyond":
            members[0]["slot"] = 10**9
        case "one name twice":
            members[0]["id"] = members[1]["id"]
        case "another step":
            state["state"]["step"] += 1
    save_file(tensors, folder / TENSORS)
    (folder / STATE).write_text(json.dumps(state))
    files = {}
    for name in (TENSORS, STATE):
        data = (folder / name).read_bytes()
        files[name] = {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = json.loads((folder / MANIFEST).read_text()) | {"files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest))


SPOILED = (
    "no state", "no factors", "a list", "fewer adapters", "narrower adapters", "a number", "one slot twice",
    "a slot beyond", "one name twice", "another step",
)  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_checkpoint_is_one_sentence_whoever_reads_it(how: str, quick_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(quick_run, tmp_path / "run")
    spoil(run, how)

    def evaluate() -> None:
        with open_examination(str(run), ["verify.num_workers=1"]):
            pass

    for read_it in (lambda: export_member(run, "", tmp_path / "out"), lambda: resume(run), evaluate):
        with pytest.raises(UserError, match=r"(?i)th(e|is) checkpoint"):
            read_it()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("field", ["num_teachers", "num_students", "lora_rank"])
def test_a_run_folder_that_asks_for_a_billion_adapters_takes_no_memory(
    field: str, quick_run: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(quick_run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    for size in (10**9, 5_000):
        config["population"][field] = size
        (run / "config.json").write_text(json.dumps(config))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(UserError):
            export_member(run, "", tmp_path / "out")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"
