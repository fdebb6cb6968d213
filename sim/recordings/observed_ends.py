"""What a recording shows of ends and failures: the rows `sim.recordings.observed` cannot read off its checkpoints.

=====================  ==================================================================================================
quantity               meaning
=====================  ==================================================================================================
savepoint_duration     trigger -> last acknowledgement, of a savepoint (also one that stops the job)
tail_checkpoint        the checkpoint (or savepoint) that commits the last records of a vertex in a job that came to its end
checkpoints_to_commit  completed from the end of a vertex's input up to that one
tail_commit_delay      end of input at a vertex that commits -> that completion is heard there; latest subtask
job_end_delay          last end of input anywhere -> the last task is closed
committed              records confirmed by a completed checkpoint, per vertex that commits; all attempts
downtime               failure -> the failed vertex serves its first record again; latest subtask
restored_checkpoint    what the job went back to
replayed_records       records the sources had emitted since, summed over subtasks
=====================  ==================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from sim.recordings.quantities import Value
from sim.recordings.recording import Checkpoint, Recording

__all__ = ["completed_between", "of_ends_and_failures"]


def of_ends_and_failures(recording: Recording) -> Iterator[Value]:
    """What happened at the end of the job and in its failures."""
    yield from (("savepoint_duration", "", float(point.end_to_end_duration)) for point in _savepoints(recording))
    yield from _of_the_end(recording)
    yield from _of_failures(recording)


def _savepoints(recording: Recording) -> list[Checkpoint]:
    return [point for point in recording.checkpoints.list if point.is_savepoint and point.status == "COMPLETED"]


def _of_the_end(recording: Recording) -> Iterator[Value]:
    """Ends of input, the completion that commits what they left, and the end of the job."""
    heard, ends, closes = (recording.event_table(kind) for kind in ("complete", "end_input", "close"))
    if not heard.empty:
        for vertex, rows in heard.groupby("node", sort=False):
            if _commits(recording, str(vertex)):
                yield "committed", str(vertex), rows["committed_now"].sum()
    if closes.empty or recording.final_state != "FINISHED":
        return
    final = heard[heard["committed_now"] > 0].groupby(["node", "sub"], sort=False).last()
    if ends.empty:  # a job stopped without drain: its inputs never end
        final["end"] = math.nan
    else:
        last_end = ends.groupby(["node", "sub"])["t"].max().rename("end")
        final = final.join(last_end)
        yield "job_end_delay", "", closes["t"].max() - last_end.max()
    for vertex, rows in final.groupby("node", sort=False):
        if _commits(recording, str(vertex)):
            yield "tail_checkpoint", str(vertex), rows["chk"].max()
            if rows["end"].notna().any():
                count = completed_between(recording.checkpoints_table(), rows["end"].max(), rows["chk"].max())
                yield "checkpoints_to_commit", str(vertex), count
                yield "tail_commit_delay", str(vertex), (rows["t"] - rows["end"]).max()


def completed_between(checkpoints: pd.DataFrame, since_ms: float, last: int) -> int:
    """How many checkpoints, savepoints included, completed from a time on up to the one of number `last`."""
    done = checkpoints[(checkpoints["status"] == "COMPLETED") & (checkpoints["latest_ack_timestamp"] >= since_ms)]
    return int((done["id"] <= last).sum())


def _of_failures(recording: Recording) -> Iterator[Value]:
    """The first failure, and the way back from it."""
    failures, starts = recording.event_table("fail_injected"), recording.event_table("init_state")
    if failures.empty or starts.empty:
        return
    failed_ms, vertex = failures["t"].iloc[0], str(failures["node"].iloc[0])
    restored = starts[starts["attempt"] == 1]
    if restored.empty:
        return
    yield "restored_checkpoint", "", restored["chk"].max()
    records = recording.event_table("first_record")
    again = records[(records["node"] == vertex) & (records["t"] > failed_ms)]
    if not again.empty:
        yield "downtime", "", again["t"].max() - failed_ms
    closed, restarted = recording.event_table("source_close"), recording.event_table("source_start")
    reached = closed.groupby(["node", "sub"])["emitted"].first()
    resumed = restarted[restarted["t"] > failed_ms].groupby(["node", "sub"])["emitted"].first()
    yield "replayed_records", "", (reached - resumed).sum()


def _commits(recording: Recording, vertex: str) -> bool:
    return any(node.id == vertex and node.commit != "none" for node in recording.config.nodes)
