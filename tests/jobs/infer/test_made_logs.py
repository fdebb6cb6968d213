"""Logs of made jobs: their triggers, durations and sizes are known, so the assumptions of their scenario can be counted by hand."""

import pytest

from sim.jobs.infer.log import infer_log
from sim.jobs.source.job_log import LogCheckpoint
from sim.model.units import parse_duration
from tests.jobs.infer.made_jobs import comment_of
from tests.jobs.infer.test_infer_log import logged


def grid(every_ms, took_ms, count=6):
    return [(every_ms * k, took_ms) for k in range(count)]


def test_the_interval_is_measured_asked_for_or_assumed():
    measured, paused, few = (
        infer_log(log)
        for log in (
            logged(*grid(10_000, 200)),
            logged((0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)),
            logged((0, 100)),
        )
    )

    assert comment_of(measured, "checkpoint.interval") == "median of 5 gaps between triggers without a late checkpoint"
    assert (paused.document["checkpoint"]["interval"], paused.document["checkpoint"]["min-pause"]) == ("8 s", "3 s")
    assert "the shortest of 4 gaps between triggers: a pause follows each checkpoint" in comment_of(
        paused, "checkpoint.interval"
    )
    assert comment_of(paused, "checkpoint.min-pause") == "median pause after a checkpoint, 4 gaps between triggers"
    assert few.document["checkpoint"]["interval"] == "1 min"


def expired(*durations_ms):
    log = logged(*grid(10_000, 200))
    for number, ms in enumerate(durations_ms, 10):
        log.checkpoints[number] = LogCheckpoint(
            number, 10_000 * number, 10_000 * number, status="FAILED", duration_ms=ms, reason="expired"
        )
    return infer_log(log)


@pytest.mark.parametrize(
    ("checkpoints", "seconds"),
    [
        (grid(10_000, 200), 120),
        (grid(1000, 200), 60),
        (grid(3_600_000, 200), 3600),
        ([(0, 20_000)], 240),
        ([], 60),
        ([(0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)], 12 * 10.02),
    ],
)
def test_a_run_of_a_log_has_twelve_checkpoints(checkpoints, seconds):
    """Those come every interval, or after a pause and what one takes.  It lasts a minute to an hour."""
    assert seconds * 10**9 == pytest.approx(
        parse_duration(infer_log(logged(*checkpoints)).document["run"]["duration"]), rel=0.01
    )
