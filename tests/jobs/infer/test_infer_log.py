"""The rhythm of checkpoints says what a log can say of the job's configuration; the rest is asked."""

import pytest

from sim.jobs.infer.log import infer_log
from sim.jobs.source.job_log import JobLog, LogCheckpoint
from sim.model.schema.study import loads


def points(*checkpoints):
    """(trigger [ms], duration [ms]) of one checkpoint after the other."""
    return [
        LogCheckpoint(number, trigger, trigger, status="COMPLETED", state_size=1000, end_to_end_duration=took)
        for number, (trigger, took) in enumerate(checkpoints, 1)
    ]


def logged(*checkpoints, **fields):
    return JobLog("jobmanager.log", "0" * 32, {point.id: point for point in points(*checkpoints)}, **fields)


@pytest.mark.parametrize(
    "log",
    [
        logged((0, 100)),
        logged((0, 0), (1, 0)),
        logged(*((i * 10_000, 300) for i in range(9))),
        logged(*((i * 9_000, 8_999) for i in range(9))),
        logged((0, 100), vertices={"Source: a": 1, "Source: b -> Map": 2, "Join": 3, "Sink: out": 3}),
        logged(
            (0, 100),
            version="1.17.2",
            options={"state.backend.type": "rocksdb", "execution.checkpointing.unaligned.enabled": "true"},
        ),
    ],
    ids=["one", "nothing", "grid", "saturated", "two sources", "options"],
)
def test_whatever_it_is_it_runs(log):
    """Without a warning, with one question for every value that is assumed."""
    inference = infer_log(log)
    study = loads(inference.text, "log")

    assert study.warnings == ()
    assert len(inference.unknown) == inference.text.count("UNKNOWN:")


@pytest.mark.parametrize(
    ("sizes_mb", "size", "origin"),
    [
        ([2000 if n % 4 == 0 else 200 + n for n in range(1, 21)], "219 MB", "the median of the last 5 checkpoints"),
        ([200, 900, 200], "200 MB", "the median of the last 3 checkpoints"),
        ([200, 205, 2000, 203, 204], "204 MB", "the median of the last 5 checkpoints"),
        ([100], "100 MB", "this vertex has all of the 100 MB."),
    ],
    ids=["a large one now and then", "few", "the large one is not last", "one"],
)
def test_the_size_of_the_state_is_not_that_of_an_exception(sizes_mb, size, origin):
    log = logged(*((n * 60_000, 2000) for n in range(len(sizes_mb))))
    for point, megabytes in zip(log.checkpoints.values(), sizes_mb, strict=True):
        point.state_size = megabytes * 10**6

    inference = infer_log(log)

    assert inference.document["job"]["operator"]["state"]["size"] == size
    assert origin in " ".join(inference.text.replace("#", "").split())
