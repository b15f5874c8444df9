"""A real run on the embedded base: its journal is consistent, and the run repeats."""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from redqueen.adapters.base import settle_precision
from redqueen.commands import train
from redqueen.config import load_config
from redqueen.domains.registry import num_proposals
from redqueen.errors import UserError
from redqueen.journal import Journal, diff
from redqueen.journal.untrusted import Row
from redqueen.learn.advantages import advantages
from redqueen.match import STANDARD, decide
from redqueen.propose.buffer import KEYS_PER_TASK, behaviour_key, program_key
from redqueen.records import Rating
from redqueen.run.checkpoint import Checkpoint, list_checkpoints
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import CHECKPOINTS, JOURNAL, load_run_config
from redqueen.state import State, state_from_plain

QUICK = Path(__file__).parents[1] / "quick.toml"
CONFIG = load_config(QUICK)
NUM_PROPOSALS = sum(num_proposals(CONFIG.propose).values())
STEPS = range(1, CONFIG.run.num_steps + 1)


@pytest.fixture(scope="module")
def journal(quick_run: Path) -> Iterator[Journal]:
    with Journal.open(quick_run / JOURNAL, read_only=True) as opened:
        yield opened


def rows(journal: Journal, table: str) -> list[Row]:
    return journal.query(f"SELECT * FROM {table}")


def final_state(folder: Path) -> State:
    checkpoint = Checkpoint.latest_valid(folder / CHECKPOINTS)
    assert checkpoint is not None
    return state_from_plain(checkpoint.state["state"])


# What the journal says -----------------------------------------------------------------------------------------


def test_every_step_is_there_once_with_its_proposals_matches_and_ratings(journal: Journal) -> None:
    assert [r["step"] for r in rows(journal, "step")] == [0, *STEPS]
    for step in STEPS:
        candidates = journal.query("SELECT * FROM candidate WHERE step = ?", (step,))
        assert len(candidates) == 2 * NUM_PROPOSALS
        assert len({c["teacher"] for c in candidates}) == 2
        assert len(journal.query("SELECT * FROM match WHERE step = ?", (step,))) == 2
        assert len(journal.query("SELECT * FROM rating WHERE step = ?", (step,))) == 4


def test_every_valid_candidate_is_a_task_and_no_other_is(journal: Journal) -> None:
    valid = [(c["id"], c["step"], c["kind"]) for c in rows(journal, "candidate") if c["verdict"] == "ok"]
    assert valid == [(t["id"], t["step"], t["kind"]) for t in rows(journal, "task")]


def test_every_attempt_has_a_task_and_is_by_the_student_its_teacher_met(journal: Journal) -> None:
    met = {(m["step"], m["teacher"]): m["student"] for m in rows(journal, "match")}
    tasks = {t["seq"]: t for t in rows(journal, "task")}
    attempts = defaultdict(list)
    for attempt in rows(journal, "attempt"):
        task = tasks[attempt["task"]]
        assert attempt["student"] == task["student"] == met[task["step"], task["teacher"]]
        attempts[attempt["task"]].append(attempt)
    assert {seq: len(made) for seq, made in attempts.items()} == dict.fromkeys(tasks, CONFIG.solve.num_attempts)
    for seq, made in attempts.items():
        assert tasks[seq]["num_attempts"] == sum(not a["lost"] for a in made)
        assert tasks[seq]["num_correct"] == sum(a["correct"] for a in made)


def test_rewards_follow_the_rules(journal: Journal) -> None:
    tasks = {t["id"]: t for t in rows(journal, "task")}
    for candidate in rows(journal, "candidate"):
        if candidate["verdict"] != "ok":
            assert candidate["reward"] == (None if candidate["verdict"] == "infra" else -1.0)
        elif tasks[candidate["id"]]["num_attempts"]:
            solved = tasks[candidate["id"]]["num_correct"] / tasks[candidate["id"]]["num_attempts"]
            assert candidate["reward"] == pytest.approx(1 - solved if solved else 0.0)
    for attempt in rows(journal, "attempt"):
        unreadable = attempt["verdict"] in ("unparsable", "invalid-input", "syntax", "forbidden")
        expected = 1.0 if attempt["correct"] else -1.0 if unreadable else -0.5
        assert attempt["reward"] == (None if attempt["lost"] else expected)


