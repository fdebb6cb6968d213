"""The share of a keyed edge's records that each subtask of its reader gets, solved from counters of all its inputs together.

A subtask counts the records of all its inputs in one number.  What it reads from inputs without keys is known: all of a broadcast, its
part of what goes round, what the task before it forwards.  The rest is keyed.  Two keyed inputs are told apart by bytes if their records
are of different sizes.  Otherwise nothing tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.model.catalogs.shipping import Shipping
from sim.recordings.infer.edges.counted import Edge, Place
from sim.recordings.infer.edges.sums import TOLERANCE
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob, RestVertex

CHANCE = 3  # standard deviations of a count: independent keys differ by less, and need no weights
APART = 1.5
"""Sizes of records that differ by a smaller factor do not tell two inputs apart."""

SKEWED = 1.1
"""A subtask that reads less than so many times the mean is not worth a question."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a reader's subtasks.  `doubt`: a question that counters leave open, with an assumption; empty: none."""

    per_mille: tuple[int, ...]
    source: str
    doubt: tuple[str, str] | tuple[()] = ()


def keyed_shares(
    job: RestJob, vertex: RestVertex, ways: Sequence[Shipping], flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]
) -> dict[int, Shares]:
    """Input -> shares of the subtasks; inputs whose subtasks differ by no more than chance are left out.

    `ways`: how each input is sent.

    A few per cent matter: under back-pressure the channels to subtasks with a smaller share run empty, and hold no in-flight data.
    """
    flow = flowed[vertex.name]
    keyed = [i for i, way in enumerate(ways) if way.keyed]
    read = [_per_second(own.records_in, own.elapsed_ms) for own in flow.subtasks]
    if not keyed or vertex.parallelism < 2 or len(read) < 2 or any(map(math.isnan, read)):
        return {}
    others = [i for i in range(len(ways)) if i not in keyed]
    known = [_unkeyed(job, vertex, i, ways[i], flowed, edges) for i in others]
    if None in known:
        return {}
    rest = [max(all_ - math.fsum(of[s] for of in known if of is not None), 0.0) for s, all_ in enumerate(read)]
    source = f"records in of each subtask{', less what its other inputs bring' if others else ''}, {flow.source}"
    doubt = _amounts(vertex, others, edges, math.fsum(rest))
    found: dict[int, Sequence[float]] = dict.fromkeys(keyed, rest)
    if len(keyed) == 2 and not others and (split := _by_size(vertex, keyed, flow, edges)) is not None:
        found = dict(zip(keyed, split, strict=True))
        source = f"records and bytes in of each subtask, whose inputs have records of different sizes, {flow.source}"
    elif len(keyed) > 1 and max(rest) > SKEWED * math.fsum(rest) / len(rest):
        doubt = ("Do the keys of its inputs spread alike?", "alike, because each subtask counts all its inputs together.")
    elapsed_s = math.fsum(own.elapsed_ms for own in flow.subtasks) / len(flow.subtasks) / 1000
    return {
        i: Shares(tuple(round(1000 * value / math.fsum(values)) for value in values), source, doubt)
        for i, values in found.items()
        if _differ([value * elapsed_s for value in values])
    }


def _differ(counts: Sequence[float]) -> bool:
    """Whether shares differ by more than chance."""
    mean = math.fsum(counts) / len(counts)
    return mean > 0 and any(abs(count - mean) > CHANCE * math.sqrt(mean) for count in counts)


def _unkeyed(
    job: RestJob, vertex: RestVertex, i: int, way: Shipping, flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]
) -> list[float] | None:
    """Records per second that each subtask reads from an input without keys; None: nothing tells."""
    edge, readers = edges.get((vertex.name, i)), vertex.parallelism
    if edge is None:
        return None
    if way.copies:
        return [edge.likely_records] * readers
    if way.to_one:
        return [edge.likely_records] + [0.0] * (readers - 1)
    writers = flowed[edge.upstream].subtasks
    if way.one_to_one and job.vertex(edge.upstream).parallelism == readers == len(writers):
        written = [_per_second(own.records_out, own.elapsed_ms) for own in writers]
        total = math.fsum(written)
        return [edge.likely_records * own / total for own in written] if total > 0 else None
    return [edge.likely_records / readers] * readers


def _amounts(vertex: RestVertex, others: Sequence[int], edges: Mapping[Place, Edge], keyed: float) -> tuple[str, str] | tuple[()]:
    """A doubt if the other inputs may carry so much more or less that it matters."""
    apart = math.fsum((edge.records.most - edge.records.least) * edge.copies for i in others if (edge := edges.get((vertex.name, i))))
    if apart <= TOLERANCE * keyed:
        return ()
    return ("How many records do its inputs without keys bring?", "what fulfils all sums; the rest has keys.")


def _by_size(
    vertex: RestVertex, keyed: Sequence[int], flow: Flows, edges: Mapping[Place, Edge]
) -> tuple[Sequence[float], Sequence[float]] | None:
    """Records per second of both keyed inputs, by subtask: two equations each.  None: the sizes or the sums do not tell them apart."""
    first, second = (edges.get((vertex.name, i)) for i in keyed)
    if first is None or second is None:
        return None
    sizes = (first.likely_size, second.likely_size)
    if not (first.size.is_exact or first.records.is_exact) or not min(sizes) > 0 or max(sizes) < APART * min(sizes):
        return None
    parts: tuple[list[float], list[float]] = ([], [])
    for own in flow.subtasks:
        records, size = _per_second(own.records_in, own.elapsed_ms), _per_second(own.bytes_in, own.elapsed_ms)
        first_records = (size - sizes[1] * records) / (sizes[0] - sizes[1])
        if math.isnan(first_records):
            return None
        parts[0].append(min(max(first_records, 0.0), records))
        parts[1].append(records - parts[0][-1])
    counted = zip(parts, (first, second), strict=True)
    return parts if all(abs(math.fsum(part) - edge.likely_records) <= TOLERANCE * edge.likely_records for part, edge in counted) else None


def _per_second(count: float, elapsed_ms: float) -> float:
    return count / elapsed_ms * 1000 if elapsed_ms > 0 else math.nan
