"""The work of made vertices: records, times and sizes are known, so sources, services, outputs and inputs are."""

import math

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.edges import edge_flows
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.service_times import infer_work
from sim.jobs.infer.state import fit_level
from sim.jobs.infer.windows import infer_idleness
from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.jobs.infer.made_jobs import MadeJob, comment_of
from tests.jobs.infer.test_edges_counted import flow, vertex

ELAPSED_MS = 100_000.0


def own(read=0.0, written=0.0, busy=0.0, idle=0.0, pressed=0.0, size=100.0):
    """A subtask over 100 s: records per second, shares of its time, bytes of a record."""
    times = (ELAPSED_MS * share for share in (busy, idle, pressed))
    return Flow(ELAPSED_MS, 100 * read, 100 * written, 100 * read * size, 100 * written * size, *times)


def flowed(*subtasks):
    return Flows(tuple(subtasks), "made counters", 0, 100_000)


def worked(vertices, flows, **answers):
    """What is written of all vertices."""
    job = MadeJob(vertices, **answers)
    draft = Draft()
    carried = edge_flows(job, flows)
    for row in vertices:
        infer_work(draft, row, carried)
    return draft


CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


def chain(src=None, of_map=None, sink=None, **answers):
    usual = {"src": own(written=50, idle=0.5), "map": own(50, 50, 0.1, 0.9), "sink": own(50, 0, 0.2, 0.8)}
    given = {"src": src, "map": of_map, "sink": sink}
    flows = {name: flowed(given[name] or usual[name]) for name in usual}
    return worked(CHAIN, flows, **answers)


@pytest.mark.parametrize(
    ("written", "why"),
    [(0.0, "no records were emitted while it was measured"), (math.nan, "its records are not counted")],
)
def test_why_a_rate_is_assumed_is_told(written, why):
    assert comment_of(chain(own(written=written)), "job.src.source.rate").endswith(f"Assumed: 1000/s, because {why}.")


def backlog(*samples):
    known = {"src": {".pendingRecords": [(ms, [float(count)]) for ms, count in samples]}, "map": {}, "sink": {}}
    return chain(own(written=50, pressed=0.9), series_by_vertex=known)


def test_a_backlog_that_grows_is_added_to_what_is_emitted():
    """100 records in 10 s; one that shrinks is taken off, and nothing arrives at less than no rate."""
    assert backlog((0, 500), (5000, 900), (10_000, 600)).document["job"]["src"]["source"]["rate"] == "60/s"
    assert backlog((0, 500), (10_000, 300)).document["job"]["src"]["source"]["rate"] == "30/s"
    assert backlog((0, 5000), (10_000, 300)).document["job"]["src"]["source"]["rate"] == "0/s"
    assert comment_of(backlog((0, 500), (10_000, 600)), "job.src.source.rate").endswith(
        "its backlog (pendingRecords) grows by 10.0/s"
    )
    assert backlog((0, 500)).document["job"]["src"]["source"]["rate"] == "unlimited"
    assert backlog((0, 500), (10_000, math.nan)).document["job"]["src"]["source"]["rate"] == "unlimited"


def test_a_fan_out_that_nothing_counts_is_asked_for():
    draft = chain(of_map=own(50, math.nan, 0.1))

    assert draft.document["job"]["map"]["fan-out"] == 1
    assert "map: How many records does it emit per record it reads?" in draft.unknown
    assert "map: How many records does it emit per record it reads?" in chain(of_map=own(0, 50, 0.1)).unknown


def test_records_are_as_large_as_their_reader_counts():
    """Else as their writer does; else as large as those it reads."""
    assert chain(sink=own(50, 0, 0.2, size=300.0)).document["job"]["map"]["record"] == "300 B"
    assert chain(of_map=own(50, 50, 0.1, size=200.0), sink=own(math.nan)).document["job"]["map"]["record"] == "200 B"
    unknown = chain(of_map=own(50, 50, 0.1, size=math.nan), sink=own(math.nan))
    assert (
        unknown.document["job"]["map"]["record"],
        "map: How large are the records it emits?" in unknown.unknown,
    ) == ("100 B", True)


@pytest.mark.parametrize(
    ("ends", "time", "timeout"), [(True, "event", "1 s"), (False, "event", "0 s"), (True, "processing", None)]
)
def test_a_silent_subtask_is_idle_where_windows_end_all_the_same(ends, time, timeout):
    """Only event time waits for it."""
    draft = Draft()
    draft.document["job"] = {
        "src": {"source": {"silent": 1}},
        "other": {"source": {}},
        "count": {"window": {"time": time}},
    }
    infer_idleness(draft, {"count": flowed(own(50, 1 if ends else 0))})

    assert timeout == draft.document["job"]["src"]["source"].get("watermark", {}).get("idle-timeout")
    assert draft.document["job"]["other"]["source"] == {}


def joined(*ships, name="join", known=None, chain=("join",)):
    """A vertex that two sources feed."""
    sources = [vertex(f"in{i}") for i in range(len(ships))]
    row = RestVertex(name, name, chain, 1, 128, tuple(RestInput(f"in{i}", ship) for i, ship in enumerate(ships)))
    flows = {source.name: flow(written=100.0) for source in sources} | {name: flow(100.0 * len(ships), 1.0)}
    return worked(
        [*sources, row],
        flows,
        **({"series_by_vertex": {source.name: {} for source in sources} | {name: known}} if known else {}),
    )


@pytest.mark.parametrize(
    ("ships", "chain_of", "combine", "question"),
    [
        (("HASH", "HASH"), ("Interval Join",), "join", None),
        (("HASH", "HASH"), ("co-flat-map",), "join", None),
        (("HASH", "HASH"), ("enrich",), "join", "Are its inputs joined, or one stream?"),
        (("REBALANCE", "HASH"), ("enrich",), "join", "Are its inputs joined, or one stream?"),
        (("REBALANCE", "FORWARD"), ("enrich",), "union", "Are its inputs joined, or one stream?"),
        (("HASH", "HASH", "HASH"), ("join",), "join", "Which of its edges are a union, one input of the join?"),
        (("HASH",), ("join",), None, None),
    ],
)
def test_inputs_are_joined_or_one_stream(ships, chain_of, combine, question):
    draft = joined(*ships, chain=chain_of)

    assert combine == draft.document["job"]["join"].get("combine")
    assert ([f"join: {question}"] if question else []) == [
        text for text in draft.unknown if "inputs" in text or "union" in text
    ]


def test_a_level_has_the_numbers_that_made_it():
    """Ten bytes a second for 25 s; five sizes before and five behind are enough, and fewer are not."""
    seconds = [5.0 * k for k in range(11)]
    found = fit_level(seconds, [10 * min(second, 25.0) for second in seconds])

    assert (found.first, found.size_bytes, found.per_second) == (5, 250.0, 10.0)
    assert fit_level(seconds[:9], [10 * min(second, 20.0) for second in seconds[:9]]) is None
    assert fit_level([1.0] * 11, [10.0 * min(k, 5) for k in range(11)]) is None
