"""The words at the head of the report say what the rows say, and no more."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from synthetic_run import build_run, founders, measured

from redqueen.display import duration
from redqueen.journal import EvaluationRecord, Journal, RunRecord, TaskRecord, read
from redqueen.journal.schema import CHOSEN
from redqueen.records import Task
from redqueen.report.compare import arm_rows
from redqueen.report.fitness import MARKS, comparisons
from redqueen.report.health import Health, health_of
from redqueen.report.pages import report_html
from redqueen.report.story import signs_of_collapse, story_of
from redqueen.report.summary import result_lines
from redqueen.report.tables import tiles
from redqueen.report.view import RunView, read_run
from redqueen.run.store import JOURNAL

Scores = Mapping[str, tuple[float, float, float]]


def run_with(
    folder: Path,
    scores: Scores,
    mode: str = "sampled",
    num_steps: int = 20,
    metrics: Mapping[str, list[float]] | None = None,
    repeat: bool = False,
) -> RunView:
    """Write a 1T+1S run whose last step has these scores (mean, low, high) and these metrics, one value a step."""
    series = {"solve/rate": [0.5] * num_steps, "propose/valid_frac": [0.9] * num_steps, **(metrics or {})}
    with Journal.create(folder / JOURNAL, RunRecord("r", "1T+1S", 3)) as journal:
        with journal.step(0) as tx:
            tx.add_individuals(founders(1, 1))
        for step in range(1, num_steps + 1):
            with journal.step(step) as tx:
                tx.add_metrics({name: values[step - 1] for name, values in series.items()})
                task = Task(f"t{step}", "T1", "S1", "code_o", "def f(x): return x", ("1",), ("1",))
                tx.add_tasks([TaskRecord(task, measured(3 + step, 1, 1, 1), "same" if repeat else str(step))])
                if step == num_steps:
                    tx.add_evaluations(
                        EvaluationRecord(who, "all", "all", mode, 1200, *score)  # type: ignore[arg-type]
                        for who, score in scores.items()
                    )
    return read_run(folder)


BASE = (0.42, 0.40, 0.44)


@pytest.mark.parametrize(
    ("students", "verdict", "headline"),
    [
        ((0.50, 0.48, 0.52), "better", "Better than the base model; no sign of collapse"),
        ((0.45, 0.43, 0.47), "unclear", "No clear change against the base model; no sign of collapse"),
        ((0.36, 0.34, 0.38), "worse", "Worse than the base model; no sign of collapse"),
        ((0.46, 0.44, 0.48), "unclear", "No clear change against the base model; no sign of collapse"),
    ],
)
def test_without_pairs_a_change_is_called_one_only_when_the_intervals_do_not_overlap(
    tmp_path: Path, students: tuple[float, float, float], verdict: str, headline: str
) -> None:
    view = run_with(tmp_path, {"base": BASE, "students": students})
    [comparison] = comparisons(view)
    assert comparison.verdict == verdict
    assert story_of(view).headline == headline


@pytest.mark.parametrize(
    ("product", "headline"),
    [
        ((0.50, 0.48, 0.52), "The product is better than the control"),
        ((0.47, 0.44, 0.50), "No clear change of the product against the control"),
        ((0.36, 0.34, 0.38), "The product is worse than the control"),
    ],
)
def test_a_run_with_a_product_is_judged_by_it_against_the_control(
    tmp_path: Path, product: tuple[float, float, float], headline: str
) -> None:
    scores = {"base": (0.3, 0.28, 0.32), "control": BASE, "product": product}
    for name in ("alone", "beside"):
        (tmp_path / name).mkdir()
    story = story_of(run_with(tmp_path / "alone", scores))
    assert story.headline == f"{headline}; no sign of collapse"
    assert story.sentences[0].startswith("The product, sampled, solves ")
    assert ", the control 42.0 % (40.0 to 44.0): " in story.sentences[0]
    # Students that were scored too have their sentence, and change no headline.
    story = story_of(run_with(tmp_path / "beside", {**scores, "students": (0.5, 0.48, 0.52)}))
    assert story.headline == f"{headline}; no sign of collapse"
    assert story.sentences[1].startswith("The students' mean, sampled, solves 50.0 %")
    assert ", the base model 30.0 % (28.0 to 32.0): better" in story.sentences[1]


def test_without_a_control_a_product_is_compared_with_the_base(tmp_path: Path) -> None:
    view = run_with(tmp_path, {"base": BASE, "product": (0.5, 0.48, 0.52)})
    assert story_of(view).headline == "The product is better than the base model; no sign of collapse"
    assert next(tile.note for tile in tiles(view)) == "points, sampled; above the base"


def test_the_sentence_has_both_numbers_with_their_intervals(tmp_path: Path) -> None:
    view = run_with(tmp_path, {"base": BASE, "students": (0.5, 0.48, 0.52), "change": (0.08, 0.06, 0.1)})
    assert story_of(view).sentences[0] == (
        "The students' mean, sampled, solves 50.0 % (48.0 to 52.0) of the frozen suite "
        "after step 20, the base model 42.0 % (40.0 to 44.0): better. Paired by item, the change is +8.0 points "
        "(+6.0 to +10.0)."
    )


@pytest.mark.parametrize(
    ("change", "verdict"),
    [((0.03, 0.01, 0.05), "better"), ((0.03, -0.01, 0.07), "unclear"), ((-0.03, -0.05, -0.01), "worse")],
)
def test_answers_to_the_same_items_are_compared_pair_by_pair(
    tmp_path: Path, change: tuple[float, float, float], verdict: str
) -> None:
    view = run_with(tmp_path, {"base": BASE, "students": (0.45, 0.43, 0.47), "change": change})
    [comparison] = comparisons(view)
    assert comparison.verdict == verdict


def test_without_a_row_for_the_mean_the_members_are_averaged_with_their_intervals(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+2S", 3)) as journal, journal.step(0) as tx:
        tx.add_individuals(founders(1, 2))
        scores = {"base": BASE, "S1": (0.5, 0.46, 0.54), "S2": (0.6, 0.58, 0.62)}
        tx.add_evaluations(EvaluationRecord(who, "all", "all", "greedy", 9, *s) for who, s in scores.items())
    [comparison] = comparisons(read_run(tmp_path))
    assert (comparison.members.mean, comparison.members.low, comparison.members.high) == pytest.approx(
        (0.55, 0.52, 0.58)
    )


def test_a_run_that_was_not_evaluated_claims_nothing_about_progress(tmp_path: Path) -> None:
    story = story_of(run_with(tmp_path, {}))
    assert story.headline == "External fitness was not measured; no sign of collapse"
    assert "the run does not show whether the students improved" in story.sentences[0]


def test_a_run_of_which_only_the_base_is_scored_says_so(tmp_path: Path) -> None:
    story = story_of(run_with(tmp_path, {"base": BASE}))
    assert story.summary.startswith("Only the base model was evaluated so far; no sign of collapse: right answers")
    assert "was not measured" not in story.summary + " ".join(story.sentences)


@pytest.mark.parametrize("num_steps", [3, 10])
@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_the_first_ten_steps_are_too_few_to_speak_of_collapse(tmp_path: Path, num_steps: int, rate: float) -> None:
    metrics = {"solve/rate": [rate] * num_steps}
    view = run_with(tmp_path, {"base": BASE, "students": (0.5, 0.48, 0.52)}, num_steps=num_steps, metrics=metrics)
    story = story_of(view)
    assert story.headline == "Better than the base model" and health_of(view).now == []
    assert story.sentences[-1].startswith("The first 10 steps are too few")


def test_collapse_is_told_from_step_11_on(tmp_path: Path) -> None:
    view = run_with(tmp_path, {}, num_steps=11, metrics={"solve/rate": [0.02] * 11})
    assert story_of(view).headline.endswith("; signs of collapse") and len(health_of(view).now) == 1


@pytest.mark.parametrize(
    ("name", "values", "sign"),
    [
        ("solve/rate", [0.5] * 10 + [0.95] * 10, "the tasks were trivial (solve rate 0.95 over 10 steps)"),
        ("solve/rate", [0.5] * 10 + [0.02] * 10, "the tasks were impossible (solve rate 0.02 over 10 steps)"),
        ("propose/valid_frac", [0.9] * 10 + [0.3] * 10, "most proposals were invalid (only 30 % valid over 10 steps)"),
        (
            "propose/entropy",
            [1.0] * 10 + [0.05] * 10,
            "the teachers repeat one text (entropy 1.00 to 0.05)",
        ),
    ],
)
def test_each_way_to_collapse_is_named(tmp_path: Path, name: str, values: list[float], sign: str) -> None:
    view = run_with(tmp_path, {}, metrics={name: values})
    assert signs_of_collapse(view) == [sign]
    assert story_of(view).headline.endswith("signs of collapse")


def test_teachers_that_repeat_themselves_are_named(tmp_path: Path) -> None:
    signs = signs_of_collapse(run_with(tmp_path, {}, repeat=True))
    assert signs == ["the teachers repeat themselves (only 0 % of the last tasks were new)"]


def test_one_bad_step_is_no_collapse(tmp_path: Path) -> None:
    assert signs_of_collapse(run_with(tmp_path, {}, metrics={"solve/rate": [0.5] * 19 + [1.0]})) == []


def test_a_run_without_one_valid_task_is_told_as_collapse(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 3)) as journal:
        for step in range(12):
            with journal.step(step) as tx:
                tx.add_metrics({"solve/rate": float("nan"), "propose/valid_frac": 0.0})
    story = story_of(read_run(tmp_path))
    assert story.headline == "External fitness was not measured; signs of collapse"
    assert story.sentences[-1] == (
        "Signs of collapse: no attempt was ever graded; most proposals were invalid (only 0 % valid over 10 steps)."
    )


def test_a_run_that_stops_posing_tasks_is_not_told_by_what_it_did_before(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 3)) as journal:
        for step in range(1, 41):
            rate, valid = (0.6, 0.9) if step <= 20 else (float("nan"), 0.0)
            with journal.step(step) as tx:
                tx.add_metrics({"solve/rate": rate, "propose/valid_frac": valid})
    view = read_run(tmp_path)
    assert next(tile for tile in tiles(view) if tile.name == "Solve rate").value == "–"
    assert "no attempt was graded in the last 10 steps" in signs_of_collapse(view)
    assert [row[0] for row in arm_rows([view])] == ["Validity, last tenth", "Coverage, last tenth"]


def test_the_single_arm_is_told_without_ratings(single_dir: Path) -> None:
    view = read_run(single_dir)
    assert view.is_single and "The adapter, sampled" in " ".join(story_of(view).sentences)


def test_the_time_of_a_step_leaves_out_what_comes_before_behind_and_between_the_steps(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 3)) as journal:
        for step, seconds in enumerate((70.0, 2.0, 4.0)):
            with journal.step(step) as tx:
                tx.add_individuals(founders(1, 1) if step == 0 else [])
                tx.add_timings({"propose": seconds, "evaluate": 10.0, "checkpoint": 5.0})
        journal.add_timings(2, {"product": 30.0, "distill": 1.0})
        in_steps = read.step_seconds(journal)
    time = next(tile for tile in tiles(read_run(tmp_path)) if tile.name == "Time")
    assert in_steps == 7.0 and time.note.startswith("3.5 s per step, ")
    assert time.value == duration(70 + 2 + 4 + 3 * 15 + 31)


# The picture and the sentence ----------------------------------------------------------------------------------------


def test_base_control_students_and_product_stand_in_the_picture_and_the_summary(tmp_path: Path) -> None:
    scores = {"base": BASE, "control": (0.44, 0.42, 0.46), "students": (0.5, 0.48, 0.52), "product": (0.55, 0.53, 0.57)}
    story = story_of(run_with(tmp_path, scores, "greedy"))
    assert story.summary == (
        "The product is better than the control; no sign of collapse: right answers on the frozen suite, answering "
        "greedily: base 42.0 %, control 44.0 %, students 50.0 %, product 55.0 %."
    )
    assert story.figure is not None and story.figure.chart["categories"] == ["base", "control", "students", "product"]
    [greedy] = story.figure.chart["series"]
    assert greedy["name"] == "greedy" and greedy["values"][3] == [0.55, 0.53, 0.57]


def test_the_product_of_an_end_that_was_left_behind_is_not_in_it(tmp_path: Path) -> None:
    run_with(tmp_path, {"base": BASE, "product": (0.55, 0.53, 0.57), "students": (0.36, 0.34, 0.38)})
    with Journal.open(tmp_path / JOURNAL) as journal, journal.step(21) as tx:
        tx.add_metrics({"solve/rate": 0.5})
    story = story_of(read_run(tmp_path))
    assert story.standing == "worse" and story.summary.endswith("base 42.0 %, students 36.0 %.")


def test_without_a_measure_there_is_a_sentence_and_no_picture(tmp_path: Path) -> None:
    story = story_of(run_with(tmp_path, {}))
    assert (story.standing, story.figure) == ("unmeasured", None)
    assert story.summary == "External fitness was not measured; no sign of collapse."


def test_better_in_one_mode_and_worse_in_the_other_is_mixed_and_each_standing_has_its_shape(tmp_path: Path) -> None:
    run_with(tmp_path, {"base": BASE, "students": (0.5, 0.48, 0.52)}, "greedy")
    with Journal.open(tmp_path / JOURNAL) as journal:
        rows = [("base", BASE), ("students", (0.36, 0.34, 0.38))]
        old = journal.query("SELECT individual, mean_frac, low_frac, high_frac FROM evaluation")
        kept = [(row["individual"], (row["mean_frac"], row["low_frac"], row["high_frac"])) for row in old]
        journal.set_evaluations(
            20,
            [EvaluationRecord(who, "all", "all", "greedy", 9, *score) for who, score in kept]
            + [EvaluationRecord(who, "all", "all", "sampled", 9, *score) for who, score in rows],
        )
    assert story_of(read_run(tmp_path)).standing == "mixed"
    assert len(set(MARKS.values())) == len(MARKS)


# The timeline of warnings -------------------------------------------------------------------------------------------


def health(folder: Path, warnings: dict[int, list[str]]) -> Health:
    """Return the health of a run of 18 steps whose check-ups warned of this."""
    with Journal.create(folder / JOURNAL, RunRecord("r", "1T+1S", 0)) as journal:
        for step in range(19):
            with journal.step(step) as tx:
                tx.add_metrics({"solve/rate": 0.5})
                if step in warnings:
                    tx.add_health({"won_frac": 0.1}, warnings[step])
    return health_of(read_run(folder))


def test_a_warning_that_stays_is_one_in_its_last_words_and_one_that_returns_is_two(tmp_path: Path) -> None:
    low, lower, other = "Loss of diversity: 20% apart.", "Loss of diversity: 12% apart.", "Cycling: 40% off."
    found = health(tmp_path, {12: [low, other], 14: [lower], 16: [], 18: [low]})
    told = [(one.steps, one.num_check_ups, one.text) for one in found.past]
    assert told == [("18", 1, low), ("12 to 14", 2, lower), ("12", 1, other)]
    assert found.now == [low] and (found.num_check_ups, found.last_step) == (4, 18)


@pytest.mark.parametrize(("warnings", "num"), [({}, 0), ({10: []}, 0), ({10: [], 11: []}, 1)])
def test_without_warnings_the_timeline_is_empty(tmp_path: Path, warnings: dict[int, list[str]], num: int) -> None:
    found = health(tmp_path, warnings)
    assert (found.now, found.past, found.num_check_ups, found.last_step) == ([], [], num, max(warnings, default=0))


def test_a_mechanism_that_did_not_act_is_listed_as_inactive(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "4T+4S", 0)) as journal:
        for step in range(3):
            with journal.step(step) as tx:
                tx.add_health({"teacher_weight_diversity": 0.9, "student_weight_diversity": 0.0}, [])
                tx.add_metrics({"match/rating_share": 0.02, "evolve/left_rank/teacher": 0.25 * step})
    view = read_run(tmp_path)
    told = {one.name: (one.acted, one.evidence) for one in health_of(view).mechanisms}
    assert told["matchmaking by rating"] == (False, "2.0% of draws")
    assert told["selection of teachers"] == (True, "replaced: rank 0.25 (0 worst, 0.5 chance)")
    assert told["selection of students"] == told["distillation"] == (False, "off")
    assert told["diversity of teachers, weight"][0] and not told["diversity of students, weight"][0]
    page = report_html([view])
    assert ">matchmaking by rating</b>: inactive, 2.0% of draws" in page
    assert "No check-up after step 10 yet." in page and "✓" not in page.partition("Check-ups</h3>")[2][:500]


def test_the_result_of_a_run_is_told_in_lines_with_intervals_and_a_verdict(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", num_steps=5)
    rows = {"base": (0.4, 0.38, 0.42), "control": (0.41, 0.4, 0.43), "product": (0.5, 0.48, 0.52)}
    gains = {"greedy": (0.09, 0.06, 0.12), "sampled": (0.01, -0.01, 0.03)}
    with Journal.open(run / JOURNAL) as journal, journal.step(6) as writer:
        writer.add_metrics({f"{CHOSEN}distilled": 1.0})
        for mode in gains:
            for name, score in {**rows, "gain": gains[mode]}.items():
                writer.add_evaluations([EvaluationRecord(name, "all", "all", mode, 12, *score)])
    assert result_lines(read_run(run)) == [
        f"held-out tasks solved, {mode}: base 40.0 % (38.0 to 42.0), control 41.0 % (40.0 to 43.0), "
        "product 50.0 % (48.0 to 52.0)"
        for mode in ("greedy", "sampled")
    ] + [
        "product compared with the best control: greedy +9.0 points (+6.0 to +12.0), better; "
        "sampled +1.0 points (-1.0 to +3.0), no significant difference"
    ]


@pytest.mark.parametrize("gain", [(0.0, 0.0, 0.0), (0.01, -0.01, 0.03), (-0.05, -0.06, -0.04)])
def test_a_product_that_is_not_better_is_called_so_with_what_to_try(
    gain: tuple[float, float, float], tmp_path: Path
) -> None:
    run = build_run(tmp_path / "run", num_steps=1)
    with Journal.open(run / JOURNAL) as journal, journal.step(2) as writer:
        writer.add_metrics({f"{CHOSEN}distilled": 1.0})
        rows = {"base": (0.4, 0.38, 0.42), "product": (0.4, 0.38, 0.42), "gain": gain}
        writer.add_evaluations(EvaluationRecord(n, "all", "all", "greedy", 12, *row) for n, row in rows.items())
    *_, last = result_lines(read_run(run))
    assert last.startswith("no measurable gain: ") and "continue the run for more steps" in last
