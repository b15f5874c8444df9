"""The precision that `model.precision = auto` means, on processors with and without bfloat16 of their own."""

from pathlib import Path

import pytest
import torch

from redqueen.adapters import base as precision
from redqueen.adapters.base import choose_precision, multiplies_bf16, settle_precision
from redqueen.adapters.memory import work_of
from redqueen.config import Config


def on_a_processor(monkeypatch: pytest.MonkeyPatch, machine: str, *able: str) -> None:
    monkeypatch.setattr(precision.platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: "amx" in able)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: "avx512_bf16" in able)


def test_a_processor_with_amx_is_given_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_processor(monkeypatch, "x86_64", "amx")
    assert choose_precision("auto", "cpu") == "bf16"
    assert work_of(Config.model_validate({"run": {"device": "cpu"}}), {}).bf16


def test_a_processor_without_amx_is_given_float32_and_so_is_its_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_a_processor(monkeypatch, "x86_64")
    assert choose_precision("auto", "cpu") == "fp32"
    assert not work_of(Config.model_validate({"run": {"device": "cpu"}}), {}).bf16


@pytest.mark.parametrize(("vendor", "chosen"), [("AuthenticAMD", "bf16"), ("GenuineIntel", "fp32"), (None, "fp32")])
def test_avx512_bf16_alone_is_fast_on_amds_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendor: str | None, chosen: str
) -> None:
    on_a_processor(monkeypatch, "x86_64", "avx512_bf16")
    monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "cpuinfo")
    if vendor:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    assert choose_precision("auto", "cpu") == chosen


def test_a_gpu_is_given_bfloat16_whatever_the_processor_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_processor(monkeypatch, "x86_64")
    assert choose_precision("auto", "cuda") == "bf16"
    assert work_of(Config.model_validate({"run": {"device": "cuda"}}), {}).bf16


def test_a_run_settles_what_auto_means_where_it_begins_and_keeps_it_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Config.model_validate({"run": {"device": "cpu"}})
    on_a_processor(monkeypatch, "x86_64", "amx")
    settled = settle_precision(begun)
    assert settled.model.precision == "bf16" and settled.model.base == begun.model.base
    on_a_processor(monkeypatch, "x86_64")
    assert settle_precision(begun).model.precision == "fp32"
    assert settle_precision(settled) == settled


@pytest.mark.parametrize("asked", ["bf16", "fp32"])
def test_what_the_config_names_is_never_changed(monkeypatch: pytest.MonkeyPatch, asked: precision.Precision) -> None:
    for able in ((), ("amx",)):
        on_a_processor(monkeypatch, "x86_64", *able)
        assert choose_precision(asked, "cpu") == choose_precision(asked, "cuda") == asked


def test_an_arm_processor_is_asked_through_the_library_that_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_processor(monkeypatch, "aarch64", "amx")
    assert multiplies_bf16() == torch.ops.mkldnn._is_mkldnn_bf16_supported()
