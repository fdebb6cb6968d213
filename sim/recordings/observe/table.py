"""Observations in a recording, as a tidy table: a row per quantity, vertex and checkpoint or sample.  It judges nothing.

============================  ===================================================================================================
quantity                      meaning
============================  ===================================================================================================
end_to_end_duration           trigger -> last acknowledgement, of a completed checkpoint
checkpointed_size             written for a completed checkpoint, state and in-flight data
state_size                    all bytes it refers to
processed_data                read by its subtasks while they aligned
persisted_data                in-flight data stored in it
start_delay                   median over the subtasks of a vertex, as the five below; of completed checkpoints
alignment_duration            first -> last barrier
sync_duration, async_duration  phases of the snapshot
alignment_persisted           in-flight data stored
alignment_processed           read while aligning
completed                     completed checkpoints of the run, without savepoints
failed                        checkpoints that got an id and failed, for any reason
expired                       ... because of their timeout
============================  ===================================================================================================

The modules `series`, `ends` and `failures` define further quantities; `quantities` has the units.  Rows of a whole run, and samples of
a series, have the checkpoint -1.  `first` marks the first checkpoint: it meets queues that are not yet full.
"""

from __future__ import annotations

import pandas as pd

from sim.recordings.observe.ends import of_ends
from sim.recordings.observe.failures import of_failures
from sim.recordings.observe.quantities import WHOLE_RUN, table_of, values_of
from sim.recordings.observe.series import of_series
from sim.recordings.source.lab.recording import Recording
from sim.recordings.source.recorded_job import RecordedJob

_PER_CHECKPOINT = ("end_to_end_duration", "checkpointed_size", "state_size", "processed_data", "persisted_data")
_PER_VERTEX = (
    "start_delay", "alignment_duration", "sync_duration", "async_duration", "alignment_persisted", "alignment_processed",
)  # fmt: skip
_EXPIRED = "CHECKPOINT_EXPIRED|expired before completing"  # Flink's CheckpointFailureReason: its name, and its text in REST


def observed(recording: RecordedJob) -> pd.DataFrame:
    """The observations of a recording; savepoints and unfinished checkpoints are left out."""
    checkpoints = recording.checkpoints_table()
    periodic = checkpoints[~checkpoints["is_savepoint"].astype(bool)]
    failures = of_failures(recording) if isinstance(recording, Recording) else ()  # other sources do not log failures of tasks
    rest = values_of([*of_series(recording), *of_ends(recording), *failures])
    return pd.concat([of_checkpoints(periodic, recording.subtasks_table()), rest], ignore_index=True)


def of_checkpoints(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """The observations in two tables with Flink's columns, recorded or simulated."""
    first = 1  # a history that begins later lacks the job's first checkpoint
    completed = checkpoints[checkpoints["status"] == "COMPLETED"]
    failed = checkpoints[checkpoints["status"] == "FAILED"]
    expired = failed[failed["failure_message"].astype(str).str.contains(_EXPIRED)]
    counts = (("completed", completed), ("failed", failed), ("expired", expired))
    rows = [
        (quantity, "", number, number == first, float(value))
        for quantity in _PER_CHECKPOINT
        for number, value in completed[["id", quantity]].itertuples(index=False, name=None)
    ]
    rows += [(name, "", WHOLE_RUN, False, float(len(table))) for name, table in counts]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in _PER_VERTEX:
        known = judged[judged[quantity] >= 0]
        medians = known.groupby(["vertex", "id"], as_index=False, sort=False)[quantity].median()
        for number, vertex, value in medians[["id", "vertex", quantity]].itertuples(index=False, name=None):
            rows.append((quantity, vertex, number, number == first, float(value)))
    return table_of(rows)
