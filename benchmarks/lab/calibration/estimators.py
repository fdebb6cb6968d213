"""Samples of the constants of an environment in a recording: differences of recorded times, nothing simulated.

A recording shows a constant many times or never.  Estimators rely on the configuration: latencies and bandwidths of
storage, requested delays, the interval.  The remaining time belongs to the environment.  `estimate` makes a value of
the samples of several recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from benchmarks.lab.config import Configuration, Node
from benchmarks.lab.recording import Recording
from benchmarks.lab.scenario import FIXED_OPTIONS, RESTART_OPTIONS
from benchmarks.lab.startup import startup_ms
from sim.jobs.source.recorded_job import RecordedCheckpoint, subtasks_table
from sim.model.units import parse_flink_duration


class EstimatedConstant(NamedTuple):
    """A constant of `Overheads` (without `_ns`), and its estimator."""

    what: str
    how: str
    samples_ms: Callable[[Recording], list[float]]
    includes: str = ""  # another constant within the samples: this recording's vote for it is subtracted


def _trigger(recording: Recording) -> list[float]:
    return _of_sources(recording)["start_delay"].tolist()


def _acknowledge(recording: Recording) -> list[float]:
    of = _of_sources(recording)
    return (of["end_to_end_duration"] - of["start_delay"] - of["sync_duration"] - of["async_duration"]).tolist()


def _file(recording: Recording) -> list[float]:
    """Per file, from aligned snapshots in heap memory: other snapshots do more than write files in their asynchronous phase."""
    storage, rows = recording.config.fs, _settled(recording)
    if storage.slow_prob or recording.config.flink.get("state.backend.type", "hashmap") != "hashmap":
        return []
    samples: list[float] = []
    for node in recording.config.nodes:
        of = rows[(rows["vertex"] == node.id) & ~rows["unaligned_checkpoint"].astype(bool)]
        files = 1 + _has_state(node)
        bytes_ms = of["checkpointed_size"] * 1000 / storage.bytes_per_sec if storage.bytes_per_sec else 0.0
        if not node.async_ms and not _may_turn_unaligned(recording.config):
            samples += ((of["async_duration"] - bytes_ms) / files - storage.create_ms - storage.close_ms).tolist()
    return samples


def _complete(recording: Recording) -> list[float]:
    """From checkpoints whose successor was due already, or is due a pause later."""
    interval_ms, pause_ms = _duration_ms(recording, "interval"), _duration_ms(recording, "min-pause")
    if (
        interval_ms is None
        or str(recording.config.flink.get("execution.checkpointing.max-concurrent-checkpoints", 1)) != "1"
    ):
        return []
    return [
        later.trigger_timestamp - earlier.latest_ack_timestamp - _metadata_ms(recording) - (pause_ms or 0)
        for earlier, later in pairwise(recording.checkpoints.list)
        if earlier.status == "COMPLETED"
        and not (earlier.is_savepoint or later.is_savepoint)
        and earlier.end_to_end_duration + (pause_ms or 0) > max(interval_ms, pause_ms or 0)
    ]


def _notify(recording: Recording) -> list[float]:
    """From tasks that are soon done with a record: others notice only when they are."""
    completions = recording.event_table("complete")
    if completions.empty or "start" not in completions:
        return []
    quick = {node.id for node in recording.config.nodes if max(node.service_us, node.service_us2 or 0) <= _QUICK_US}
    acknowledged = {point.id: point.latest_ack_timestamp for point in _periodic(recording)}
    completions = completions[completions["node"].isin(quick) & completions["chk"].isin(acknowledged)]
    return (completions["start"] - completions["chk"].map(acknowledged) - _metadata_ms(recording)).tolist()


def _first_trigger(recording: Recording) -> list[float]:
    """Flink 2.x triggers when the first task runs, in vain, and again when all run.  The first attempt seldom succeeds."""
    refused = recording.checkpoints.counts.get("failed", 0) - sum(
        point.status == "FAILED" for point in recording.checkpoints.list
    )
    pause_ms = _duration_ms(recording, "min-pause") or 0
    submitted = recording.event_table("submit")
    if (
        recording.flink_version.startswith("1.")
        or submitted.empty
        or not recording.checkpoints.list
        or not (refused or pause_ms)
    ):
        return []
    first_ms = min(point.trigger_timestamp for point in recording.checkpoints.list)
    return [first_ms - pause_ms - float(submitted["t"].min()) - startup_ms(recording)]


def _close(recording: Recording) -> list[float]:
    """From the last event that an operator waits for (its last completion, or the end of those before it) to its own end."""
    if recording.final_state != "FINISHED":
        return []
    closed = {
        node: float(rows["t"].max()) for kind in ("close", "source_close") for node, rows in _by_node(recording, kind)
    }
    completions = {node: rows.groupby("sub")["t"].max() for node, rows in _by_node(recording, "complete")}
    samples: list[float] = []
    for node, rows in _by_node(recording, "close"):
        before = [closed.get(edge.upstream) for edge in recording.config.node(node).inputs]
        if node in completions and None not in before:
            waited = rows["sub"].map(completions[node]).clip(lower=max(time for time in before if time is not None))
            samples += (rows["t"] - waited).dropna().tolist()
    return samples


def _fail(recording: Recording) -> list[float]:
    times = _failure_ms(recording)
    return [] if times is None else [times.restarting - times.failed]


def _restart(recording: Recording) -> list[float]:
    times = _failure_ms(recording)
    delay = recording.config.flink.get(_DELAY, RESTART_OPTIONS[_DELAY])
    return [] if times is None else [times.running - times.restarting - parse_flink_duration(str(delay)) / 10**6]


def _deploy(recording: Recording) -> list[float]:
    """From tasks without keyed state: others log their start after reading their state."""
    times, starts = _failure_ms(recording), recording.event_table("init_state")
    if times is None or starts.empty:
        return []
    stateful = {node.id for node in recording.config.nodes if _has_state(node)}
    again = starts[(starts["attempt"] == 1) & ~starts["node"].isin(stateful)]
    return (again["t"] - times.running).tolist()


def _start(recording: Recording) -> list[float]:
    return (
        [] if recording.event_table("submit").empty or recording.event_table("open").empty else [startup_ms(recording)]
    )


def _flusher(recording: Recording) -> list[float]:
    """The flush interval of a source that never waits.  Its outputs hold the records since its last flush; flushes are whole periods apart.

    An excess over the timeout accumulates over the flushes between two checkpoints, up to one timeout: then it is
    invisible.
    """
    timeout_ms = parse_flink_duration(str(recording.config.flink.get(_TIMEOUT, FIXED_OPTIONS[_TIMEOUT]))) / 10**6
    rates = {
        node.id: node.rate * node.record_bytes / 1000
        for node in recording.config.nodes
        if node.rate * timeout_ms >= _FINE * 1000
    }
    of = _of_sources(recording)
    of = of[of["unaligned_checkpoint"].astype(bool) & of["vertex"].isin(rates)]
    triggered = {subtask.id: subtask.trigger_timestamp for subtask in recording.checkpoints.list}
    since = of["alignment_persisted"] / of["vertex"].map(rates).astype(float)
    flushed = of["id"].map(triggered) + of["start_delay"] - since
    samples: list[float] = []
    for _, subtask in of.assign(since=since, flushed=flushed).groupby(["vertex", "index"]):
        if timeout_ms > 0 and subtask["since"].quantile(_MOST) <= timeout_ms:
            apart = subtask["flushed"].diff()
            apart = apart[apart >= timeout_ms]
            samples += (apart / (apart // timeout_ms) - timeout_ms).tolist()
    return samples


CONSTANTS: dict[str, EstimatedConstant] = {
    "trigger": EstimatedConstant(
        "Trigger timestamp -> the trigger call is executed by a source.",
        "start_delay of sources",
        _trigger,
    ),
    "acknowledge": EstimatedConstant(
        "End of the asynchronous phase -> the acknowledgement is processed by the coordinator.",
        "end_to_end_duration of sources, without start_delay, sync and async",
        _acknowledge,
    ),
    "complete": EstimatedConstant(
        "Last acknowledgement -> the next trigger is possible, beside writing _metadata.",
        "last acknowledgement -> next trigger, where that was due already or is due after a pause",
        _complete,
    ),
    "notify": EstimatedConstant(
        "Coordinator -> task.",
        "last acknowledgement -> a task hears of the completion, without complete and _metadata",
        _notify,
        includes="complete",
    ),
    "first_trigger": EstimatedConstant(
        "All tasks running -> first trigger, in Flink 2.x.",
        "the last task is open -> first trigger, without min-pause, where an earlier one was refused",
        _first_trigger,
    ),
    "close": EstimatedConstant(
        "A task's last wait is over -> its outputs are closed.",
        "last completion heard, or those before it closed -> closed, in jobs that end",
        _close,
    ),
    "fail": EstimatedConstant(
        "A task's exception -> the job counts as RESTARTING.",
        "exception thrown -> job status",
        _fail,
    ),
    "restart": EstimatedConstant(
        "Restart delay over -> deployment begins.",
        "RESTARTING -> RUNNING, without the restart delay",
        _restart,
    ),
    "deploy": EstimatedConstant(
        "Deployment begins -> a task begins to initialize.",
        "RUNNING after a failure -> tasks without keyed state initialize",
        _deploy,
    ),
    "file": EstimatedConstant(
        "A file of flat checkpoint storage, beside the latency and bandwidth it is said to have.",
        "async_duration of aligned snapshots in heap memory, per file",
        _file,
    ),
    "start": EstimatedConstant(
        "Submission -> all tasks run; used where it was not measured.",
        "submission -> the last task is open, its state filled, its source started",
        _start,
    ),
    "flusher": EstimatedConstant(
        "A flush of a task's outputs -> the next, beside the buffer timeout.",
        "in-flight data of sources that never wait, at one unaligned checkpoint after the other",
        _flusher,
    ),
}
"""Field of `Overheads` without `_ns` -> constant, in the order of a checkpoint's and a job's life."""


# ---------------------------------------------------------------------------------------------- shared by several

_QUICK_US = 1000
_DELAY = "restart-strategy.fixed-delay.delay"
_TIMEOUT = "execution.buffer-timeout.interval"
_FINE = 10  # records per timeout that make bytes a clock
_MOST = 0.9  # share of the checkpoints


class _Failure(NamedTuple):
    """The times of a failure [epoch ms]."""

    failed: float
    restarting: float
    running: float


def _failure_ms(recording: Recording) -> _Failure | None:
    """The times of a failure, if the job failed once: a status keeps its last time only."""
    failed, times = recording.event_table("fail_injected"), recording.job.timestamps
    restarting, running = times.get("RESTARTING", 0), times.get("RUNNING", 0)
    if len(failed) != 1 or not failed["t"].iloc[0] < restarting <= running:
        return None
    return _Failure(float(failed["t"].iloc[0]), restarting, running)


def _periodic(recording: Recording) -> list[RecordedCheckpoint]:
    """Completed checkpoints without the first, which meets a starting job."""
    first = min((point.id for point in recording.checkpoints.list), default=0)
    return [
        point
        for point in recording.checkpoints.list
        if point.id > first and point.status == "COMPLETED" and not point.is_savepoint
    ]


def _settled(recording: Recording) -> pd.DataFrame:
    """Acknowledgements of these checkpoints by unfinished tasks."""
    rows = subtasks_table(recording.checkpoints.list)
    done = rows["id"].isin([point.id for point in _periodic(recording)]) & (rows["status"] == "completed")
    return rows[done & (rows["start_delay"] >= 0) & (rows["checkpointed_size"] > 0)]


def _of_sources(recording: Recording) -> pd.DataFrame:
    sources = [node.id for node in recording.config.nodes if node.kind == "source"]
    rows = _settled(recording)
    return rows[rows["vertex"].isin(sources)]


def _by_node(recording: Recording, kind: str) -> list[tuple[str, pd.DataFrame]]:
    events = recording.event_table(kind)
    return [] if events.empty else [(str(node), rows) for node, rows in events.groupby("node", sort=False)]


def _has_state(node: Node) -> bool:
    return bool(node.state_keys * node.state_value_bytes)


def _metadata_ms(recording: Recording) -> float:
    return recording.config.fs.create_ms + recording.config.fs.metadata_close_ms


def _duration_ms(recording: Recording, option: str) -> float | None:
    given = recording.config.flink.get(f"execution.checkpointing.{option}")
    return None if given is None else parse_flink_duration(str(given)) / 10**6


def _may_turn_unaligned(config: Configuration) -> bool:
    """Whether the asynchronous phase also waits for barriers in output queues and for the writer of in-flight data."""
    return str(config.flink.get("execution.checkpointing.unaligned.enabled", "false")).lower() == "true"
