"""The rhythm of checkpoints says what a log can say of the job's configuration; the rest is asked."""

from pathlib import Path

import pytest

from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.reading import history_of
from sim.jobs.infer.log import infer_log, rhythm
from sim.jobs.observations import compared, observed
from sim.jobs.reading import infer, read_any, read_source
from sim.jobs.source.job_log import JobLog, LogCheckpoint
from sim.model.schema.study import loads
from sim.model.schema.writer import write

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
    beat = rhythm(
        points((0, 300), (10_001, 200), (20_000, 14_000), (34_030, 300), (40_002, 250), (50_001, 200), (59_999, 300))
    )

    assert (beat.interval, beat.min_pause, beat.is_saturated) == (10_000, 0, False)


def test_a_pause_is_the_pause():
    """The same rest after checkpoints of different length."""
    beat = rhythm(points((0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000), (45_110, 3_000)))

    assert (beat.interval, beat.min_pause, beat.is_saturated) == (0, 3030, False)


def test_three_rests_are_enough_for_a_pause_and_two_are_not():
    checkpoints = (0, 9_000), (12_030, 5_000), (20_060, 7_000), (30_080, 12_000)

    assert rhythm(points(*checkpoints)).min_pause == 3030
    assert rhythm(points(*checkpoints[:3])).min_pause == 0


def test_one_right_behind_the_other_is_saturation():
    beat = rhythm(points((0, 9_000), (9_022, 8_000), (17_050, 8_500), (25_570, 9_000)))

    assert beat.is_saturated
    assert 0 == beat.interval == beat.min_pause


def test_too_few_checkpoints_say_nothing():
    assert not rhythm(points((0, 100))).is_saturated
    assert rhythm([]).gaps == ()
    # one in between is missing
    assert rhythm(points((0, 5), (10, 5))[:1] + points((0, 0), (0, 0), (9, 1))[2:]).gaps == ()


def test_a_saturated_job_takes_as_long_in_the_scenario():
    """The service assumed makes a barrier wait behind full buffers as long as it did: 3 ms per record, as configured."""
    inference = infer(read_source([LOG]))

    assert inference.document["job"]["src"]["source"]["rate"] == "unlimited"
    assert pytest.approx(3, rel=0.25) == float(inference.document["job"]["sink"]["service"].removesuffix(" ms"))
    assert inference.document["checkpoint"]["interval"] == "4 s"
    assert "Which execution.checkpointing.interval is configured?" in inference.unknown


def test_expired_checkpoints_tell_the_timeout():
    log = logged((0, 100), (5_000, 100), (10_000, 100), (15_000, 100))
    for number in (2, 3):
        log.checkpoints[number].status, log.checkpoints[number].reason, log.checkpoints[number].duration_ms = (
            "FAILED",
            "expired",
            4_007,
        )
    inference = infer_log(log)

    assert inference.document["version"] == 1
    assert inference.document["checkpoint"]["timeout"] == "4 s"
    assert "2 failed" in inference.comments[""]


def log_file(folder, *lines):
    """A log of these (second, message) lines; a line without a time follows the one before."""
    path = folder / "jobmanager.log"
    clock = (
        f"2025-12-29 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02},000 INFO  x [] - " if at is not None else "\t"
        for at, _ in lines
    )
    path.write_text("".join(f"{time}{text}\n" for time, (_, text) in zip(clock, lines, strict=True)))
    return read_source([path])


JOB = "0123456789abcdef" * 2


def switched(before, after):
    return f"Job Orders ({JOB}) switched from state {before} to {after}."


def expiring_run(number, start, *, first, timeout=300, failing=True):
    """A run of a job whose only checkpoint expires, which fails the job."""
    trigger, expiry = start + first, start + first + timeout
    return [
        (trigger, f"Triggering checkpoint {number} (type=CHECKPOINT) @ {trigger * 1000} for job {JOB}."),
        (expiry, f"Checkpoint {number} of job {JOB} expired before completing."),
        *(
            [
                (None, "FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold."),
                (expiry, switched("RUNNING", "RESTARTING")),
            ]
            if failing
            else []
        ),
    ]


def restarting_log(folder, first=(40, 55)):
    """A job that begins again from nothing after each of its checkpoints, which all expire after 5 min."""
    strategy = (
        "FailureRateRestartBackoffTimeStrategy(failuresIntervalMS=60000,backoffTimeMS=2000,maxFailuresPerInterval=3)"
    )
    lines = [
        (0, "Starting StandaloneSession (Version: 1.17.2, Scala: 2.12)"),
        (1, "No checkpoint found to restore."),
        (
            2,
            f"Using restart back off time strategy FailureRateRestartBackoffTimeStrategy({strategy} for Orders ({JOB}).",
        ),
    ]
    for number, delay in enumerate(first, 1):
        start = 1000 * number
        lines += [
            (start, switched("CREATED" if number == 1 else "RESTARTING", "RUNNING")),
            (start, "No checkpoint found to restore."),
            *expiring_run(number, start, first=delay),
        ]
    return log_file(folder, *lines)


def test_gaps_over_a_restart_are_no_interval(tmp_path):
    """Only the time from RUNNING to the first trigger tells of it: Flink draws that at random, up to the interval."""
    inference = infer(restarting_log(tmp_path))

    assert inference.document["checkpoint"]["interval"] == "55 s"
    assert "Which execution.checkpointing.interval is configured?" in inference.unknown
    comment = inference.comments["checkpoint.interval"].replace("\n", " ")
    assert "the longest time from RUNNING to the first trigger, seen 2 times" in comment


