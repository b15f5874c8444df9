"""The shipped configs of domains ask for what they say, in whole prompts, and their experiment compares equal work."""

from pathlib import Path

import pytest

from redqueen.config import load_config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import num_proposals

ROOT = Path(__file__).parents[2]
EXPECTED = {
    "maths": {"maths_formal": 96, "maths_word": 96},
    "logic": {"logic_puzzle": 192},
    "mixture": {"code_o": 16, "code_i": 16, "code_f": 16, "maths_formal": 24, "maths_word": 24, "logic_puzzle": 48},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_config_asks_for_whole_prompts_of_each_kind(name: str) -> None:
    config = load_config(ROOT / "configs" / f"{name}.toml")
    wanted = num_proposals(config.propose)
    assert wanted == EXPECTED[name]
    assert all(num % config.propose.num_per_prompt == 0 for num in wanted.values())
    assert choose_format(config).name == "compact"
