"""The time from a job's submission until all its tasks run, when the clock of a simulated run begins.

A recording dates requests and failures from the submission.  Deployment depends on the machine (0.7 to 3.5 s for one
configuration).  So the recorded start is read, to bring both on one clock; nothing about checkpoints is read.
"""

from __future__ import annotations

from benchmarks.lab.recording import Recording
from sim.model.scenario import Overheads

_STARTED = ("open", "prefilled", "source_start")


def startup_ms(recording: Recording) -> float:
    """Submission -> the last task of the first attempt is open, its state filled, its source started [ms]; else the model's default."""
    submitted = recording.event_table("submit")
    if submitted.empty:
        return Overheads().start_ns / 10**6
    failed = [recording.event_table(kind) for kind in ("fail_injected", "kill_tm")]
    until_ms = min((float(table["t"].min()) for table in failed if len(table)), default=float("inf"))
    tables = (recording.event_table(kind) for kind in _STARTED)
    starts = [float(table[table["t"] < until_ms]["t"].max()) for table in tables if len(table)]
    return max(starts) - float(submitted["t"].min()) if starts else Overheads().start_ns / 10**6
