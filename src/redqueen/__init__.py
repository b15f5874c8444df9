"""redqueen: population-based asymmetric self-play for post-training language models."""

__version__ = "0.1.0"
