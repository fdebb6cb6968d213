"""Names and units of observations: Flink's REST names where Flink has one.  The modules that observe a quantity define it."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

UNITS = {
    "end_to_end_duration": "ms",
    "checkpointed_size": "bytes",
    "state_size": "bytes",
    "processed_data": "bytes",
    "persisted_data": "bytes",
    "completed": "count",
    "failed": "count",
    "expired": "count",
    "start_delay": "ms",
    "alignment_duration": "ms",
    "sync_duration": "ms",
    "async_duration": "ms",
    "alignment_processed": "bytes",
    "alignment_persisted": "bytes",
    "numRecordsInPerSecond": "1/s",
    "numRecordsOutPerSecond": "1/s",
    "busyTimeMsPerSecond": "ms/s",
    "idleTimeMsPerSecond": "ms/s",
    "backPressuredTimeMsPerSecond": "ms/s",
    "latency": "ms",
    "outputQueueLength": "buffers",
    "outputQueueSize": "bytes",
    "inputQueueLength": "buffers",
    "inputQueueSize": "bytes",
    "savepoint_duration": "ms",
    "checkpoints_to_commit": "count",
    "tail_checkpoint": "id",
    "tail_commit_delay": "ms",
    "job_end_delay": "ms",
    "committed": "count",
    "downtime": "ms",
    "time_to_first_record": "ms",
    "recovery_time": "ms",
    "restored_checkpoint": "id",
    "replayed_records": "count",
}
"""Unit of every quantity, in the order of the tables."""

DURATIONS = tuple(name for name, unit in UNITS.items() if unit == "ms")
WHOLE_RUN = -1
"""Number in place of a checkpoint: a row about the whole run, or a sample of a series."""
COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")

Observation = tuple[str, str, int, bool, float]  # quantity, vertex ("": the whole job), checkpoint, first, value
RunValue = tuple[str, str, float]  # quantity, vertex, value of the whole run


def table_of(rows: Iterable[Observation]) -> pd.DataFrame:
    """A table with `COLUMNS`, of fixed types even without rows."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).astype(types)
    return table.assign(unit=table["quantity"].map(UNITS))


def values_of(values: Iterable[RunValue]) -> pd.DataFrame:
    """A table with `COLUMNS`, of values about the whole run."""
    return table_of([(quantity, vertex, WHOLE_RUN, False, float(value)) for quantity, vertex, value in values])
