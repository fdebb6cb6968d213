"""From the results of trials to a choice: which setting, and how sure that is.

A setting is judged by the share of time it loses: throughput that checkpoints cost, and recoveries times how often there are
failures.  Of settings that keep all limits and lose no more than the best one but for chance and a per mille, the one that changes
least is advised: today's, then what changes one thing only, then fewer checkpoints, then the simpler protocol.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.advice.settings import protocols
from sim.advice.trials import FAILURE, INTERVAL, LATE, PROTOCOL, TRIAL, UNDISTURBED, WORLD, observed_s
from sim.analysis.sweeps.answers import Limit
from sim.units import parse_duration

__all__ = ["MEASURED", "Choice", "Limits", "Setting", "Trials", "choose", "judged", "measured", "redrawn"]

SAME, NEGLIGIBLE = 0.02, 0.001
"""Losses that differ by less, relatively or as a share of time, are the same to whoever runs the job."""
DRAWS = 400
ROUGH = {"loss": (0.0, 0.003)}
"""What one run says of the mean, (relative, absolute) standard deviation: of throughput much more than of anything else ..."""
ROUGH_ELSE = (0.1, 0.0)

MEASURED = (
    "checkpoint_ms", "checkpoint_p50_ms", "loss", "visible_ms", "recovery_ms", "again_ms", "replayed", "completed", "persisted_bytes",
    "written_per_hour", "per_second", "longest_ms",
)  # fmt: skip
_AT = {column: i for i, column in enumerate(MEASURED)}
_LOSING = ("recovery_ms", "again_ms", "replayed", "per_second", "loss")
_Array = np.ndarray[tuple[int], np.dtype[np.float64]]
_Values = np.ndarray[tuple[int, int], np.dtype[np.float64]]
_Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
_Name = tuple[str, str]
Trials = dict[_Name, dict[str, _Values]]
"""By (interval, protocol) and world: a row per replication, columns as in MEASURED."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What must hold; None: nobody asks for it."""

    recovery_ms: float | None = None  # failure -> what was lost is done again
    checkpoint_ms: float | None = None  # p99 of the end-to-end duration
    loss: float | None = None  # of throughput, as a share
    visible_ms: float | None = None  # p99 of the time until output of transactional sinks can be seen

    def of_means(self) -> list[Limit]:
        bounds = {
            "recovery_ms": self.recovery_ms, "checkpoint_ms": self.checkpoint_ms, "loss": self.loss, "visible_ms": self.visible_ms,
        }  # fmt: skip
        return [Limit(column, at_most=bound) for column, bound in bounds.items() if bound is not None]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that was tried: means over its replications, of several worlds the worst one."""

    interval: str
    protocol: str
    runs: int  # replications of each kind
    checkpoint_ms: float  # p99; inf: checkpoints expired
    checkpoint_p50_ms: float
    loss: float  # of throughput
    visible_ms: float  # NaN: no sink is transactional
    recovery_ms: float  # failure -> done again; inf: not seen
    again_ms: float  # downtime, and what is replayed at the job's own pace
    replayed: float  # records
    completed: float  # checkpoints
    persisted_bytes: float  # in-flight data, per checkpoint
    written_per_hour: float  # bytes
    per_second: float  # throughput
    longest_ms: float  # checkpoint
    lost: float  # share of time, mean over worlds
    breaks: tuple[str, ...]  # limits, by the names above

    @property
    def name(self) -> _Name:
        return self.interval, self.protocol


@dataclass(frozen=True, slots=True)
class Choice:
    """`chosen`: None if no setting keeps the limits.  Shares are of redrawn means."""

    chosen: _Name | None
    sure: float  # the same setting is chosen again
    same_protocol: float  # ... the same protocol at least
    others: tuple[tuple[_Name | None, float], ...]  # what else is chosen, the most frequent first


def measured(results: pd.DataFrame, *, now: str, unlimited: bool) -> Trials:
    """`now`: a protocol with today's network, against whose runs without checkpoints others are held: debloating has a price, too.

    `unlimited`: sources that always have more, so that nothing is ever caught up: what is replayed counts at the job's pace instead.
    """
    rows = results[(results["status"] == "ok") & (results["strategy"] != "none") & results[TRIAL].notna()]
    keys = [WORLD, INTERVAL, PROTOCOL, "replication"]
    steady = rows[rows[TRIAL] == UNDISTURBED].drop_duplicates(keys).set_index(keys)
    failed = rows[rows[TRIAL] == FAILURE].drop_duplicates(keys).set_index(keys).reindex(steady.index)
    again_ms = failed["downtime_ms"] + 1e3 * failed["replayed_records"] / steady["throughput_per_second"]
    seconds = np.array([observed_s(interval) for _, interval, _, _ in steady.index])
    expired = steady["failed"] - steady["interrupted"]
    table = pd.DataFrame({
        "checkpoint_ms": steady["end_to_end_p99_ms"].where((expired == 0) & (steady["completed"] > 0), math.inf),
        "checkpoint_p50_ms": steady["end_to_end_p50_ms"],
        "loss": 1 - steady["throughput_per_second"] / _bare(steady, now),
        "visible_ms": steady["visible_p99_ms"],
        "recovery_ms": again_ms if unlimited else failed["caught_up_ms"].fillna(math.inf),
        "again_ms": again_ms,
        "replayed": failed["replayed_records"],
        "completed": steady["completed"],
        "persisted_bytes": steady["persisted_bytes"],
        "written_per_hour": steady["checkpointed_bytes"].fillna(0.0) * steady["completed"] / seconds * 3600,
        "per_second": steady["throughput_per_second"],
        "longest_ms": steady["end_to_end_max_ms"],
    })[list(MEASURED)]  # fmt: skip
    found: dict[_Name, dict[str, list[list[float]]]] = {}
    for (world, interval, protocol, _), values in zip(table.index, table.to_numpy(dtype=float).tolist(), strict=True):
        found.setdefault((interval, protocol), {}).setdefault(world, []).append(values)
    return {name: {world: np.array(values) for world, values in worlds.items()} for name, worlds in found.items()}


def judged(trials: Trials, limits: Limits, mtbf_s: float, *, patience_ms: float = math.inf) -> tuple[Setting, ...]:
    """In the order of the trials; `patience_ms`: how long a recovery was waited for."""
    means = {name: {world: values.mean(axis=0)[np.newaxis] for world, values in worlds.items()} for name, worlds in trials.items()}
    known = _known(means, limits)
    settings = []
    for (interval, protocol), worlds in means.items():
        worst, lost = _worst(worlds), _lost(worlds, mtbf_s, patience_ms)
        found = dict(zip(MEASURED, worst[0].tolist(), strict=True))
        breaks = tuple(limit.column for limit in known if not limit.kept(found[limit.column]))
        runs = min(map(len, trials[(interval, protocol)].values()))
        settings.append(Setting(interval, protocol, runs, **found, lost=float(lost[0]), breaks=breaks))
    return tuple(settings)


def choose(settings: Sequence[Setting], changes: Mapping[_Name, int]) -> Setting | None:
    """The one to advise; `changes`: how many things each setting changes, none for today's."""
    if not settings:
        return None
    lost = np.array([[setting.lost for setting in settings]])
    allowed = np.array([[not setting.breaks and bool(setting.completed) for setting in settings]])
    (picked,) = _picked(lost, allowed, [setting.name for setting in settings], changes)
    return None if picked < 0 else settings[picked]


