"""The work of made vertices: records, times and sizes are known, so sources, services, outputs and inputs are."""

import math
from types import SimpleNamespace

import pytest

from sim.jobs.infer import service_times
from sim.jobs.infer.draft import Draft
from sim.jobs.infer.edges import (
    AmountRange,
    EdgeFlows,
    Sum,
    edge_flows,
    edge_size,
    emitted_size,
    input_names,
    narrowed,
    size_counted,
)
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.service_times import infer_service, infer_work
from sim.jobs.infer.state import Filling, filling_of, level_of
from sim.jobs.infer.windows import infer_idleness, infer_silent
from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of
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
    carried = EdgeFlows(flows, edge_flows(job, flows))
    for row in vertices:
        infer_work(draft, job, row, carried)
    return draft


CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


def chain(src=None, of_map=None, sink=None, **answers):
    usual = {"src": own(written=50, idle=0.5), "map": own(50, 50, 0.1, 0.9), "sink": own(50, 0, 0.2, 0.8)}
    given = {"src": src, "map": of_map, "sink": sink}
    flows = {name: flowed(given[name] or usual[name]) for name in usual}
    return worked(CHAIN, flows, **answers)


@pytest.mark.parametrize(
    ("source", "rate", "question"),
    [
        (own(written=50, idle=0.5), "50/s", False),
        (own(written=0), "1k/s", True),
        (own(written=math.nan), "1k/s", True),
        (own(written=50, idle=0.0, pressed=0.9), "unlimited", True),
        (own(written=12.34567, idle=0.5), "12.35/s", False),
    ],
)
def test_the_rate_of_a_source_is_what_it_emits_or_asked_for(source, rate, question):
    draft = chain(source)

    assert rate == draft.document["job"]["src"]["source"]["rate"]
    assert question == ("src: How many records per second arrive here?" in draft.unknown)


@pytest.mark.parametrize(
    ("written", "why"),
    [(0.0, "no records were counted, the job may be reading nothing now"), (math.nan, "nothing counts its records")],
)
def test_why_a_rate_is_assumed_is_told(written, why):
    assert comment_of(chain(own(written=written)), "job.src.source.rate").endswith(f"Assumed: 1000/s, because {why}.")


def backlog(*samples):
    known = {"src": {".pendingRecords": [(ms, [float(count)]) for ms, count in samples]}, "map": {}, "sink": {}}
    return chain(own(written=50, pressed=0.9), known=known)


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
    ("state", "kind", "records"),
    [("FINISHED", "CHECKPOINT", 5000), ("FINISHED", "SYNC_SAVEPOINT", None), ("RUNNING", "CHECKPOINT", None)],
)
def test_a_job_that_ended_by_itself_had_so_many_records(state, kind, records):
    points = [checkpoint(2).model_copy(update={"checkpoint_type": kind})]
    draft = chain(job=SimpleNamespace(state=state, name="made"), checkpoints=points)

    assert records == draft.document["job"]["src"]["source"].get("records")


@pytest.mark.parametrize(
    ("busy", "idle", "waits"), [(math.nan, 0.5, True), (0.1, 0.5, False), (math.nan, math.nan, False)]
)
def test_a_source_without_busy_time_emits_from_a_thread_of_its_own(busy, idle, waits):
    assert waits == ("waits" in chain(own(written=50, busy=busy, idle=idle)).document["job"]["src"]["source"])


@pytest.mark.parametrize(
    ("written", "fan_out"), [(50.0, None), (50.2, None), (50.3, "1.006"), (25.0, "0.5"), (0.0, "0")]
)
def test_a_fan_out_that_differs_by_half_a_percent_is_told(written, fan_out):
    assert fan_out == chain(of_map=own(50, written, 0.1)).document["job"]["map"].get("fan-out")


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


def test_a_committer_in_the_chain_commits_in_two_phases():
    """And the chain is told."""
    sink = RestVertex("sink", "sink", ("Sink: Writer", "Sink: Committer"), 2, -1, (RestInput("src", "HASH"),))
    draft = worked([vertex("src"), sink], {"src": flowed(own(written=50, idle=0.5)), "sink": flowed(own(25), own(25))})

    assert draft.document["job"]["sink"]["commit"] == "two-phase"
    assert comment_of(draft, "job.sink") == "chain: Sink: Writer -> Sink: Committer"
    assert "max-parallelism" not in draft.document["job"]["sink"]
    assert (draft.document["job"]["sink"]["parallelism"], draft.document["job"]["src"]["max-parallelism"]) == (2, 128)


@pytest.mark.parametrize(
    ("subtasks", "silent"),
    [
        ((20, 20, 0), 1),
        ((40, 0, 0), 2),
        ((19.9, 20, 0), None),
        ((0, 0, 0), None),
        ((20, 20, 20), None),
        ((math.nan, 50, 0), None),
    ],
)
def test_subtasks_that_emit_nothing_while_others_do_are_silent(subtasks, silent):
    """Twenty records of each of the others are no chance."""
    draft = Draft()
    rest = infer_silent(draft, "src", flowed(*(own(written=count / 100) for count in subtasks)))

    assert silent == draft.document.get("job", {}).get("src", {}).get("source", {}).get("silent")
    assert len(subtasks) - (silent or 0) == len(rest.subtasks)
    if silent:
        which = "subtask 2" if silent == 1 else "subtasks 1, 2"
        assert (
            comment_of(draft, "job.src.source.silent")
            == f"{which} emitted nothing while others did (they are the last ones here): made counters"
        )


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


