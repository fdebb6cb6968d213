"""Observations of a job's first failure and of its recovery."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.lab.recording import Recording
from sim.jobs.evidence.prediction import RunValue

Numbers = npt.NDArray[np.float64]
_CLOSED_MS = 500.0
"""The failed attempt logs its last second when its tasks close, this much later at most."""
_REST = 0.02


def of_failures(recording: Recording) -> Iterator[RunValue]:
    failures = [table for kind in ("fail_injected", "kill_tm") if len(table := recording.event_table(kind))]
    starts = recording.event_table("init_state")
    if not failures or starts.empty:
        return
    failed_ms = min(float(table["t"].min()) for table in failures)
    restored = starts[starts["attempt"] == 1]
    if restored.empty:
        return
    number = int(restored["chk"].max())
    yield "restored_checkpoint", "", number
    first, closed, started = (
        _after(recording, kind, failed_ms) for kind in ("first_record", "source_close", "source_start")
    )
    if not first.empty:
        yield "time_to_first_record", "", first["t"].min() - failed_ms
    if (runs_ms := _all_run_ms(recording, failed_ms)) is not None:
        yield "downtime", "", runs_ms - failed_ms
    reached, resumed = (rows.groupby(["node", "sub"])["emitted"].first() for rows in (closed, started))
    yield "replayed_records", "", (reached - resumed).sum()
    if (caught_up_ms := _caught_up_ms(recording, failed_ms, number)) is not None:
        yield "recovery_time", "", caught_up_ms - failed_ms


def _after(recording: Recording, kind: str, since_ms: float) -> pd.DataFrame:
    rows = recording.event_table(kind)
    return rows if rows.empty else rows[rows["t"] > since_ms]


def _all_run_ms(recording: Recording, failed_ms: float) -> float | None:
    """The time when the last task left INITIALIZING.

    Flink reports how long each task was in it.  All enter it together, and each leaves it when its operators are open.
    So the latest start that these durations allow is the common start.
    """
    opened = pd.concat([_after(recording, kind, failed_ms) for kind in ("open", "source_start")])
    if opened.empty:
        return None
    open_ms = opened.groupby(["node", "sub"])["t"].min()
    spent: dict[tuple[str, int], float] = {}
    for node in recording.config.nodes:
        samples = recording.metric(node.id, "initializationTime")
        settled = samples[samples.index > open_ms.max()].dropna(how="any")
        if len(settled):
            spent |= {(node.id, sub): float(ms) for sub, ms in enumerate(settled.iloc[-1])}
    begun_ms = max((float(ms) - spent[key] for key, ms in open_ms.to_dict().items() if key in spent), default=None)
    return float(open_ms.max()) if begun_ms is None else max(float(open_ms.max()), begun_ms + max(spent.values()))


def _caught_up_ms(recording: Recording, failed_ms: float, checkpoint: int) -> float | None:
    """The time when the job had caught up.  None: not within the recording, or its records are not countable one by one."""
    config = recording.config
    ends = {node.id for node in config.nodes if not config.is_read(node.id)}
    served, snapshots = recording.event_table("sink_second"), recording.event_table("snapshot")
    multiplied = any(
        node.selectivity != 1 or any(edge.shipping.copies for edge in node.inputs) for node in config.nodes
    )
    if served.empty or snapshots.empty or multiplied:
        return None
    ours = served[served["node"].isin(ends)]
    restored = float(snapshots[snapshots["node"].isin(ends) & (snapshots["chk"] == checkpoint)]["in"].sum())
    before = ours["t"] <= failed_ms + _CLOSED_MS
    counts = ours[~before].groupby("second")["n"].sum()
    sources = [node for node in config.nodes if node.kind == "source"]
    rate = sum(node.rate * node.parallelism for node in sources) if all(node.rate for node in sources) else 0.0
    seconds_ms = (counts.index.to_numpy(dtype=float) + 1) * 1000
    return caught_up_ms(
        failed_ms, seconds_ms, counts.to_numpy(dtype=float), float(ours[before]["n"].sum()) - restored, rate
    )


def caught_up_ms(failed_ms: float, times_ms: Numbers, served: Numbers, again: float, per_second: float) -> float | None:
    """The time when the ends of a job have served their lost records (`again`), and all that arrived since; None: never.

    `served`: records of each interval that ends at `times_ms`.  Sources with a rate tell the arrivals; unlimited sources count as 0.
    98 % of the records are enough: some are always under way between the sources and the ends.
    """
    missing = again + per_second * (times_ms - failed_ms) / 1000 - served.cumsum()
    if not len(missing):
        return None
    left = missing - _REST * missing.max()
    done = np.flatnonzero(left <= 0)
    if not len(done):
        return None
    i = int(done[0])
    if i == 0:
        return float(times_ms[0])
    return float(np.interp(0.0, [left[i], left[i - 1]], [times_ms[i], times_ms[i - 1]]))
