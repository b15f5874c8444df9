"""The typed configuration: every field documents unit, range and the source of its default.

A field's docstring says what it is, then the source of its default and the reason: *Paper* (a reader of the paper
states it), *Re-implementation*, *AZR* (Absolute Zero Reasoner's default), *Ours* (the paper is silent or unknown);
``docs/paper_map.md`` is written from them. This module imports no torch.
"""

from redqueen.config.episodes import (
    EMBEDDED,
    FILE_PREFIX,
    GYM_PREFIX,
    MatchConfig,
    ProposeConfig,
    RunConfig,
    VerifyConfig,
)
from redqueen.config.load import Config, load_config, parse_config, parse_recorded
from redqueen.config.training import DistillConfig, EvolveConfig, LearnConfig

__all__ = [
    "EMBEDDED",
    "FILE_PREFIX",
    "GYM_PREFIX",
    "Config",
    "DistillConfig",
    "EvolveConfig",
    "LearnConfig",
    "MatchConfig",
    "ProposeConfig",
    "RunConfig",
    "VerifyConfig",
    "load_config",
    "parse_config",
    "parse_recorded",
]