def served(*subtasks, inputs=True, snapshots_ms=0, monkeypatch=None, noise=0.0):
    """The service of a vertex of these subtasks."""
    monkeypatch.setattr(service_times, "busy_in_snapshots_ms", lambda *_: snapshots_ms)
    monkeypatch.setattr(service_times, "_noise", lambda *_: noise)
    draft, row = Draft(), vertex("v", *(["src"] if inputs else []), parallelism=len(subtasks))
    draft.document["job"] = {"v": {}}
    infer_service(draft, MadeJob([row]), row, flowed(*subtasks))
    return draft


def test_a_record_takes_what_its_vertex_is_busy_by_records(monkeypatch):
    """20 s of 5000 records are 4 ms; 5 s of them in snapshots leave 3 ms."""
    assert served(own(50, busy=0.2), monkeypatch=monkeypatch).document["job"]["v"]["service"] == "4 ms"
    paused = served(own(50, busy=0.2), snapshots_ms=5000, monkeypatch=monkeypatch)
    assert paused.document["job"]["v"]["service"] == "3 ms"
    assert (
        comment_of(paused, "job.v.service")
        == "20,000 ms busy - 5,000 ms in snapshots / 5,000 records in, made counters"
    )
    assert (
        served(own(written=50, busy=0.2), inputs=False, monkeypatch=monkeypatch).document["job"]["v"]["service"]
        == "4 ms"
    )
    assert (
        served(own(50, busy=0.2), snapshots_ms=50_000, monkeypatch=monkeypatch).document["job"]["v"]["service"]
        == "1 ns"
    )


def test_half_a_second_of_busy_time_is_hardly_a_measurement(monkeypatch):
    """A source has none then; where nothing is measured there is a question."""
    assert "hardly a measurement" in comment_of(served(own(50, busy=0.00499), monkeypatch=monkeypatch), "job.v.service")
    assert "hardly" not in comment_of(served(own(50, busy=0.005), monkeypatch=monkeypatch), "job.v.service")
    assert served(own(written=50, busy=0.00499), inputs=False, monkeypatch=monkeypatch).document["job"]["v"] == {}
    for row, why in (
        (own(50, busy=math.nan), "its busy time is not measured"),
        (own(0, busy=0.5), "nothing counts its records"),
    ):
        assumed = served(row, monkeypatch=monkeypatch)
        assert assumed.document["job"]["v"]["service"] == "1 us"
        assert comment_of(assumed, "job.v.service").endswith(f"Assumed: next to nothing, because {why}.")


def test_full_subtasks_set_the_pace(monkeypatch):
    """One is full and takes 9 ms for a record, the other waits and takes 10 ms: waking up costs, so it has no factor."""
    draft = served(own(100, busy=0.9), own(20, busy=0.2), monkeypatch=monkeypatch)
    other = served(own(100, busy=0.9), own(100, busy=0.5), monkeypatch=monkeypatch)

    assert draft.document["job"]["v"] == {"service": "9.17 ms"}, "3 % apart are one"
    assert other.document["job"]["v"] == {"service": "9 ms", "service-factor": {"1": "0.556"}}
    assert comment_of(other, "job.v.service") == (
        "90,000 ms busy / 10,000 records in of subtask 0, which is full and sets the pace; mean 7 ms. "
        "A subtask that waits at times needs longer for a record, so the others do not count"
    )
    assert (
        comment_of(other, "job.v.service-factor.1")
        == "50,000 ms busy / 10,000 records in of subtask 1: 5 ms ± 0.0%; busy 50% of its time, so at most"
    )


@pytest.mark.parametrize(
    ("records", "noise", "factors"),
    [
        (111, 0.0, {}),
        (125, 0.0, {"0": "1.12", "1": "0.9"}),
        (125, 0.05, {}),
        (125, 0.03, {"0": "1.12", "1": "0.9"}),
    ],
)
def test_full_subtasks_that_differ_by_a_tenth_and_more_than_chance_have_factors(monkeypatch, records, noise, factors):
    """Three standard errors."""
    draft = served(own(100, busy=1.0), own(records, busy=1.0), noise=noise, monkeypatch=monkeypatch)
    found = draft.document["job"]["v"].get("service-factor", {})

    assert factors == {key: value if len(value) < 6 else f"{float(value):.3g}" for key, value in found.items()}


