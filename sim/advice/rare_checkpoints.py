"""Checkpoints that a short trial may not show. Their duration follows from the scenario, whatever the interval is."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from sim.jobs.evidence.envelope import firings_ns
from sim.results.formats import ms_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario

RARE_SHARE = 0.01
"""Share of checkpoints beyond a p99."""


class RareCheckpoints(NamedTuple):
    """Checkpoints of which more than one in a hundred takes `ms` or longer, though a trial may show none."""

    ms: float  # inf: they expire
    why: str
    vertex: str = ""  # the vertex whose windows fire; "": files are slow
    restarts_per_s: float = 0.0  # restarts of the job by those that expire


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
