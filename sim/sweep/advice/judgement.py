"""From the results of trials to advice: which setting, why, how sure, what it costs beside today's, and what theory says.

A setting is judged by the share of time it loses: throughput that checkpoints cost, and recoveries times how often there are
failures.  Of settings that keep all limits and lose no more than the best one but for chance and a per mille, the one that changes
least is advised: today's, then fewer checkpoints, then the simpler protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.analysis.answers import Limit
from sim.analysis.theory import daly, renewal, young
from sim.sweep.advice.trials import FAILURE, INTERVAL, PROTOCOL, PROTOCOLS, TRIAL, UNDISTURBED
from sim.units import parse_duration

__all__ = ["Advice", "Limits", "Setting", "Theory", "advise"]

SAME, NEGLIGIBLE = 0.02, 0.001
"""Losses that differ by less, relatively or as a share of time, are the same to whoever runs the job."""
RESAMPLES = 400

_MEASURED = ("checkpoint_ms", "loss", "visible_ms", "recovery_ms", "replayed", "completed", "persisted_bytes")
_Trials = dict[tuple[str, str], np.ndarray[tuple[int, int], np.dtype[np.float64]]]
"""By (interval, protocol): a row per replication, columns as in _MEASURED."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What must hold; None: nobody asks for it."""

    recovery_ms: float | None = None  # failure -> what was lost is done again
    checkpoint_ms: float | None = None  # p99 of the end-to-end duration
    loss: float | None = None  # of throughput, as a share
    visible_ms: float | None = None  # p99 of the time until output of transactional sinks can be seen

    def of_means(self) -> list[Limit]:
        told = {
            "recovery_ms": self.recovery_ms, "checkpoint_ms": self.checkpoint_ms, "loss": self.loss, "visible_ms": self.visible_ms,
        }  # fmt: skip
        return [Limit(column, at_most=bound) for column, bound in told.items() if bound is not None]


@dataclass(frozen=True, slots=True)
class Theory:
    """Intervals [s] that closed forms give for what the advised protocol costs; NaN where a checkpoint costs nothing."""

    cost_s: float  # processing lost to one checkpoint
    young_s: float
    daly_s: float
    renewal_s: float


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that was tried: means over its replications."""

    interval: str
    protocol: str
    checkpoint_ms: float  # p99; inf: checkpoints expired
    loss: float  # of throughput
    visible_ms: float  # NaN: no sink is transactional
    recovery_ms: float  # inf: not seen
    replayed: float  # records
    completed: float  # checkpoints
    persisted_bytes: float  # per checkpoint
    lost: float  # share of time
    breaks: tuple[str, ...]  # limits, by the names above

    @property
    def name(self) -> tuple[str, str]:
        return self.interval, self.protocol


@dataclass(frozen=True, slots=True)
class Advice:
    settings: tuple[Setting, ...]
    chosen: Setting | None  # None: no setting keeps the limits
    today: Setting | None  # None: there are no checkpoints today
    confidence: float  # share of resampled replications that advise the same protocol
    theory: Theory | None


def advise(results: pd.DataFrame, *, limits: Limits, mtbf_s: float, today: tuple[str, str] | None, unlimited: bool) -> Advice:
    """`unlimited`: sources that always have more, so that nothing is ever caught up: what is replayed counts at the job's pace instead."""
    trials = _measured(results, unlimited=unlimited)
    settings = _judged(trials, limits, mtbf_s)
    now = next((setting for setting in settings if setting.name == today), None)
    chosen = _choice(settings, today)
    if chosen is None:
        return Advice(settings, None, now, 1.0, None)
    again = [_choice(_judged(sample, limits, mtbf_s), today) for sample in _resampled(trials)]
    same = sum(other is not None and other.protocol == chosen.protocol for other in again) / len(again)
    return Advice(settings, chosen, now, same, _theory(max(chosen.loss, 0.0) * parse_duration(chosen.interval) / 1e9, mtbf_s))


