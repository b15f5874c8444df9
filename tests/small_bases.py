"""Bases made small for tests: real folders of Hugging Face models with random weights."""

import json
import shutil
from pathlib import Path

from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from redqueen.adapters.base_shape import embedded_folder

TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def small_base(folder: Path, positions: int = 4096, with_tokenizer: bool = True) -> Path:
    """A Llama of one layer with random weights and the embedded base's tokenizer."""
    vocabulary = json.loads((embedded_folder() / "config.json").read_text())["vocab_size"]
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=vocabulary, num_key_value_heads=1, max_position_embeddings=positions, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    for name in TOKENIZER if with_tokenizer else ():
        shutil.copy(embedded_folder() / name, folder / name)
    return folder


def masked_base(folder: Path) -> Path:
    """A masked language model, which does not continue a text."""
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertForMaskedLM(BertConfig(vocab_size=100, **sizes)).save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copy(embedded_folder() / name, folder / name)
    return folder
