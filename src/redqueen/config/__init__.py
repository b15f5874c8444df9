"""The typed configuration: every field documents unit, range and the source of its default.

A field's docstring describes the field, then the source of its default and the reason: *Paper* (stated by a reader of
the paper), *Re-implementation*, *AZR* (Absolute Zero Reasoner's default), *Ours* (not known from the paper).
``docs/paper_map.md`` is generated from them. This module does not import torch.
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
