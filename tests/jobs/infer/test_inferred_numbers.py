"""Numbers of an inferred scenario whose truth is known, because their counters are made from it here."""

import random
from types import SimpleNamespace

import pytest

from benchmarks.lab.scenario import _timestamp
from sim.jobs.infer import cores, storage, windows
from sim.jobs.infer.draft import Draft, duration_text, rate_text
from sim.jobs.infer.edges import unbalanced
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.log import infer_log
from sim.jobs.infer.options import _placement, infer_checkpoint
from sim.jobs.infer.service_times import _pace
from sim.jobs.infer.windows import BusySplit, gathering, outputs_per_end, split_of_busy_time, unknown_rhythm
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.model.scenario import Overheads
from sim.model.units import parse_byte_rate, parse_duration
from tests.benchmarks.lab.test_lost_task_managers import imported, kill, start
from tests.benchmarks.lab.test_passed_on import job as lab_job
from tests.benchmarks.lab.test_passed_on import op, source
from tests.jobs.infer.test_edges_counted import Job, flow, vertex
from tests.jobs.infer.test_infer_log import logged

MILLISECOND = 10**6
PERIOD_MS = 7000


def ends(count, records, off):
    """A counter of records out, read every second, that jumps by `records`, one part in `1 / off` more or less, at each end."""
    total, samples, chance = 0.0, [], random.Random(1)
    for second in range(1, 7 * count):
        total += records * (1 + off * chance.choice([-1, 1])) if second % 7 == 3 else 0.0
        samples.append((1000 * second, [total]))
    return {"numRecordsOut": samples}


@pytest.mark.parametrize(("off", "is_seen"), [(0.0, True), (0.05, True), (0.2, True), (0.5, False)])
def test_records_of_one_end_are_counted_where_ends_are_alike(off, is_seen):
    """A root of the mean square of a tenth of an end is too much: of seven seconds one has an end, so half an end more or less is."""
    found = outputs_per_end(ends(21, 1000, off), 2500.0, PERIOD_MS)

    assert is_seen == (found is not None)
    if is_seen:
        assert (pytest.approx(1000, rel=0.1), 21) == found


