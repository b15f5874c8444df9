"""Opens the servers of a run: what the config says, checked before anything is asked of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from redqueen.config import Config
from redqueen.policy.bank import AdapterBank
from redqueen.policy.memory import TextLimits
from redqueen.policy.protocols import AdapterStore
from redqueen.remote.canary import STEPS, Probe
from redqueen.remote.fleet import Fleet
from redqueen.remote.prompts import probe_prompts
from redqueen.remote.versions import Versions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEMPERATURE = 0.75
"""The canary's temperature. At 1 raw and processed log-probabilities are equal; the colder, the more a rounding counts,
so the run's own would need a tolerance of its own."""


def open_fleet(
    config: Config, bank: AdapterBank, store: AdapterStore, tokenizer: PreTrainedTokenizerBase, limits: TextLimits
) -> Fleet:
    """Wait for the servers and check them. Raises UserError when one is not there or is not as it should be."""
    probe = Probe(bank, probe_prompts(config, tokenizer, limits.max_positions - STEPS), TEMPERATURE)
    versions = Versions(bank, store, config.sampler.adapter_folder)
    try:
        fleet = Fleet(config.sampler, versions, probe, limits.longest, _tell)
    except BaseException:
        versions.close()
        raise
    try:
        fleet.open()
    except BaseException:
        fleet.close()
        raise
    return fleet


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr)
