"""Levers that take machines or storage: parallelism of the vertex that is full, cores, prefixes, merged files."""

from __future__ import annotations

from collections.abc import Iterator

from sim.advice.levers.lever import ALIGNMENT, ASYNC_WORK, CHANNEL_STATE, LOSS, QUEUE, REPLAY, UPLOAD, Change, Lever, Situation
from sim.model.catalogs.shipping import SHIPPING
from sim.model.job import Job
from sim.scenario.overrides import key_of
from sim.sweeps.file.design import Point

_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs"
MANY_FILES = 100
"""Files of one checkpoint that are worth merging."""
MORE_PREFIXES = 8


def _parallelism(situation: Situation) -> Iterator[Change]:
    name = situation.full
    if name and (point := more_subtasks(situation, name, 2)):
        yield Change(PARALLELISM, f"2 x parallelism of {name}", point)


def more_subtasks(situation: Situation, name: str, factor: int) -> Point:
    """The change that gives a vertex `factor` times as many subtasks; empty: it cannot have more.

    Vertices that it is forwarded to, or from, follow it.  Weights that were counted live on key groups.
    """
    job = situation.scenario.job
    point: Point = {}
    for other in _forwarded(job, name):
        vertex = job.vertex(other)
        if vertex.parallelism * factor > vertex.max_parallelism or "rate-per-subtask" in (_source(situation, other)):
            return {}
        point[key_of(("job", other, "parallelism"))] = vertex.parallelism * factor
        for inlet, written in (situation.plain["job"].get(other, {}).get("input") or {}).items():
            weights = written.get("weights") if isinstance(written, dict) else None
            if isinstance(weights, list):
                point[key_of(("job", other, "input", inlet, "weights"))] = {"counted": list(weights)}
    return point


def _source(situation: Situation, name: str) -> dict[str, object]:
    return situation.plain["job"].get(name, {}).get("source") or {}


def _forwarded(job: Job, name: str) -> list[str]:
    """This vertex and all that one-to-one edges tie to it: they have the same parallelism."""
    found = [name]
    for here in found:
        for vertex in job.vertices:
            for inlet in vertex.inputs:
                if SHIPPING[inlet.ship].one_to_one and here in (vertex.name, inlet.upstream):
                    found += [other for other in (vertex.name, inlet.upstream) if other not in found]
    return found


def _cores(situation: Situation) -> Iterator[Change]:
    cores = situation.scenario.cluster.cores
    if cores is not None:
        yield Change(CORES, f"{2 * cores} cores", {"cluster.cores": 2 * cores})


def _file_merging(situation: Situation) -> Iterator[Change]:
    subtasks = sum(vertex.parallelism for vertex in situation.scenario.job.vertices)
    if situation.scenario.storage.merging is None and subtasks >= MANY_FILES and situation.scenario.cluster.profile != "1.15":
        yield Change(FILE_MERGING, "merged files", {"storage.file-merging": "on"})


def _prefixes(situation: Situation) -> Iterator[Change]:
    store = situation.scenario.storage.object_store
    if store is not None and store.requests_per_second is not None:
        prefixes = store.prefixes * MORE_PREFIXES
        yield Change(PREFIXES, f"{prefixes} prefixes", {"storage.object-store.prefixes": prefixes})


PARALLELISM = Lever(
    "parallelism", frozenset({QUEUE, ALIGNMENT, UPLOAD, REPLAY}), _parallelism, costs="as many slots more, and a restart that rescales",
    short_ask="is one key hot? More subtasks do not share it out",
    short_caution="by setParallelism, or pipeline.jobvertex-parallelism-overrides",
    ask="is one key hot? More subtasks do not share it out",
    caution="a chain of operators scales by setParallelism, or by pipeline.jobvertex-parallelism-overrides (reactive and autoscaled jobs)",
    source=f"{_DOCS}/deployment/elastic_scaling", is_configuration=False,
)  # fmt: skip
CORES = Lever("cores", frozenset({QUEUE, ASYNC_WORK, LOSS}), _cores, costs="larger TaskManagers", is_configuration=False)
FILE_MERGING = Lever(
    "file merging", frozenset({UPLOAD, CHANNEL_STATE}), _file_merging, costs="files live for longer than their checkpoint",
    caution="Flink 1.20 and later (FLIP-306)", source=f"{_DOCS}/dev/datastream/fault-tolerance/checkpointing",
)  # fmt: skip
PREFIXES = Lever(
    "prefixes", frozenset({UPLOAD, CHANNEL_STATE}), _prefixes, costs="a layout of checkpoints that tools have to know",
    caution="s3.entropy.key stands in the path of checkpoints, too", source=f"{_DOCS}/deployment/filesystems/s3", is_configuration=False,
)  # fmt: skip
