"""What had happened when a checkpoint was triggered."""

from sim.jobs.history.in_common import circumstances
from tests.jobs.history.conftest import acknowledged, history, point


def row(number, trigger_ms, took_ms=100, status="COMPLETED", **details):
    sinks = [acknowledged(0, took_ms, 20), acknowledged(1, took_ms, 20)]
    made = point(number, took_ms, [acknowledged(0, 20, 10)], sinks, status, **details)
    return made.model_copy(update={"trigger_timestamp": trigger_ms})


def sentences(*points, **details):
    return list(circumstances(history(*points, **details), points[-1]))


def test_a_pause_of_triggers_may_be_a_restart():
    usual = [row(number, 10_000 * number) for number in range(2, 7)]

    assert sentences(*usual, row(7, 77_000)) == [
        "It was triggered 17 s after the one before, usually 10 s pass: the job may have been restarted in between."
    ]
    assert not sentences(*usual, row(7, 70_000))
    assert not sentences(*usual[:-1], row(6, 60_000, 16_500), row(7, 77_000)), "the one before took so long"
    assert not sentences(*usual[:2], row(4, 57_000)), "too few to know what is usual"


def test_a_failure_is_named_instead():
    usual = [row(number, 10_000 * number) for number in range(2, 7)]

    assert sentences(*usual, row(7, 77_000), failures_ms=(74_000,)) == [
        "Tasks of the job had failed 3 s before it was triggered."
    ]
    assert sentences(*usual, row(7, 70_000, status="FAILED"), row(8, 80_000)) == [
        "Checkpoint 7 before it did not complete."
    ]


def test_another_one_was_under_way():
    assert list(
        circumstances(history(row(7, 70_000, 5000), row(8, 72_000, is_savepoint=True)), row(7, 70_000, 5000))
    ) == ["Savepoint 8 was under way at the same time."]
