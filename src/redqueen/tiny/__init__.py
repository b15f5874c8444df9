"""The embedded base model: its corpus generator, its training recipe, its weights and its model card."""

from pathlib import Path


def embedded_folder() -> Path:
    """Return the folder of the shipped weights and tokenizer (Hugging Face format)."""
    return Path(__file__).parent / "base"
