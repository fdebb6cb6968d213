"""A run in which every record carries its identity, from its source to the commit: slow, readable, the same whatever fails.

The identities live in the reference plane.  A job that begins from another one's snapshot takes them over with the
records.  Where its streams stand as they stood, it takes them one by one; where they were dealt out anew, in any order:
the places of records are not known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

from sim.runtime.simulate import Chain
from tests.oracle import ReferencePlane, oracle

if TYPE_CHECKING:
    from sim.plane.interface import PlaneSpec


Lineage = tuple[str, int, int]
"""Vertex and index of the source, ordinal there."""


@dataclass(slots=True)
class Traced:
    """What a chain of jobs came to."""

    status: str = ""
    spec: PlaneSpec | None = None  # of the last job
    resized: set[str] = field(default_factory=set)  # vertices that had several parallelisms
    emits_late: set[str] = field(default_factory=set)  # vertices some of whose records may never go on
    seen: dict[str, Counter[Lineage]] = field(default_factory=dict)  # by vertex: what its tasks have served, in the end
    counts: dict[str, list[int]] = field(default_factory=dict)  # by edge: records read, by channel
    committed: dict[str, Counter[Lineage]] = field(default_factory=dict)  # by vertex


def traced(scenario):
    """Run it to its end."""
    result = Traced()
    chain = _TracedChain(scenario, result)
    chain.run()
    instances = chain.instances
    last = instances[-1]
    result.status, result.spec = chain.status, last.spec
    for instance in instances:
        pairs = zip(instance.spec.vertices, last.spec.vertices, strict=True)
        result.resized |= {first.name for first, final in pairs if first.parallelism != final.parallelism}
    vertices = last.scenario.job.vertices
    idles = any(row.source is not None and row.source.watermark.idle_timeout_ns is not None for row in vertices)
    rows = [
        row
        for row in vertices
        if (row.window is not None and (row.window.time == "processing" or idles))
        or (row.commit is not None and row.commit.emits == "on-commit")
    ]
    result.emits_late = {row.name for row in rows}
    plane = _plane(last)
    for task in plane.all_tasks:
        records = (
            (*last.names[writer], ordinal) if writer >= 0 else ("nobody", 0, 0)
            for writer, ordinal in task.served_records
        )
        result.seen.setdefault(task.vertex.name, Counter()).update(records)
    for channel in plane.all_channels:
        result.counts.setdefault(channel.edge.name, []).append(channel.records_in)
    return result


class _TracedChain(Chain):
    """Jobs in planes that know the identity of every record."""

    def __init__(self, scenario, result):
        super().__init__(scenario, oracle, check=False)
        self.result = result

    def instance(self, scenario, beginning):
        with patch("sim.runtime.job_instance.build", lambda spec, _: ReferencePlane(spec, identities=True)):
            instance = super().instance(scenario, beginning)
        if beginning is not None:
            _hand_over(self.instances[-1], instance, beginning)
        _watch_commits([*self.instances, instance], self.result.committed)
        return instance


def _plane(instance):
    return cast("ReferencePlane", instance.plane)


def _watch_commits(instances, committed):
    """Count the commits of the last instance; the earlier instances know what its snapshot holds."""
    output, names = instances[-1].output, instances[-1].names
    commit = output.commit

    def watched(fresh, checkpoint):
        several = list(fresh)
        for transaction in several:
            name = names[transaction.writer]
            committed.setdefault(name[0], Counter()).update(_records(instances, name, transaction))
        commit(several, checkpoint)

    output.commit = watched  # type: ignore[method-assign]


def _records(instances, writer, transaction):
    """What a transaction holds; one that a job began with is counted as the job before it counts."""
    *earlier, instance = instances
    if instance.beginning is not None and transaction.epoch <= instance.beginning.snapshot.checkpoint:
        yield from _records(earlier, writer, transaction)
        return
    names = instance.names
    channels = _plane(instance).all_tasks[names.index(writer)].channels_in
    for channel, (begin, end) in zip(channels, transaction.inputs, strict=True):
        known = channel.history[begin:end]
        yield from ((*names[task], ordinal) if task >= 0 else ("nobody", 0, 0) for task, ordinal in known)
        yield from [("nobody", 0, 0)] * (end - begin - len(known))


def _hand_over(old, new, beginning):
    """The identities of what the snapshot holds."""
    number = {name: task for task, name in enumerate(new.names)}
    names, before, after = old.names, _plane(old), _plane(new)
    parts = old.job.files.parts(beginning.snapshot)

    def renumbered(records):
        return [(number[names[task]], ordinal) if task >= 0 else (task, ordinal) for task, ordinal in records]

    pairs = zip(old.spec.vertices, new.spec.vertices, strict=True)
    kept = {v for v, (older, newer) in enumerate(pairs) if older.parallelism == newer.parallelism}
    for vertex in range(len(new.spec.vertices)):
        sources = [before.all_tasks[t] for t, v in enumerate(old.layout.vertex) if v == vertex]
        targets = [after.all_tasks[t] for t, v in enumerate(new.layout.vertex) if v == vertex]
        if vertex in kept:
            for task, twin in zip(sources, targets, strict=True):
                twin.served_records = renumbered(task.served_records)
            continue
        cuts = [(renumbered(task.served_records), parts[task.number].position) for task in sources]
        written = iter([record for records, cut in cuts for record in records[: cut.served - cut.late]])
        late = iter([record for records, cut in cuts for record in records[cut.served - cut.late : cut.served]])
        for twin in targets:  # the records whose outputs are still to come are the last ones served
            cut = beginning.parts[twin.number].position
            twin.served_records = [*islice(written, cut.served - cut.late), *islice(late, cut.late)]
    for edge in range(len(new.spec.edges)):
        channels, twins = (
            [c for c, e in zip(plane.all_channels, layout.edge, strict=True) if e == edge]
            for plane, layout in ((before, old.layout), (after, new.layout))
        )
        if {new.spec.edges[edge].upstream, new.spec.edges[edge].downstream} <= kept:
            for channel, twin_channel in zip(channels, twins, strict=True):
                twin_channel.history = renumbered(channel.history)
            continue
        places = [(channel, *_places(channel, parts)) for channel in channels]
        held_back = iter(
            [record for c, held_from, read, _ in places for record in renumbered(c.history[held_from:read])]
        )
        flying = iter([record for c, _, read, written in places for record in renumbered(c.history[read:written])])
        for twin_channel in twins:
            held_from, read, written = _places(twin_channel, beginning.parts)
            twin_channel.history = [(-1, -1)] * held_from + [
                *islice(held_back, read - held_from),
                *islice(flying, written - read),
            ]


def _places(channel, parts):
    """At the cut: the first record its reader holds back, the first not read, the first not written."""
    part, at = parts[channel.reader.number], channel.reader.channels_in.index(channel)
    read = int(part.position.records_read[at])
    written = parts[channel.writer.number].position.records_written[channel.writer.channels_out.index(channel)]
    return read - (part.held_back[at] if part.held_back else 0), read, int(written)
