"""Windows, pauses, requests and cores of made jobs: when each ends and what each takes is known."""

import pytest

from sim.jobs.infer import cores
from sim.jobs.infer import windows as room
from sim.jobs.infer.cores import infer_async_io, rests, usual_checkpoints, works_before_barrier
from sim.jobs.infer.draft import Draft
from sim.jobs.infer.options import busy_in_snapshots_ms, infer_pauses
from sim.jobs.infer.scenario import infer_residuals
from sim.jobs.infer.windows import SawTooth, fitted, infer_windows, longest_run_ns, planned_window
from sim.jobs.source.rest_job import RestInput, RestVertex
from sim.model.units import parse_duration, parse_size
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, comment_of, drafted, subtask
from tests.jobs.infer.test_edges_counted import flow, vertex
from tests.jobs.infer.test_made_work import flowed, own

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


def test_a_phrase_of_sql_is_short():
    window = planned_window("x\nLocalWindowAggregate(groupBy=[a], window=[HOP(t, size=[10 s], slide=[2 s])])")

    assert (window.phrase, window.api, window.is_local) == (
        "LocalWindowAggregate, HOP(size 10 s, slide 2 s)",
        "sql",
        True,
    )


def windowed(description, inputs=True, sections=(), points=(), read=100.0, written=10.0):
    """What is written of a vertex with this description."""
    upstream = (RestInput("src", "HASH"),) if inputs else ()
    rows = [vertex("src"), RestVertex("count", "count", ("count",), 1, 128, upstream, description)]
    job = MadeJob(rows, points, {"interval": 4000, "state_backend": "hashmap"})
    draft = drafted(job)
    draft.document["job"]["count"] |= dict(sections)
    infer_windows(draft, job, {"src": flow(written=read), "count": flow(read, written)})
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


def test_a_session_has_no_phase():
    draft, _ = windowed("EventTimeSessionWindows(5000)")

    assert draft.document["job"]["count"]["window"] == {"session": "5 s", "time": "event", "api": "datastream"}
    assert draft.unknown == []


@pytest.mark.parametrize(
    ("inputs", "sections", "why"),
    [
        (False, {}, "it stands in the chain of a source"),
        (True, {"async-io": {}}, "its vertex also makes requests, or commits"),
        (True, {"commit": "two-phase"}, "its vertex also makes requests, or commits"),
    ],
)
def test_a_window_that_a_scenario_cannot_say_is_named(inputs, sections, why):
    draft, _ = windowed(TUMBLING, inputs, sections)

    assert [f"the window of 'count' (TumblingEventTimeWindows(7000)): {why}"] == draft.not_modelled
    assert "window" not in draft.document["job"]["count"]


def test_the_phase_is_asked_for_where_sizes_do_not_show_it():
    """Windows of 7 s at whole multiples; the grid began at 4 s, an interval before the first checkpoint, and a run triggers after 21 ms."""
    points = [checkpoint(k, 4000, count=[subtask(0, MB)]) for k in range(2, 5)]
    draft, _ = windowed(TUMBLING, points=points)

    assert parse_duration(draft.document["job"]["count"]["window"]["phase"]) == (21 - 4000) % 7000 * 10**6
    assert "count: When do its windows end, beside its checkpoints?" in draft.unknown
    assert windowed(TUMBLING)[0].document["job"]["count"]["window"]["phase"] == "0 s"


