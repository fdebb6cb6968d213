"""The size of a run, estimated from the document.  A run that no machine has room or time for is refused before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.model.catalogs.backends import BACKENDS
from sim.model.catalogs.shipping import SHIPPING
from sim.model.state import Lsm

if TYPE_CHECKING:
    from sim.scenario.document import Document
    from sim.scenario.faults.document import Rescale
    from sim.scenario.job.document import Vertex
    from sim.scenario.text.problems import Reading

MOST_SUBTASKS = 100_000
"""Subtasks of the whole job: 30,000 take a minute for three simulated seconds."""
MOST_CHANNELS = 4_000_000
"""Between subtasks: each takes 1 to 2 KB."""
MOST_ROWS = 100_000_000
"""Rows of subtasks per checkpoint, and of vertices per second."""
MOST_TABLES = 1_000_000
"""Files that RocksDB keeps: each takes about 1 KB, with the snapshots that name it."""
LEAST_INTERVAL_NS = 1_000_000
"""Between two checkpoints: less is refused."""


def check_sizes(document: Document, reading: Reading) -> None:
    """What is too large in a document without axes goes to `reading`."""
    counts = _parallelisms(document)
    subtasks, channels = sum(counts.values()), _channels(document.job, counts)
    if subtasks > MOST_SUBTASKS:
        part = "write a part of it, with its part of the load"
        reading.wrong(("job",), f"has {subtasks} subtasks: at most {MOST_SUBTASKS} are simulated; {part}")
    elif channels > MOST_CHANNELS:
        reading.wrong(
            ("job",),
            f"has {channels} channels between subtasks, which take about {channels // 500_000} GB: at most {MOST_CHANNELS} are simulated; "
            "write a smaller parallelism, with its part of the load",
        )
    for name, vertex in document.job.items():
        if (tables := _tables(vertex)) > MOST_TABLES:
            fewer = "write a part of the job, or larger ones (lsm: {table: 1 GiB})"
            reading.wrong(("job", name, "state", "size"), f"is {tables} tables of RocksDB: at most {MOST_TABLES} are simulated; {fewer}")
    duration_ns, interval_ns = document.run.duration, document.checkpoint.interval
    every_ns = max(interval_ns or 0, LEAST_INTERVAL_NS, document.checkpoint.min_pause or 0)
    if interval_ns and (rows := duration_ns // every_ns * subtasks) > MOST_ROWS:
        reading.wrong(
            ("checkpoint", "interval"),
            f"makes up to {rows} rows of subtasks and checkpoints in this run: at most {MOST_ROWS} are kept; "
            "write a shorter run or a longer interval",
        )
    if (rows := duration_ns // 1_000_000_000 * len(counts)) > MOST_ROWS:
        reading.wrong(("run", "duration"), f"makes {rows} rows of vertices and seconds: at most {MOST_ROWS} are kept; write a shorter run")


def _tables(vertex: Vertex) -> int:
    state = vertex.state
    if state is None or state.backend is None or "lsm" not in BACKENDS[state.backend].sections:
        return 0
    table_bytes = state.lsm.table if state.lsm is not None else None
    return int(state.size // (table_bytes or Lsm().table_bytes))


def _parallelisms(document: Document) -> dict[str, int]:
    """The largest of each vertex: it may change while the job runs."""
    counts = {name: vertex.parallelism or 1 for name, vertex in document.job.items()}
    for rescale in _rescales(document):
        for name, parallelism in rescale.parallelism.items():
            counts[name] = max(counts.get(name, 1), parallelism)
    return counts


def _rescales(document: Document) -> list[Rescale]:
    given = document.rescale
    return given if isinstance(given, list) else [] if given is None else [given]


def _channels(job: dict[str, Vertex], counts: dict[str, int]) -> int:
    """The channels of an edge.  Forward and rescale make as many as the larger side has subtasks; all others connect each pair."""
    total = 0
    for name, vertex in job.items():
        for key, given in (vertex.input or {}).items():
            ship = given if isinstance(given, str) else given.ship
            writers, readers = counts.get(vertex.upstreams[key], 1), counts[name]
            kind = SHIPPING[ship]
            pointwise = kind.pointwise and (writers == readers or not kind.one_to_one)  # forward else becomes rebalance
            total += max(writers, readers) if pointwise else writers * readers
    return total
