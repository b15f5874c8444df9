"""The model card of an exported member says where it comes from, how it scores and how to load it."""

from pathlib import Path

import pytest
from synthetic_run import build_run

from redqueen.adapters.base_shape import BaseIdentity
from redqueen.config import parse_config
from redqueen.evaluate.external import items_of
from redqueen.evaluate.fitness_suite import Score
from redqueen.journal import EvaluationRecord, Journal, read
from redqueen.journal.schema import CHOSEN, DISTILLED, EXAMPLE
from redqueen.report.model_card import model_card
from redqueen.run.product import Product
from redqueen.run.store import JOURNAL

CONFIG = parse_config({}, "a test")
HUB = BaseIdentity("owner/base", "a" * 64)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("cards") / "run_a", num_steps=20, evolve_every=5)


def living_child(run_dir: Path, role: str) -> tuple[str, list[str]]:
    """A member born in the run that lives at its end, and its parents."""
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        parents = {row["child"]: named for row, named in read.births(journal)}
        alive = [i for i in read.individuals(journal) if i["left_step"] is None and i["role"] == role]
    return next((i["id"], parents[i["id"]]) for i in alive if i["id"] in parents)


def test_it_names_the_parents_the_rating_and_the_scores_with_intervals(run_dir: Path) -> None:
    child, parents = living_child(run_dir, "student")
    card = model_card(run_dir, CONFIG, child, HUB, merged=False, step=20, folder="out")
    assert card.splitlines()[0] == "---" and 'base_model: "owner/base"' in card
    assert all(f"| {parent} |" in card for parent in parents)
    assert "license:" in card and "## Prompt it" in card and "user's turn" in card and "<|o|>" in card
    assert "standard deviation" in card and "rating points after step 20" in card
    assert "| the base |" in card and f"| {child} |" in card and " % to " in card
    assert "PeftModel.from_pretrained(base, folder)" in card and f"`{'a' * 64}`" in card


def test_a_format_that_the_model_continues_is_asked_without_a_chat_template_and_stopped(
    run_dir: Path,
) -> None:
    child, _ = living_child(run_dir, "student")
    config = parse_config({"model": {"prompt_format": "r1"}}, "a test")
    card = model_card(run_dir, config, child, BaseIdentity("owner/base", ""), merged=False, step=20, folder="out")
    assert 'asked = tokenizer(prompt, return_tensors="pt")' in card and "apply_chat_template" not in card
    assert "stop_strings=['</answer>'], tokenizer=tokenizer)" in card


def test_a_merged_model_loads_by_itself_and_a_local_base_is_no_hub_name(run_dir: Path) -> None:
    child, _ = living_child(run_dir, "student")
    card = model_card(run_dir, CONFIG, child, BaseIdentity("/models/base", ""), merged=True, step=20, folder="out")
    assert "library_name: transformers" in card and "base_model:" not in card
    assert "AutoModelForCausalLM.from_pretrained(folder)" in card and "PeftModel" not in card
    assert "base was in a folder" not in card


def test_the_code_of_an_adapter_on_a_folder_asks_for_the_folders_path(run_dir: Path) -> None:
    child, _ = living_child(run_dir, "student")
    card = model_card(run_dir, CONFIG, child, BaseIdentity("/models/base", ""), merged=False, step=20, folder="out")
    assert 'base_path = "/path/to/base"  #' in card and "/models" not in card
    assert card.count("from_pretrained(base_path)") == 2
    assert "The run's base was in a folder of this name: set `base_path`." in card


def test_what_came_after_the_checkpoint_is_not_in_it(run_dir: Path) -> None:
    with Journal.open(run_dir / JOURNAL, read_only=True) as journal:
        founder = next(i["id"] for i in read.individuals(journal) if i["role"] == "student" and i["born_step"] == 0)
    card = model_card(
        run_dir, CONFIG, founder, BaseIdentity("owner/base", "a" * 64), merged=False, step=3, folder="out"
    )
    assert "rating points after step 3" in card and "| 20 |" not in card


def test_the_product_of_an_end_that_was_left_behind_lends_its_score_to_no_later_card(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", num_steps=5)
    with Journal.open(run / JOURNAL) as journal:
        with journal.step(6) as writer:
            writer.add_metrics({f"{CHOSEN}{DISTILLED}": 1.0})
            writer.add_evaluations([EvaluationRecord("product", "all", "all", "greedy", 12, 0.5, 0.4, 0.6)])
        with journal.step(7) as writer:
            writer.add_metrics({"solve/rate": 0.5})
    base = BaseIdentity("owner/base", "")
    card = model_card(run, CONFIG, DISTILLED, base, merged=False, step=6, folder="out")
    assert "| product | greedy | 6 | 12 | 50.0 % |" in card and 'folder = "out"' in card
    assert "| product |" not in model_card(run, CONFIG, DISTILLED, base, merged=False, step=7, folder="out")


def test_a_teacher_without_scores_shows_those_of_the_base_alone(run_dir: Path) -> None:
    child, _ = living_child(run_dir, "teacher")
    card = model_card(run_dir, CONFIG, child, HUB, merged=False, step=20, folder="out")
    assert "a teacher of the run" in card and "| the base |" in card


def test_the_prompt_is_a_held_out_item_that_only_the_product_answers(tmp_path: Path) -> None:
    run, base = build_run(tmp_path / "run", num_steps=5), BaseIdentity("owner/base", "")

    def card(number: float) -> str:
        with Journal.open(run / JOURNAL) as journal:
            journal.set_evaluations(5, [], {f"{CHOSEN}{DISTILLED}": 1.0, EXAMPLE: number})
        return model_card(run, CONFIG, DISTILLED, base, merged=False, step=5, folder="out")

    shown, item = card(7.0), items_of(CONFIG)[7].task
    assert item.code.splitlines()[0] in shown and "was answered right with the adapter and wrong" in shown
    for number in (1e9, -1.0, float("nan")):
        assert "The base model may answer it correctly as well" in (other := card(number))
        assert items_of(CONFIG)[0].task.code.splitlines()[0] in other

    def scores(*means: float) -> list[Score]:
        return [Score((0,), "greedy", means, (0.0,) * 4, (1.0,) * 4, 0, {})]

    base_scores = scores(0.0, 1.0, 0.5, 0.0)
    assert Product("S1", {}, scores(0.0, 1.0, 1.0, 1.0)).metrics(base_scores)[EXAMPLE] == 3.0
    assert EXAMPLE not in Product("S1", {}, base_scores).metrics(base_scores) | Product("S1", {}, []).metrics([])
