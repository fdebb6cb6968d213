"""Observations of the end of a recorded job."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from benchmarks.lab.recording import Recording
from sim.jobs.evidence.prediction import RunValue
from sim.jobs.source.recorded_job import checkpoints_table


def of_the_end(recording: Recording) -> Iterator[RunValue]:
    """Ends of input, the completions that commit the last records, and the end of the job."""
    completions, ends, closes = (recording.event_table(kind) for kind in ("complete", "end_input", "close"))
    if not completions.empty:
        for vertex, rows in completions.groupby("node", sort=False):
            if _commits(recording, str(vertex)):
                yield "committed", str(vertex), rows["committed_now"].sum()
    if closes.empty or recording.final_state != "FINISHED":
        return
    final = completions[completions["committed_now"] > 0].groupby(["node", "sub"], sort=False).last()
    if ends.empty:  # a job that stopped without drain: its inputs never end
        final["end"] = math.nan
    else:
        last_end = ends.groupby(["node", "sub"])["t"].max().rename("end")
        final = final.join(last_end)
        yield "job_end_delay", "", closes["t"].max() - last_end.max()
    checkpoints = checkpoints_table(recording.checkpoints.list)
    for vertex, rows in final.groupby("node", sort=False):
        if _commits(recording, str(vertex)):
            yield "tail_checkpoint", str(vertex), rows["chk"].max()
            ended_ms = rows["end"].max() if rows["end"].notna().any() else stopped_ms(checkpoints)
            yield "checkpoints_to_commit", str(vertex), completed_between(checkpoints, ended_ms, rows["chk"].max())
            if rows["end"].notna().any():
                yield "tail_commit_delay", str(vertex), (rows["t"] - rows["end"]).max()


def stopped_ms(checkpoints: pd.DataFrame) -> float:
    """The trigger time of the savepoint that stopped the job; NaN: none did."""
    return float(checkpoints[checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"]["trigger_timestamp"].max())


def completed_between(checkpoints: pd.DataFrame, since_ms: float, last: int) -> int:
    """Number of checkpoints and savepoints completed since a time, up to number `last`."""
    done = checkpoints[(checkpoints["status"] == "COMPLETED") & (checkpoints["latest_ack_timestamp"] >= since_ms)]
    return int((done["id"] <= last).sum())


def _commits(recording: Recording, vertex: str) -> bool:
    return any(node.id == vertex and node.commits for node in recording.vertices)
