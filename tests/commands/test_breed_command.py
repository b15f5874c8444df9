"""Breeding plain PEFT folders: what is written, that peft loads it, and every refusal."""

import json
from pathlib import Path

import peft
import pytest
import torch
from command_line import redqueen
from safetensors.torch import load_file, save_file
from small_adapters import distance, rewritten
from transformers import LlamaConfig, LlamaForCausalLM

from redqueen.adapters.genotype import norm, relative_change
from redqueen.adapters.peft import WEIGHTS_FILE, read_adapter
from redqueen.commands.breed import breed_folders, operators_table
from redqueen.errors import UserError
from redqueen.evolve.operators import OPERATORS, apply, find


def base_model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=40, num_key_value_heads=1, **sizes)).eval()


def save_adapter(folder: Path, seed: int, **options: object) -> Path:
    """An adapter written by peft itself, with random factors."""
    settings = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj", "down_proj"], **options}
    model = peft.get_peft_model(base_model(), peft.LoraConfig(**settings))
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parents")
    return [save_adapter(folder / name, seed) for seed, name in enumerate(["one", "two"], start=1)]


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_every_operators_child_is_the_one_of_the_library(operator: str, parents: list[Path], tmp_path: Path) -> None:
    chosen = parents[: find(operator).num_parents]
    told = breed_folders(operator, chosen, 7, None, tmp_path / "child")
    child = read_adapter(tmp_path / "child").genotype
    genotypes = [read_adapter(folder).genotype for folder in chosen]
    assert distance(child, apply(find(operator), genotypes, [0.0] * len(chosen), 7).genotype) == 0.0
    assert told["relative_change"]["overall"] == pytest.approx(relative_change(child, genotypes[0]).overall, abs=1e-5)


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_peft_loads_the_child_and_the_model_computes_with_it(
    operator: str, parents: list[Path], tmp_path: Path
) -> None:
    chosen = parents[: find(operator).num_parents]
    told = breed_folders(operator, chosen, 3, None, tmp_path / "child")
    model = peft.PeftModel.from_pretrained(base_model(), tmp_path / "child").eval()
    tokens = torch.arange(12)[None]
    child = read_adapter(tmp_path / "child").genotype
    plain = base_model()
    with torch.no_grad():
        for name, (a, b) in child.factors.items():
            plain.get_submodule(name).weight += child.scale * b @ a
        assert torch.allclose(model(tokens).logits, plain(tokens).logits, atol=1e-4)
    assert (told["relative_change"]["overall"] > 0) == (operator != "copy_parent")


def test_the_answer_is_plain_json_and_lies_beside_the_child(parents: list[Path], tmp_path: Path) -> None:
    told = breed_folders("X4", parents, 5, [0.3, 0.7], tmp_path / "child")
    assert json.loads(json.dumps(told)) == told
    assert json.loads((tmp_path / "child" / "breeding.json").read_text()) == told
    assert {"operator", "seed", "relative_change", "seconds"} <= told.keys()
    assert "model.layers.0.self_attn.q_proj" in told["relative_change"] and len(told["relative_change"]) == 7
    assert 1 <= told["constants"]["eta"] <= 1.5


def test_fitness_says_which_parent_is_the_better(parents: list[Path], tmp_path: Path) -> None:
    for name, fitness in (("first", [0.7, 0.3]), ("second", [0.3, 0.7])):
        breed_folders("X4", parents, 5, fitness, tmp_path / name)
    one, two = (read_adapter(folder).genotype for folder in parents)
    first, second = (read_adapter(tmp_path / name).genotype for name in ("first", "second"))
    assert distance(first, one) < distance(first, two)
    assert distance(second, two) < distance(second, one)


def test_crossing_a_folder_with_a_rewritten_copy_gives_it_back(parents: list[Path], tmp_path: Path) -> None:
    genotype = read_adapter(parents[0]).genotype
    other = tmp_path / "rewritten"
    other.mkdir()
    (other / "adapter_config.json").write_text((parents[0] / "adapter_config.json").read_text())
    tensors = {}
    for name, (a, b) in rewritten(genotype, 3).factors.items():
        tensors |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
    save_file(tensors, other / WEIGHTS_FILE)
    told = breed_folders("linear_0_5", [parents[0], other], 0, None, tmp_path / "child")
    assert told["relative_change"]["overall"] < 1e-4


def test_half_precision_stays_half_precision(parents: list[Path], tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    (half / "adapter_config.json").write_text((parents[0] / "adapter_config.json").read_text())
    save_file({k: v.bfloat16() for k, v in load_file(parents[0] / WEIGHTS_FILE).items()}, half / WEIGHTS_FILE)
    breed_folders("M4", [half], 0, None, tmp_path / "child")
    assert {tensor.dtype for tensor in load_file(tmp_path / "child" / WEIGHTS_FILE).values()} == {torch.bfloat16}


def refused(message: str, tmp_path: Path, operator: str, parents: list[Path], **options: object) -> None:
    """The command refuses with ``message`` and leaves no trace where the child was to be."""
    before = sorted(path.name for path in tmp_path.iterdir())
    settings = {"seed": 0, "fitness": None, "out": tmp_path / "child", **options}
    with pytest.raises(UserError, match=message) as caught:
        breed_folders(operator, parents, **settings)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"r": 2}, "r is 4 in .* and 2 in"),
        ({"lora_alpha": 16}, "lora_alpha is 8 in .* and 16 in"),
        ({"target_modules": ["q_proj"]}, "targets must agree"),
        ({"use_rslora": True}, "use_rslora = True is not supported"),
    ],
)
def test_adapters_of_another_kind_are_not_crossed(
    options: dict, message: str, parents: list[Path], tmp_path: Path
) -> None:
    other = save_adapter(tmp_path / "other", 3, **options)
    refused(message, tmp_path, "X5", [parents[0], other])


