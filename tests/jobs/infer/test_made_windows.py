"""Windows, pauses, requests and cores of made jobs: when each ends and what each takes is known."""

import pytest

from sim.jobs.infer import windows as room
from sim.jobs.infer.cores import busy_in_snapshots_ms, infer_async_io, infer_pauses
from sim.jobs.infer.draft import Draft
from sim.jobs.infer.windows import infer_windows, longest_run_ns, planned_window
from sim.jobs.source.rest_job import RestInput, RestVertex
from sim.model.units import parse_size
from tests.jobs.infer.made_jobs import (
    MadeJob,
    checkpoint,
    comment_of,
    drafted,
    flow,
    flowed,
    own,
    sampled,
    subtask,
    vertex,
)

TUMBLING = "Window(TumblingEventTimeWindows(7000), EventTimeTrigger, Top)"


@pytest.mark.parametrize(
    ("description", "found"),
    [
        ("TumblingEventTimeWindows(0)", None),
        ("SlidingProcessingTimeWindows(10000,2000)", ("sliding", 10, 2, "processing")),
        ("SlidingEventTimeWindows(10000)", ("sliding", 10, 10, "event")),
        ("ProcessingTimeSessionWindows(3000)", ("session", 3, 3, "processing")),
        ("WindowAggregate(window=[HOP(t, size=[10 s], slide=[10 s])])", ("tumbling", 10, 10, "")),
        ("WindowAggregate(window=[CUMULATE(t, max_size=[10 s], step=[2 s])])", ("sliding", 10, 2, "")),
        ("WindowAggregate(window=[TUMBLE(t, size=[soon])])", None),
        ("WindowAggregate(window=[TUMBLE(t, offset=[1 s])])", None),
        ("WindowAggregate(window=[SESSION(t, gap=[10 s])])", ("session", 10, 10, "")),
        ("Map", None),
    ],
)
def test_a_plan_tells_the_kind_and_sizes_of_a_window(description, found):
    window = planned_window(description)

    assert found == (window and (window.kind, window.size_ns / 1e9, window.every_ns / 1e9, window.time))


def windowed(description, inputs=True, sections=(), points=(), backend="hashmap"):
    """What is written of a vertex with this description."""
    upstream = (RestInput("src", "HASH"),) if inputs else ()
    rows = [vertex("src"), RestVertex("count", "count", ("count",), 1, 128, upstream, description)]
    flows = {"src": flow(written=100.0), "count": flow(100.0, 10.0)}
    job = MadeJob(rows, points, {"interval": 4000, "state_backend": backend}, flows=flows)
    draft = drafted(job)
    draft.document["job"]["count"] |= dict(sections)
    infer_windows(draft, job)
    return draft, job


def test_a_window_of_the_plan_has_its_kind_sizes_and_time():
    draft, job = windowed("SlidingEventTimeWindows(10000, 2000)")
    window = draft.document["job"]["count"]["window"]

    assert {k: v for k, v in window.items() if k != "phase"} == {
        "sliding": "10 s",
        "every": "2 s",
        "time": "event",
        "api": "datastream",
    }
    assert comment_of(draft, "job.count.window.sliding") == "SlidingEventTimeWindows(10000, 2000) in the plan"
    assert longest_run_ns(job) == 12 * 2 * 10**9
    assert longest_run_ns(windowed("TumblingEventTimeWindows(900000)")[1]) == 3600 * 10**9
    assert longest_run_ns(windowed("Map")[1]) == 0


def test_sql_without_watermarks_has_the_time_of_the_clock():
    draft, _ = windowed("WindowAggregate(window=[TUMBLE(t, size=[10 s])])")
    event, _ = windowed("WatermarkAssigner(t) WindowAggregate(window=[TUMBLE(t, size=[10 s])])")

    assert tuple(draft.document["job"]["count"]["window"].get(key) for key in ("time", "api")) == ("processing", None)
    assert event.document["job"]["count"]["window"]["time"] == "event"


