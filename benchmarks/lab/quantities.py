"""Quantities about the end of a job and about failures, which only our own recordings have."""

from __future__ import annotations

from sim.model.quantities import Quantity

LAB_QUANTITIES = (
    Quantity(
        "checkpoints_to_commit",
        "count",
        "checkpoints to commit",
        "completed from the end of a vertex's input (without drain: from the request to stop) to the one that commits its last records",
    ),
    Quantity(
        "tail_checkpoint",
        "id",
        "tail checkpoint",
        "checkpoint or savepoint that commits the last records of a vertex",
    ),
    Quantity(
        "tail_commit_delay",
        "ms",
        "tail commit delay",
        "end of input -> the last subtask hears of that checkpoint's completion",
    ),
    Quantity("job_end_delay", "ms", "job end delay", "last end of input of any vertex -> the last task is closed"),
    Quantity(
        "committed",
        "count",
        "committed",
        "records that a completed checkpoint confirmed, per vertex that commits; all attempts",
    ),
    Quantity(
        "time_to_first_record",
        "ms",
        "time to first record",
        "failure -> any task serves a record again",
    ),
    Quantity(
        "recovery_time",
        "ms",
        "recovery time",
        "failure -> vertices without readers have served the lost records, and all that arrived since",
    ),
    Quantity("restored_checkpoint", "id", "restored checkpoint", "number of the one that the job restored"),
    Quantity(
        "replayed_records",
        "count",
        "replayed records",
        "that the sources had emitted since that checkpoint, summed over subtasks",
    ),
)
