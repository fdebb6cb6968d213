"""How much of its state a vertex rewrites: read off files, or asked.

Files of RocksDB and a changelog show the bytes that are rewritten: the product of the records that rewrite an entry and the size of one.
Snapshots of the heap are always written in full and show neither.  Then both are asked, with what the answers change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sim.recordings.infer.before_barrier import usual_checkpoints
from sim.recordings.infer.draft import Draft, size_text
from sim.recordings.infer.file_history import increment_bytes, own_bytes, seconds_between
from sim.recordings.infer.flows import Flows
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_share, format_size, parse_size

_SHARES = (1.0, 0.1)
"""Answers whose effect the question names, beside none."""
_LEAST_RECORD, _USUAL_BYTES = 5, 1000
"""The smallest record on the wire, and the assumed size of an entry where records are not counted [bytes]."""
_LEAST_SHARE = Fraction(1, 10)
"""Assumed of a state to which nearly every record adds a key."""
_VALUE = "How large is an entry of its state: its size / the number of its keys?"


def infer_rewritten(
    draft: Draft, vertex: RestVertex, points: Sequence[RecordedCheckpoint], flow: Flows, rewritten: float, why: str
) -> None:
    """Set the entries rewritten between two checkpoints.  The history shows only their product with the size of an entry."""
    per_second, between = flow.per_second("records_in"), seconds_between(points)
    read = round(flow.bytes_per_record) if flow.bytes_per_record > 0 else 0
    if not (rewritten and between and per_second > 0 and read):
        draft.ask("state.update", "10 %", "Which share of the records rewrites an entry?", "one in ten.", job=vertex.name)
        return
    records = per_second * between
    least = rewritten / records  # if every record rewrites an entry
    value = max(read, math.ceil(least))
    share = Fraction(f"{min(1.0, rewritten / (records * value)):.3f}")
    draft.put("state.update", format_share(share), f"{why} / ({records:,.0f} records between two x {value} bytes)", job=vertex.name)
    assumed = "as large as the records it reads." if value == read else "as small as it can be: every record rewrites one."
    draft.ask("state.value", format_size(value), _VALUE, assumed, job=vertex.name)


def ask_for_updates(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Ask how much of each state on the heap is rewritten: it decides what RocksDB or a changelog would write, and nothing today."""
    points = usual_checkpoints(job)
    for vertex in job.vertices:
        given = draft.document["job"].get(vertex.name, {})
        state = given.get("state", {})
        if "size" in state and "window" not in given and not state.keys() & {"backend", "changelog", "update"}:
            tasks = [point.tasks[vertex.name] for point in points if vertex.name in point.tasks]
            largest = max((sum(map(own_bytes, task.subtasks)) for task in tasks), default=0)  # one that grows may begin with nothing
            _ask(draft, vertex, flowed[vertex.name], seconds_between(points), largest)


def _ask(draft: Draft, vertex: RestVertex, flow: Flows, between: float, size: int) -> None:
    state = draft.document["job"][vertex.name]["state"]
    value = round(entry_bytes(state, flow))
    records = flow.per_second("records_in") * between
    effect = f" {_written(size, value, records)}" if records > 0 else ""
    new = Fraction(0) if "limit" in state else Fraction(parse_size(state.get("growth", "0 B")), value)
    share = max(1 - new, _LEAST_SHARE)
    why = "each one, as an operator that counts or keeps a value per key does" if share == 1 else "those that bring no new key"
    draft.ask(
        "state.update", format_share(Fraction(f"{float(share):.3f}")), "Which share of the records rewrites an entry that is there?",
        f"{why}; between 0 % and 100 %. Snapshots of the heap do not show it, and it changes nothing on the heap.{effect}", job=vertex.name,
    )  # fmt: skip
    assumed = (
        f"as large as the records it reads, or 1 kB if nothing counts those; at most {format_size(max(size, 1))}, if there is one key."
    )
    draft.ask("state.value", format_size(value), _VALUE, assumed, job=vertex.name)


def entry_bytes(state: Mapping[str, str], flow: Flows | None) -> float:
    """The size of an entry of a state: as asked, else as the records read, where these are counted."""
    if "value" in state:
        return max(parse_size(state["value"]), 1)
    counted = flow is not None and flow.bytes_per_record >= _LEAST_RECORD  # NaN is not
    read = flow.bytes_per_record if flow is not None and counted else _USUAL_BYTES
    return min(read, parse_size(state["size"]) or read)


def _written(size: int, value: int, records: float) -> str:
    """What checkpoints of other backends would write, by the answer."""
    tables = [size_text(increment_bytes(size, value, share * records)) for share in _SHARES]
    logs = [size_text(value * share * records) for share in _SHARES]
    return (
        f"With RocksDB and incremental checkpoints one writes some {tables[0]} at 100 %, {tables[1]} at 10 %, new keys only at 0 %; "
        f"a changelog writes {logs[0]}, {logs[1]}, or new keys only."
    )