def redrawn(trials: Trials, limits: Limits, mtbf_s: float, changes: Mapping[_Name, int], *, patience_ms: float = math.inf) -> Choice:
    """How often the choice would be the same if all were run again.

    Means are drawn from their distribution given the replications (Student's t), those of all settings together: they met the same
    random numbers, so what these do to all of them alike cancels.  A setting that ran once is taken to be off by a tenth.
    """
    chosen = choose(judged(trials, limits, mtbf_s, patience_ms=patience_ms), changes)
    own = None if chosen is None else chosen.name
    drawn, names = _drawn(trials), list(trials)
    known = _known(drawn, limits)
    worst = [_worst(drawn[name]) for name in names]
    lost = np.stack([_lost(drawn[name], mtbf_s, patience_ms) for name in names], axis=1)
    kept = np.stack([values[:, _AT["completed"]] > 0 for values in worst], axis=1)
    for limit in known:
        kept &= np.stack([values[:, _AT[limit.column]] <= limit.at_most for values in worst], axis=1)
    counted = Counter(None if picked < 0 else names[picked] for picked in _picked(lost, kept, names, changes))
    alike = sum(count for name, count in counted.items() if name == own or (name and own and name[1] == own[1]))
    others = tuple((name, count / DRAWS) for name, count in counted.most_common() if name != own)
    return Choice(own, counted[own] / DRAWS, alike / DRAWS, others)


