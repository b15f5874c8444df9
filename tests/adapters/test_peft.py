"""PEFT's files, both ways: the same logits there and here."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tiny_models import CONFIGS, tiny_bank, tiny_model

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import freeze
from redqueen.adapters.base_shape import BaseIdentity
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.peft import CONFIG_FILE, WEIGHTS_FILE, plain_config, read_adapter, write_adapter
from redqueen.commands.adapter_base import base_sha256
from redqueen.errors import UserError

TOKENS = torch.randint(0, 61, (2, 9), generator=torch.Generator().manual_seed(0))


def write_member(bank: AdapterBank, slot: int, out: Path, base: BaseIdentity) -> None:
    """Write the adapter in a slot as a PEFT folder that names its base."""
    genotype = bank.genotype(slot)
    write_adapter(out, plain_config(genotype, base.name, bank.shortest_targets()), genotype, base.sha256)


def routed_logits(bank: AdapterBank, slot: int) -> torch.Tensor:
    with torch.no_grad(), bank.routed([slot, slot]):
        return bank.base.model(TOKENS).logits


def saved_by_peft(folder: Path, **options: object) -> torch.Tensor:
    """Save a random PEFT adapter into ``folder``; return the logits that PEFT computes with it."""
    settings: dict = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    model = get_peft_model(tiny_model(), LoraConfig(**settings | options))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    with torch.no_grad():
        return model.eval()(TOKENS).logits


@pytest.mark.parametrize("architecture", CONFIGS)
def test_an_exported_member_gives_the_same_logits_in_peft(architecture: str, tmp_path: Path) -> None:
    bank = tiny_bank(architecture)
    write_member(bank, 1, tmp_path / "member", BaseIdentity("somewhere/base", ""))
    model = PeftModel.from_pretrained(tiny_model(architecture), tmp_path / "member").eval()
    with torch.no_grad():
        theirs = model(TOKENS).logits
    torch.testing.assert_close(routed_logits(bank, 1), theirs, rtol=1e-5, atol=1e-5)


def test_an_adapter_saved_by_peft_gives_the_same_logits_here(tmp_path: Path) -> None:
    theirs = saved_by_peft(tmp_path)
    bank = tiny_bank()
    bank.load(2, read_adapter(tmp_path).genotype)
    torch.testing.assert_close(routed_logits(bank, 2), theirs, rtol=1e-5, atol=1e-5)


def test_an_adapter_of_another_alpha_gives_the_same_logits_here(tmp_path: Path) -> None:
    theirs = saved_by_peft(tmp_path, lora_alpha=6)
    bank = tiny_bank()
    bank.load(0, read_adapter(tmp_path).genotype)
    torch.testing.assert_close(routed_logits(bank, 0), theirs, rtol=1e-5, atol=1e-5)


def test_export_and_import_give_the_very_same_factors(tmp_path: Path) -> None:
    bank = tiny_bank()
    write_member(bank, 2, tmp_path, BaseIdentity("base", ""))
    back = read_adapter(tmp_path).genotype
    bank.load(0, back)
    assert back.alpha == bank.alpha
    assert torch.equal(bank.flat[0], bank.flat[2])


def test_an_adapter_written_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    bank, written = tiny_bank(), set()
    for time in range(12):
        write_member(bank, 1, tmp_path / str(time), BaseIdentity("base", "ab" * 32))
        written.add((tmp_path / str(time) / WEIGHTS_FILE).read_bytes())
    assert len(written) == 1
    assert read_adapter(tmp_path / "0").base_sha256 == "ab" * 32


def test_modules_that_share_an_ending_with_others_are_named_in_full(tmp_path: Path) -> None:
    base = freeze(tiny_model())
    bank = AdapterBank(base, 1, rank=2, targets=["layers.0.self_attn.q_proj"])
    write_member(bank, 0, tmp_path, BaseIdentity("base", ""))
    config = json.loads((tmp_path / CONFIG_FILE).read_text())
    assert config["target_modules"] == ["model.layers.0.self_attn.q_proj"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"use_rslora": True}, "use_rslora"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"alpha_pattern": {"q_proj": 2}}, "alpha_pattern"),
        ({"use_dora": True}, "use_dora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"task_type": "FEATURE_EXTRACTION"}, "task_type"),
    ],
)
def test_what_is_more_than_plain_lora_is_refused_by_name(options: dict, field: str, tmp_path: Path) -> None:
    saved_by_peft(tmp_path, **options)
    with pytest.raises(UserError, match=f"{field} = .* not supported"):
        read_adapter(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("alora_invocation_tokens", [1, 2], r"alora_invocation_tokens = \[1, 2\] is not supported"),
        ("use_bdlora", {"nblocks": 2}, r"use_bdlora = .* not supported"),
        ("lora_alpha", math.nan, r"'lora_alpha' is not finite"),
        ("lora_alpha", 10**400, r"'lora_alpha' is not finite"),
        ("r", 0, r"'r' is 0, and a rank is at least 1"),
    ],
)
def test_a_config_that_says_more_or_nothing_is_refused(field: str, value: object, said: str, tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("base", ""))
    config = json.loads((tmp_path / CONFIG_FILE).read_text())
    (tmp_path / CONFIG_FILE).write_text(json.dumps(config | {field: value}))
    with pytest.raises(UserError, match=said):
        read_adapter(tmp_path)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"adapter_config.json: No such file"):
        read_adapter(tmp_path)
    write_member(tiny_bank(), 0, tmp_path, BaseIdentity("base", ""))
    (tmp_path / WEIGHTS_FILE).write_bytes(b"not safetensors")
    with pytest.raises(UserError, match=r"adapter_model.safetensors cannot be read"):
        read_adapter(tmp_path)
    (tmp_path / WEIGHTS_FILE).unlink()
    with pytest.raises(UserError, match=r"adapter_model.safetensors is missing"):
        read_adapter(tmp_path)
    (tmp_path / CONFIG_FILE).write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        read_adapter(tmp_path)


def test_a_stored_half_precision_is_kept_and_loaded_with_another_alpha_as_in_full_precision(tmp_path: Path) -> None:
    bank = tiny_bank()
    write_member(bank, 1, tmp_path, BaseIdentity("base", ""))
    save_file({k: v.bfloat16() for k, v in load_file(tmp_path / WEIGHTS_FILE).items()}, tmp_path / WEIGHTS_FILE)
    stored = read_adapter(tmp_path).genotype
    assert {part.dtype for pair in stored.factors.values() for part in pair} == {torch.bfloat16}
    full = Genotype({name: (a.float(), b.float()) for name, (a, b) in stored.factors.items()}, stored.alpha)
    for slot, genotype in enumerate((stored, full)):
        bank.load(slot, replace(genotype, alpha=genotype.alpha * 0.7))
    assert torch.equal(bank.flat[0], bank.flat[1])


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int64])
def test_factors_that_are_quantised_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("base", ""))
    save_file({k: v.to(dtype) for k, v in load_file(tmp_path / WEIGHTS_FILE).items()}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(UserError, match=rf"lora_A\.weight holds {dtype}, which is not supported"):
        read_adapter(tmp_path)


def test_a_base_of_a_name_that_no_folder_can_have_is_just_not_here(tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("b" * 5000, ""))
    assert base_sha256(read_adapter(tmp_path)) == ""


def test_factors_without_axes_are_refused(tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("base", ""))
    save_file({k: torch.tensor(1.0) for k in load_file(tmp_path / WEIGHTS_FILE)}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(UserError, match=r"A \(\) and B \(\) are not"):
        read_adapter(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_broken_adapter_is_refused(value: float, tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("base", ""))
    tensors = load_file(tmp_path / WEIGHTS_FILE)
    for tensor in tensors.values():  # each of 1e30 is finite, their product is not
        tensor[0, 0] = value
    save_file(tensors, tmp_path / WEIGHTS_FILE)
    with pytest.raises(UserError, match=r"adapter_model.safetensors holds NaN or infinity"):
        read_adapter(tmp_path)


def test_a_file_with_something_beside_the_factors_or_half_of_them_is_refused(tmp_path: Path) -> None:
    write_member(tiny_bank(), 1, tmp_path, BaseIdentity("base", ""))
    tensors = load_file(tmp_path / WEIGHTS_FILE)
    save_file({**tensors, "base_model.model.lm_head.weight": torch.ones(2, 2)}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(UserError, match=r"lm_head\.weight is not a LoRA factor"):
        read_adapter(tmp_path)
    del tensors[min(tensors)]
    save_file(tensors, tmp_path / WEIGHTS_FILE)
    with pytest.raises(UserError, match="has only one of its two factors"):
        read_adapter(tmp_path)
