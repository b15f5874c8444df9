"""An experiment file becomes runs with configs; a bad one is refused with a sentence that says what to change."""

from pathlib import Path

import pytest

from redqueen.commands.experiment import run_experiment
from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, load_experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
WHOLE = """
[experiment]
name = "e"
base = "base.toml"
steps = 7
seeds = [3, 1]
reference = "big"
set = {"solve.num_attempts" = 2, propose = {num_proposals = {code_o = 5}}}

[[arm]]
name = "one"
set = {population = {single = true, num_teachers = 1, num_students = 1}, "propose.num_proposals.code_o" = 6}
match = "tokens"
seeds = [1]

[[arm]]
name = "big"
"""


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "base.toml").write_text("[solve]\nnum_attempts = 9\n[learn]\nlearning_rate = 0.5\n")
    path = tmp_path / "e.toml"
    path.write_text(text)
    return path


def loaded(tmp_path: Path, text: str = WHOLE) -> Experiment:
    return load_experiment(written(tmp_path, text))


def test_runs_go_seed_by_seed_with_the_reference_first(tmp_path: Path) -> None:
    plan = loaded(tmp_path)
    assert [run.folder for run in plan.runs] == ["big-seed1", "one-seed1", "big-seed3"]
    assert (plan.name, plan.steps, plan.reference, plan.arms) == ("e", 7, "big", ("one", "big"))


def test_an_arms_settings_come_over_the_experiments_and_those_over_the_file(tmp_path: Path) -> None:
    big, one, _ = (run.config for run in loaded(tmp_path).runs)
    assert (big.learn.learning_rate, big.solve.num_attempts, big.propose.num_proposals["code_o"]) == (0.5, 2, 5)
    assert (one.learn.learning_rate, one.solve.num_attempts, one.propose.num_proposals["code_o"]) == (0.5, 2, 6)
    assert one.population.arm == "single" and big.population.arm == "4T+4S"
    assert (one.run.name, one.run.rng_seed) == ("one seed 1", 1)


def test_settings_may_be_written_as_tables_of_any_depth(tmp_path: Path) -> None:
    words = """
[arm.set.propose]
policy_rules = ["no \U0001f600"]
[arm.set.propose.num_proposals]
code_o = 3
[arm.set.propose.domains]
code = 0.75
maths = 0.25
"""
    propose = loaded(tmp_path, WHOLE + words).runs[0].config.propose
    assert propose.num_proposals["code_o"] == 3 and propose.domains == {"code": 0.75, "maths": 0.25}
    assert propose.policy_rules == ("no \U0001f600",)


def test_a_table_for_one_field_takes_its_place_whole_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "mixture.toml").write_text("[propose]\ndomains = { code = 0.5, maths = 0.5 }\n")
    for alone in ('"propose.domains" = { maths = 1.0 }', "propose = { domains = { maths = 1.0 } }"):
        (tmp_path / "e.toml").write_text(
            '[experiment]\nname = "e"\nsteps = 5\nseeds = [0]\nbase = "mixture.toml"\n'
            f'[[arm]]\nname = "maths only"\nset = {{ {alone} }}\n'
        )
        assert load_experiment(tmp_path / "e.toml").runs[0].config.propose.domains == {"maths": 1.0}


def test_a_matched_run_may_take_more_steps_and_points_to_the_reference_of_its_seed(tmp_path: Path) -> None:
    plan = loaded(tmp_path)
    big, one, _ = plan.runs
    assert (big.config.run.num_steps, one.config.run.num_steps) == (7, 20 * 7)
    assert plan.reference_of(one) == big and plan.reference_of(big) is None
    limited = loaded(tmp_path, WHOLE.replace("steps = 7", "steps = 7\nmax_steps = 9"))
    assert limited.runs[1].config.run.num_steps == 9


def test_a_matched_run_whose_rate_falls_says_where_to_or_does_not_learn(tmp_path: Path) -> None:
    falling = WHOLE.replace("propose = {num_proposals = {code_o = 5}}", 'learn = {decay = "linear", decay_to_step = 7}')
    assert [run.config.learn.decay_to_step for run in loaded(tmp_path, falling).runs] == [7, 7, 7]
    frozen = falling.replace("decay_to_step = 7", "train_teachers = false, train_students = false")
    assert len(loaded(tmp_path, frozen).runs) == 3


def test_the_reference_itself_is_never_matched(tmp_path: Path) -> None:
    plan = loaded(tmp_path, WHOLE.replace("steps = 7", 'steps = 7\nmatch = "tokens"'))
    assert {(run.arm, run.match) for run in plan.runs} == {("big", "per_adapter"), ("one", "tokens")}


