"""The rhythm of checkpoints says what a log can say of the job's configuration; the rest is asked."""

from pathlib import Path

import pytest

from sim.recordings import compared, infer, observed, read_any, read_source
from sim.recordings.infer.log import infer_log, rhythm
from sim.recordings.source.job_log import JobLog, LogCheckpoint
from sim.scenario import loads, write

LOG = Path(__file__).parents[2] / "data" / "rest" / "jobmanager.log"


def points(*checkpoints):
    """(trigger [ms], duration [ms]) of one checkpoint after the other."""
    return [
        LogCheckpoint(number, trigger, trigger, status="COMPLETED", size_bytes=1000, duration_ms=took)
        for number, (trigger, took) in enumerate(checkpoints, 1)
    ]


def logged(*checkpoints, **fields):
    return JobLog("jobmanager.log", "0" * 32, {point.id: point for point in points(*checkpoints)}, **fields)


def text(inference):
    return write(inference.document, inference.question, inference.comments)


def test_a_grid_is_the_interval():
    """Late checkpoints end gaps of their own and are left out; the grid goes on behind them."""
    beat = rhythm(points((0, 300), (10_001, 200), (20_000, 14_000), (34_030, 300), (40_002, 250), (50_001, 200), (59_999, 300)))

    assert (10_000, 0, False) == (beat.interval, beat.min_pause, beat.is_saturated)


def test_a_pause_is_the_pause():
    """The same rest after checkpoints of different length."""
    beat = rhythm(points((0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)))

    assert (0, 3030, False) == (beat.interval, beat.min_pause, beat.is_saturated)


def test_three_rests_are_enough_for_a_pause_and_two_are_not():
    checkpoints = (0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000)

    assert 3030 == rhythm(points(*checkpoints)).min_pause
    assert 0 == rhythm(points(*checkpoints[:3])).min_pause


def test_one_right_behind_the_other_is_saturation():
    beat = rhythm(points((0, 9_000), (9_022, 8_000), (17_050, 8_500), (25_570, 9_000)))

    assert beat.is_saturated
    assert 0 == beat.interval == beat.min_pause


def test_too_few_checkpoints_say_nothing():
    assert not rhythm(points((0, 100))).is_saturated
    assert () == rhythm([]).gaps
    assert () == rhythm(points((0, 5), (10, 5))[:1] + points((0, 0), (0, 0), (9, 1))[2:]).gaps  # one in between is missing


def test_a_saturated_job_takes_as_long_in_the_scenario():
    """The service assumed makes a barrier wait behind full buffers as long as it did: 3 ms per record, as configured."""
    inference = infer(read_source([LOG]))

    assert "unlimited" == inference.document["job"]["src"]["source"]["rate"]
    assert pytest.approx(3, rel=0.25) == float(inference.document["job"]["sink"]["service"].removesuffix(" ms"))
    assert "4 s" == inference.document["checkpoint"]["interval"]
    assert "Which execution.checkpointing.interval is configured?" in inference.unknown


def test_expired_checkpoints_tell_the_timeout():
    log = logged((0, 100), (5_000, 100), (10_000, 100), (15_000, 100))
    for number in (2, 3):
        log.checkpoints[number].status, log.checkpoints[number].reason, log.checkpoints[number].duration_ms = "FAILED", "expired", 4_007
    inference = infer_log(log)

    assert 1 == inference.document["version"]
    assert "4 s" == inference.document["checkpoint"]["timeout"]
    assert "2 failed" in inference.comments[""]


def test_checkpoints_that_were_declined_tell_no_timeout():
    log = logged((0, 100), (5_000, 100), (10_000, 100), (15_000, 100))
    log.checkpoints[2].status, log.checkpoints[2].reason, log.checkpoints[2].duration_ms = "FAILED", "declined", 4_007

    assert "10 min" == infer_log(log).document["checkpoint"]["timeout"]


@pytest.mark.parametrize(
    "log",
    [
        logged((0, 100)), logged((0, 0), (1, 0)),
        logged(*((i * 10_000, 300) for i in range(9))), logged(*((i * 9_000, 8_999) for i in range(9))),
        logged((0, 100), vertices={"Source: a": 1, "Source: b -> Map": 2, "Join": 3, "Sink: out": 3}),
        logged((0, 100), version="1.17.2", options={"state.backend": "rocksdb", "taskmanager.memory.segment-size": "8kb"}),
    ],
    ids=["one", "nothing", "grid", "saturated", "two sources", "options"],
)  # fmt: skip
def test_whatever_it_is_it_runs(log):
    """Without a warning, under three kinds of barriers as well, with one question for every value that is assumed."""
    inference = infer_log(log)
    study = loads(text(inference), "log")

    assert () == study.warnings
    assert 3 == len(loads(text(compared(inference)), "log").scenarios)
    assert len(inference.unknown) == text(inference).count("UNKNOWN:")


def test_two_sources_are_read_by_what_comes_next():
    job = infer_log(logged((0, 100), vertices={"Source: a": 1, "Source: b": 2, "Join": 3, "Sink: out": 3})).document["job"]

    assert {"a": "hash", "b": "hash"} == job["join"]["input"]
    assert {"join": "hash"} == job["out"]["input"]
    assert ["a", "b"] == [name for name, vertex in job.items() if "source" in vertex]


def test_the_table_is_that_of_a_recording():
    """Only checkpoints are in it."""
    recording = read_any(LOG)
    table = observed(recording)

    assert {"src", "map", "sink"} == set(recording.inference.document["job"])
    assert 20 < len(recording.checkpoints_table())
    assert {"end_to_end_duration", "state_size"} <= set(table["quantity"])
