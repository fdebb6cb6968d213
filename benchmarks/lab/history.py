"""The history of a recorded job's checkpoints, as `explain` reads it."""

from __future__ import annotations

from typing import Any

from benchmarks.lab.recording import Recording
from benchmarks.lab.scenario import to_document
from sim.jobs.history.history import History, SubtaskId
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestVertex
from sim.model.checkpoint import ALIGNED_TIMEOUT, UNALIGNED
from sim.model.units import MS, parse_flink_duration


def history_of_recording(recording: Recording) -> History:
    """Our own recorder knows what it configured."""
    config: dict[str, Any] = to_document(recording).document["flink"]
    timeout_ms = parse_flink_duration(config.get(ALIGNED_TIMEOUT, 0)) // MS
    barriers = CheckpointConfig(
        unaligned_checkpoints=bool(config.get(UNALIGNED, False)), aligned_checkpoint_timeout=timeout_ms
    )
    vertices = tuple(
        RestVertex(
            node.id,
            node.id,
            (node.id,),
            node.parallelism,
            -1,
            tuple(RestInput(edge.upstream, edge.shipping.name.upper()) for edge in node.inputs),
        )
        for node in recording.config.nodes
    )
    points = tuple(sorted(recording.checkpoints.list, key=lambda point: point.id))
    counted = sum(recording.checkpoints.counts.get(state, 0) for state in ("completed", "failed", "in_progress"))
    return History(
        recording.name, recording.flink_version, vertices, points, barriers, _places(recording), counted=counted
    )


def _places(recording: Recording) -> dict[SubtaskId, str]:
    """Where the recorder put each subtask: alone, all together, or those of one index."""
    placement = recording.config.placement
    return {
        (node.id, index): {"isolated": f"of {node.id}[{index}]", "single": "the only one"}.get(placement, f"{index}")
        for node in recording.config.nodes
        for index in range(node.parallelism)
    }
