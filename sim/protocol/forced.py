"""Which edges cannot carry unaligned barriers: their barriers are forced to align there.

An edge lacks support if it is pointwise (its channels cannot be redistributed after rescaling) or a broadcast
(StreamPartitioner#isSupportsUnalignedCheckpoint), or if it leads to a sink's committer (FLINK-36287).  One such input edge
disables all input edges of its vertex (StreamGraphGenerator).
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.model.job import Job


def forced_aligned_edges(job: Job, also: Iterable[tuple[str, str]] = ()) -> frozenset[tuple[str, str]]:
    """(upstream, downstream) of every forced edge; `also` names further ones (e.g. from a sink's writer on, FLINK-36287)."""
    named = frozenset(also)
    unknown = named - {(i.upstream, v.name) for v in job.vertices for i in v.inputs}
    if unknown:
        raise ValueError(f"no such edges: {sorted(unknown)}")
    forced = {
        vertex.name
        for vertex in job.vertices
        for inlet in vertex.inputs
        if not inlet.shipping.overtaken or (inlet.upstream, vertex.name) in named or vertex.committer_of
    }
    return frozenset((inlet.upstream, vertex.name) for vertex in job.vertices if vertex.name in forced for inlet in vertex.inputs)