def test_advantages_follow_from_the_rewards_of_each_member_and_step(journal: Journal) -> None:
    groups: dict[tuple[int, str], dict[object, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for c in rows(journal, "candidate"):
        groups[c["step"], c["teacher"]][c["kind"]].append(c)
    query = "SELECT t.step, t.seq, a.* FROM attempt a JOIN task t ON a.task = t.seq ORDER BY a.seq"
    for a in journal.query(query):
        groups[a["step"], a["student"]][a["task"]].append(a)
    for by_group in groups.values():
        samples = [[row for row in group if row["reward"] is not None] for group in by_group.values()]
        estimated = advantages(
            "reinforce_pp_baseline", [[r["reward"] for r in g] for g in samples], [""] * len(samples)
        )
        for group, values in zip(samples, estimated, strict=True):
            assert [row["advantage"] for row in group] == pytest.approx(values)


def test_matches_are_decided_by_what_was_solved_against_what_was_expected(journal: Journal) -> None:
    for match in rows(journal, "match"):
        tasks = journal.query("SELECT * FROM task WHERE step = ? AND teacher = ?", (match["step"], match["teacher"]))
        assert match["num_tasks"] == len(tasks)
        attempts = sum(t["num_attempts"] for t in tasks)
        solved = sum(t["num_correct"] for t in tasks) / attempts if attempts else None
        assert match["solve_frac"] == pytest.approx(solved)
        if not tasks or attempts:
            assert match["winner"] == decide(solved, match["expected_win_frac"])


def test_ratings_move_by_the_published_update_one_up_and_one_down_and_newborns_inherit(journal: Journal) -> None:
    ratings = {i["id"]: STANDARD.newcomer() for i in rows(journal, "individual") if i["born_step"] == 0}
    births = {b["replaced"]: b for b in rows(journal, "birth")}
    for step in STEPS:
        for match in journal.query("SELECT * FROM match WHERE step = ?", (step,)):
            teacher, student = ratings[match["teacher"]], ratings[match["student"]]
            assert match["expected_win_frac"] == pytest.approx(STANDARD.expected_win(student, teacher))
            if match["winner"] == "none":
                continue
            moved = STANDARD.update(teacher, student, match["winner"])
            ratings[match["teacher"]], ratings[match["student"]] = moved
            gains = (moved[0].mu - teacher.mu, moved[1].mu - student.mu)
            assert gains[0] * gains[1] <= 0
        for replaced, birth in births.items():
            if birth["step"] == step:
                parents = journal.tuples("SELECT parent FROM parent WHERE child = ?", (birth["child"],))
                ratings[birth["child"]] = STANDARD.pool([ratings[parent] for (parent,) in parents])
                del ratings[replaced]
        written = journal.query("SELECT * FROM rating WHERE step = ?", (step,))
        assert {r["individual"]: Rating(r["mu"], r["sigma"]) for r in written} == ratings
        assert all(r["fitness"] == STANDARD.fitness(ratings[r["individual"]]) for r in written)


def test_children_are_born_at_the_generations_and_take_over_the_slots_of_the_least_fit(journal: Journal) -> None:
    births = rows(journal, "birth")
    assert [b["step"] for b in births] == [2, 2]  # every second step, but not after the last
    people = {i["id"]: i for i in rows(journal, "individual")}
    assert {people[b["child"]]["role"] for b in births} == {"teacher", "student"}
    for birth in births:
        child, replaced = people[birth["child"]], people[birth["replaced"]]
        assert (child["slot"], child["role"]) == (replaced["slot"], replaced["role"])
        assert child["born_step"] == 2 and child["operator"] == birth["operator"]
        fitness = {r["individual"]: r["fitness"] for r in journal.query("SELECT * FROM rating WHERE step = 1")}
        parents = [p["parent"] for p in journal.query("SELECT * FROM parent WHERE child = ?", (birth["child"],))]
        assert parents and all(people[p]["role"] == child["role"] for p in parents)
        assert birth["replaced"] not in parents and set(parents) <= set(fitness)
        assert birth["relative_change"] >= 0


def test_the_living_play_and_the_replaced_do_not(journal: Journal) -> None:
    replaced = {b["replaced"]: b["step"] for b in rows(journal, "birth")}
    born = {i["id"]: i["born_step"] for i in rows(journal, "individual")}
    for match in rows(journal, "match"):
        for name in (match["teacher"], match["student"]):
            assert born[name] < match["step"] <= replaced.get(name, 10**9)
    last = {name for m in rows(journal, "match") if m["step"] == STEPS[-1] for name in (m["teacher"], m["student"])}
    assert {b["child"] for b in rows(journal, "birth")} <= last


def test_the_buffer_grew_stayed_within_its_bounds_and_holds_no_doubles(quick_run: Path, journal: Journal) -> None:
    state = final_state(quick_run)
    buffer = state.buffer
    assert len(buffer.tasks) <= CONFIG.propose.buffer_capacity
    assert len(buffer.tasks) > 1 or not rows(journal, "task")
    assert (
        len({program_key(t) for t in buffer.tasks})
        == len({behaviour_key(t) for t in buffer.tasks})
        == len(buffer.tasks)
    )
    assert len(buffer.asked) <= KEYS_PER_TASK * CONFIG.propose.buffer_capacity
    known = {t["id"] for t in rows(journal, "task")} | {t.id for t in buffer.tasks if "seed" in t.id}
    assert {t.id for t in buffer.tasks} <= known


def test_external_fitness_is_written_for_the_base_first_and_for_the_students_at_the_end(journal: Journal) -> None:
    whole = journal.query("SELECT * FROM evaluation WHERE stratum = 'all' AND kind = 'all'")
    last = {m["student"] for m in rows(journal, "match") if m["step"] == STEPS[-1]}
    assert {(e["step"], e["individual"]) for e in whole} == {
        (0, "base"),
        (0, "control"),
        *((STEPS[-1], name) for name in (*last, "students", "change", "product", "gain")),
    }
    assert {e["mode"] for e in whole} == {"sampled", "greedy"}
    assert {e["num_items"] for e in whole} == {CONFIG.evaluate.max_items}


def test_every_step_has_its_metrics_and_its_times(journal: Journal) -> None:
    for step in STEPS:
        metrics = {m["name"]: m["value"] for m in journal.query("SELECT * FROM metric WHERE step = ?", (step,))}
        valid = [c["verdict"] == "ok" for c in journal.query("SELECT * FROM candidate WHERE step = ?", (step,))]
        assert metrics["propose/valid_frac"] == pytest.approx(sum(valid) / len(valid))
        assert metrics["evolve/births"] == (2 if step == 2 else 0)
        timed = {t["phase"] for t in journal.query("SELECT * FROM timing WHERE step = ?", (step,))}
        assert timed >= {"match", "propose", "verify", "solve", "learn", "evolve"}
        assert ("checkpoint" in timed) == (step % CONFIG.run.checkpoint_every_steps == 0)


def test_the_run_directory_holds_config_journal_checkpoints_and_report(quick_run: Path) -> None:
    settled = load_run_config(quick_run)
    assert settled == settle_precision(CONFIG) and settled.model.precision in ("bf16", "fp32")
    assert [step for step, _ in list_checkpoints(quick_run / CHECKPOINTS)] == [2, 4]
    assert "<html" in (quick_run / "report.html").read_text()[:2000]


# Repeating, stopping and going on ------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_base_scores")
def test_a_run_without_a_checkpoint_starts_over_and_the_same_seed_gives_the_same_journal(
    quick_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "early"
    shutil.copytree(quick_run, folder)
    shutil.rmtree(folder / CHECKPOINTS)
    with Journal.open(folder / JOURNAL) as journal:
        journal.truncate_after(0)
    resume(folder)
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None
    assert same_checkpoints(quick_run, folder)
    out, err = capsys.readouterr()
    assert "there is no checkpoint yet: starting over" in out + err


def test_resuming_a_run_that_is_over_changes_nothing_but_writes_its_report_again(
    quick_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "over"
    shutil.copytree(quick_run, folder)
    (folder / "report.html").unlink()
    train.resume(folder)
    assert (folder / "report.html").is_file()
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None


def same_checkpoints(one: Path, two: Path) -> bool:
    """Tell whether the newest checkpoints hold the same tensors and state, bit by bit."""
    first, second = Checkpoint.latest_valid(one / CHECKPOINTS), Checkpoint.latest_valid(two / CHECKPOINTS)
    assert first is not None and second is not None
    return (
        first.step == second.step
        and first.state == second.state
        and first.tensors.keys() == second.tensors.keys()
        and all(tensor.equal(second.tensors[name]) for name, tensor in first.tensors.items())
    )


# What is refused -----------------------------------------------------------------------------------------------


def test_a_folder_that_exists_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UserError, match=r"exists already: choose another --run-dir, or continue it: `redqueen resume"):
        start(CONFIG, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_a_run_that_memory_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    config = load_config(QUICK, ["solve.max_rows=1000000000"])
    with pytest.raises(UserError, match=r"needs .* TB and this machine has .* free: lower solve\.max_rows"):
        start(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"--run-dir .*file/run cannot be made .*choose a folder you may write to"):
        start(CONFIG, tmp_path / "file" / "run")


def test_resuming_what_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run directory .*give the folder that `redqueen train` made"):
        resume(tmp_path)


def test_resuming_with_a_damaged_config_is_refused_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"run": ')
    with pytest.raises(UserError, match=r"config\.json is damaged .*restore it from a copy"):
        resume(tmp_path)


def test_resuming_with_a_config_of_another_version_names_the_field(tmp_path: Path) -> None:
    data = json.loads(CONFIG.model_dump_json())
    data["run"]["colour"] = "red"
    (tmp_path / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"config\.json: there is no field run\.colour"):
        resume(tmp_path)
