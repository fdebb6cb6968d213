"""How far a setting is from the limits, so that settings with few checkpoints and with many are compared by the same thing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.advice.judgement import Limits, Setting

COMPARED = {"checkpoint_ms": "checkpoint_p90_ms"}
"""Limited column -> the one that is compared: the longest of 106 checkpoints and the longest of 12 are unlike things."""


def excess(setting: Setting, limits: Limits) -> float:
    """By what factor the worst limit is broken: 1.2 is a fifth too much; 1 or less: limits hold, the one on checkpoints for nine in ten."""
    found = [getattr(setting, COMPARED.get(limit.column, limit.column)) / limit.at_most for limit in limits.of_means() if limit.at_most > 0]
    if not setting.completed:
        return math.inf
    return max((value for value in found if not math.isnan(value)), default=0.0)
