"""What a live job showed while it was watched, in the rows of a recording: both sides of the comparison are counted alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from sim.jobs.evidence.prediction import checkpoint_observations, run_values_table, simulated_series_values
from sim.jobs.source.recorded_job import checkpoints_table, subtasks_table

if TYPE_CHECKING:
    from sim.jobs.source.rest_job import RestJob
    from sim.runtime.result import Result

__all__ = ["PER_MINUTE", "measured", "simulated"]

PER_MINUTE = "completed_per_minute"


def measured(job: RestJob, *, since_ms: int = 0) -> pd.DataFrame:
    """Observations (`sim.jobs`): of checkpoints triggered from then on [epoch ms], rates over the samples."""
    settled = [point for point in job.checkpoints if point.trigger_timestamp >= since_ms and not point.is_savepoint]
    checkpoints, subtasks = checkpoints_table(settled), subtasks_table(settled)
    rates = [
        ("numRecordsInPerSecond", vertex.name, job.flows[vertex.name].per_second("records_in"))
        for vertex in job.vertices
        if vertex.inputs
    ]
    rows = [checkpoint_observations(checkpoints, subtasks), run_values_table([*rates, *_per_minute(checkpoints)])]
    return pd.concat(rows, ignore_index=True).assign(first=False)  # what came before has been left out


def simulated(result: Result, *, since_ms: int) -> pd.DataFrame:
    """A simulated run, measured alike: checkpoints triggered from then on [ms since its start], rates over its last three quarters."""
    checkpoints = result.checkpoints[result.checkpoints["trigger_timestamp"] >= since_ms]
    rates = [value for value in simulated_series_values(result) if value[0] == "numRecordsInPerSecond"]
    rows = [
        checkpoint_observations(checkpoints, result.subtasks),
        run_values_table([*rates, *_per_minute(checkpoints)]),
    ]
    return pd.concat(rows, ignore_index=True).assign(first=False)


def _per_minute(checkpoints: pd.DataFrame) -> list[tuple[str, str, float]]:
    """From trigger to trigger of the completed ones; nothing of less than two."""
    done = checkpoints[checkpoints["status"] == "COMPLETED"]["trigger_timestamp"]
    return [(PER_MINUTE, "", 60_000 * (len(done) - 1) / float(done.max() - done.min()))] if len(done) > 1 else []
