"""The domains ``gym:NAME``: parameters of a teacher, the generator and grader of Reasoning Gym in the sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redqueen.commands.validate import AGENTS, validate_kind
from redqueen.config import ProposeConfig
from redqueen.domains.gym import kinds as gym
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import DOMAINS, check, grade, kind_named, open_domain
from redqueen.errors import UserError
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox import Sandbox

KIND = "gym_spell_backward"
DEFAULTS = '{"min_word_len": 3, "max_word_len": 10, "seed": 4}'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    pytest.importorskip("reasoning_gym")
    with Sandbox(workers=1) as sandbox:
        yield sandbox


def proposed(sandbox: Sandbox, *codes: str, kind: str = KIND) -> list[Task | Rejection]:
    return check([Candidate(str(at), "T1", "S1", kind, "", code) for at, code in enumerate(codes)], sandbox)


def test_a_gym_name_in_the_config_needs_no_trust_because_nothing_of_the_users_is_imported() -> None:
    config = ProposeConfig(domains=("gym:countdown", "sums:DOMAIN"))
    assert config.domains_to_import == ("sums:DOMAIN",)


def test_without_the_package_a_gym_domain_is_one_sentence_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym, "find_spec", lambda name: None)
    gym.families.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'redqueen\[gym\]'"):
        open_domain("gym:no_such_family")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3, 4", "not JSON"),
        ("[" * 1500, "not JSON"),
        ("[3]", "not an object"),
        ('{"data_file": "/etc/passwd"}', "no parameter 'data_file'"),
        ('{"size": 99}', "no parameter 'size'"),
        ('{"min_word_len": "3"}', "must be an integer"),
        ('{"min_word_len": true}', "must be a number"),
        ('{"min_word_len": 1e99}', "must be an integer"),
        ('{"min_word_len": NaN}', "must be an integer"),
        ('{"seed": -1}', "seed must be from 0"),
        ('{"seed": 1000000000}', "seed must be from 0"),
        ("9" * 5000, "too long"),
    ],
)
def test_parameters_of_another_type_name_or_size_are_refused_with_the_reason(text: str, reason: str) -> None:
    family = gym.Family("spell", "algorithmic", {"min_word_len": 3}, {}, "", "", "")
    with pytest.raises(ValueError, match=reason):
        gym.read_parameters(family, text)


def test_a_list_parameter_takes_a_part_of_its_default_in_the_order_of_the_default() -> None:
    family = gym.Family("f", "c", {"operators": ["+", "-", "*"], "scale": 0.5, "signed": True}, {}, "", "", "")
    read = gym.read_parameters(family, '{"operators": ["*", "+"], "scale": 2, "signed": false}')
    assert read == {"operators": ["+", "*"], "scale": 2, "signed": False, "seed": 0}
    with pytest.raises(ValueError, match="operators must be a list of"):
        gym.read_parameters(family, '{"operators": ["+", "os.system"]}')


def test_parameters_become_a_task_whose_answer_the_generator_computed(sandbox: Sandbox) -> None:
    task, again, refused = proposed(sandbox, '{"seed": 4}', '{"seed": 4}', '{"min_word_len": 30, "seed": 4}')
    assert isinstance(task, Task) and isinstance(again, Task) and replace(again, id=task.id) == task
    assert task.code == DEFAULTS
    word = task.message.rpartition(" ")[2]
    assert task.outputs == (word[::-1],)
    assert isinstance(refused, Rejection) and refused.reason == "invalid-parameters" and "Error" in refused.detail
    grades = grade([(task, word[::-1]), (task, word), (task, ""), (task, "x" * 10_000)], sandbox)
    assert [one.correct for one in grades] == [True, False, False, False]


def test_a_generator_that_takes_too_long_is_stopped_and_rejected(sandbox: Sandbox) -> None:
    open_domain("gym:n_queens")
    (refused,) = proposed(sandbox, '{"n": 12, "min_remove": 1, "max_remove": 7, "seed": 1}', kind="gym_n_queens")
    assert isinstance(refused, Rejection) and refused.reason == "timeout"


def test_a_grader_that_raises_or_hangs_on_one_answer_still_grades_the_others(sandbox: Sandbox) -> None:
    open_domain("gym:prime_factorization")
    (task,) = proposed(sandbox, '{"seed": 4}', kind="gym_prime_factorization")
    assert isinstance(task, Task)
    grades = grade([(task, answer) for answer in ("no number", task.outputs[0], "9" * 4000)], sandbox)
    assert [one.correct for one in grades] == [False, True, False]


EVALUATED = {  # a right answer in another form, where the grader accepts one
    "binary_matrix": "{}", "spiral_matrix": "{}", "string_insertion": "{}", "n_queens": "{}", "countdown": "({})",
    "puzzle24": "({})", "polynomial_multiplication": "({})*1", "simple_integration": "0 + {}",
    "intermediate_integration": "0 + {}",
}  # fmt: skip


@pytest.mark.parametrize("family", EVALUATED)
def test_an_answer_cannot_change_its_grader(family: str, sandbox: Sandbox) -> None:
    task = gym.seed_of(open_domain(f"gym:{family}").kinds[0].name)
    forged = [
        "setattr(type(self), 'score_answer', lambda *a: 1.0)",
        "[entry['metadata']['valid_answers'].append('nonsense')]",
        "exec(chr(112)+chr(97))",
        "(lambda: [c for c in ().__class__.__base__.__subclasses__()])()",
    ]
    right = EVALUATED[family].format(task.outputs[0])
    grades = grade([(task, text) for text in (*forged, "nonsense", right)], sandbox)
    assert [one.correct for one in grades] == [False] * (len(forged) + 1) + [True]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("setattr(type(self), 'a', 1)", {}), ("().__class__", {}), ("[1][0]", {}), ("[x for x in (1,)]", {}),
        ("(a := 1)", {}), ("lambda: 1", {}), ("f'{1}'", {}), ("{1: open}", {}), ("f(*())", {"f": print}),
        ("int(x=1)", {}), ("eval('1')", {}), ("Symbol('x').name", {}), ("1 if 1 else 2", {}), ("open", {}),
    ],
)  # fmt: skip
def test_a_grader_evaluates_plain_values_alone(text: str, names: dict[str, object]) -> None:
    worker = pytest.importorskip("redqueen.domains.gym.worker")
    with pytest.raises(ValueError, match="not a plain value"):
        worker._eval_safely(eval, text, names)


@pytest.mark.parametrize(
    ("family", "cheats"),
    [
        ("number_sorting", [f"[{', '.join([x] * n)}]" for n in range(3, 11) for x in ("NaN", "0.5", r'"\u006ean"')]),
        ("complex_arithmetic", ["nan", "nani", "-nan"]), ("coin_flip", ["0", "0.3", "0.1"]),
        ("puzzle24", ["6*4*3/3", "24", "x/x*24", "8*(5 - 10//6)*1", "(((9*9) - 8)/3)"]),
        ("countdown", ["(94+4+61+6)*False+309", "(94+4+61+6)*(x-x)+0x135", "(94+4+61+6)*(x-x)+309*x/x"]),
        ("simple_integration", ["Integral(X, x)", "integrate(X, x)"]), ("game_of_life_halting", ["x", "True"]),
    ],
)  # fmt: skip
def test_an_answer_that_needs_no_skill_is_wrong(family: str, cheats: list[str], sandbox: Sandbox) -> None:
    tasks = [item.task for item in gym.held_out([open_domain(f"gym:{family}").kinds[0].name])][:4]
    for task in (gym.seed_of(f"gym_{family}"), *tasks):
        filled = [text.replace("X", task.message.rpartition(":")[2].strip()) for text in cheats]
        grades = grade([(task, text) for text in (*filled, task.outputs[0])], sandbox)
        right = [text for one, text in zip(grades, filled, strict=False) if one.correct and text != task.outputs[0]]
        assert not right and grades[-1].correct, task


def test_a_number_beside_the_right_one_is_wrong(sandbox: Sandbox) -> None:
    task = gym.seed_of(open_domain("gym:number_format").kinds[0].name)
    beside = str(float(task.outputs[0]) + 0.005)
    assert [one.correct for one in grade([(task, beside), (task, task.outputs[0])], sandbox)] == [False, True]


def test_parameters_under_which_any_answer_is_right_are_refused(sandbox: Sandbox) -> None:
    open_domain("gym:graph_color")
    empty = '{"min_num_vertices": 0, "max_num_vertices": 0, "seed": 1}'
    (refused,) = proposed(sandbox, empty, kind="gym_graph_color")
    assert isinstance(refused, Rejection) and refused.reason == "trivial"


def test_an_answer_that_is_nested_too_deeply_is_wrong_and_the_others_are_graded(sandbox: Sandbox) -> None:
    task = gym.seed_of(open_domain("gym:n_queens").kinds[0].name)
    texts = ["-" * 3900 + "1", "(" * 2000, "+".join("1" * 1900), task.outputs[0]]
    assert [one.correct for one in grade([(task, text) for text in texts], sandbox)] == [False] * 3 + [True]


def test_no_grader_runs_an_answer_other_than_by_eval() -> None:
    package = Path(pytest.importorskip("reasoning_gym").__file__).parent
    sinks = re.compile(r"\b(?:exec|pickle\.loads?|marshal\.loads?|lambdify|__import__|import_module)\(")
    found = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if sinks.search(path.read_text())}
    assert found == {"code/codeio.py"}, "look whether an answer gets there: `worker._score` guards eval alone"


def test_an_integral_that_sympy_does_not_solve_is_no_task(sandbox: Sandbox) -> None:
    kind = open_domain("gym:intermediate_integration").kinds[0].name
    found = proposed(sandbox, *(json.dumps({"seed": seed}) for seed in range(24)), kind=kind)
    golds = [one.outputs[0] for one in found if isinstance(one, Task)]
    assert len(golds) > 12 and not any("Integral" in gold for gold in golds)
    assert {one.reason for one in found if isinstance(one, Rejection)} == {"no-answer"}


def test_a_family_that_draws_from_sets_gives_the_same_task_each_time(sandbox: Sandbox) -> None:
    open_domain("gym:polynomial_multiplication")
    first, second = (proposed(sandbox, '{"seed": 3}', kind="gym_polynomial_multiplication")[0] for _ in range(2))
    assert isinstance(first, Task) and first == second
    assert grade([(first, first.outputs[0])], sandbox)[0].correct


@pytest.mark.parametrize("format_name", ["chat", "fewshot", "compact"])
def test_each_format_reads_back_the_parameters_that_its_prompt_shows(format_name: str, sandbox: Sandbox) -> None:
    open_domain("gym:spell_backward")
    form, seed = PromptFormat(FRAMES[format_name]), gym.seed_of(KIND)
    prompt = form.propose(KIND, [replace(seed, code=DEFAULTS)], None)
    text = {"chat": f"I choose\n```json\n{DEFAULTS}\n```", "fewshot": DEFAULTS[2:] + "\n###\n", "compact": "[4, 3, 10]"}
    assert (DEFAULTS if format_name != "compact" else "[4, 3, 10]") in prompt
    read = form.parse_proposal(KIND, text[format_name], None)
    assert not read.error and json.loads(read.code) == json.loads(DEFAULTS)
    assert form.parse_proposal(KIND, "no parameters", None).error or format_name == "fewshot"
    assert seed.outputs[0] not in form.solve(replace(seed, message="Spell cat", outputs=("tac",))).rpartition("###")[2]


def test_a_list_of_the_compact_format_may_end_early_and_is_refused_when_it_is_none(sandbox: Sandbox) -> None:
    open_domain("gym:spell_backward")
    form = PromptFormat(FRAMES["compact"])
    assert json.loads(form.parse_proposal(KIND, "[4, 2]", None).code) == {"seed": 4, "min_word_len": 2}
    for text in ("4, 2", "[4, 2", "[x]", "{4}", "[4]<|in|>"):
        assert form.parse_proposal(KIND, text, None).error


def test_a_category_and_a_star_open_one_kind_for_each_family_that_has_valid_tasks(sandbox: Sandbox) -> None:
    algebra = {kind.name for kind in open_domain("gym:algebra").kinds}
    everything = {kind.name for kind in open_domain("gym:*").kinds}
    assert "gym_simple_equations" in algebra and algebra < everything and len(everything) >= 100
    assert "gym_composite" not in everything
    left_out = gym.without_task("gym:*")
    assert "no-answer" in left_out["gym_rush_hour"] and not everything & left_out.keys()
    assert left_out.keys() >= gym.without_task("gym:games").keys() and not gym.without_task("code")
    with pytest.raises(UserError, match="has no valid task"):
        open_domain("gym:rush_hour")
    with pytest.raises(UserError, match="has no family 'spel'"):
        open_domain("gym:spel")
    assert kind_named(KIND) is kind_named(KIND)


def test_held_out_items_have_seeds_that_no_teacher_can_choose(sandbox: Sandbox) -> None:
    items = open_domain("gym:spell_backward").suite()
    assert len(items) == gym.NUM_HELD_OUT and len({item.task.message for item in items}) > 6
    assert all(json.loads(item.task.code)["seed"] >= gym.MAX_SEED for item in items)
    assert all(one.correct for one in grade([(item.task, item.task.outputs[0]) for item in items], sandbox))


def test_validate_finds_tasks_that_the_answer_of_another_solves(sandbox: Sandbox) -> None:
    domain = open_domain("gym:propositional_logic")
    (failure,) = validate_kind(domain, domain.kinds[0], 24, sandbox).failures
    assert failure.startswith("the agent 'other' solves")


def test_validate_finds_a_grader_that_accepts_anything(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = open_domain("gym:spell_backward")
    assert validate_kind(domain, domain.kinds[0], 6, sandbox).failures == []
    careless = replace(domain.kinds[0], grade=lambda task, answer, rules: Grade(True, "ok"), grade_all=None)
    monkeypatch.setitem(DOMAINS, "careless", replace(domain, kinds=(careless,)))
    found = validate_kind(DOMAINS["careless"], careless, 6, sandbox)
    assert found.trivial == dict.fromkeys(AGENTS, 6)
    assert "the agent 'empty' solves 6 of 6" in found.failures and "a hostile answer is graded right" in found.failures