def changed(folder: Path, parent: Path, **config: object) -> Path:
    """A copy of an adapter with some config fields replaced."""
    folder.mkdir()
    fields = json.loads((parent / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**fields, **config}))
    save_file(load_file(parent / WEIGHTS_FILE), folder / WEIGHTS_FILE)
    return folder


def test_adapters_of_another_base_are_not_crossed(parents: list[Path], tmp_path: Path) -> None:
    other = changed(tmp_path / "other", parents[1], base_model_name_or_path="somebody/else")
    refused("only adapters of one base can be crossed", tmp_path, "X2", [parents[0], other])


def test_what_is_no_plain_lora_adapter_is_refused(parents: list[Path], tmp_path: Path) -> None:
    refused("peft_type is not LORA", tmp_path, "M4", [changed(tmp_path / "a", parents[0], peft_type="IA3")])
    refused("rank_pattern", tmp_path, "M4", [changed(tmp_path / "b", parents[0], rank_pattern={"q_proj": 2})])
    refused("says rank 3", tmp_path, "M4", [changed(tmp_path / "c", parents[0], r=3)])
    refused("use_dora = True is not supported", tmp_path, "M4", [save_adapter(tmp_path / "d", 1, use_dora=True)])


def test_nan_is_refused(parents: list[Path], tmp_path: Path) -> None:
    broken = changed(tmp_path / "broken", parents[0])
    tensors = load_file(broken / WEIGHTS_FILE)
    next(iter(tensors.values()))[0, 0] = float("nan")
    save_file(tensors, broken / WEIGHTS_FILE)
    refused("NaN or infinity", tmp_path, "M1", [broken])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_broken_second_parent_is_refused_and_named(value: float, parents: list[Path], tmp_path: Path) -> None:
    broken = changed(tmp_path / "broken", parents[1])
    tensors = load_file(broken / WEIGHTS_FILE)
    list(tensors.values())[-1][0, 0] = value
    save_file(tensors, broken / WEIGHTS_FILE)
    refused(r"broken.*NaN or infinity", tmp_path, "X1", [parents[0], broken])


def test_a_link_to_the_same_folder_is_the_same_folder(parents: list[Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(parents[0])
    refused("given twice", tmp_path, "X3", [parents[0], tmp_path / "link"])


def test_a_half_written_or_missing_folder_is_refused(parents: list[Path], tmp_path: Path) -> None:
    refused("No such file", tmp_path, "M1", [tmp_path / "nowhere"])
    torn = changed(tmp_path / "torn", parents[0])
    (torn / WEIGHTS_FILE).write_bytes((torn / WEIGHTS_FILE).read_bytes()[:100])
    refused("cannot be read", tmp_path, "M1", [torn])
    (torn / WEIGHTS_FILE).unlink()
    refused("is missing", tmp_path, "M1", [torn])
    (torn / "adapter_config.json").write_text("{")
    refused("is not JSON", tmp_path, "M1", [torn])


def test_bad_arguments_are_named(parents: list[Path], tmp_path: Path) -> None:
    refused("unknown operator 'M9': choose one of M1", tmp_path, "M9", parents[:1])
    refused("X1 takes 2 folder", tmp_path, "X1", parents[:1])
    refused("M1 takes 1 folder", tmp_path, "M1", parents)
    refused("given twice", tmp_path, "X1", [parents[0], parents[0] / ".." / parents[0].name])
    refused("one number per parent", tmp_path, "X4", parents, fitness=[0.5])
    refused("NaN", tmp_path, "X4", parents, fitness=[0.5, float("nan")])
    refused("--seed -1", tmp_path, "X4", parents, seed=-1)


def test_nothing_is_overwritten(parents: list[Path], tmp_path: Path) -> None:
    refused("exists already", tmp_path, "X4", parents, out=parents[1])
    assert norm(read_adapter(parents[1]).genotype) > 0


def test_the_table_tells_every_operator_with_formula_and_source() -> None:
    table = operators_table()
    for operator in OPERATORS.values():
        assert operator.id in table and operator.formula in table and operator.source in table


def test_the_command_prints_one_json_object(parents: list[Path], tmp_path: Path) -> None:
    words = ["--operator", "X4", "--parents", *parents, "--fitness", "0.3", "0.7", "--seed", "5"]
    code, out, _ = redqueen("breed", *words, "--out", tmp_path / "child")
    told = json.loads(out)
    assert code == 0
    assert (told["operator"], told["seed"], told["fitness"]) == ("X4", 5, [0.3, 0.7])
    assert told["relative_change"]["overall"] > 0 and told["seconds"] >= 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--operator", "X12"], "unknown operator 'X12'"),
        (["--operator", "M1"], "M1 takes 1 folder"),
        (["--operator", "X3", "--fitness", "1"], "--fitness: give one number per parent"),
    ],
)
def test_the_command_refuses_in_one_sentence_with_exit_code_2(
    words: list[str], message: str, parents: list[Path], tmp_path: Path
) -> None:
    code, out, err = redqueen("breed", *words, "--parents", *parents, "--out", tmp_path / "child")
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
