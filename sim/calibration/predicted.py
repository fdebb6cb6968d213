"""What a simulated run shows, in the same tidy rows as `sim.recordings.observed` makes from a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from sim.calibration.predicted_ends import of_ends_and_failures
from sim.recordings.observed import SETTLED_AFTER, WHOLE_RUN, of_checkpoints

if TYPE_CHECKING:
    from sim.runtime.result import Result

__all__ = ["predicted"]

_SHARES = ("busy", "backPressured")


def predicted(result: Result) -> pd.DataFrame:
    """The observations of a simulated run (columns of `sim.recordings.observed.COLUMNS`)."""
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    parts = [of_checkpoints(periodic, result.subtasks), _of_vertices(result), of_ends_and_failures(result)]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _of_vertices(result: Result) -> pd.DataFrame:
    """Rates and shares over the last three quarters of the run."""
    job = result.scenario.job
    read = {inlet.upstream for vertex in job.vertices for inlet in vertex.inputs}
    series = result.series[result.series["time"] > SETTLED_AFTER * result.series["time"].max()]
    rows = []
    for vertex, samples in series.groupby("vertex", sort=False):
        if vertex not in read:
            rows.append(("numRecordsInPerSecond", vertex, samples["numRecordsInPerSecond"].mean(), "1/s"))
        rows += [(share, vertex, samples[share].mean(), "share") for share in _SHARES]
    table = pd.DataFrame(rows, columns=["quantity", "vertex", "value", "unit"])
    return table.assign(checkpoint=WHOLE_RUN, first=False)
