"""The typed configuration: a file for each section; every field says unit, range and where its default comes from.

A field's docstring says what it is, then its ground and why: *Paper* (a reader of the paper states it),
*Re-implementation*, *AZR* (Absolute Zero Reasoner's default), *Ours* (the paper is silent or unknown);
``docs/paper_map.md`` is written from them. This module imports no torch.
"""

from redqueen.config.cluster import ClusterConfig
from redqueen.config.distill import DistillConfig
from redqueen.config.evaluate import EvaluateConfig
from redqueen.config.evolve import OPERATORS, EvolveConfig
from redqueen.config.learn import LearnConfig
from redqueen.config.load import Config, load_config, parse_config, parse_recorded
from redqueen.config.match import MatchConfig
from redqueen.config.model import EMBEDDED, ModelConfig
from redqueen.config.population import PopulationConfig
from redqueen.config.propose import ProposeConfig
from redqueen.config.run import RunConfig
from redqueen.config.sampler import SamplerConfig
from redqueen.config.solve import SolveConfig
from redqueen.config.verify import VerifyConfig

__all__ = [
    "EMBEDDED",
    "OPERATORS",
    "ClusterConfig",
    "Config",
    "DistillConfig",
    "EvaluateConfig",
    "EvolveConfig",
    "LearnConfig",
    "MatchConfig",
    "ModelConfig",
    "PopulationConfig",
    "ProposeConfig",
    "RunConfig",
    "SamplerConfig",
    "SolveConfig",
    "VerifyConfig",
    "load_config",
    "parse_config",
    "parse_recorded",
]
