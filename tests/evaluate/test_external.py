"""External fitness of a run: which items, who is scored, and the rows the journal gets."""

import math
import shutil
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted import Scripted, config_of, wrong

from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.protocols import Sampler
from redqueen.domains.code.suite import load_suite
from redqueen.engine import Engine, open_engine
from redqueen.evaluate.external import (
    Examiner,
    _cache_file,
    gain_records,
    member_records,
    scored_students,
    student_records,
)
from redqueen.evaluate.fitness_suite import MODES, Score, build_score
from redqueen.journal.schema import ALL, BASE, CHANGE, GAIN, STUDENTS
from redqueen.records import Individual, Rating

TEACHERS_AND_STUDENTS = config_of(
    evaluate={"num_samples": 1, "max_items": 6}, solve={"max_new_tokens": 12}, propose={"max_new_tokens": 12}
)
STUDENTS_OF_RUN = [Individual(name, "student", slot, Rating(25, 8)) for name, slot in (("S1", 2), ("S2", 3))]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(TEACHERS_AND_STUDENTS) as opened:
        yield opened


@pytest.fixture(scope="module")
def scores(engine: Engine) -> tuple[Examiner, list[Score], list[Score]]:
    examiner = Examiner.of(engine)
    return examiner, examiner.base(), examiner.members(STUDENTS_OF_RUN)


def examiner_of(engine: Engine, max_items: int) -> Examiner:
    config = config_of(evaluate={"max_items": max_items})
    return Examiner.of(replace(engine, config=config))


def test_all_items_of_the_suite_are_scored_unless_fewer_are_asked_for(engine: Engine) -> None:
    assert list(examiner_of(engine, 0).items) == load_suite()
    assert list(examiner_of(engine, 10**6).items) == load_suite()


@pytest.mark.parametrize("max_items", [1, 20, 60])
def test_never_more_items_than_asked_for_but_always_whole_functions(engine: Engine, max_items: int) -> None:
    items = examiner_of(engine, max_items).items
    assert 3 <= len(items) <= max(3, max_items)
    functions = [item.cluster for item in items]
    assert all(functions.count(name) == 3 for name in functions)
    assert items == examiner_of(engine, max_items).items


def test_members_are_examined_at_the_temperature_they_play_at(engine: Engine) -> None:
    heats: list[float] = []

    def sampler(temperature: float, *rest: object) -> Sampler:
        heats.append(temperature)
        return engine.sampler(temperature)

    config = config_of(evaluate={"max_items": 3}, solve={"temperature": 0.7})
    Examiner.of(replace(engine, config=config, sampler=sampler)).base()
    assert heats == [0.7, 0.0]


def test_a_slot_is_asked_with_the_same_random_numbers_in_every_run(engine: Engine) -> None:
    asked = []
    for seed in (0, 1):
        config = config_of(run={"rng_seed": seed}, evaluate={"max_items": 3})
        sampler = Scripted(engine.tokenizer, wrong)
        Examiner.of(replace(engine, config=config, sampler=lambda *_, own=sampler: own)).members(STUDENTS_OF_RUN)
        asked.append(sampler.requests)
    assert asked[0] == asked[1] != []


def test_which_students_are_scored_where_they_are_many_differs_from_step_to_step() -> None:
    many = [Individual(f"S{at}", "student", at, Rating(25, 8)) for at in range(8)]
    drawn = [[one.slot for one in scored_students(TEACHERS_AND_STUDENTS, many, step)] for step in range(40)]
    assert all(len(slots) == 2 and slots == sorted(slots) for slots in drawn)
    assert {slot for slots in drawn for slot in slots} == set(range(8))


def test_a_few_items_are_of_the_strata_in_proportion(engine: Engine) -> None:
    sizes = Counter(item.stratum for item in load_suite())
    found = Counter(item.stratum for item in examiner_of(engine, 240).items)
    assert found.keys() == sizes.keys()
    assert all(abs(found[name] / 240 - size / sizes.total()) < 0.025 for name, size in sizes.items())


