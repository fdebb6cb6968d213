"""Made jobs whose truth is known: vertices, histories of checkpoints, and answers about them, without any JSON."""

import math
from types import SimpleNamespace

import numpy as np

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.work import edge_flows, infer_work
from sim.jobs.source.recorded_job import Phases, RecordedAlignment, RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.rest_answers import CheckpointConfig, CheckpointStatistics, JobConfig, VertexDetails
from sim.jobs.source.rest_job import COUNTERS, Flows, JobGraph, RestInput, RestVertex, Series
from sim.model.schema.flink_keys import with_current_names

MB = 10**6


class MadeJob(JobGraph):
    """As far as the inference asks.  It is no other job, so that what is found of it can be kept."""

    def __init__(self, vertices, checkpoints=(), config=None, options=(), **answers):
        self.vertices, self.checkpoints = tuple(vertices), tuple(checkpoints)
        self.checkpoint_config = CheckpointConfig(**({} if config is None else {"interval": 5000} | config))
        self.restored, self.flink_version = None, "2.3.0"
        self.options = with_current_names(dict(options))
        self.statistics, self.rescales = CheckpointStatistics(), ()
        self.details = {vertex.name: VertexDetails() for vertex in self.vertices}
        self.flows = {vertex.name: flow() for vertex in self.vertices}
        self.series = {vertex.name: sampled() for vertex in self.vertices}
        self.task_managers, self.cores_used, self.job_config = (), {}, JobConfig()
        self.snapshot, self.job = (
            SimpleNamespace(job="1", source="saved"),
            SimpleNamespace(state="RUNNING", name="made"),
        )
        for name, value in answers.items():
            setattr(self, name, value)


def vertex(name, *upstreams, ship="HASH", parallelism=1):
    return RestVertex(name, name, (name,), parallelism, 128, tuple(RestInput(upstream, ship) for upstream in upstreams))


def own(read=0.0, written=0.0, busy=0.0, idle=0.0, pressed=0.0, size=100.0):
    """A subtask over 100 s: records per second, shares of its time, bytes of a record."""
    times = (100_000.0 * share for share in (busy, idle, pressed))
    return 100 * read, 100 * written, 100 * read * size, 100 * written * size, *times


def flowed(*subtasks):
    columns = dict(zip(COUNTERS, np.array(subtasks, dtype=float).T, strict=True))
    return Flows(columns | {"elapsed_ms": np.full(len(subtasks), 100_000.0)}, "made counters", 0, 100_000)


def sampled(**metrics):
    """Metric -> (time [ms], values of the subtasks) of each sample, at the same times."""
    times_ms = [time_ms for time_ms, _ in next(iter(metrics.values()), ())]
    return Series(
        np.array(times_ms), {name: np.array([values for _, values in rows]) for name, rows in metrics.items()}
    )


def flow(read=math.nan, written=math.nan, size=100.0):
    """The only subtask of a vertex."""
    return flowed(own(read, written, size=size))


def worked(vertices, flows, **answers):
    """What the importer writes about vertices."""
    job, draft = MadeJob(vertices, flows=flows, **answers), Draft()
    carried = edge_flows(job)
    for row in vertices:
        infer_work(draft, row, carried)
    return draft


def subtask(
    index=0,
    size=0,
    written=None,
    *,
    sync=0,
    async_=20,
    start=10,
    align=0,
    persisted=0,
    late=3,
    status="completed",
    **fields,
):
    """An acknowledgement [bytes, ms]; `late`: what no phase explains."""
    return RecordedSubtask(
        index=index,
        status=status,
        start_delay=start,
        end_to_end_duration=start + align + max(sync, 0) + max(async_, 0) + late,
        alignment=RecordedAlignment(duration=align, persisted=persisted),
        checkpoint=Phases(sync=sync, **{"async": async_}),
        state_size=size + persisted,
        checkpointed_size=(size if written is None else written) + persisted,
        unaligned_checkpoint=persisted > 0,
        **fields,
    )


def checkpoint(number, every_ms=5000, took_ms=100, status="COMPLETED", **tasks):
    """Vertex -> its subtasks."""
    return RecordedCheckpoint(
        id=number,
        status=status,
        trigger_timestamp=every_ms * number,
        latest_ack_timestamp=every_ms * number + took_ms,
        end_to_end_duration=took_ms,
        tasks={name: RecordedTask(subtasks=tuple(own)) for name, own in tasks.items()},
    )


def drafted(job):
    """A draft with an empty section for each vertex."""
    draft = Draft()
    draft.document["job"] = {vertex.name: {} for vertex in job.vertices}
    return draft


def comment_of(draft, path):
    """A comment in one line."""
    return " ".join(draft.comments[path].split())
