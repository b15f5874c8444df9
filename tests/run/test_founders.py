"""Founders from PEFT folders: exactly what was trained elsewhere, in the shape of the run's adapters."""

from pathlib import Path

import pytest
import torch
from scripted import Table, Teacher, config_of, wrong
from small_adapters import adapter, dense, founder
from small_bases import small_base

from redqueen.adapters.base_shape import base_shape, model_source, weights_sha256
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.peft import founder_like, plain_config, read_adapter, write_adapter
from redqueen.errors import UserError
from redqueen.run.cold_start import founders_of, place_founders


def saved(folder: Path, genotype: Genotype) -> Path:
    write_adapter(folder, plain_config(genotype, "base", ["q_proj"]), genotype)
    return folder


def test_a_founder_of_a_smaller_rank_and_another_alpha_keeps_its_dw_exactly(tmp_path: Path) -> None:
    given = read_adapter(saved(tmp_path / "a", adapter(1, rank=2, alpha=6.0)))
    fitted = founder_like(given, founder(7, rank=4))
    assert fitted.rank == 4 and fitted.alpha == 8.0
    for name in fitted.factors:
        torch.testing.assert_close(dense(fitted, name), dense(given.genotype, name), rtol=1e-6, atol=1e-6)
        a, b = fitted.factors[name]
        assert (b[:, 2:] == 0).all() and (a[2:] != 0).any()  # the further components can learn


def test_a_founder_may_adapt_fewer_modules_but_none_that_the_run_does_not(tmp_path: Path) -> None:
    whole = adapter(1)
    part = Genotype(dict(list(whole.factors.items())[:1]), whole.alpha)
    fitted = founder_like(read_adapter(saved(tmp_path / "part", part)), founder(7))
    changed = [name for name in fitted.factors if bool((fitted.factors[name][1] != 0).any())]
    assert changed == list(part.factors)
    with pytest.raises(UserError, match=r"adapts model.layers.0.mlp.up_proj, and the run does not"):
        founder_like(
            read_adapter(saved(tmp_path / "whole", whole)), Genotype(dict(list(founder(7).factors.items())[:1]), 8.0)
        )
    with pytest.raises(UserError, match=r"has rank 8, and population.lora_rank is 4: set it to 8"):
        founder_like(read_adapter(saved(tmp_path / "large", adapter(1, rank=8))), founder(7))


def test_the_members_begin_with_the_founders_in_turn(table: Table, tmp_path: Path) -> None:
    state, engine = table.sit(config_of(), Teacher(), wrong)
    folders, store = [], engine.store
    fresh = [store.genotype(member.slot) for member in state.individuals]
    for number in (1, 2):
        given = {name: (a, torch.full_like(b, float(number))) for name, (a, b) in fresh[0].factors.items()}
        folders.append(str(saved(tmp_path / str(number), Genotype(given, fresh[0].alpha))))
    population = engine.config.population.model_copy(update={"founders": tuple(folders)})
    config = engine.config.model_copy(update={"population": population})
    place_founders(engine.__class__(**{**vars(engine), "config": config}))
    name = fresh[0].names[0]
    begun = [float(store.genotype(member.slot).factors[name][1].mean()) for member in state.individuals]
    assert begun == [1.0 + at % 2 for at in range(len(begun))] and len(begun) > 1
    for member, genotype in zip(state.individuals, fresh, strict=True):
        store.load(member.slot, genotype)


@pytest.mark.parametrize("base", ["embedded", "one.gguf"])
def test_a_founder_that_was_exported_on_another_base_is_refused(base: str, tmp_path: Path) -> None:
    if base != "embedded":
        base = str(tmp_path / base)
        Path(base).write_bytes(b"GGUF")
    genotype, config = adapter(1), config_of(population={"founders": [str(tmp_path)]}, model={"base": base})
    plain, own = plain_config(genotype, "base", ["q_proj"]), weights_sha256(Path(model_source(base)))
    write_adapter(tmp_path, plain, genotype, own)
    assert [one.base_sha256 for one in founders_of(config)] == [own]
    write_adapter(tmp_path, plain, genotype, "0" * 64)
    with pytest.raises(UserError, match=r"population\.founders: .* was trained on another base than model\.base"):
        founders_of(config)


def test_an_adapter_as_the_base_is_recognised_in_the_message(tmp_path: Path) -> None:
    folder = saved(tmp_path / "mine", adapter(1))
    with pytest.raises(UserError, match=r'is a PEFT adapter: set population.founders = \["'):
        base_shape(str(folder))
    assert base_shape(str(small_base(tmp_path / "model"))) is not None
