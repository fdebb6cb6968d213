"""Which edges cannot carry unaligned barriers: their barriers are forced to align there.

An edge lacks support if it is pointwise (its channels cannot be redistributed after rescaling) or a broadcast
(StreamPartitioner#isSupportsUnalignedCheckpoint).  Since Flink 2.0 one that leads to a sink's committer lacks it, too
(FLINK-36287).  One such input edge disables all input edges of its vertex (StreamGraphGenerator).  Where FLINK-37870 is not
fixed, a committer behind an exchange disables all edges of the job.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.model.job import Job, Vertex


def forced_aligned_edges(job: Job, also: Iterable[tuple[str, str]] = ()) -> frozenset[tuple[str, str]]:
    """(upstream, downstream) of every forced edge; `also` names further ones (e.g. from a sink's writer on, FLINK-36287)."""
    named = frozenset(also)
    unknown = named - {(i.upstream, v.name) for v in job.vertices for i in v.inputs}
    if unknown:
        raise ValueError(f"no such edges: {sorted(unknown)}")
    exchanges = {vertex.commit.exchange for vertex in job.vertices if vertex.commit is not None and vertex.commit.committer == "global"}
    if "aligns-job" in exchanges:
        return frozenset((inlet.upstream, vertex.name) for vertex in job.vertices for inlet in vertex.inputs)
    forced = {
        vertex.name
        for vertex in job.vertices
        for inlet in vertex.inputs
        if not inlet.shipping.overtaken or (inlet.upstream, vertex.name) in named or _is_sealed(job, vertex)
    }
    return frozenset((inlet.upstream, vertex.name) for vertex in job.vertices if vertex.name in forced for inlet in vertex.inputs)


def _is_sealed(job: Job, vertex: Vertex) -> bool:
    """Whether it is a committer that barriers reach in order only."""
    if not vertex.committer_of:
        return False
    commit = job.vertex(vertex.committer_of).commit
    return commit is None or commit.exchange != "as-job"