def test_busy_time_is_dealt_out_as_it_was_spent():
    """3 ms of each record that is read, 40 ms of each that leaves; two subtasks, and nothing else."""
    chance = random.Random(2)
    counters = {name: [(0, [0.0, 0.0])] for name in ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs")}
    for second in range(1, 13):
        read = [chance.randint(20, 90) for _ in range(2)]
        left = [chance.randint(0, 9) for _ in range(2)]
        busy = [3 * a + 40 * b for a, b in zip(read, left, strict=True)]
        for name, grown in zip(counters, (read, left, busy), strict=True):
            counters[name].append(
                (1000 * second, [before + step for before, step in zip(counters[name][-1][1], grown, strict=True)])
            )

    assert BusySplit(pytest.approx(3), pytest.approx(40)) == split_of_busy_time(counters)


@pytest.mark.parametrize(
    ("per_record_ms", "service"), [(0.005, "5 us"), (3.0, "3 ms"), (0.0, "1 us"), (0.0005, "1 us")]
)
def test_a_record_that_is_only_held_takes_a_microsecond(monkeypatch, per_record_ms, service):
    """An output takes what is left, here 2 ms."""
    monkeypatch.setattr(windows, "split_of_busy_time", lambda _: BusySplit(per_record_ms, 2.0))
    monkeypatch.setattr(windows, "series", lambda *_: {})
    draft = Draft()
    draft.document["job"] = {"count": {}}
    windows._work(draft, None, SimpleNamespace(name="count"), flow(1.0))

    assert {"service": service, "window": {"fire": "2 ms"}} == draft.document["job"]["count"]


def test_a_rhythm_whose_period_nobody_told_is_found():
    """Checkpoints every 10 s, twice as long for the first 14 s of every 70 s: by chance that is the rarest of 4001 deals."""
    times = [10_000.0 * number for number in range(70)]
    took = [1000.0 * (1 + (time % 70_000 < 14_000)) for time in times]
    found = unknown_rhythm(times, took)

    assert pytest.approx(found.period_ms, rel=0.01) == 70_000
    assert pytest.approx(found.p) == 1 / 4001
    assert pytest.approx(sorted(found.others_ms, reverse=True), rel=0.01) == [
        1 / (1 / 10_000 - 1 / 70_000),
        1 / (1 / 10_000 + 1 / 70_000),
    ]
    assert unknown_rhythm(times[:15], took[:15]) is None
    assert unknown_rhythm(times, [1000.0] * 70) is None


def test_noise_is_no_rhythm():
    """A probability below 1 % is rare, and there is none of 0 or beyond 1."""
    chance = random.Random(3)
    found = [
        unknown_rhythm([10_000.0 * k for k in range(40)], [chance.random() for _ in range(40)]).p for _ in range(4)
    ]

    assert all(0.01 < p <= 1 for p in found)


def test_the_next_task_manager_ends_the_wait():
    """Those that come later still are for later losses."""
    assert imported(kill(20), start(23), start(31)).document["restart"]["replacement"] == "3 s"
    assert imported(kill(20), start(31)).document["restart"]["replacement"] == "11 s"


def placed(first, second):
    """The placement of two vertices, by the task managers of their subtasks."""

    def subtasks(places):
        return SimpleNamespace(
            subtasks=[
                SimpleNamespace(subtask=i, taskmanager_id=place, endpoint="", host="") for i, place in enumerate(places)
            ]
        )

    details = {"a": subtasks(first), "b": subtasks(second)}
    draft = Draft()
    _placement(draft, SimpleNamespace(vertices=[vertex("a"), vertex("b", "a")], details=details))
    return draft.document.get("cluster", {}).get("placement"), draft.comments.get("cluster.placement", "")


@pytest.mark.parametrize(
    ("first", "second", "placement", "origin"),
    [
        ("123", "123", "spread", "3 task managers; 33% of the pairs of tasks share one ("),
        ("111", "111", "single", "one task manager; 100% of the pairs of tasks share one ("),
        ("123", "456", "isolated", "6 task managers; 0% of the pairs of tasks share one ("),
        ("1122", "1122", "spread", "2 task managers; 50% of the pairs of tasks share one ("),
        ("11112", "11112", "spread", "2 task managers; 68% of the pairs of tasks share one ("),
        (
            "1234",
            "4567",
            "isolated",
            "7 task managers; 6% of the pairs of tasks share one, 0% with the nearest placement there is (",
        ),
    ],
)
def test_the_placement_is_the_one_with_the_nearest_share_of_local_channels(first, second, placement, origin):
    found, comment = placed(first, second)

    assert placement == found
    assert " ".join(comment.split()).startswith(origin)


def configured(**config):
    draft = Draft()
    infer_checkpoint(
        draft, SimpleNamespace(checkpoint_config=CheckpointConfig(**config), snapshot=SimpleNamespace(source="saved"))
    )
    return draft.document["checkpoint"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"interval": 30_000}, {"interval": "30 s"}),
        ({"interval": 30_000, "timeout": 90_000}, {"interval": "30 s", "timeout": "90 s"}),
        ({"interval": 30_000, "timeout": 2**63 - 1}, {"interval": "30 s"}),
        ({"interval": 30_000, "timeout": 0}, {"interval": "30 s"}),
        ({"interval": 2**63 - 1}, {"interval": "off"}),
        ({"interval": 30_000, "min_pause": 1500}, {"interval": "30 s", "min-pause": "1.5 s"}),
        ({"interval": 30_000, "min_pause": 0, "max_concurrent": 1}, {"interval": "30 s"}),
        ({"interval": 30_000, "max_concurrent": 2}, {"interval": "30 s", "max-concurrent": 2}),
        (
            {"interval": 30_000, "max_concurrent": 2, "unaligned_checkpoints": True},
            {"interval": "30 s", "barriers": "unaligned"},
        ),
        ({"interval": 30_000, "tolerable_failed_checkpoints": 0}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "tolerable_failed_checkpoints": -1}, {"interval": "30 s", "tolerable-failed": 0}),
        ({"interval": 30_000, "checkpoints_after_tasks_finish": False}, {"interval": "30 s", "finish": "off"}),
    ],
)
def test_checkpoints_are_configured_as_the_job_says(config, expected):
    """What is not said, and what means never, is left to the defaults."""
    assert {"barriers": "aligned"} | expected == configured(**config)


def test_a_log_tells_how_fast_storage_writes_and_how_long_to_run():
    """1000 bytes in the 200 ms of the median, and twelve intervals."""
    found = infer_log(logged((0, 300), (10_000, 200), (20_000, 200), (30_000, 100), (40_000, 200)))

    assert parse_byte_rate(found.document["storage"]["bandwidth"]) == 5000
    assert parse_duration(found.document["run"]["duration"]) == 120 * 10**9


def test_a_run_of_a_log_lasts_a_minute_at_least_and_an_hour_at_most():
    quick, slow = (
        infer_log(logged(*((each_ms * number, 20) for number in range(8)))).document["run"]["duration"]
        for each_ms in (1000, 1_800_000)
    )

    assert (parse_duration(quick) / 10**9, parse_duration(slow) / 10**9) == (60, 3600)


