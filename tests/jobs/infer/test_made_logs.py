"""Logs of made jobs: their triggers, durations and sizes are known, so the assumptions of their scenario can be counted by hand."""

import pytest

from sim.advice.horizon import horizon
from sim.jobs.evidence.backtest import backtest, runs_within
from sim.jobs.infer.log import infer_log
from sim.jobs.reading import recorded_job
from sim.model.units import parse_duration
from tests.jobs.infer.made_jobs import comment_of
from tests.jobs.infer.test_infer_log import logged
from tests.scenarios import read_scenario


def grid(every_ms, took_ms, count=6):
    return [(every_ms * k, took_ms) for k in range(count)]


def test_the_interval_is_measured_asked_for_or_assumed():
    measured, paused, configured, few = (
        infer_log(log)
        for log in (
            logged(*grid(10_000, 200)),
            logged((0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)),
            logged((0, 100), options={"execution.checkpointing.interval": "2min"}),
            logged((0, 100)),
        )
    )

    assert comment_of(measured, "checkpoint.interval") == "median of 5 gaps between triggers without a late checkpoint"
    assert (paused.document["checkpoint"]["interval"], paused.document["checkpoint"]["min-pause"]) == ("8 s", "3 s")
    assert "the shortest of 4 gaps between triggers: a pause follows each checkpoint" in comment_of(
        paused, "checkpoint.interval"
    )
    assert comment_of(paused, "checkpoint.min-pause") == "median pause after a checkpoint, 4 gaps between triggers"
    assert configured.document["checkpoint"]["interval"] == "2 min"
    assert few.document["checkpoint"]["interval"] == "1 min"


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


def test_requested_checkpoints_have_no_interval():
    """They follow when somebody asks for them: at once, or after a while."""
    log = logged((0, 350), (400, 350), (800, 350), (20_800, 350))
    for point in log.checkpoints.values():
        point.is_requested = True

    assert comment_of(infer_log(log), "checkpoint.interval").endswith("the log has too few periodic checkpoints.")


def sized(took_ms, sizes):
    """A log with one size per checkpoint; `took_ms` says how long each takes."""
    log = logged(*((60_000 * number, took_ms(size)) for number, size in enumerate(sizes, 1)))
    for point, size in zip(log.checkpoints.values(), sizes, strict=True):
        point.state_size = size
    return log


GROWING = [2 * 10**9 + 360 * 10**6 * number for number in range(40)]


def test_a_log_whose_checkpoints_grow_is_a_job_whose_state_grows(monkeypatch):
    """Bandwidth is of bytes and duration of the same checkpoint, the last one is as large as its own, and so are later ones."""
    monkeypatch.setitem(runs_within.__kwdefaults__, "budget_s", 600.0)  # whatever else the machine does
    log = sized(lambda size: size // 400_000, GROWING)
    inference, compared = infer_log(log), backtest(recorded_job(log))
    scenario = read_scenario(inference.text, "log")
    ahead = horizon([scenario], compared, 7200 * 10**9)

    assert inference.document["storage"] == {"bandwidth": "400 MB/s", "file-latency": "0 s"}
    assert inference.document["job"]["operator"]["state"]["growth"] == "6 kB"
    assert compared.off == ()
    assert ahead.states[0].now_bytes == pytest.approx(GROWING[-1], rel=0.02)
    assert ahead.states[0].after(7200) == pytest.approx(GROWING[-1] + 7200 * 6e6, rel=0.02)
    assert inference.document["run"]["duration"] == "40 min"


def test_the_bandwidth_of_a_log_is_a_line_a_median_or_what_the_largest_state_takes():
    line, alike, unlike = (
        infer_log(log)
        for log in (
            sized(lambda size: 3000 + size // 400_000, GROWING),
            sized(lambda size: size // 400_000, [10**9, 11 * 10**8, 9 * 10**8]),
            sized(lambda size: 2000 + size % 7, GROWING),
        )
    )

    assert line.document["storage"] == {"bandwidth": "400 MB/s", "file-latency": "3 s"}
    assert alike.document["storage"] == {"bandwidth": "400 MB/s"}
    assert "growth" not in unlike.document["job"]["operator"]["state"]
    assert unlike.document["storage"] == {"bandwidth": "7.65 GB/s"}
    assert "durations do not follow the sizes" in comment_of(unlike, "storage.bandwidth")


@pytest.mark.parametrize(
    ("size", "bandwidth", "rate"), [(3 * 10**9, "33.3 MB/s", "1k/s"), (10**6, "100 MB/s", "unlimited")]
)
def test_bytes_that_may_take_so_long_are_no_sign_of_queues(size, bandwidth, rate):
    """90 s each, one after another: 3 GB are a slow upload, 1 MB is not."""
    log = sized(lambda _: 90_000, [size + 10**5 * (number % 3) for number in range(15)])
    for number, point in enumerate(log.checkpoints.values()):
        point.trigger_timestamp = point.line_ms = number * 90_005
    document = infer_log(log).document

    assert (bandwidth, rate) == (document["storage"]["bandwidth"], document["job"]["source"]["source"]["rate"])


def test_checkpoints_that_follow_at_once_because_of_their_bytes_do_not_saturate_the_job():
    """Each is triggered when the one before completes, as it is longer than the interval."""
    log = sized(lambda _: 0, GROWING)
    at_ms = 0
    for point in log.checkpoints.values():
        point.trigger_timestamp = point.line_ms = at_ms
        point.end_to_end_duration = point.state_size // 400_000
        at_ms += point.end_to_end_duration + 5
    job = infer_log(log).document["job"]

    assert job["source"]["source"]["rate"] == "1k/s"
    assert "growth" in job["operator"]["state"]