def test_the_noise_of_a_time_is_that_of_pieces_of_the_window():
    """Four of them at least: 1, 2, 1 and 2 ms have a standard error of 19 %."""
    busy, records = [0.0, 10.0, 30.0, 40.0, 60.0], [0.0, 10.0, 20.0, 30.0, 40.0]

    def noise(count):
        known = {
            "accumulateBusyTimeMs": [(k, [busy[k]]) for k in range(count)],
            "numRecordsIn": [(k, [records[k]]) for k in range(count)],
        }
        row = vertex("v", "src")
        return service_times._noise(MadeJob([row], known={"v": known}), row, Flows((own(1),), "", 0, 10), "in", 0)

    assert 1 / math.sqrt(3) / 2 / 1.5 == pytest.approx(noise(5))
    assert math.inf == noise(4)


@pytest.mark.parametrize(
    ("upstreams", "vertices", "names"),
    [
        (["a", "b"], [], ["a", "b"]),
        (["a", "a", "a"], ["a"], ["a", "a-2", "a-3"]),
        (["a", "a"], ["a", "a-2"], ["a", "a-3"]),
        (["a-2", "a", "a"], ["a", "a-2"], ["a-2", "a", "a-3"]),
    ],
)
def test_further_edges_are_numbered_past_names_of_vertices(upstreams, vertices, names):
    assert names == input_names(upstreams, vertices)


def joined(*ships, name="join", known=None, chain=("join",)):
    """A vertex that two sources feed."""
    sources = [vertex(f"in{i}") for i in range(len(ships))]
    row = RestVertex(name, name, chain, 1, 128, tuple(RestInput(f"in{i}", ship) for i, ship in enumerate(ships)))
    flows = {source.name: flow(written=100.0) for source in sources} | {name: flow(100.0 * len(ships), 1.0)}
    return worked(
        [*sources, row], flows, **({"known": {source.name: {} for source in sources} | {name: known}} if known else {})
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


def test_a_watermark_of_a_second_input_proves_that_there_are_two():
    draft = joined("HASH", "HASH", chain=("enrich",), known={".currentInput2Watermark": [(0, [1.0])]})

    assert comment_of(draft, "job.join.combine") == "an operator of its chain has a metric currentInput2Watermark"
    assert comment_of(joined("HASH", "HASH"), "job.join.combine") == "by its name"


@pytest.mark.parametrize(
    ("size", "records", "counted"),
    [(1000.0, 10.0, 100), (1.0, 10.0, 1), (0.0, 10.0, None), (10.0, 0.0, None), (math.nan, 1.0, None)],
)
def test_a_size_is_bytes_by_records(size, records, counted):
    found = size_counted(Flows((Flow(1000.0, records, records, size, size),), "made"), "in")

    assert counted == (found and found.likely)
    if found:
        assert found.source == f"{size:,.0f} bytes / {records:,.0f} records in, made"


def test_the_size_that_a_vertex_emits_is_that_of_its_busiest_edge():
    """Those count whose size is known exactly."""
    vertices = [vertex("src"), vertex("few", "src"), vertex("many", "src")]
    flows = {"src": flow(written=100.0), "few": flow(10.0, size=50.0), "many": flow(100.0, size=70.0)}
    job = MadeJob(vertices)
    edges = edge_flows(job, flows)

    assert emitted_size(job, "src", flows, edges).likely == 70
    assert [edge_size(job, (name, 0), flows, edges).likely for name in ("few", "many")] == [50, 70]
    assert emitted_size(job, "many", flows, edges) is None


@pytest.mark.parametrize(("most", "is_one"), [(105.2, True), (106.0, False)])
def test_bounds_within_the_error_of_counters_are_one_value(most, is_one):
    """A twentieth."""
    (found,) = narrowed(
        [AmountRange(100.0, most)], [Sum({0: 1.0}, 200.0, is_least=False)] * 0 + [Sum({0: 1.0}, 0.0, is_least=True)]
    )

    assert is_one == found.is_exact
    assert (AmountRange((100 + most) / 2, (100 + most) / 2) if is_one else AmountRange(100.0, most)) == found


def test_a_curve_has_the_numbers_that_made_it():
    """Eight sizes of 100 - 80 exp(-t / 20)."""
    seconds = [5.0 * k for k in range(12)]
    found = filling_of(seconds, [100 - 80 * math.exp(-second / 20) for second in seconds])

    assert pytest.approx((found.limit_bytes, found.left_bytes, found.rate), rel=0.05) == (100, 80, 1 / 20)
    assert pytest.approx((found.per_second, found.at(0.0)), rel=0.05) == (5.0, 20.0)
    assert Filling(100.0, 100.0, math.log(2), 10.0).at(11.0) == 50.0
    assert filling_of([1.0] * 8, [1.0] * 8) is None


def test_a_level_has_the_numbers_that_made_it():
    """Ten bytes a second for 25 s; five sizes before and five behind are enough, and fewer are not."""
    seconds = [5.0 * k for k in range(11)]
    found = level_of(seconds, [10 * min(second, 25.0) for second in seconds])

    assert (found.first, found.size_bytes, found.per_second) == (5, 250.0, 10.0)
    assert level_of(seconds[:9], [10 * min(second, 20.0) for second in seconds[:9]]) is None
    assert level_of([1.0] * 11, [10.0 * min(k, 5) for k in range(11)]) is None