def counts(engine: Engine, max_items: int, **propose: object) -> Counter[str]:
    """Count the items that a run of several domains is scored on, by the first word of their kind."""
    config = config_of(propose=propose, evaluate={"max_items": max_items})
    return Counter(item.task.kind.split("_")[0] for item in Examiner.of(replace(engine, config=config)).items)


def test_of_a_mixture_each_domain_has_its_share_of_the_items_and_no_more_than_it_has(engine: Engine) -> None:
    shares = {"code": 0.25, "maths": 0.25, "logic": 0.5}
    few = counts(engine, 240, domains=shares)  # 60, 60, 120, but for proposals and functions that are not divided
    assert sum(few.values()) <= 240 and max(abs(few["code"] - 60), abs(few["maths"] - 60), abs(few["logic"] - 120)) < 6
    most = counts(engine, 9000, domains=shares)  # half of them would be 4,500 puzzles
    assert most["logic"] == 3600 and max(most["code"], most["maths"]) < 2400


def test_of_domains_without_shares_each_has_as_much_of_the_items_as_of_the_proposals(engine: Engine) -> None:
    asked = {"code_o": 2, "code_i": 2, "code_f": 2, "maths_formal": 1, "maths_word": 2}
    found = counts(engine, 300, domains=["code", "maths"], num_proposals=asked)  # six to three
    assert 180 <= found["code"] <= 200 and 90 <= found["maths"] <= 100


def test_a_domain_whose_share_is_less_than_an_item_has_none(engine: Engine) -> None:
    assert counts(engine, 3, domains={"code": 8, "maths": 1, "logic": 1}).keys() == {"code"}
    kinds = {"maths_formal": 0, "maths_word": 0}
    assert "maths" not in counts(engine, 60, domains=["code", "maths"], num_proposals=kinds)


def test_where_no_students_are_scored_nobody_samples_and_there_are_no_rows(engine: Engine) -> None:
    config = config_of(evaluate={"max_items": 3, "students": False})
    examiner = Examiner.of(replace(engine, config=config, sampler=lambda *wishes: pytest.fail("nobody is to answer")))
    scored = scored_students(config, STUDENTS_OF_RUN, 1)
    assert scored == [] == examiner.members(scored) == student_records(scored, [], [], examiner.items)


def test_a_fresh_student_scores_exactly_as_the_base(scores: tuple[Examiner, list[Score], list[Score]]) -> None:
    examiner, base, _ = scores
    sampled, greedy = examiner.members(STUDENTS_OF_RUN[:1])
    (base_greedy,) = [s for s in base if s.mode == "greedy"]
    assert (sampled.slots, sampled.mode, greedy.mode) == ((2,), "sampled", "greedy")
    assert (greedy.item_means, greedy.item_tokens) == (base_greedy.item_means, base_greedy.item_tokens)


def test_the_base_gets_rows_for_both_modes_and_every_cell(scores: tuple[Examiner, list[Score], list[Score]]) -> None:
    _, base, _ = scores
    records = member_records(BASE, base)
    assert {r.individual for r in records} == {BASE}
    assert {r.mode for r in records} == {"sampled", "greedy"}
    assert len({(r.stratum, r.kind, r.mode) for r in records}) == len(records)
    whole = [r for r in records if (r.stratum, r.kind) == (ALL, ALL)]
    assert [r.num_items for r in whole] == [6, 6]
    assert all(0 <= r.low_frac <= r.mean_frac <= r.high_frac <= 1 for r in whole)


def test_students_get_rows_each_together_and_as_the_change_from_the_base(
    scores: tuple[Examiner, list[Score], list[Score]],
) -> None:
    examiner, base, students = scores
    records = student_records(STUDENTS_OF_RUN, students, base, examiner.items)
    whole = {(r.individual, r.mode): r for r in records if (r.stratum, r.kind) == (ALL, ALL)}
    assert set(whole) == {(n, m) for n in ("S1", "S2", STUDENTS, CHANGE) for m in ("sampled", "greedy")}
    for mode in ("sampled", "greedy"):
        mean = (whole["S1", mode].mean_frac + whole["S2", mode].mean_frac) / 2
        assert whole[STUDENTS, mode].mean_frac == pytest.approx(mean)
        base_mean = next(s for s in base if s.mode == mode).overall.mean
        change = whole[CHANGE, mode]
        assert change.mean_frac == pytest.approx(mean - base_mean)
        assert change.low_frac <= change.mean_frac <= change.high_frac
        assert change.thought_frac is None


