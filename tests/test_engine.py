"""The engine: what its samplers have in common, and which bases it does not load."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import transformers
from command_line import redqueen
from safetensors.torch import load_file, save_file
from small_bases import small_base
from transformers import AutoModelForCausalLM, AutoTokenizer

from redqueen.adapters.base import freeze
from redqueen.adapters.base_shape import hub_has
from redqueen.config import load_config
from redqueen.domains.prompt_format import FRAMES
from redqueen.engine import load_adapters, load_base, load_tokenizer
from redqueen.errors import UserError

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_base(tmp_path / "base")


def rewritten(folder: Path, leave: Callable[[str], bool]) -> None:
    tensors = {name: tensor for name, tensor in load_file(folder / WEIGHTS).items() if leave(name)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def set_in_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_base_that_lacks_weights_is_refused_and_not_filled_with_random_ones(folder: Path) -> None:
    load_base(str(folder))
    rewritten(folder, lambda name: "layers.0.mlp.up_proj" not in name)
    with pytest.raises(UserError, match=r"lacks 1 of its tensors \(model\.layers\.0\.mlp\.up_proj\.weight"):
        load_base(str(folder))


def test_code_that_a_model_folder_brings_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()")
    classes = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.T", None]}
    set_in_config(folder, auto_map=classes, model_type="evil")
    of_tokenizer = folder / "tokenizer_config.json"
    of_tokenizer.write_text(json.dumps(json.loads(of_tokenizer.read_text()) | {"auto_map": classes}))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question was asked"))
    with pytest.raises(UserError, match=r"model\.base"):
        load_base(str(folder))
    assert not (folder / "ran").exists()


def test_a_base_with_tied_weights_lacks_nothing() -> None:
    load_base("embedded")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:200]),
        lambda folder: (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        lambda folder: (folder / WEIGHTS).write_bytes(b""),
        lambda folder: (folder / WEIGHTS).unlink(),
        lambda folder: set_in_config(folder, hidden_size=48),
        lambda folder: set_in_config(folder, hidden_size=47),
        lambda folder: set_in_config(folder, num_hidden_layers=9),
        lambda folder: (folder / "tokenizer.json").write_text('{"a": 1}'),
    ],
    ids=["cut", "pointer", "empty", "gone", "other shape", "odd shape", "more layers", "other tokenizer"],
)
def test_a_damaged_base_is_refused_in_a_sentence(folder: Path, damage: Callable[[Path], object]) -> None:
    damage(folder)
    with pytest.raises(UserError, match=r"model\.base .* (cannot be loaded: \w|lacks \d+ of its tensors|has no token)"):
        load_base(str(folder))


@pytest.mark.parametrize(("given", "expected"), [(0.0, 0.8), (1.1, 1.1)])
def test_proposals_have_a_temperature_of_their_own_or_the_solvers(given: float, expected: float) -> None:
    overrides = ["solve.temperature=0.8", f"propose.temperature={given}", "run.device=cpu"]
    adapters = load_adapters(load_config(Path(__file__).parent / "quick.toml", overrides))
    assert (adapters.proposer.temperature, adapters.solver.temperature) == (expected, 0.8)  # type: ignore[attr-defined]


def damaged_base(folder: Path, **changes: object) -> Path:
    """Write a small base with faults in its config, weights or template."""
    base = small_base(folder)
    if "weight" in changes:
        path = base / "model.safetensors"
        tensors = load_file(path)
        tensors["model.layers.0.mlp.up_proj.weight"][0, 0] = float(str(changes["weight"]))
        save_file(tensors, path, metadata={"format": "pt"})
    if "tokens" in changes:
        tokenizer = AutoTokenizer.from_pretrained(base)
        tokenizer.add_tokens([f"<extra_{i}>" for i in range(int(str(changes["tokens"])))])
        tokenizer.save_pretrained(base)
    if "template" in changes:
        (base / "chat_template.jinja").write_text(str(changes["template"]))
    if "normalizer" in changes:
        tokenizer = json.loads((base / "tokenizer.json").read_text()) | changes
        (base / "tokenizer.json").write_text(json.dumps(tokenizer))
    return base


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weight": "nan"}, r"has NaN or infinity in model\.layers\.0\.mlp\.up_proj\.weight"),
        ({"weight": "-inf"}, "has NaN or infinity"),
        ({"tokens": 200}, r"has the token '<extra_199>' as number \d+, and the model has only \d+ tokens"),
        ({"template": "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3}, "does not write a short prompt within"),
        ({"template": "{{ 'a' * 10 ** 11 }}"}, "does not write a short prompt within"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "."}, "content": ""}}, "does not write a short"),
    ],
    ids=["nan", "inf", "tokens", "loop", "memory", "no text"],
)
def test_a_base_that_cannot_be_run_is_refused_before_it_does_harm(
    changes: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.engine.TRIAL_S", 1)
    base = damaged_base(tmp_path / "base", **changes)
    with pytest.raises(UserError, match=said):
        load_base(str(base))


@pytest.mark.parametrize("architecture", ["GPTNeoX", "Falcon", "Bloom", "MPT", "Mamba", "GPTBigCode"])
def test_an_architecture_with_an_attention_of_its_own_is_refused_in_a_sentence(architecture: str) -> None:
    config = getattr(transformers, {"MPT": "MptConfig"}.get(architecture, f"{architecture}Config"))(
        **{"vocab_size": 64, "hidden_size": 32, "d_model": 32, "num_hidden_layers": 2, "n_layers": 2, "n_layer": 2}
        | {"num_attention_heads": 4, "n_heads": 4, "n_head": 4, "num_key_value_heads": 2, "intermediate_size": 48}
    )
    with pytest.raises(UserError, match=r"base model type '\w+' .*: use a Llama"):
        freeze(AutoModelForCausalLM.from_config(config))


def test_a_template_is_told_one_date_and_draws_the_same(tmp_path: Path) -> None:
    template = "{{ strftime_now('%d %b %Y %H:%M:%S') }} {{ range(9999) | random }}{{ messages[0]['content'] }}"
    tokenizer = load_tokenizer(str(damaged_base(tmp_path / "base", template=template)))
    texts = set()
    for _ in range(3):
        texts.add(tokenizer.decode(FRAMES["chat"].encode(tokenizer, "hi")))
        random.random()
    assert len(texts) == 1 and texts.pop().startswith("01 Jan 2025 00:00:00 ")


@pytest.mark.parametrize(
    "template",
    [
        "no prompt",
        "{{ joiner() }}{{ messages[0]['content'] }}",
        "{{ 1 / 0 }}",
        "{{ messages[0]['content'] | upper }}",
        "{% if %}",
    ],
)
def test_a_template_that_fails_or_does_not_show_the_prompt_is_refused(template: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(damaged_base(tmp_path / "base", template=template)))
    with pytest.raises(UserError, match="chat template"):
        FRAMES["chat"].encode(tokenizer, "hi")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[list[str], dict[str, int]]]:
    """A hub on this machine: what it was asked, and with which status it answers; its cache here has own/tiny."""
    asked, answer = list[str](), {"status": 404}

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_response(answer["status"])
            if answer["status"] == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cache = tmp_path / "hub"
    small_base(cache / "models--own--tiny" / "snapshots" / ("a" * 40))
    (cache / "models--own--tiny" / "refs").mkdir()
    (cache / "models--own--tiny" / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    address = f"http://127.0.0.1:{server.server_port}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", address)
    hub_has.cache_clear()
    yield asked, answer
    server.shutdown()
    server.server_close()


def test_a_name_that_the_hub_does_not_have_costs_one_question(
    hub: tuple[list[str], dict[str, int]], tmp_path: Path
) -> None:
    for words in (["--dry-run"], ["--run-dir", tmp_path / "run"]):
        code, _, err = redqueen("train", "smoke", "--set", "model.base=own/tinny", *words)
        assert code == 2 and "own/tinny is neither a folder here nor a model on the hub: check the name" in err
        assert "give its folder (--set model.base=FOLDER)" in err
    assert hub[0] == ["/own/tinny/resolve/main/config.json"] * 2


def test_a_hub_that_does_not_work_is_asked_once_and_its_cache_is_read(hub: tuple[list[str], dict[str, int]]) -> None:
    hub[1]["status"] = 503
    assert load_base("own/tiny")[1].eos_token_id is not None
    with pytest.raises(UserError, match=r"own/tinny is not a folder, .* cannot be reached: .*model.base=FOLDER"):
        load_base("own/tinny")
    assert hub[0] == [f"/own/{name}/resolve/main/config.json" for name in ("tiny", "tinny")]
