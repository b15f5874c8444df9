"""redqueen: population-based asymmetric self-play for post-training language models.

Each name in ``__all__`` is imported on first access, so that ``import redqueen`` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "Config",
    "Member",
    "Run",
    "Sandbox",
    "UserError",
    "breed",
    "evolve_adapters",
    "load_config",
    "load_member",
    "program_reward_fn",
    "resume",
    "reward_fn",
    "task_rows",
    "train",
]

if TYPE_CHECKING:
    from redqueen.api import Member, Run, breed, evolve_adapters, load_config, load_member, resume, train
    from redqueen.commands.task_rows import task_rows
    from redqueen.config import Config
    from redqueen.errors import UserError
    from redqueen.rewards import program_reward_fn, reward_fn
    from redqueen_sandbox import Sandbox

_MODULES = {
    "Config": "redqueen.config",
    "UserError": "redqueen.errors",
    "Sandbox": "redqueen_sandbox",
    "reward_fn": "redqueen.rewards",
    "task_rows": "redqueen.commands.task_rows",
    "program_reward_fn": "redqueen.rewards",
}
"""The module that defines a name; all other names are in ``redqueen.api``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'redqueen' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "redqueen.api")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