def teeth(floor=0, per_second=100_000):
    """Sizes every 4 s of state that falls to its floor every 7 s, at whole multiples."""
    return [
        checkpoint(k, 4000, count=[subtask(0, floor + per_second * (4000 * k % 7000) // 1000, start=0)])
        for k in range(2, 22)
    ]


def test_a_saw_tooth_tells_the_phase_and_the_state_of_a_record():
    """100 kB/s by 100 records/s; what lies below the teeth stays."""
    draft, _ = windowed(TUMBLING, points=teeth(), sections={"state": {"size": "1 MB"}})
    kept, _ = windowed(TUMBLING, points=teeth(2 * MB), sections={"state": {"size": "1 MB", "growth": "5 B"}})
    window = draft.document["job"]["count"]["window"]

    assert pytest.approx(parse_duration(window["phase"]), abs=3e8) == (21 - 4000) % 7000 * 10**6
    assert pytest.approx(parse_size(window["state-per-record"]), rel=0.02) == 1000
    assert "state" not in draft.document["job"]["count"]
    assert pytest.approx(parse_size(kept.document["job"]["count"]["state"]["size"]), rel=0.02) == 2 * MB
    assert "growth" not in kept.document["job"]["count"]["state"]
    assert comment_of(draft, "job.count.window.phase").startswith(
        "the sizes of its state fall then: a saw tooth explains 1"
    )
    rare, _ = windowed(TUMBLING, points=teeth(), read=0.5)
    assert pytest.approx(parse_size(rare.document["job"]["count"]["window"]["state-per-record"]), rel=0.02) == 200_000


@pytest.mark.parametrize(
    ("high", "low", "falls"),
    [(6900, 7100, 7000), (7100, 7200, 7000), (7300, 7500, 7400), (6600, 6740, 6670), (6600, 6760, 7000)],
)
def test_windows_end_at_whole_multiples_if_sizes_nearly_fall_there(high, low, falls):
    """A quarter of a second more or less; else in the middle."""
    assert falls == SawTooth(7000.0, high, low, 0.0, 1.0, 1.0).falls_ms(250.0)


def test_a_saw_tooth_has_the_numbers_that_made_it():
    """From 500 on, 2 a ms; at least six sizes that differ."""
    points = [(1000.0 * k, 500.0 + 2 * (1000 * k % 7000)) for k in range(1, 30)]
    found = fitted(points, [5000.0, 7000.0])

    assert pytest.approx((found.period_ms, found.floor, found.per_second), rel=0.01) == (7000.0, 500.0, 2000.0)
    assert (fitted(points[:5], [7000.0]), fitted(points, [])) == (None, None)
    assert (found.high_ms % 7000, found.low_ms % 7000 or 7000) == (6000, 7000)
    below = fitted([(time, size - 500) for time, size in points], [7000.0])
    assert pytest.approx(below.floor, abs=1) == 0.0


@pytest.mark.parametrize(("busy", "written", "is_open"), [(0.06, 10.0, True), (0.05, 10.0, False), (0.06, 0.0, False)])
def test_the_time_of_an_output_is_asked_for_where_a_thread_works(busy, written, is_open):
    """A twentieth of its time; all of it may lie in the outputs."""
    draft, row = Draft(), vertex("count", "src")
    draft.document["job"] = {"count": {}}
    room._work(draft, MadeJob([row]), row, flowed(own(100, written, busy)))

    assert ("0 s" if is_open else None) == draft.document["job"]["count"].get("window", {}).get("fire")
    if is_open:
        assert "between 0 and 6 ms, its counters do not tell the two apart" in comment_of(
            draft, "job.count.window.fire"
        )


def test_the_fan_out_of_windows_is_that_of_whole_ones(monkeypatch):
    """35 records leave at each end of 7 s, in which 700 arrive."""
    monkeypatch.setattr(room, "outputs_per_end", lambda *_: (35.0, 4))
    rows = [vertex("count", "src"), vertex("sink", "count")]
    found = room._Found(planned_window(TUMBLING), SawTooth(7000.0, 0.0, 1.0, 0.0, 1.0, 1.0))
    draft = Draft()
    room._outputs(draft, MadeJob(rows), rows[0], found, flow(100.0))

    assert draft.document["job"]["count"]["fan-out"] == "0.05"
    assert comment_of(draft, "job.count.fan-out") == "35 records out at each of 4 ends / 700 in between two"


CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


def history(late, count=8, first=2, **config):
    """``late(number, vertex)``: what no phase explains [ms].  The sink reads what comes at once."""
    points = [
        checkpoint(
            number, **{name: [subtask(0, 100, start=10, late=late(number, name))] for name in ("src", "map", "sink")}
        )
        for number in range(first, first + count)
    ]
    return MadeJob(CHAIN, points, config)


def test_the_first_checkpoint_of_a_job_is_unusual_if_there_are_others():
    assert [point.id for point in usual_checkpoints(history(lambda *_: 3, 3, 1))] == [2, 3]
    assert [point.id for point in usual_checkpoints(history(lambda *_: 3, 1, 1))] == [1]
    assert [point.id for point in usual_checkpoints(history(lambda *_: 3, 2, 5))] == [5, 6]


@pytest.mark.parametrize(
    ("late_ms", "times", "works"), [(500, 8, True), (500, 2, True), (500, 1, False), (60, 8, False)]
)
def test_long_rests_of_a_vertex_that_nobody_reads_are_work(late_ms, times, works):
    """Two checkpoints show them at least, and they are longer than sixty milliseconds of noise."""
    job = history(lambda number, name: late_ms if name == "sink" and number < 2 + times else 3)

    assert works == works_before_barrier(job, "sink")
    draft = drafted(job)
    infer_pauses(draft, job, CHAIN[2])
    snapshot = draft.document["job"]["sink"].get("snapshot", {})
    assert (f"{late_ms} ms" if works else None) == snapshot.get("pre-barrier")
    assert ("25 %" if works and times == 2 else None) == snapshot.get("probability")


def test_rests_before_a_barrier_that_readers_had_already_are_latency():
    """The map acknowledges late, and the sink had its barrier after 10 ms."""
    job = history(lambda number, name: 500 if name == "map" else 3)

    assert not works_before_barrier(job, "map")
    assert list({(rest.all_ms, rest.before_barrier_ms, rest.latency_ms) for rest in rests(job)["map"]}) == [
        (500, 0.0, 500.0)
    ]


@pytest.mark.parametrize(("sync_ms", "expected"), [(61, "61 ms"), (60, None)])
def test_a_long_synchronous_part_is_a_pause(sync_ms, expected):
    """Unless the backend explains it; it keeps the thread busy in any case."""
    points = [checkpoint(k, sink=[subtask(0, 100, sync=sync_ms)]) for k in range(2, 6)]
    job = MadeJob(CHAIN, points, {})
    draft, without = drafted(job), drafted(job)
    infer_pauses(draft, job, CHAIN[2])
    infer_pauses(without, job, CHAIN[2], with_sync=False)

    assert expected == draft.document["job"]["sink"].get("snapshot", {}).get("sync")
    assert without.document["job"]["sink"] == {}
    window = flow(1.0)
    inside = type(window)(window.subtasks, "", 10_010, 20_010)
    assert 3 * sync_ms == busy_in_snapshots_ms(job, CHAIN[2], inside)


def residuals(took, count=10):
    """``took(number)``: the asynchronous phase of the sink [ms]."""
    points = [
        checkpoint(k, sink=[subtask(0, 100_000, async_=took(k))], map=[subtask(0, 100_000)])
        for k in range(2, 2 + count)
    ]
    job = MadeJob(CHAIN, points, {})
    draft = drafted(job)
    infer_residuals(draft, job)
    return draft.document.get("residuals")


def test_what_a_phase_takes_beyond_its_median_is_a_residual():
    found = residuals(lambda number: 320 if number == 5 else 20)

    assert found["of"] == {"sink": {"async": [[0, 0, 0, 300, 0, 0, 0, 0, 0, 0]]}}
    assert (found["checkpoints"], found["unit"]) == (10, "1 ms")


@pytest.mark.parametrize(("beyond", "count", "seen"), [(1, 8, True), (0, 8, False), (61, 7, False)])
def test_residuals_need_eight_checkpoints_and_one_that_took_longer(beyond, count, seen):
    assert seen == (residuals(lambda number: 20 + beyond * (number == 5), count) is not None)


def test_of_a_long_history_the_latest_fifty_count():
    found = residuals(lambda number: 320 if number in (5, 60) else 20, 60)

    assert (found["checkpoints"], sum(ms > 0 for ms in found["of"]["sink"]["async"][0])) == (50, 1)


def requesting(numbers, busy=0.5, chain=("Async",), description="", size=104.0):
    """A vertex whose subtask holds so many records of 100 B, checkpoint by checkpoint."""
    row = RestVertex("ask", "ask", chain, 1, 128, (RestInput("src", "REBALANCE"),), description)
    points = [checkpoint(k, ask=[subtask(0, 100 * number)]) for k, number in enumerate(numbers, 2)]
    job = MadeJob([vertex("src"), row], points, {})
    draft = drafted(job)
    draft.document["job"]["ask"]["snapshot"] = {"operator-state": "1 kB"}
    infer_async_io(draft, job, {"src": flow(written=50.0), "ask": flowed(own(50, 50, busy, size=size))})
    return draft


def test_requests_in_the_state_by_their_rate_are_how_long_they_take():
    """20 at 50 a second: 0.4 s.  With room in the queue its capacity is asked for; a full one tells it."""
    calm, full = requesting([20, 20, 20]), requesting([20, 22, 19], busy=0.95)

    assert calm.document["job"]["ask"]["async-io"] == {"latency": "400 ms", "capacity": 100}
    assert "snapshot" not in calm.document["job"]["ask"]
    assert calm.unknown == ["ask: How many requests may be under way in a subtask (capacity)?"]
    assert (
        full.document["job"]["ask"]["async-io"],
        full.document["job"]["ask"]["service"],
    ) == ({"latency": "400 ms", "capacity": 20}, "1 us")
    assert comment_of(full, "job.ask.async-io.capacity") == "19 to 22 in each checkpoint, and it waits for room"
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
    assert "ask: How long does a request take, from asking to the answer?" in draft.unknown


@pytest.mark.parametrize(
    ("chain", "description", "numbers", "is_one"),
    [
        (("Map",), "", [20, 20, 20], True),
        (("Map",), "", [2, 2, 2], False),
        (("Map",), "", [20, 20], False),
        (("Map",), "AsyncCalc", [0], True),
        (("Sink: Writer",), "", [20, 20, 20], False),
        (("Committer",), "", [20, 20, 20], False),
    ],
)
def test_state_of_some_records_or_a_name_shows_requests(chain, description, numbers, is_one):
    """Three records in three checkpoints; sinks keep what they commit."""
    draft = requesting(numbers, chain=chain, description=description)

    assert is_one == ("async-io" in draft.document["job"]["ask"])
    if is_one and not description:
        assert "ask: Does it wait for answers from outside (AsyncDataStream)?" in draft.unknown


def test_a_window_makes_no_requests(monkeypatch):
    row = RestVertex("ask", "ask", ("Async",), 1, 128, (RestInput("src", "HASH"),))
    job = MadeJob([vertex("src"), row])
    draft = drafted(job)
    draft.document["job"]["ask"]["window"] = {}
    infer_async_io(draft, job, {"src": flow(), "ask": flow(50.0)})

    assert draft.document["job"]["ask"] == {"window": {}}
    assert cores._MIN_REQUESTS == 3
