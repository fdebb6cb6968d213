"""How the history of a job limits the certainty of the advice: prediction errors, and the tail of checkpoint durations.

If the tail of the history is longer than that of the simulation, simulated durations are multiplied by the ratio of the
two.  The ratio is measured for today's setting.  For other settings it is an assumption, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from sim.advice.judgement import MEASURED, Choice, Limits, Margins, Trials
from sim.advice.settings import RareCheckpoints, SettingName
from sim.jobs.evidence.envelope import firings_ns
from sim.jobs.evidence.what_ifs import within
from sim.model.quantities import smallest_sample
from sim.model.schema.history_file import agreement_text
from sim.results.formats import ms_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.jobs.evidence.what_ifs import Kind
    from sim.model.quantities import Level
    from sim.model.scenario import Backtest, Scenario


MIN_CHECKPOINTS_FOR_P99 = smallest_sample(0.99)
"""Minimum number of checkpoints that have a p99."""
RECOVERY_ERROR = 0.2
"""Relative error of predicted recoveries on published measurements (docs/truth.md: 3 to 19 % by interval)."""
DEFAULT_ERROR = RECOVERY_ERROR
"""Relative error of all predictions about which there is no history."""
MIN_AGREEMENT = 0.1
"""Lower bound of the agreement with the history that is used for margins; with less, no limit would have room."""
_LEVELS: tuple[tuple[str, Level], ...] = (("end-to-end", "p50"), ("end-to-end", "p90"), ("throughput", "p50"))
"""Quantities of the backtest whose agreement with the history caps the certainty of the choice."""
_DURATION, _LONGEST, _P90 = (MEASURED.index(name) for name in ("checkpoint_ms", "longest_ms", "checkpoint_p90_ms"))
_RECOVERY, _RESTARTING = (MEASURED.index(name) for name in ("recovery_ms", "restarting"))


def with_corrected_durations(
    trials: Trials, backtest: Backtest | None, today: SettingName | None, longer_ms: Mapping[SettingName, float]
) -> Trials:
    """Return copies of the trials with corrected checkpoint durations.

    They are at least those of long runs, have the tail of the history, and for today's setting are at least those of its
    own history.  `longer_ms`: setting -> longest checkpoint of its long runs [ms].
    """
    ratio = 1.0 if backtest is None else backtest.tail
    results: Trials = {}
    for name, worlds in trials.items():
        results[name] = {}
        for world, values in worlds.items():
            table = values.copy()
            _raise(table, longer_ms.get(name, 0.0))
            table[:, [_DURATION, _LONGEST, _P90]] *= ratio
            if backtest is not None and name == today and backtest.checkpoints:
                _raise(table, backtest.p99_ms)
            results[name][world] = table
    return results


def with_rare_checkpoints(trials: Trials, rare: Mapping[SettingName, RareCheckpoints | None]) -> None:
    """Raise the duration of checkpoints in `trials` to that of rare ones, where these are longer, and count restarts by them."""
    for name, worlds in trials.items():
        for values in worlds.values():
            column = values[:, _DURATION]
            if (own := rare[name]) is not None:
                if column.mean() < own.ms:
                    column[:] = own.ms
                if own.restarts_per_s:
                    values[:, _RESTARTING] = np.fmin(own.restarts_per_s * values[:, _RECOVERY] / 1e3, 1.0)


def _raise(table: np.ndarray[tuple[int, int], np.dtype[np.float64]], min_ms: float) -> None:
    """Raise all checkpoint durations by the same amount, so that their mean is at least `min_ms`.  Changes `table`."""
    table[:, _DURATION] += max(min_ms - float(table[:, _DURATION].mean()), 0.0)


def with_capped_confidence(choice: Choice, backtest: Backtest | None, limits: Limits) -> Choice:
    """Return the choice with its certainty capped by the agreement of the simulation with the history."""
    cap = min((share for share, _ in agreements(backtest, limits)), default=1.0)
    return replace(choice, same_setting=min(choice.same_setting, cap), same_protocol=min(choice.same_protocol, cap))


def margins(
    backtest: Backtest | None,
    today: SettingName | None,
    kinds_of: Callable[[SettingName], Sequence[Kind]],
    recovery_range: Callable[[SettingName], float],
) -> Margins:
    """Return the function that gives the relative error of a prediction.

    * Recovery: the error on published measurements (`RECOVERY_ERROR`), or `recovery_range` if that is larger.
    * Checkpoints of today's setting, or of any if the backtest has no `other_settings`: the error of the backtest.
    * Checkpoints of another setting: at least that, and as much as four of five recorded changes of the same kinds stayed
      within (`sim.jobs.evidence.what_ifs`).
    * All other limits, and checkpoints without a history: `DEFAULT_ERROR`.

    `recovery_range`: by how much the recovery of a setting may differ from run to run, as a share of it.
    """
    row = None if backtest is None else backtest.of("end-to-end")
    of_today = 0.0 if row is None else 1 / max(row.agreement("p90"), MIN_AGREEMENT) - 1

    def margin(name: SettingName, column: str) -> float:
        if column == "recovery_ms":
            return max(RECOVERY_ERROR, recovery_range(name))
        if column != "checkpoint_ms" or backtest is None:
            return DEFAULT_ERROR
        if backtest.other_settings is None or name == today:
            return of_today
        return max(of_today, within(kinds_of(name)) - 1)

    return margin


def agreements(backtest: Backtest | None, limits: Limits) -> Iterator[tuple[float, str]]:
    """Yield (agreement, description) for each quantity that deviates from the history.

    The agreement is the smaller of the simulated and the recorded value, divided by the larger.
    """
    if backtest is None:
        return
    for quantity, level in _LEVELS:
        row = backtest.of(quantity)
        if row is not None and level in row.off and (level == "p50" or limits.checkpoint_ms is not None):
            yield row.agreement(level), agreement_text(row, level)
    if limits.checkpoint_ms is not None and backtest.tail != 1:
        yield min(backtest.tail, 1 / backtest.tail), f"tail {100 * (1 / backtest.tail - 1):+.0f} %"


def doubts(backtest: Backtest | None, limits: Limits) -> str:
    """Return the deviation that caps the certainty, e.g. ``end-to-end p90 -54 %``, or ""."""
    return ", ".join(text for _, text in agreements(backtest, limits))


def remarks(backtest: Backtest | None, limits: Limits) -> list[str]:
    """Return sentences on what the history shows about the limit on checkpoints, and how it was used."""
    if backtest is None or limits.checkpoint_ms is None or not backtest.checkpoints:
        return []
    sentences = [_history(backtest, limits.checkpoint_ms)]
    if backtest.tail != 1:
        sentences.append(
            f"Tails are taken {backtest.tail:.2g} times as long as simulated: the history has them so. "
            "For settings other than today's that is an assumption."
        )
    return sentences


def _history(backtest: Backtest, limit_ms: float) -> str:
    over = sum(duration > limit_ms for duration in backtest.longest_ms)
    at_least = "at least " if over == len(backtest.longest_ms) < backtest.checkpoints else ""
    if not backtest.longest_ms:
        return f"History: its longest checkpoints are not known, import it again to hold {ms_text(limit_ms)} to them."
    few = (
        ""
        if backtest.checkpoints >= MIN_CHECKPOINTS_FOR_P99
        else f"; fewer than {MIN_CHECKPOINTS_FOR_P99} show no 99 % quantile, so the longest decides"
    )
    return (
        f"History: {at_least}{over} of {backtest.checkpoints} recorded checkpoints took longer than {ms_text(limit_ms)}, "
        f"the longest {ms_text(backtest.longest_ms[0])}{few}."
    )


# ---- Checkpoints that a short trial may not show. Their duration follows from the scenario, whatever the interval is.

RARE_SHARE = 0.01
"""Share of checkpoints beyond a p99."""


def rare_checkpoints(scenario: Scenario, rows: pd.DataFrame) -> RareCheckpoints | None:
    """Return the checkpoints that wait for windows that fire or for a slow file, the longer ones of both; None: there are none.

    `rows`: undisturbed runs, which show the time that files of a usual checkpoint take.
    """
    found = [
        RareCheckpoints(
            (fire_ns - RARE_SHARE * window.step_ns) / 1e6,
            f"windows of '{name}' fire for {ms_text(fire_ns / 1e6)}",
            name,
        )
        for name, fire_ns in firings_ns(scenario).items()
        if (window := scenario.job.vertex(name).window) is not None and fire_ns > RARE_SHARE * window.step_ns
    ]
    storage = scenario.storage
    files = sum(vertex.parallelism for vertex in scenario.job.vertices if vertex.state is not None)
    if 1 - (1 - storage.slow_probability) ** files > RARE_SHARE and "path_upload_ms" in rows:
        upload_ms, slow = rows["path_upload_ms"].fillna(0.0).mean(), f"{100 * storage.slow_probability:.2g} %"
        found.append(RareCheckpoints(storage.slow_factor * upload_ms, f"{slow} of files are slow (storage.slow)"))
    rare, options = max(found, default=None), scenario.checkpoint
    if rare is None or rare.ms * 1e6 <= options.timeout_ns:
        return rare
    share: float = 1 - (1 - storage.slow_probability) ** files
    if rare.vertex and (window := scenario.job.vertex(rare.vertex).window) is not None:
        share = max(firings_ns(scenario)[rare.vertex] - options.timeout_ns, 0) / window.step_ns
    failing = share ** (options.tolerable_failed + 1)  # so many in a row
    period_ns = max(options.interval_ns or inf, options.min_pause_ns) + share * options.timeout_ns
    return rare._replace(ms=inf, restarts_per_s=1e9 * failing / period_ns)
