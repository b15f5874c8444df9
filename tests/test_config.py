"""The config: what may be written, what is refused and in which words, and that every field says its ground."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from redqueen.config import Config, load_config, parse_config
from redqueen.domains.registry import num_proposals, open_domain
from redqueen.errors import UserError
from redqueen.files import apply_override

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.toml"))
GROUND = re.compile(r"\b(paper|AZR|re-implementation|ours|common default|standard constant)", re.IGNORECASE)


def sections() -> list[tuple[str, type[BaseModel]]]:
    found = [(name, field.annotation) for name, field in Config.model_fields.items()]
    return [(name, model) for name, model in found if isinstance(model, type) and issubclass(model, BaseModel)]


def fields() -> list[tuple[str, str]]:
    return [
        (f"{section}.{name}", field.description or "")
        for section, model in sections()
        for name, field in model.model_fields.items()
    ]


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        parse_config(data, "my.toml")
    return str(caught.value)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_config_loads(path: Path) -> None:
    config = load_config(path)
    assert config.run.name == path.stem
    if any(name.startswith("gym:") for name in config.propose.domains):
        pytest.importorskip("reasoning_gym", reason="the extra gym is not installed")
    kinds = {kind.name for name in config.propose.domains for kind in open_domain(name).kinds}
    assert kinds - set(num_proposals(config.propose)) <= {"code_f"}, "all kinds, but for one that small models cannot"


def test_the_shipped_configs_are_the_four_that_the_readme_names() -> None:
    assert {"paper-7b", "population", "single", "smoke"} <= {path.stem for path in CONFIGS}


def test_the_defaults_are_a_valid_config_and_survive_a_round_trip_through_json_values() -> None:
    config = load_config(None)
    assert config.population.arm == "4T+4S"
    assert parse_config(config.model_dump(mode="json"), "again") == config


def test_the_single_arm_has_one_member_and_the_population_one_for_each_role() -> None:
    single = parse_config({"population": {"single": True, "num_teachers": 1, "num_students": 1}}, "x").population
    assert (single.arm, single.num_members) == ("single", 1)
    mixed = parse_config({"population": {"num_teachers": 3, "num_students": 5}}, "x").population
    assert (mixed.arm, mixed.num_members) == ("3T+5S", 8)


@pytest.mark.parametrize(("name", "text"), fields(), ids=lambda value: value if "." in value[:40] else "")
def test_every_field_says_in_its_docstring_what_it_is_and_on_which_ground_its_default_stands(
    name: str, text: str
) -> None:
    assert text, f"{name} has no docstring"
    assert GROUND.search(text), f"{name} does not say where its default comes from: {text}"


def test_an_unknown_section_is_refused_with_the_sections_there_are() -> None:
    text = refusal({"evolution": {"enabled": False}})
    assert "there is no section evolution" in text
    assert "evolve" in text.split("the sections are", 1)[1]


def test_an_unknown_field_is_refused_with_the_fields_its_section_has() -> None:
    text = refusal({"solve": {"temprature": 0.5}})
    assert text.startswith("my.toml: there is no field solve.temprature")
    assert "temperature" in text.split("; solve has", 1)[1]


def test_a_wrong_type_is_refused_with_the_field_and_what_was_given() -> None:
    text = refusal({"run": {"num_steps": "many"}})
    assert "run.num_steps" in text and "whole number" in text and "'many'" in text


def test_a_section_that_is_no_table_is_refused_by_name() -> None:
    assert "run" in refusal({"run": 3})


@pytest.mark.parametrize(
    ("section", "field", "value", "limit"),
    [
        ("run", "num_steps", 0, "at least 1"),
        ("run", "rng_seed", 2**31, "below 2147483648"),
        ("solve", "temperature", 0.0, "above 0"),
        ("evolve", "replaced_frac", 1.0, "below 1"),
        ("learn", "estimator", "ppo", "reinforce_pp_baseline"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_field_its_range_and_what_was_given(
    section: str, field: str, value: Any, limit: str
) -> None:
    text = refusal({section: {field: value}})
    assert f"{section}.{field}" in text and limit in text and repr(value) in text


def test_a_population_without_teachers_is_refused_with_the_reason() -> None:
    assert "num_teachers must be at least 1: a teacher has to write the tasks" in refusal(
        {"population": {"num_teachers": 0}}
    )


def test_a_population_without_students_is_refused_with_the_reason() -> None:
    assert "num_students must be at least 1: a student has to solve the tasks" in refusal(
        {"population": {"num_students": 0}}
    )


def test_a_single_agent_with_other_numbers_than_one_is_refused_with_the_numbers_to_set() -> None:
    text = refusal({"population": {"single": True}})
    assert "set num_teachers = 1 and num_students = 1" in text


def test_a_config_that_asks_for_no_task_of_any_kind_is_refused_with_the_fields_to_set() -> None:
    nothing = parse_config({"propose": {"num_of_each_kind": 0}}, "test").propose
    with pytest.raises(UserError, match=r"propose asks for no task .* propose\.num_proposals above 0"):
        num_proposals(nothing)


def test_a_kind_without_a_number_is_asked_as_often_as_each_and_a_later_override_counts() -> None:
    def of(overrides: list[str], **propose: object) -> dict[str, int]:
        data: dict[str, Any] = {"propose": propose}
        for override in overrides:
            apply_override(data, override)
        return num_proposals(parse_config(data, "test").propose)

    assert of([], num_proposals={"code_o": 3, "code_f": 0}) == {"code_o": 3, "code_i": 8}
    for override in ("propose.num_proposals.code_o=5", "propose.num_code_o=5"):  # the second form is of older configs
        asked = of([override], num_proposals={"code_o": 1, "code_i": 2}, num_of_each_kind=0)
        assert asked == {"code_o": 5, "code_i": 2}
    assert of([], num_code_o=3, num_code_f=0) == {"code_o": 3, "code_i": 8}
    mixed = of(["propose.num_proposals.code_i=5"], num_code_i=1, num_code_o=2, num_of_each_kind=0)
    assert mixed == {"code_o": 2, "code_i": 5}


@pytest.mark.parametrize(
    ("propose", "sentence"),
    [
        ({"num_code_x": 3}, r"num_proposals names code_x, and the domains code have code_o, code_i, code_f"),
        ({"domains": ["chess"]}, r"propose\.domains: chess is not a domain; choose from code, .* module:NAME"),
        ({"domains": ["nowhere:CHESS"]}, r"propose\.domains: nowhere:CHESS cannot be imported .* module:NAME"),
        ({"domains": ["redqueen.config:Config"]}, r"propose\.domains: redqueen\.config:Config is not a domain"),
    ],
)
def test_a_kind_or_a_domain_that_is_not_there_is_refused_by_name(propose: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        num_proposals(parse_config({"propose": propose}, "test").propose)


def test_accepting_programs_that_would_be_killed_is_refused() -> None:
    assert "accept_cpu_ms must not be above kill_cpu_ms" in refusal({"verify": {"accept_cpu_ms": 300}})


def test_a_message_does_not_grow_with_the_number_of_faults() -> None:
    with pytest.raises(UserError) as refused:
        parse_config({f"{i}".zfill(5000): {} for i in range(1000)}, "my.toml")
    assert len(str(refused.value)) < 5_000


def test_several_faults_are_all_named_in_one_line() -> None:
    text = refusal({"run": {"num_steps": 0}, "solve": {"temperature": 0}})
    assert "run.num_steps" in text and "solve.temperature" in text
    assert "\n" not in text


def test_a_missing_file_is_named_with_a_path_that_would_do(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"no config file at .*nowhere\.toml, and no preset of that name: the presets are .*smoke"
    ):
        load_config(tmp_path / "nowhere.toml")


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is a folder: give a TOML file, or continue a run: `redqueen resume "):
        load_config(tmp_path)


def test_a_file_that_is_no_toml_is_named_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("[run]\nnum_steps = \n")
    with pytest.raises(UserError, match=r"broken\.toml is not valid TOML: .*line 2"):
        load_config(path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"binary\.toml cannot be read"):
        load_config(path)


def test_a_set_option_goes_over_the_file_and_is_read_as_toml(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[run]\nnum_steps = 7\nrng_seed = 3\n")
    config = load_config(
        path, ["run.num_steps=9", "evolve.enabled=false", 'evolve.operators=["M1", "X2"]', "learn.learning_rate=1e-4"]
    )
    assert (config.run.num_steps, config.run.rng_seed) == (9, 3)
    assert config.evolve.enabled is False
    assert config.evolve.operators == ("M1", "X2")
    assert config.learn.learning_rate == 1e-4


def test_a_set_option_that_is_no_toml_value_is_taken_as_text() -> None:
    config = load_config(None, ["run.name=my run", "model.base=Qwen/Qwen2.5-Coder-7B", "match.rule = uniform"])
    assert config.run.name == "my run"
    assert config.model.base == "Qwen/Qwen2.5-Coder-7B"
    assert config.match.rule == "uniform"


@pytest.mark.parametrize("text", ["run.num_steps", "num_steps=3", "a..c=3", ".=3", "run.=3", ""])
def test_a_set_option_of_another_shape_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"write it as section\.field=value, for example --set run\.num_steps=50"):
        load_config(None, [text])


def test_a_set_option_for_an_unknown_field_is_refused_like_one_in_the_file() -> None:
    with pytest.raises(UserError, match=r"there is no field run\.steps \(did you mean num_steps\?\); run has name"):
        load_config(None, ["run.steps=3"])


def test_a_set_option_into_something_that_is_no_section_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flat.toml"
    path.write_text("run = 3\n")
    with pytest.raises(UserError, match=r"--set run\.num_steps=5: run is not a section"):
        load_config(path, ["run.num_steps=5"])


def test_a_config_does_not_change_once_it_is_read() -> None:
    config = load_config(None)
    with pytest.raises(ValueError, match="frozen"):
        config.run.num_steps = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (["evolve.protected_steps=10"], "protected_steps must be above every_steps .10., or 0"),
        (["evolve.protected_steps=1", "evolve.every_steps=1"], "as old as that when the next generation is chosen"),
    ],
)
def test_settings_that_would_do_nothing_or_undo_another_are_refused(overrides: list[str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        load_config(None, overrides)


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("population.lora_targets=[]", r"population\.lora_targets: name at least one kind of module"),
        ("learn.learning_rate=inf", r"learn\.learning_rate must be a finite"),
        ("propose.domains={ code = inf }", r"propose\.domains.*finite"),
    ],
)
def test_what_would_do_nothing_or_is_no_number_is_refused(override: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        load_config(None, [override])


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (['sampler.urls=["http://127.0.0.1:80000"]'], r"sampler\.urls: 'http://127.0.0.1:80000' is not the address"),
        (['sampler.urls=["http://127.0.0.1:abc"]'], r"sampler\.urls: 'http://127.0.0.1:abc' is not the address"),
        (['sampler.urls=["http://a:1/v1/"]'], r"is not the address of a server: .*without /v1"),
        (['sampler.urls=["http://a:1", "http://a:1/"]'], r"an address is listed twice"),
        (['sampler.urls=["localhost:8000"]'], r"sampler\.urls: 'localhost:8000' is not the address of a server"),
        (['sampler.urls=["ftp://host"]'], r"write it as http://127\.0\.0\.1:8000"),
        (['sampler.urls=["http://a", "http://a"]'], "an address is listed twice"),
        (["sampler.urls=[]"], "list of at least 1 in which"),
        (["sampler.kind=sglang"], "one of torch, vllm"),
        (["sampler.kind=vllm", "cluster.num_shards=2"], "needs cluster.num_shards 1"),
    ],
)
def test_servers_that_cannot_sample_a_run_are_refused(overrides: list[str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        load_config(None, overrides)


def test_a_byte_order_mark_and_windows_line_ends_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbf[run]\r\nnum_steps = 7\r\n")
    assert load_config(path).run.num_steps == 7


@pytest.mark.parametrize(
    "text",
    [
        "[run]\nname = " + "[" * 5_000 + "]" * 5_000,
        "[run]\nname = " + "{a = " * 5_000 + "1" + "}" * 5_000,
        ".".join(["run"] * 5_000) + " = 1",
        "[" + ".".join(["run"] * 5_000) + "]",
        "[run]\nname = " + "[" * 100 + "]" * 100,
        "[run]\nnum_steps = " + "9" * 5_000,
        "# " + "x" * (1 << 20),
    ],
    ids=["lists", "tables", "dotted", "section", "hundred", "digits", "long"],
)
def test_toml_that_is_too_deep_or_too_long_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        load_config(path)
    assert str(path) in str(refused.value) and len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "override",
    ["run.name=" + "[" * 5_000 + "]" * 5_000, "run.name=" + "[" * 100 + "]" * 100, ".".join(["a"] * 5_000) + "=1"],
)
def test_a_set_option_that_is_too_deep_is_refused_in_a_sentence(override: str) -> None:
    with pytest.raises(UserError) as refused:
        load_config(None, [override])
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("run.num_steps=abc", "run.num_steps must be a whole number of at least 1 (got 'abc')"),
        ("run.num_steps=[1]", "run.num_steps must be a whole number of at least 1 (got [1])"),
        ("run.num_steps=true", "run.num_steps must be a whole number of at least 1 (got True)"),
        ("run.num_steps=1\n[learn]", "run.num_steps must be a whole number of at least 1 (got '1\\n[learn]')"),
        ("run.name=a/b", r"run.name must be a text of at most 80 characters that matches ^[\w .+-]+$ (got 'a/b')"),
        ("run.device=gpu", "run.device must be one of auto, cpu, cuda (got 'gpu')"),
        ("run.rng_seed=inf", "run.rng_seed must be a whole number of at least 0 and below 2147483648 (got inf)"),
        ("learn.learning_rate=nan", "learn.learning_rate must be a finite number above 0 (got nan)"),
        (
            "match.hall_of_fame_frac=2",
            "match.hall_of_fame_frac must be a finite number of at least 0 and at most 1",
        ),
        ("evolve.enabled=maybe", "evolve.enabled must be true or false (got 'maybe')"),
        ("evolve.genes=rate", "evolve.genes must be a list in which each entry is one of learning_rate, temperature"),
        ("evolve.constants=3", "evolve.constants must be a table in which each value is a table in which each value"),
        ("population.lora_targets=3", "must be a text, or a list in which each entry is a text (got 3)"),
        (
            "propose.domains={code=0}",
            "entry is a text, or a table in which each value is a finite number above 0",
        ),
        ("propose.num_proposals={code_o='x'}", "must be a table in which each value is a whole number of at least 0"),
    ],
)
def test_a_wrong_value_is_refused_once_with_what_would_be_right_in_our_words(override: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config(None, [override])
    line = str(caught.value)
    assert said in line and line.count("must be") == 1
    assert not re.search("nput should|unable to|constrained|tuple|dict", line)


def test_a_plain_word_is_a_list_of_one() -> None:
    config = load_config(None, ["propose.domains=maths", "sampler.urls=http://there:8000", "evolve.operators=M1"])
    assert (config.propose.domains, config.evolve.operators) == (("maths",), ("M1",))
    assert config.population.lora_targets == "all-linear"  # a text is a value of its own there


def test_a_base_of_a_folder_is_found_from_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for written in ("own", "./own/", "~/own"):
        assert load_config(None, [f"model.base={written}"]).model.base == str(tmp_path / "own")
    assert load_config(None, ["model.base=Qwen/Qwen3-0.6B"]).model.base == "Qwen/Qwen3-0.6B"