def test_an_expired_checkpoint_holds_the_next_trigger_back(tmp_path):
    """In one run: that gap is no interval, and no shorter than one."""
    lines = [
        (10, switched("CREATED", "RUNNING")),
        *expiring_run(1, 10, first=20, failing=False),
        *expiring_run(2, 330, first=0, failing=False),
        *expiring_run(3, 630, first=0, failing=False),
    ]
    inference = infer(log_file(tmp_path, *lines))

    assert inference.document["checkpoint"]["interval"] == "20 s"
    assert "no longer than 5 min" in inference.comments["checkpoint.interval"].replace("\n", " ")
    assert inference.document["job"]["source"]["source"]["rate"] == "1k/s"


def test_the_configuration_tells_the_interval_that_no_gap_does(tmp_path):
    log = restarting_log(tmp_path)
    log.options["execution.checkpointing.interval"] = "2min"
    inference = infer(log)

    assert inference.document["checkpoint"]["interval"] == "2 min"
    assert "Which execution.checkpointing.interval is configured?" not in inference.unknown


def test_a_log_tells_version_strategy_and_what_the_job_tolerates(tmp_path):
    document = infer(restarting_log(tmp_path)).document

    assert (document["cluster"]["version"], document["checkpoint"]["tolerable-failed"]) == ("1.17.2", 0)
    assert document["flink"] == {
        "restart-strategy.type": "failure-rate",
        "restart-strategy.failure-rate.failure-rate-interval": "60000 ms",
        "restart-strategy.failure-rate.delay": "2000 ms",
        "restart-strategy.failure-rate.max-failures-per-interval": 3,
    }
    assert loads(text(infer(restarting_log(tmp_path))), "log").warnings == ()


def test_failures_before_the_log_are_not_counted_as_tolerated(tmp_path):
    """A log that begins later: the first checkpoint in it that failed the job need not be the first that failed."""
    lines = [*expiring_run(8, 10, first=20), (400, switched("RESTARTING", "RUNNING"))]

    assert "tolerable-failed" not in infer(log_file(tmp_path, *lines)).document["checkpoint"]


def test_the_jar_of_a_stack_trace_tells_the_version(tmp_path):
    frame = "at a.B.c(B.java:98) ~[flink-dist_2.12-1.14.1.jar:1.14.1]"

    assert (
        log_file(tmp_path, (10, switched("CREATED", "RUNNING")), *expiring_run(1, 10, first=20), (None, frame)).version
        == "1.14.1"
    )


def test_a_restart_from_nothing_is_said_with_what_follows(tmp_path):
    """The start of the job is no restart."""
    said = " ".join(answer_text(answer(history_of(restarting_log(tmp_path)))).split())

    assert "1 restart found no checkpoint to restore: the job began again with empty state" in said
    assert "1 restart found no checkpoint to restore" in infer(restarting_log(tmp_path)).comments[""]


def test_checkpoints_that_were_declined_tell_no_timeout():
    log = logged((0, 100), (5_000, 100), (10_000, 100), (15_000, 100))
    log.checkpoints[2].status, log.checkpoints[2].reason, log.checkpoints[2].duration_ms = "FAILED", "declined", 4_007

    assert infer_log(log).document["checkpoint"]["timeout"] == "10 min"


@pytest.mark.parametrize(
    "log",
    [
        logged((0, 100)),
        logged((0, 0), (1, 0)),
        logged(*((i * 10_000, 300) for i in range(9))),
        logged(*((i * 9_000, 8_999) for i in range(9))),
        logged((0, 100), vertices={"Source: a": 1, "Source: b -> Map": 2, "Join": 3, "Sink: out": 3}),
        logged(
            (0, 100), version="1.17.2", options={"state.backend": "rocksdb", "taskmanager.memory.segment-size": "8kb"}
        ),
    ],
    ids=["one", "nothing", "grid", "saturated", "two sources", "options"],
)
def test_whatever_it_is_it_runs(log):
    """Without a warning, under three kinds of barriers as well, with one question for every value that is assumed."""
    inference = infer_log(log)
    study = loads(text(inference), "log")

    assert study.warnings == ()
    assert len(loads(text(compared(inference)), "log").scenarios) == 3
    assert len(inference.unknown) == text(inference).count("UNKNOWN:")


def test_two_sources_are_read_by_what_comes_next():
    job = infer_log(logged((0, 100), vertices={"Source: a": 1, "Source: b": 2, "Join": 3, "Sink: out": 3})).document[
        "job"
    ]

    assert job["join"]["input"] == {"a": "hash", "b": "hash"}
    assert job["out"]["input"] == {"join": "hash"}
    assert [name for name, vertex in job.items() if "source" in vertex] == ["a", "b"]


def test_the_table_is_that_of_a_recording():
    """Only checkpoints are in it."""
    recording = read_any(LOG)
    table = observed(recording)

    assert {"src", "map", "sink"} == set(recording.inference.document["job"])
    assert len(recording.checkpoints_table()) > 20
    assert {"end_to_end_duration", "state_size"} <= set(table["quantity"])
