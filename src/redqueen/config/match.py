"""Who meets whom: matchmaking and ratings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class MatchConfig(Section):
    """Matchmaking and the Gaussian skill ratings."""

    rule: Literal["pfsp", "uniform", "all_pairs"] = "pfsp"
    """Who is paired. Paper: prioritised fictitious self-play. ``uniform`` is its control, ``all_pairs`` fills the
    payoff matrix; both are ours."""
    pfsp_exponent: float = Field(default=1.0, ge=0)
    """Weight of a pair is (p (1 - p)) to this power. Re-implementation: 1."""
    ratings: Literal["common", "per_domain"] = "common"
    """Whether a member has one rating, or one in each domain; then a match is a game in each, and selection and
    matchmaking read their mean. Ours: common; a mixture may hide that a member is strong in one domain alone."""
    hall_of_fame_frac: float = Field(default=0.0, ge=0, le=1)
    """Chance that a match is played against a frozen past member; 0: no hall of fame. Ours: no reader names one."""
    hall_of_fame_size: int = Field(default=4, ge=1)
    """Past members of each role that are kept, each in an adapter slot of its own. Ours: as many as live."""