def _measured(results: pd.DataFrame, *, unlimited: bool) -> _Trials:
    """By setting: a row per replication."""
    rows = results[(results["status"] == "ok") & (results["strategy"] != "none")]
    keys = [INTERVAL, PROTOCOL, "replication"]
    steady = rows[rows[TRIAL] == UNDISTURBED].set_index(keys)
    failed = rows[rows[TRIAL] == FAILURE].set_index(keys).reindex(steady.index)
    bare = (steady["throughput_per_second"] / (1 + steady["throughput_change"])).unstack(PROTOCOL)[PROTOCOLS[0].name]  # noqa: PD010
    against = np.array([bare[interval, replication] for interval, _, replication in steady.index])  # debloating has a price, too
    again_ms = failed["downtime_ms"] + 1e3 * failed["replayed_records"] / steady["throughput_per_second"]
    expired = steady["failed"] - steady["interrupted"]
    measured = pd.DataFrame({
        "checkpoint_ms": steady["end_to_end_p99_ms"].where(expired == 0, math.inf),
        "loss": 1 - steady["throughput_per_second"] / against,
        "visible_ms": steady["visible_p99_ms"],
        "recovery_ms": again_ms if unlimited else failed["caught_up_ms"].fillna(math.inf),
        "replayed": failed["replayed_records"],
        "completed": steady["completed"],
        "persisted_bytes": steady["persisted_bytes"],
    })[list(_MEASURED)]  # fmt: skip
    found: dict[tuple[str, str], list[list[float]]] = {}
    for (interval, protocol, _), values in zip(measured.index, measured.to_numpy(dtype=float).tolist(), strict=True):
        found.setdefault((interval, protocol), []).append(values)
    return {name: np.array(values) for name, values in found.items()}


def _judged(trials: _Trials, limits: Limits, mtbf_s: float) -> tuple[Setting, ...]:
    """In the order of the trials."""
    visible = any(np.isfinite(values[:, _MEASURED.index("visible_ms")]).any() for values in trials.values())
    known = [limit for limit in limits.of_means() if limit.column != "visible_ms" or visible]
    settings = []
    for (interval, protocol), values in trials.items():
        mean = dict(zip(_MEASURED, values.mean(axis=0).tolist(), strict=True))
        lost = np.maximum(values[:, _MEASURED.index("loss")], 0.0) + values[:, _MEASURED.index("recovery_ms")] / 1e3 / mtbf_s
        breaks = tuple(limit.column for limit in known if not limit.kept(mean[limit.column]))
        settings.append(Setting(interval, protocol, **mean, lost=float(lost.mean()), breaks=breaks))
    return tuple(settings)


def _choice(settings: Sequence[Setting], today: tuple[str, str] | None) -> Setting | None:
    allowed = [setting for setting in settings if not setting.breaks and math.isfinite(setting.lost) and setting.completed]
    if not allowed:
        return None
    least = min(setting.lost for setting in allowed)
    good = [setting for setting in allowed if setting.lost <= least * (1 + SAME) + NEGLIGIBLE]
    order = {protocol.name: i for i, protocol in enumerate(PROTOCOLS)}
    return min(good, key=lambda one: (one.name != today, -parse_duration(one.interval), order.get(one.protocol, len(order))))


def _resampled(trials: _Trials) -> Iterator[_Trials]:
    """Replications drawn with replacement, the same for all settings: they met the same random numbers."""
    count = min(len(values) for values in trials.values())
    random = np.random.default_rng(1)
    for _ in range(RESAMPLES if count > 1 else 1):
        drawn = random.integers(count, size=count)
        yield {name: values[drawn] for name, values in trials.items()}


def _theory(cost_s: float, mtbf_s: float) -> Theory:
    if cost_s <= 0:
        return Theory(cost_s, math.nan, math.nan, math.nan)
    return Theory(cost_s, young(cost_s, mtbf_s), daly(cost_s, mtbf_s), renewal(cost_s, mtbf_s))
