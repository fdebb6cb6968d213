"""The chance that a setting keeps the limit on checkpoints in reality, by how predictions of such changes came out on recordings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sim.evidence.what_ifs.chances import chance, within

if TYPE_CHECKING:
    from sim.advice.judgement import Setting
    from sim.advice.race import Race


class Chances(NamedTuple):
    """The chances of a setting.  `kept`: the share of recorded changes like it that keep the limit; `likely_ms`: what four of five keep."""

    kept: float
    likely_ms: float


def chances(race: Race, setting: Setting) -> Chances | None:
    """The chances by the kinds of what a setting changes.  None: no such limit, no history, or no change."""
    bound_ms, value_ms = race.limits.checkpoint_ms, setting.checkpoint_ms
    is_todays = race.today is not None and setting.name == race.today.name
    if bound_ms is None or race.bench.backtest is None or not 0 < value_ms < math.inf or is_todays:
        return None
    kinds = race.kinds_of(setting.name)
    return Chances(chance(kinds, bound_ms / value_ms), value_ms * within(kinds))