def test_a_change_is_worked_out_item_by_item(scores: tuple[Examiner, list[Score], list[Score]]) -> None:
    examiner, base, students = scores
    better = [replace(s, item_means=(1.0, 0.5, 0.0, math.nan, 1.0, 1.0)) for s in students]
    worse = [replace(s, item_means=(0.0, 0.5, 0.5, 0.5, 0.0, 1.0)) for s in base]
    records = student_records(STUDENTS_OF_RUN, better, worse, examiner.items)
    change = next(r for r in records if r.individual == CHANGE)
    # An item that was lost on one side is no pair: (1 + 0 - 0.5 + 1 + 0) / 5.
    assert change.mean_frac == pytest.approx(0.3)
    assert np.isfinite([change.low_frac, change.high_frac]).all()


def test_the_gain_is_over_the_control_that_is_best_in_the_same_mode(engine: Engine) -> None:
    items = Examiner.of(engine).items

    def made(sampled: float, greedy: float) -> list[Score]:
        return [
            build_score((0,), mode, items, np.full((3, len(items)), mean), 0, 0)
            for mode, mean in zip(MODES, (sampled, greedy), strict=True)
        ]

    records = gain_records(made(1.0, 0.5), [*made(0.0, 0.25), *made(0.75, 0.0)], items)
    assert [(r.individual, r.mode, r.mean_frac) for r in records] == [(GAIN, "sampled", 0.25), (GAIN, "greedy", 0.25)]


def test_scores_of_the_base_under_other_settings_or_of_another_version_are_not_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDQUEEN_CACHE", str(tmp_path))
    examiner = Examiner.of(engine)
    warmer = engine.config.model_copy(update={"solve": engine.config.solve.model_copy(update={"temperature": 0.5})})
    told = examiner.of_control
    assert told is not None
    files = [_cache_file(one) for one in (examiner, told, replace(examiner, engine=replace(engine, config=warmer)))]
    monkeypatch.setattr("redqueen.evaluate.external.__version__", "another")
    assert None not in files and len({*files, _cache_file(examiner)}) == 4


def test_scores_of_the_base_are_read_from_the_cache_unless_the_file_is_damaged(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDQUEEN_CACHE", str(tmp_path))
    calls: list[float] = []

    def counted(temperature: float, *rest: object) -> Sampler:
        calls.append(temperature)
        return engine.sampler(temperature)

    examiner = replace(Examiner.of(engine), engine=replace(engine, sampler=counted))
    first = examiner.base()
    assert len(calls) == 2
    # as another process has it: an equal prompt format elsewhere in memory
    elsewhere = replace(engine.prompt_format, frame=copy(engine.prompt_format.frame))
    assert replace(examiner, engine=replace(examiner.engine, prompt_format=elsewhere)).base() == first
    assert len(calls) == 2
    [file] = tmp_path.rglob("*.json")
    file.write_text(file.read_text().replace('"sampled", 0', '"sampled", -1', 1))
    assert examiner.base() == first and len(calls) == 4
    replace(examiner, num_samples=2).base()  # other settings, another file
    assert len(calls) == 6


def test_a_base_by_another_path_to_its_folder_has_the_same_scores_in_the_cache(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDQUEEN_CACHE", str(tmp_path))
    folder = shutil.copytree(embedded_folder(), tmp_path / "folder")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)

    def file_of(base: str) -> Path | None:
        config = engine.config.model_copy(update={"model": engine.config.model.model_copy(update={"base": base})})
        return _cache_file(Examiner.of(replace(engine, config=config)))

    assert file_of(str(folder)) == file_of(str(tmp_path / "link")) == file_of("./folder") is not None
    shutil.copytree(folder, tmp_path / "other")  # its config.json may differ
    assert file_of("other") != file_of("folder")
    monkeypatch.setattr("redqueen.adapters.base_shape._cached", {"owner/name": folder}.get)  # of the hub
    assert file_of("owner/name") not in (None, file_of("folder"))
    assert file_of("owner/other") is None
