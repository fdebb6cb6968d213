"""Observations in a recording, as a tidy table: a row per quantity, vertex and checkpoint or sample.  It judges nothing.

`sim.quantities.observed` says what each quantity is.  What has a row per checkpoint or subtask is read here, off Flink's columns;
`series` computes the others, and a job whose configuration is known has more.  Rows of a whole run and samples have the checkpoint -1.
`first` marks the first checkpoint: it meets queues that are not yet full.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from sim.quantities.observed import quantities
from sim.recordings.observe.series import of_series
from sim.recordings.observe.tidy import WHOLE_RUN, RunValue, table_of, values_of
from sim.recordings.source.recorded_job import ConfiguredJob, RecordedJob
from sim.stand_ins import is_known

_EXPIRED = "CHECKPOINT_EXPIRED|expired before completing"  # Flink's CheckpointFailureReason: its name, and its text in REST


def observed(recording: RecordedJob) -> pd.DataFrame:
    """The observations of a recording; savepoints and unfinished checkpoints are left out."""
    checkpoints = recording.checkpoints_table()
    periodic = checkpoints[~checkpoints["is_savepoint"].astype(bool)]
    rest = recording.observed_values() if isinstance(recording, ConfiguredJob) else [*of_series(recording), *of_savepoints(recording)]
    return pd.concat([of_checkpoints(periodic, recording.subtasks_table()), values_of(rest)], ignore_index=True)


def of_savepoints(recording: RecordedJob) -> Iterator[RunValue]:
    """The durations of completed savepoints."""
    done = (point for point in recording.checkpoints.list if point.is_savepoint and point.status == "COMPLETED")
    yield from (("savepoint_duration", "", float(point.end_to_end_duration)) for point in done)


def of_checkpoints(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """The observations in two tables with Flink's columns, recorded or simulated."""
    first = 1  # a history that begins later lacks the job's first checkpoint
    completed = checkpoints[checkpoints["status"] == "COMPLETED"]
    failed = checkpoints[checkpoints["status"] == "FAILED"]
    expired = failed[failed["failure_message"].astype(str).str.contains(_EXPIRED)]
    counts = (("completed", completed), ("failed", failed), ("expired", expired))
    rows = [
        (quantity.name, "", number, number == first, float(value))
        for quantity in quantities(lambda quantity: quantity.rows == "checkpoint")
        for number, value in completed[["id", quantity.flink_column]].itertuples(index=False, name=None)
        if is_known(float(value))
    ]
    rows += [(name, "", WHOLE_RUN, False, float(len(table))) for name, table in counts]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in quantities(lambda quantity: quantity.rows == "subtask"):
        column = quantity.flink_column
        medians = judged[judged[column] >= 0].groupby(["vertex", "id"], as_index=False, sort=False)[column].median()
        for number, vertex, value in medians[["id", "vertex", column]].itertuples(index=False, name=None):
            rows.append((quantity.name, vertex, number, number == first, float(value)))
    return table_of(rows)