def test_metadata_takes_what_lies_between_the_last_acknowledgement_and_the_next_trigger(monkeypatch):
    """After late checkpoints only, and without what completing one takes; the third of four follows another number."""
    points, at_ms = [], 0
    for number, (took_ms, gap_ms) in enumerate(
        ((1500, 40), (1500, 50), (300, 700), (1500, 60), (1500, 900), (1500, 0)), 1
    ):
        points.append(SimpleNamespace(id=number, trigger_timestamp=at_ms, latest_ack_timestamp=at_ms + took_ms))
        at_ms += took_ms + gap_ms
    points[5].id = 9  # one between was not kept
    monkeypatch.setattr(storage, "usual_checkpoints", lambda _: points)
    job = SimpleNamespace(checkpoint_config=CheckpointConfig(interval=1000, max_concurrent=1))

    assert 50 - Overheads().complete_ns // MILLISECOND == storage._metadata(job)[0]
    assert "3 gaps" in storage._metadata(job)[1]
    assert storage._metadata(SimpleNamespace(checkpoint_config=CheckpointConfig(interval=1000, max_concurrent=2))) == (
        None,
        "",
    )


@pytest.mark.parametrize(
    ("idle", "pressed", "is_known"),
    [(0.0, 0.9, False), (0.01, 0.9, False), (0.05, 0.9, True), (0.5, 0.4, True), (0.0, 0.02, True)],
)
def test_a_source_that_waits_for_records_has_no_backlog(idle, pressed, is_known):
    """One that is back-pressured and idle for less than a fiftieth of its time may have any."""
    own = Flow(1e5, 0.0, 5000.0, 0.0, 500_000.0, 1e5 * (1 - idle - pressed), 1e5 * idle, 1e5 * pressed)
    draft, first = Draft(), vertex("src")
    _pace(draft, Job([first]), first, Flows((own,), "metrics of 100 s"), 50.0)

    assert ("50/s" if is_known else "unlimited") == draft.document["job"]["src"]["source"]["rate"]


def test_a_writer_whose_readers_read_less_is_blamed_and_not_its_reader():
    """'join' reads all that 'a' writes and nothing of 'b': less than both write for it, and as much as 'a' does."""
    vertices = [vertex("a"), vertex("b"), vertex("join", "a", "b")]
    found = list(unbalanced(Job(vertices), {"a": flow(written=1000.0), "b": flow(written=400.0), "join": flow(1000.0)}))

    assert [edge.phrase for edge in found] == ["'join' reads 1,000 records/s and its inputs write 1,400/s for it alone"]


def test_asynchronous_io_passes_the_timestamps_on_that_all_its_inputs_have():
    """8 bytes of each record of a source; a map drops them."""
    asks = [op("both", "a", "b", kind="asyncwait"), op("one", "a", "map", kind="asyncwait")]
    job = lab_job(source("a", 100), source("b", 100), op("map", "b"), *asks)

    assert [_timestamp(job, job.node(name)) for name in ("a", "map", "both", "one")] == [8, 0, 8, 0]


@pytest.mark.parametrize(("rate", "text"), [(0.4, "1 B/s"), (1.9, "1 B/s"), (2.0, "2 B/s"), (123_456.0, "123 kB/s")])
def test_a_bandwidth_has_three_digits_and_is_never_nothing(rate, text):
    assert text == rate_text(rate)


@pytest.mark.parametrize(
    ("ns", "text"), [(0.2, "1 ns"), (1.6, "2 ns"), (1_234_567.0, "1.23 ms"), (59_960_000_000.0, "1 min")]
)
def test_a_time_has_three_digits_and_is_never_nothing(ns, text):
    assert text == duration_text(ns)


def test_requests_are_counted_by_the_size_of_a_record_without_its_length(monkeypatch):
    """104 bytes on the wire are 100 of state and a length of 4; of two subtasks the mean, without those that did not end."""
    sizes = [[(1000, "completed"), (3000, "completed")], [(500, "completed"), (9000, "running")], [(7, "running")]]
    points = [
        SimpleNamespace(
            tasks={"ask": SimpleNamespace(subtasks=[SimpleNamespace(size=size, status=status) for size, status in own])}
        )
        for own in sizes
    ]
    monkeypatch.setattr(cores, "usual_checkpoints", lambda _: points)
    monkeypatch.setattr(cores, "own_bytes", lambda subtask: subtask.size)

    assert cores._requests(None, vertex("ask"), flow(50.0, size=104.0)) == [20.0, 5.0]
    assert cores._requests(None, vertex("ask"), flow(50.0, size=4.0)) == []


def test_durations_that_gather_at_a_turn_are_told_from_those_that_do_not():
    """Long ones at one turn of four, long ones dealt out evenly, and all checkpoints at one turn: nothing is told of a rhythm there."""
    turns = [number % 4 / 4 for number in range(24)]

    assert gathering(turns, [9.0 if turn == 0.25 else 1.0 for turn in turns]) < 0.001
    assert gathering(turns, [9.0 if number // 4 == 2 else 1.0 for number in range(24)]) > 0.9
    assert (
        1.0
        == gathering([0.25] * 24, [float(number) for number in range(24)])
        == gathering(turns, [3.0] * 24)
        == gathering([], [])
    )
    assert gathering([0.0, 0.5] * 12, [1.0, 2.0] * 12) < 0.001
