"""The work of made vertices: records, times and sizes are known, so sources, services, outputs and inputs are."""

import math

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.windows import infer_idleness
from sim.jobs.infer.work import infer_silent
from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.jobs.infer.made_jobs import MadeJob, comment_of, flow, flowed, own, sampled, vertex, worked

CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


def chain(src=None, of_map=None, sink=None, **answers):
    usual = {"src": own(written=50, idle=0.5), "map": own(50, 50, 0.1, 0.9), "sink": own(50, 0, 0.2, 0.8)}
    given = {"src": src, "map": of_map, "sink": sink}
    flows = {
        name: flowed(*(given[name] if isinstance(given[name], list) else [given[name] or usual[name]]))
        for name in usual
    }
    return worked(CHAIN, flows, **answers)


@pytest.mark.parametrize(
    ("written", "why"),
    [(0.0, "no records were emitted while it was measured"), (math.nan, "its records are not counted")],
)
def test_why_a_rate_is_assumed_is_told(written, why):
    assert comment_of(chain(own(written=written)), "job.src.source.rate").endswith(f"Assumed: 1000/s, because {why}.")


def backlog(*samples):
    known = sampled(**{".pendingRecords": [(ms, [float(count)]) for ms, count in samples]})
    return chain(own(written=50, pressed=0.9), series={"src": known, "map": sampled(), "sink": sampled()})


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


@pytest.mark.parametrize(
    ("idle", "pressed", "rate", "phrase"),
    [
        (0.0, 0.9, "unlimited", "it never waited for records"),
        (0.03, 0.96, "unlimited", "it hardly ever waited for records (3% idle"),
        (0.05, 0.94, "50/s", "5% idle"),
        (0.03, 0.5, "50/s", "3% idle"),
    ],
)
def test_a_source_that_is_back_pressured_nearly_always_has_a_backlog(idle, pressed, rate, phrase):
    """Between two records of a backlog it waits as well, for its next fetch."""
    draft = chain(own(written=50, idle=idle, pressed=pressed))

    assert draft.document["job"]["src"]["source"]["rate"] == rate
    assert phrase in comment_of(draft, "job.src.source.rate")


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
    infer_idleness(draft, MadeJob([], flows={"count": flowed(own(50, 1 if ends else 0))}))

    assert timeout == draft.document["job"]["src"]["source"].get("watermark", {}).get("idle-timeout")
    assert draft.document["job"]["other"]["source"] == {}


TWO_WATERMARKS = {"join": sampled(**{".currentInput2Watermark": [(0, [0.0])]})}


@pytest.mark.parametrize(
    ("ships", "name", "metrics", "combine", "question"),
    [
        (("HASH", "HASH"), "Interval Join", {}, "join", None),
        (("HASH", "HASH"), "co-flat-map", {}, "join", None),
        (("BROADCAST", "BROADCAST"), "Co-Process", {}, "join", None),
        (("HASH", "HASH"), "enrich", TWO_WATERMARKS, "join", None),
        (("HASH", "HASH"), "enrich", {}, "join", "Are its inputs joined (two inputs) or a union (one stream)?"),
        (("REBALANCE", "HASH"), "enrich", {}, "join", "Are its inputs joined (two inputs) or a union (one stream)?"),
        (
            ("REBALANCE", "FORWARD"),
            "enrich",
            {},
            "union",
            "Are its inputs joined (two inputs) or a union (one stream)?",
        ),
        (("HASH", "HASH", "HASH"), "join", {}, "join", "Which of its edges are a union, one input of the join?"),
        (("HASH",), "join", {}, None, None),
    ],
)
def test_inputs_are_joined_or_one_stream(ships, name, metrics, combine, question):
    """The plan does not tell; the name, or two watermarks, may."""
    sources = [vertex(f"in{i}") for i in range(len(ships))]
    inputs = tuple(RestInput(source.name, ship) for source, ship in zip(sources, ships, strict=True))
    flows = {source.name: flow(written=100.0) for source in sources} | {"join": flow(100.0 * len(ships), 1.0)}
    series = {vertex: sampled() for vertex in flows} | metrics
    row = RestVertex("join", "join", (name,), 1, 128, inputs)
    draft = worked([*sources, row], flows, series=series)

    assert combine == draft.document["job"]["join"].get("combine")
    assert ([f"join: {question}"] if question else []) == [
        text for text in draft.unknown if "inputs" in text or "union" in text
    ]


@pytest.mark.parametrize(
    ("reads", "loads", "service"), [((250, 1000 / 3), (0.5, 1), "3 ms"), ((500, 250), (1, 1), "2.67 ms")]
)
def test_subtasks_that_are_full_tell_the_service(reads, loads, service):
    """One that waits at times needs longer for a record because it waits."""
    draft = chain(sink=[own(read, 0, load) for read, load in zip(reads, loads, strict=True)])

    assert draft.document["job"]["sink"]["service"] == service


@pytest.mark.parametrize(
    ("records", "silent", "emitting"),
    [
        ((500, 0, 400), 1, 2),
        ((0, 500, 0), 2, 1),
        ((500, 400), None, 2),
        ((0, 0), None, 2),
        ((15, 0), None, 2),
        ((500, math.nan), None, 2),
    ],
)
def test_who_emits_nothing_while_others_do_is_silent(records, silent, emitting):
    """Not if all do, nor while too few records were seen, nor if one was not counted."""
    draft = Draft()
    draft.put("job.src.parallelism", len(records))
    left = infer_silent(draft.vertex("src"), flowed(*(own(written=count / 100) for count in records)))

    assert silent == draft.document["job"]["src"].get("source", {}).get("silent")
    assert emitting == len(left.subtasks["records_out"])
