"""The worker as the sandbox imports it: with every family's files and modules loaded before the sandbox closes."""

from redqueen.domains.gym.worker import generate, score, warm_up

__all__ = ["generate", "score"]

warm_up()