@pytest.mark.parametrize(
    ("inputs", "sections", "why"),
    [
        (False, {}, "it is chained to a source"),
        (True, {"async-io": {}}, "its vertex also has asynchronous I/O or a committer"),
        (True, {"commit": "two-phase"}, "its vertex also has asynchronous I/O or a committer"),
    ],
)
def test_a_window_that_a_scenario_cannot_say_is_named(inputs, sections, why):
    draft, _ = windowed(TUMBLING, inputs, sections)

    assert [f"the window of 'count' (TumblingEventTimeWindows(7000)): {why}"] == draft.not_modelled
    assert "window" not in draft.document["job"]["count"]


@pytest.mark.parametrize(("busy", "written", "is_open"), [(0.06, 10.0, True), (0.05, 10.0, False), (0.06, 0.0, False)])
def test_the_time_of_an_output_is_asked_for_where_a_thread_works(busy, written, is_open):
    """A twentieth of its time; all of it may lie in the outputs."""
    draft = Draft()
    draft.vertex("count").put("service", "1 ms")
    room._put_service_times(draft.vertex("count"), sampled(), flowed(own(100, written, busy)))

    assert ("0 s" if is_open else None) == draft.document["job"]["count"].get("window", {}).get("fire")
    if is_open:
        assert "between 0 and 6 ms: the counters do not tell" in comment_of(draft, "job.count.window.fire")


CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


@pytest.mark.parametrize(("sync_ms", "expected"), [(61, "61 ms"), (60, None)])
def test_a_long_synchronous_part_is_a_pause(sync_ms, expected):
    """Unless the backend explains it; it keeps the thread busy in any case."""
    points = [checkpoint(k, sink=[subtask(0, 100, sync=sync_ms)]) for k in range(2, 6)]
    job = MadeJob(CHAIN, points, {})
    draft, without = drafted(job), drafted(job)
    infer_pauses(draft.vertex("sink"), job, CHAIN[2])
    infer_pauses(without.vertex("sink"), job, CHAIN[2], with_sync=False)

    assert expected == draft.document["job"]["sink"].get("snapshot", {}).get("sync")
    assert without.document["job"]["sink"] == {}
    window = flow(1.0)
    inside = type(window)(window.subtasks, "", 10_010, 20_010)
    assert 3 * sync_ms == busy_in_snapshots_ms(job, CHAIN[2], inside)


def requesting(numbers, busy=0.5):
    """A vertex whose subtask holds so many records of 100 B, checkpoint by checkpoint."""
    row = RestVertex("ask", "ask", ("Async",), 1, 128, (RestInput("src", "REBALANCE"),), "")
    points = [checkpoint(k, ask=[subtask(0, 100 * number)]) for k, number in enumerate(numbers, 2)]
    flows = {"src": flow(written=50.0), "ask": flowed(own(50, 50, busy, size=104.0))}
    job = MadeJob([vertex("src"), row], points, {}, flows=flows)
    draft = drafted(job)
    draft.document["job"]["ask"]["snapshot"] = {"operator-state": "1 kB"}
    infer_async_io(draft, job)
    return draft


def test_requests_in_the_state_by_their_rate_are_how_long_they_take():
    """20 at 50 a second: 0.4 s.  With room in the queue its capacity is asked for; a full one tells it."""
    calm, full = requesting([20, 20, 20]), requesting([20, 22, 19], busy=0.95)

    assert calm.document["job"]["ask"]["async-io"] == {"latency": "400 ms", "capacity": 100}
    assert "snapshot" not in calm.document["job"]["ask"]
    assert calm.unknown == ["ask: How many requests may be pending in a subtask (capacity)?"]
    assert (
        full.document["job"]["ask"]["async-io"],
        full.document["job"]["ask"]["service"],
    ) == ({"latency": "400 ms", "capacity": 20}, "1 us")
    assert (
        comment_of(full, "job.ask.async-io.capacity")
        == "19 to 22 requests in each checkpoint, while its thread is always busy"
    )
    assert requesting([150, 20, 20]).document["job"]["ask"]["async-io"]["capacity"] == 150