MISTAKES = {
    "no table": ("", "no [experiment] table"),
    "no arm": ('[experiment]\nname = "e"\nsteps = 1\nseeds = [0]', "add [[arm]] tables"),
    "no TOML": ("[experiment", "not valid TOML"),
    "no steps": (WHOLE.replace("steps = 7", ""), "experiment.steps is missing"),
    "bad steps": (WHOLE.replace("steps = 7", "steps = 0"), "experiment.steps: input should be greater than or equal"),
    "no seeds": (WHOLE.replace("seeds = [3, 1]", "seeds = []"), "experiment.seeds"),
    "a seed that is none": (WHOLE.replace("[3, 1]", "[-3]"), "experiment.seeds.0"),
    "bad match": (WHOLE.replace('"tokens"', '"luck"'), "arm 1.match"),
    "unknown field": (
        WHOLE.replace("steps = 7", "steps = 7\ncolour = 1"),
        "no field experiment.colour; known are name",
    ),
    "unknown field of an arm": (WHOLE.replace('match = "tokens"', "size = 1"), "no field arm 1.size"),
    "unknown reference": (WHOLE.replace('reference = "big"', 'reference = "bag"'), "'bag', which is not an arm"),
    "one name twice": (WHOLE.replace('name = "one"', 'name = "big"'), "two arms are called 'big'"),
    "a name with a slash": (WHOLE.replace('name = "one"', 'name = "../one"'), "arm 1.name"),
    "no such config": (WHOLE.replace("base.toml", "bass.toml"), "bass.toml"),
    "a field that is none": (WHOLE.replace("solve.num_attempts", "solve.attempts"), "no field solve.attempts"),
    "a value out of range": (WHOLE.replace('num_attempts" = 2', 'num_attempts" = 0'), "solve.num_attempts"),
    "the seed by hand": (WHOLE.replace("solve.num_attempts", "run.rng_seed"), "list the seeds in experiment.seeds"),
    "a date": (WHOLE.replace('num_attempts" = 2', 'num_attempts" = 2026-01-01'), "solve.num_attempts"),
    "a rate that falls to no known step": (
        WHOLE.replace("propose = {num_proposals = {code_o = 5}}", 'learn = {decay = "linear"}'),
        "arm 'one' ends by tokens, at a step not known in advance: set learn.decay_to_step",
    ),
    "a seed the reference lacks": (WHOLE.replace("seeds = [1]", "seeds = [8]"), "give both the same seeds"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, text)
    assert expected in str(caught.value) and "e.toml" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no experiment file at"):
        load_experiment(tmp_path / "none.toml")


PLAIN = EXPERIMENTS / "plain"
TRIALS = EXPERIMENTS / "lasting" / "configs"
FILES = [path for path in sorted(EXPERIMENTS.rglob("*.toml")) if path.parent not in (PLAIN, TRIALS)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_that_come_with_the_project_are_good(path: Path) -> None:
    assert load_experiment(path).runs


@pytest.mark.parametrize("path", sorted(TRIALS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_configs_of_single_trials_load(path: Path) -> None:
    assert load_config(path).run.name == path.stem


@pytest.mark.parametrize("path", sorted(PLAIN.glob("*.toml")), ids=lambda path: path.stem)
def test_the_plain_configs_of_experiments_load_and_have_nothing_of_ours_switched_on(path: Path) -> None:
    config = load_config(path)
    assert (config.learn.decay, config.evolve.fitness, config.propose.references_over) == (
        "constant",
        "rating",
        "tasks",
    )


def test_the_papers_setting_is_priced_in_gpu_hours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.adapters.base_shape.hub_has", lambda name: False)
    plan = load_experiment(EXPERIMENTS / "paper-7b.toml")
    assert plan.arms == ("4T+4S", "single", "1T+1S", "8T+8S", "no evolution", "copy parent", "uniform pairing")
    by_arm = {run.arm: plan.gpu_hours(run) for run in plan.runs}
    # 200 steps of 4 x 48 proposals and eight attempts at each, 700 tokens a text, 2,800 of them a second.
    assert by_arm["4T+4S"] == pytest.approx(200 * 192 * 9 * 700 / 2800 / 3600)
    assert by_arm["8T+8S"] == 2 * by_arm["4T+4S"] == 8 * by_arm["single"]
    with pytest.raises(UserError, match=r"paper-7b.toml, arm .*Qwen2.5-Coder-7B is not a folder"):  # after the plan
        run_experiment(EXPERIMENTS / "paper-7b.toml", None, None, 1, dry_run=True, tables_only=False)
    assert f"in all about {sum(map(plan.gpu_hours, plan.runs)):.0f} GPU hours" in capsys.readouterr().out


def test_the_papers_presets_switch_nothing_of_ours_on() -> None:
    for name in ("paper", "paper-7b"):
        config = load_config(EXPERIMENTS.parent / "configs" / f"{name}.toml")
        assert config.run.product == "none" and config.learn.updates_per_step == 3
        assert config.distill.every_steps == 0 and config.match.hall_of_fame_frac == 0
        for field in ("novelty_bonus", "crowding_penalty", "size_guard_frac", "kl_weight", "unsolved_reward"):
            assert getattr(config.learn, field) == 0
        assert (config.learn.teacher_baseline, config.learn.decay) == ("group", "constant")
        assert (config.propose.references_over, config.propose.complete_at_last_input) == ("tasks", False)
        assert (config.evolve.fitness, config.evolve.child_rating, config.match.rule) == ("rating", "inherit", "pfsp")
