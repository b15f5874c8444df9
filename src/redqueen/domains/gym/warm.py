"""The worker as the sandbox imports it: all files and modules of the families are loaded before it closes."""

from redqueen.domains.gym.worker import generate, score, warm_up

__all__ = ["generate", "score"]

warm_up()