def _picked(lost: _Values, allowed: _Flags, names: Sequence[_Name], changes: Mapping[_Name, int]) -> list[int]:
    """The place of the setting to advise in each row; -1: none is allowed."""
    order = {protocol.name: i for i, protocol in enumerate(protocols())}
    efforts = [(changes.get(name, 0), -parse_duration(name[0]), order.get(name[1], len(order))) for name in names]
    rank = np.array([sorted(efforts).index(effort) for effort in efforts])
    lost = np.where(allowed & np.isfinite(lost), lost, np.inf)
    least = lost.min(axis=1, keepdims=True)
    good = np.isfinite(lost) & (lost <= least * (1 + SAME) + NEGLIGIBLE)
    first = np.where(good, rank, len(names)).argmin(axis=1)
    return [int(place) if any_good else -1 for place, any_good in zip(first, good.any(axis=1), strict=True)]


def _bare(steady: pd.DataFrame, now: str) -> _Array:
    """Throughput without checkpoints, of the same run if there is one: by (world, interval, replication)."""
    own = steady["throughput_per_second"] / (1 + steady["throughput_change"])
    like: dict[tuple[str, str, int], float] = {}
    names: list[tuple[str, str, str, int]] = own.index.to_list()
    for (world, interval, protocol, replication), value in zip(names, own, strict=True):
        if not math.isnan(value) and ("debloating" not in protocol or "debloating" in now):
            like.setdefault((world, interval, replication), value)
    return np.array([like.get((world, interval, k), value) for (world, interval, _, k), value in zip(names, own, strict=True)])


def _known(means: Mapping[_Name, Mapping[str, _Values]], limits: Limits) -> list[Limit]:
    """Limits that say something: output is visible at once where no sink is transactional."""
    visible = any(np.isfinite(mean[:, _AT["visible_ms"]]).any() for worlds in means.values() for mean in worlds.values())
    return [limit for limit in limits.of_means() if limit.column != "visible_ms" or visible]


def _worst(worlds: Mapping[str, _Values]) -> _Values:
    """The worst of several worlds: the largest value of each quantity, the smallest number of checkpoints."""
    table = np.stack(list(worlds.values()))
    found: _Values = table.max(axis=0)
    found[:, _AT["completed"]] = table[:, :, _AT["completed"]].min(axis=0)
    return found


def _lost(worlds: Mapping[str, _Values], mtbf_s: float, patience_ms: float) -> _Array:
    """Share of time, the mean over worlds.

    The failure of a trial comes late in an interval; one of any day finds half of the interval to be done again.
    """
    table = np.stack(list(worlds.values()))
    recovery_ms, again_ms, replayed, per_second, loss = (table[:, :, _AT[name]] for name in _LOSING)
    seen = np.where(np.isinf(recovery_ms), np.maximum(again_ms, patience_ms if math.isfinite(patience_ms) else again_ms), recovery_ms)
    with np.errstate(divide="ignore", invalid="ignore"):
        replay_ms = np.where(per_second > 0, replayed / per_second * 1e3, 0.0)
    down_ms = np.maximum(again_ms - replay_ms, 0.0)
    usual_ms = down_ms + (seen - down_ms) * LATE[1] / LATE[0] / 2
    lost: _Array = (np.maximum(loss, 0.0) + usual_ms / 1e3 / mtbf_s).mean(axis=0)
    return lost


def _drawn(trials: Trials) -> dict[_Name, dict[str, _Values]]:
    """By setting and world: a row of means per draw."""
    random = np.random.default_rng(1)
    most = max((len(values) for worlds in trials.values() for values in worlds.values()), default=1)
    normal = random.standard_normal((DRAWS, most))
    spread = {n: np.sqrt((n - 1) / random.chisquare(n - 1, size=DRAWS)) for n in range(2, most + 1)}
    rough = np.array([ROUGH.get(column, ROUGH_ELSE) for column in MEASURED])
    found: dict[_Name, dict[str, _Values]] = {}
    for name, worlds in trials.items():
        alone = random.standard_normal((DRAWS, len(MEASURED)))
        found[name] = {}
        for world, values in worlds.items():
            n, mean = len(values), values.mean(axis=0)
            with np.errstate(invalid="ignore"):
                if n == 1:
                    off = (mean * rough[:, 0] + rough[:, 1]) * alone
                else:
                    off = normal[:, :n] @ (values - mean) / math.sqrt(n * (n - 1)) * spread[n][:, np.newaxis]
                found[name][world] = np.where(np.isfinite(off), mean + off, mean)
    return found