@pytest.mark.parametrize(
    ("numbers", "busy", "full"),
    [([20, 20], 0.95, False), ([20, 20, 20], 0.89, False), ([20, 20, 20], 0.9, True), ([20, 40, 5], 0.95, False)],
)
def test_a_queue_is_full_if_as_many_are_seen_each_time_and_the_thread_is_busy(numbers, busy, full):
    assert full == ("service" in requesting(numbers, busy).document["job"]["ask"])


def test_without_a_request_in_any_snapshot_the_latency_is_asked_for():
    draft = requesting([0, 0, 0])

    assert draft.document["job"]["ask"]["async-io"]["latency"] == "50 ms"
    assert "ask: How long does a request take until its response?" in draft.unknown


@pytest.mark.parametrize(
    "description",
    ["KeyedProcess<br/>", "Window(GlobalWindows(), CountTrigger)", "WindowAggregate(window=[TUMBLE(size=[?])])", ""],
)
def test_a_plan_without_sizes_names_no_window(description):
    assert planned_window(description) is None


def test_files_of_rocksdb_rise_and_fall_without_windows():
    """They are merged every few checkpoints.  On the heap the same sizes are those of a window of 7 s."""
    points = []
    for k in range(16):
        since_ms = (4000 * k + 500) % 7000  # falls 500 ms before each multiple of 7 s
        points.append(checkpoint(k + 2, 4000, src=[subtask(start=0)], count=[subtask(0, 100 * since_ms)]))

    assert "window" not in windowed("KeyedProcess", points=points, backend="rocksdb")[0].document["job"]["count"]
    assert windowed("KeyedProcess", points=points)[0].document["job"]["count"]["window"]["tumbling"] == "7 s"


def test_durations_that_gather_at_a_turn_are_told_from_those_that_do_not():
    """Long ones at one turn of four, long ones dealt out evenly, and all checkpoints at one turn: nothing is told of a rhythm there."""
    turns = [number % 4 / 4 for number in range(24)]

    assert room.phase_concentration_p_value(turns, [9.0 if turn == 0.25 else 1.0 for turn in turns]) < 0.001
    assert room.phase_concentration_p_value(turns, [9.0 if number // 4 == 2 else 1.0 for number in range(24)]) > 0.9
    assert (
        1.0
        == room.phase_concentration_p_value([0.25] * 24, [float(number) for number in range(24)])
        == room.phase_concentration_p_value(turns, [3.0] * 24)
        == room.phase_concentration_p_value([], [])
    )
    assert room.phase_concentration_p_value([0.0, 0.5] * 12, [1.0, 2.0] * 12) < 0.001


HOP = "WindowAggregate(window=[HOP(t, size=[10 s], slide=[2 s])])"


def held(since_ms, copied):
    """State of 50 kB, and 100 records/s of 100 B in windows of 10 s every 2 s, so long after a window end."""
    fullness = [2000 * whole + since_ms for whole in range(5)]
    return round(50_000 + 10 * (sum(fullness) if copied else fullness[-1]))


@pytest.mark.parametrize(
    ("description", "size_of", "found"),
    [
        (HOP, lambda since_ms: held(since_ms, copied=False), ("100 B", 50_000)),
        ("SlidingProcessingTimeWindows(10000,2000)", lambda since_ms: held(since_ms, copied=True), ("100 B", 50_000)),
        (HOP, lambda since_ms: 823_000 if since_ms < 1000 else 1_040_000, (None, None)),
    ],
)
def test_windows_that_overlap_hold_what_is_left_at_an_end(description, size_of, found):
    """A growth that the overlapping windows cannot hold is none: two phases, two sizes, and a line through them."""
    points = []
    for k in range(16):
        since_ms = (5000 * k + 300 + 7 * k) % 2000
        points.append(checkpoint(k + 2, 5007, src=[subtask(start=0)], count=[subtask(0, size_of(since_ms) + k)]))
    vertex_found = windowed(description, points=points)[0].document["job"]["count"]

    assert vertex_found["window"].get("state-per-record") == found[0]
    assert found[1] is None or parse_size(vertex_found["state"]["size"]) == pytest.approx(found[1], abs=20_000)
