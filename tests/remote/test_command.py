"""The command that starts a server has room for everybody who is sampled."""

import shlex

from redqueen.adapters.base_shape import embedded_folder
from redqueen.config import load_config
from redqueen.fitting import fit_to_base
from redqueen.remote.server import serve_command
from redqueen.run.dry_run import plan_text

SERVED = ["sampler.kind=vllm", 'sampler.urls=["http://10.0.0.7:8123"]']


def words(*overrides: str) -> list[str]:
    return shlex.split(serve_command(load_config(None, [*SERVED, *overrides]), 1024))


def test_the_command_has_room_for_members_hall_base_and_their_next_versions() -> None:
    sizes = ["population.num_teachers=3", "population.num_students=2", "population.lora_rank=5"]
    assert words(*sizes, "match.hall_of_fame_frac=0", "model.precision=fp32") == [
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1",
        *("vllm", "serve", str(embedded_folder()), "--host", "10.0.0.7", "--port", "8123", "--dtype", "float32"),
        *("--enable-lora", "--max-loras", "6", "--max-cpu-loras", "15", "--max-lora-rank", "8"),
        *("--max-model-len", "1024", "--logprobs-mode", "processed_logprobs"),
    ]
    hall = words(*sizes, "match.hall_of_fame_frac=0.2", "match.hall_of_fame_size=2")
    assert hall[hall.index("--max-loras") + 1] == "10"


def test_the_longest_text_is_left_out_where_the_positions_are_unknown() -> None:
    config = load_config(None, SERVED)
    assert "--max-model-len" in serve_command(config, 32_768) and "--max-model-len" not in serve_command(config, None)


def test_the_dry_run_shows_the_command_where_servers_sample_and_nowhere_else() -> None:
    shown = plan_text(fit_to_base(load_config(None, SERVED)))
    assert shown.splitlines()[-1].startswith("# VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve ")
    assert "vllm serve" not in plan_text(fit_to_base(load_config(None)))
