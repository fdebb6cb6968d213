"""What a recording shows, as one tidy table: a row per quantity, vertex and checkpoint.  Judging is left to calibration.

=====================  ======  ==========================================================================================
quantity               unit    meaning
=====================  ======  ==========================================================================================
end_to_end_duration    ms      trigger -> last acknowledgement, of a completed checkpoint
checkpointed_size      bytes   written for a completed checkpoint, state and in-flight data
state_size             bytes   all it refers to
start_delay            ms      median over the subtasks of a vertex, as the four durations below; of completed checkpoints
alignment_duration     ms      "
sync_duration          ms      "
async_duration         ms      "
alignment_persisted    bytes   in-flight data stored, median over the subtasks
alignment_processed    bytes   taken while aligning, median over the subtasks
completed              count   completed checkpoints of the run; savepoints do not count
failed                 count   checkpoints that got an id and failed
numRecordsInPerSecond  1/s     of each vertex nobody reads: the sum of its subtasks over the last three quarters of the samples
busy, backPressured    share   of each vertex: mean of its subtasks over the same time
=====================  ======  ==========================================================================================

What happened at the end of the job and in its failures: `sim.recordings.observed_ends`.
Rows of a whole run have the checkpoint -1.  `first` marks the first checkpoint: it meets queues that are not yet full.
"""

from __future__ import annotations

import pandas as pd

from sim.recordings.observed_ends import WHOLE_RUN, of_ends_and_failures
from sim.recordings.recording import Recording

__all__ = ["COLUMNS", "SETTLED_AFTER", "WHOLE_RUN", "observed", "of_checkpoints"]

COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")
SETTLED_AFTER = 0.25  # share of the samples left out: queues fill, the JVM warms up

_Row = tuple[str, str, int, bool, float, str]
_DURATIONS = ("start_delay", "alignment_duration", "sync_duration", "async_duration")
_SIZES = ("alignment_persisted", "alignment_processed")
_SHARES = {"busy": "accumulateBusyTimeMs", "backPressured": "accumulateBackPressuredTimeMs"}


def observed(recording: Recording) -> pd.DataFrame:
    """The observations of a recording; savepoints and unfinished checkpoints are left out."""
    checkpoints = recording.checkpoints_table()
    periodic = checkpoints[~checkpoints["is_savepoint"].astype(bool)]
    rest = _table([*_of_tasks(recording), *of_ends_and_failures(recording)])
    return pd.concat([of_checkpoints(periodic, recording.subtasks_table()), rest], ignore_index=True)


def of_checkpoints(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """The observations in two tables with Flink's columns, recorded or simulated: all rows above `numRecordsInPerSecond`."""
    first = checkpoints["id"].min()
    completed = checkpoints[checkpoints["status"] == "COMPLETED"]
    failed = checkpoints[checkpoints["status"] == "FAILED"]
    rows: list[_Row] = [
        ("end_to_end_duration", "", number, number == first, float(duration), "ms")
        for number, duration in completed[["id", "end_to_end_duration"]].itertuples(index=False, name=None)
    ]
    rows += [
        (quantity, "", number, number == first, float(size), "bytes")
        for quantity in ("checkpointed_size", "state_size")
        for number, size in completed[["id", quantity]].itertuples(index=False, name=None)
    ]
    rows += [(name, "", WHOLE_RUN, False, float(len(some)), "count") for name, some in (("completed", completed), ("failed", failed))]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in (*_DURATIONS, *_SIZES):
        known = judged[judged[quantity] >= 0]
        unit = "ms" if quantity in _DURATIONS else "bytes"
        medians = known.groupby(["id", "vertex"], as_index=False)[quantity].median()
        for number, vertex, value in medians[["id", "vertex", quantity]].itertuples(index=False, name=None):
            rows.append((quantity, vertex, number, number == first, float(value), unit))
    return _table(rows)


def _table(rows: list[_Row]) -> pd.DataFrame:
    """Of the same types however few rows there are."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(types)


def _of_tasks(recording: Recording) -> list[_Row]:
    read = {edge.upstream for node in recording.config.nodes for edge in node.inputs}
    rows: list[_Row] = []
    for node in recording.config.nodes:
        if node.id not in read and (rate := _growth(recording.metric(node.id, "numRecordsIn"))) is not None:
            rows.append(("numRecordsInPerSecond", node.id, WHOLE_RUN, False, rate * 1000, "1/s"))
        for quantity, counter in _SHARES.items():
            if (busy := _growth(recording.metric(node.id, counter))) is not None:
                rows.append((quantity, node.id, WHOLE_RUN, False, busy / node.parallelism, "share"))
    return rows


def _growth(samples: pd.DataFrame) -> float | None:
    """Growth of a counter per ms, summed over subtasks, once things have settled; a restarted counter counts from 0 again."""
    samples = samples.dropna(how="any")
    settled = samples.iloc[int(len(samples) * SETTLED_AFTER) :]
    if len(settled) < 2 or settled.index[-1] <= settled.index[0]:
        return None
    steps = settled.diff().iloc[1:]
    grown = steps.where(steps >= 0, settled.iloc[1:])
    return float(grown.to_numpy().sum() / (settled.index[-1] - settled.index[0]))
