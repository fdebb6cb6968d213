"""What a recording shows, as one tidy table: a row per quantity, vertex and checkpoint.  Judging is left to calibration.

=====================  ======  ==========================================================================================
quantity               unit    meaning
=====================  ======  ==========================================================================================
end_to_end_duration    ms      trigger -> last acknowledgement, of a completed checkpoint
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

Rows of a whole run have the checkpoint -1.  `first` marks the first checkpoint: it meets queues that are not yet full.
"""

from __future__ import annotations

import pandas as pd

from sim.recordings.recording import Recording

__all__ = ["COLUMNS", "observed"]

COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")
WHOLE_RUN = -1
SETTLED_AFTER = 0.25  # share of the samples left out: queues fill, the JVM warms up

_Row = tuple[str, str, int, bool, float, str]
_DURATIONS = ("start_delay", "alignment_duration", "sync_duration", "async_duration")
_SIZES = ("alignment_persisted", "alignment_processed")
_SHARES = {"busy": "accumulateBusyTimeMs", "backPressured": "accumulateBackPressuredTimeMs"}


def observed(recording: Recording) -> pd.DataFrame:
    """The observations of a recording; savepoints and unfinished checkpoints are left out."""
    return pd.DataFrame(_of_checkpoints(recording) + _of_subtasks(recording) + _of_tasks(recording), columns=list(COLUMNS))


def _of_checkpoints(recording: Recording) -> list[_Row]:
    periodic = [row for row in recording.checkpoints.list if not row.is_savepoint]
    first = min((row.id for row in periodic), default=0)
    completed = [row for row in periodic if row.status == "COMPLETED"]
    failed = [row for row in periodic if row.status == "FAILED"]
    return [
        *(("end_to_end_duration", "", row.id, row.id == first, float(row.end_to_end_duration), "ms") for row in completed),
        ("completed", "", WHOLE_RUN, False, float(len(completed)), "count"),
        ("failed", "", WHOLE_RUN, False, float(len(failed)), "count"),
    ]


def _of_subtasks(recording: Recording) -> list[_Row]:
    completed = {row.id for row in recording.checkpoints.list if row.status == "COMPLETED" and not row.is_savepoint}
    first = min((row.id for row in recording.checkpoints.list if not row.is_savepoint), default=0)
    table = recording.subtasks_table()
    table = table[table["id"].isin(completed) & (table["status"] == "completed")]
    rows: list[_Row] = []
    for quantity in (*_DURATIONS, *_SIZES):
        known = table[table[quantity] >= 0]
        unit = "ms" if quantity in _DURATIONS else "bytes"
        medians = known.groupby(["id", "vertex"], as_index=False)[quantity].median()
        for checkpoint, vertex, value in medians.itertuples(index=False, name=None):
            rows.append((quantity, vertex, checkpoint, checkpoint == first, value, unit))
    return rows


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
