"""Every named architecture plays a whole step: random weights, a real tokenizer, and the format that fits the base."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scripted import Scripted
from tiny_models import CONFIGS
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from redqueen.config import Config, parse_config
from redqueen.domains.code.examples import SEEDS
from redqueen.domains.frames import END
from redqueen.engine import open_engine
from redqueen.fitting import fit_to_base
from redqueen.loop import run_step
from redqueen.records import Task
from redqueen.run.cold_start import grow_seed_buffer
from redqueen.state import initial_state
from redqueen.timing import Clock

PLAY = {
    "run": {"num_threads": 1, "device": "cpu"},
    "population": {"num_teachers": 2, "num_students": 2, "lora_rank": 2, "lora_alpha": 4.0},
    "propose": {"num_of_each_kind": 2, "num_references": 1, "num_seed_proposals": 2, "max_new_tokens": 96},
    "verify": {"num_workers": 1, "accept_cpu_ms": 4000, "kill_cpu_ms": 8000, "num_inputs": 2},
    "solve": {"num_attempts": 2, "max_new_tokens": 64},
    "evolve": {"every_steps": 1},
}


def save(folder: Path, architecture: str, template: str | None) -> Path:
    """Write a model of random weights and a tokenizer of bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate([*letters, "<|end|>"])}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    shape = CONFIGS[architecture].to_dict() | {
        "vocab_size": 320,  # tokenizers of some architectures add marks of their own
        "max_position_embeddings": 4096,
        "eos_token_id": 256,
    }
    config = AutoConfig.for_model(**{**shape, "bos_token_id": 256, "pad_token_id": 256})
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


OTHERS = str.maketrans("0123456789aor", "1234567890eus")
"""Makes another input of a seed's: its numbers and letters moved on."""


class Writer:
    """A teacher and a student in the layout of the examples: programs that add, pairs, and every other answer right."""

    def __init__(self) -> None:
        self.num_written = 0

    def propose(self, prompt: str, slot: int, sample: int) -> str:
        self.num_written += 1
        if prompt.endswith("\n#"):
            own = prompt.rpartition(END)[2]
            given = next(one for one in SEEDS if one.code.strip() in own)  # the buffer begins with these
            other = given.inputs[0]
            for _ in range(1 + sample):
                other = other.translate(OTHERS)
            return f" A message.\nf({given.inputs[0]})\nf({other})\n{END}"
        return f"(1) == 2\ndef f(x):\n    return x + {self.num_written}\n{END}"

    def solve(self, prompt: str, slot: int, sample: int) -> str:
        own = prompt.rpartition(END)[2]
        if sample % 2 or own.endswith("def f"):
            return f" nothing\n{END}"
        if own.endswith("\nf"):
            return f"(1)\n{END}"
        added = int(own.rpartition("x + ")[2].split()[0]) if "x + " in own else 0
        return f" {1 + added}\n{END}"


def fitted(base: Path) -> Config:
    return fit_to_base(parse_config({**PLAY, "model": {"base": str(base)}}, "test")).config


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_whole_step_is_played_in_the_format_that_auto_gives(architecture: str, tmp_path: Path) -> None:
    config = fitted(save(tmp_path / "base", architecture, None))
    assert config.model.prompt_format == "fewshot"
    with open_engine(config) as engine:
        state, _ = grow_seed_buffer(initial_state(config), engine)  # the real samplers write
        before = [engine.store.genotype(slot) for slot in range(4)]
        writer = Writer()
        proposer, solver = Scripted(engine.tokenizer, writer.propose), Scripted(engine.tokenizer, writer.solve)
        state, report = run_step(state, replace(engine, proposer=proposer, solver=solver), Clock())
        assert {task.kind for task in report.verdicts if isinstance(task, Task)} == {"code_o", "code_i", "code_f"}
        assert [stats.ok for stats in report.updates] == [True] * 4
        moved = [
            any(
                not torch.equal(b, old.factors[name][1]) for name, (_, b) in engine.store.genotype(slot).factors.items()
            )
            for slot, old in enumerate(before)
        ]
    students = {outcome.grade.correct for one in report.graded for outcome in one.outcomes}
    assert students == {True, False} and moved[2:] == [True, True], "students learn from right and wrong answers"
    assert len(report.births) == 2, "one of each role is replaced"
