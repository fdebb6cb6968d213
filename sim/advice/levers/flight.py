"""Levers about barriers, when checkpoints begin, and the data in flight between tasks."""

from __future__ import annotations

from collections.abc import Iterator

from sim.advice.levers.lever import (
    ALIGNMENT,
    CHANNEL_STATE,
    EXPIRY,
    LOSS,
    PARTS,
    QUEUE,
    REPLAY,
    UPLOAD,
    Change,
    Lever,
    Situation,
)
from sim.advice.settings import NICE_NS, PAUSE, TIMEOUT_NS, allowed, checkpoint_period_ns
from sim.units import format_duration

_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs"
SMALL_SEGMENT, FEW_FLOATING = 8192, 2
TOLERATED = 10
"""Failed checkpoints in a row that a job may stand."""
LONGER = 6
"""A timeout that is too short becomes so many times as long."""


def _barriers(situation: Situation) -> Iterator[Change]:
    yield from (Change(BARRIERS, "", protocol=other) for other in allowed(situation.scenario) if other.name != situation.protocol.name)


def _interval(situation: Situation) -> Iterator[Change]:
    """The next shorter one and the next longer one."""
    shorter = [other for other in NICE_NS if other < situation.interval_ns]
    longer = [other for other in NICE_NS if other > situation.interval_ns]
    for other in (*shorter[-1:], *longer[:1]):
        yield Change(INTERVAL, "", interval_ns=other)


def _min_pause(situation: Situation) -> Iterator[Change]:
    """Where checkpoints follow each other without a pause."""
    if situation.scenario.checkpoint.min_pause_ns < situation.interval_ns and situation.checkpoint_ms * 2e6 > situation.interval_ns:
        pause = format_duration(situation.interval_ns)
        yield Change(MIN_PAUSE, f"pause {pause}", {"checkpoint.min-pause": pause})


def _no_pause(situation: Situation) -> Iterator[Change]:
    """Where the pause puts off checkpoints beyond their interval."""
    options = situation.scenario.checkpoint
    if options.min_pause_ns and checkpoint_period_ns(options, situation.checkpoint_ms * 1e6) > situation.interval_ns:
        yield Change(NO_PAUSE, "min-pause 0 s", {PAUSE: "0 s"})


def _tolerance(situation: Situation) -> Iterator[Change]:
    if situation.shares.get(EXPIRY) and situation.scenario.checkpoint.tolerable_failed < TOLERATED:
        yield Change(TOLERANCE, f"{TOLERATED} failed checkpoints tolerated", {"checkpoint.tolerable-failed": TOLERATED})


def _timeout(situation: Situation) -> Iterator[Change]:
    longer = format_duration(max(situation.scenario.checkpoint.timeout_ns, TIMEOUT_NS) * LONGER)
    if situation.shares.get(EXPIRY):
        yield Change(TIMEOUT, f"timeout {longer}", {"checkpoint.timeout": longer})


def _segments(situation: Situation) -> Iterator[Change]:
    network = situation.scenario.cluster.network
    if network.debloat is None and network.segment_bytes > SMALL_SEGMENT:
        yield Change(SEGMENTS, "segments of 8 KiB", {"cluster.network.segment-size": "8 KiB"})


def _floating(situation: Situation) -> Iterator[Change]:
    cluster = situation.scenario.cluster
    if cluster.network.debloat is None and cluster.profile != "2.x" and cluster.network.floating_per_gate > FEW_FLOATING:
        yield Change(FLOATING, "2 floating buffers", {"cluster.network.floating-buffers-per-gate": FEW_FLOATING})


BARRIERS = Lever(
    "barriers", frozenset({QUEUE, ALIGNMENT, CHANNEL_STATE}), _barriers,
    costs="unaligned: data in flight is written, and read at a restore; debloating: smaller buffers",
    ask="which sink does the job write to?", source=f"{_DOCS}/ops/state/checkpointing_under_backpressure",
)  # fmt: skip
INTERVAL = Lever("interval", frozenset({REPLAY, LOSS, UPLOAD}), _interval, costs="shorter: more checkpoints; longer: more is replayed")
MIN_PAUSE = Lever("min-pause", frozenset({LOSS}), _min_pause, costs="fewer checkpoints: more is replayed")
NO_PAUSE = Lever("no min-pause", frozenset(PARTS), _no_pause, costs="checkpoints may follow each other without a pause")
TOLERANCE = Lever("tolerated failures", frozenset({EXPIRY, LOSS}), _tolerance, costs="a job whose checkpoints fail goes on for longer")
TIMEOUT = Lever("timeout", frozenset({EXPIRY}), _timeout, costs="a checkpoint that hangs is noticed later")
SEGMENTS = Lever(
    "segments", frozenset({QUEUE, ALIGNMENT, CHANNEL_STATE}), _segments, costs="more buffers to handle, and less in flight",
    short_ask="how large is the largest record?",
    ask="how large is the largest record? One larger than a segment takes several", source=f"{_DOCS}/deployment/memory/network_mem_tuning",
)  # fmt: skip
FLOATING = Lever(
    "floating buffers", frozenset({QUEUE, ALIGNMENT, CHANNEL_STATE}), _floating, costs="less in flight",
    caution="Flink 2.x ignores this option", source=f"{_DOCS}/deployment/memory/network_mem_tuning",
)  # fmt: skip
