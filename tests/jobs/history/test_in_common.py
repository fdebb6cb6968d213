"""What slow checkpoints share: what was planted is found, chance is not, and three are too few to be sure."""

import numpy as np

from sim.jobs.history.causes import PeriodicEvent, p_value_of, periodic_events
from sim.jobs.history.history import split
from sim.jobs.history.in_common import circumstances, in_common
from sim.jobs.source.rest_job import RestJob
from tests.jobs.history.conftest import acknowledged, history, point

PLACES = {("src", 0): "tm-1", ("sink", 0): "tm-1", ("sink", 1): "tm-2"}


def plain(number, took_ms, slow_sink=0, size=1000):
    """`slow_sink` acknowledges last, after a long upload."""
    sink = [
        acknowledged(
            index,
            took_ms if index == slow_sink else 80,
            20,
            0,
            0,
            took_ms - 40 if index == slow_sink else 50,
            size=size,
        )
        for index in (0, 1)
    ]
    return point(number, took_ms, [acknowledged(0, 30, 10, async_ms=10)], sink, checkpointed_size=2 * size)


def found_in(points, **details):
    made = history(*points, task_managers=PLACES, **details)
    known = split(made)
    return in_common(made, known.slow, known.others)


def test_chance_is_rarely_called_likely():
    """Durations dealt out at random: one history in twenty may look as if, no more."""
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(60):
        points = [
            plain(
                number,
                int(rng.choice([100, 100, 100, 900])),
                slow_sink=int(rng.integers(2)),
                size=int(rng.integers(1000, 9000)),
            )
            for number in range(2, 20)
        ]
        seen += any(finding.corrected < 0.05 for finding in found_in(points).findings)

    assert seen <= 6


def test_a_rhythm():
    """Every fifth is long: the rhythm of five is no chance, that of seven is."""
    points = [plain(number, 900 if number % 5 == 0 else 100) for number in range(2, 32)]

    assert p_value_of(PeriodicEvent("", lambda point: point.id % 5 / 5), points) < 0.001
    assert p_value_of(PeriodicEvent("", lambda point: point.id % 7 / 7), points) > 0.1
    assert p_value_of(PeriodicEvent("", lambda point: 0.5), points) == 1.0


def test_windows_of_a_real_job(recorded):
    """R2: all windows of 11 s fire together; the import knew that from the plan, the history shows it."""
    found = recorded("users-jobs/R2-burst11-aligned.zip")
    known = split(found)
    (first, *_) = in_common(found, known.slow, known.others).findings

    assert "between two ends of windows of top" in first.text
    assert first.how_sure == "clear"


def test_amounts_that_are_alike_are_no_findings():
    """However sure the difference: 2 % more bytes explain no checkpoint of nine times the duration."""
    points = [
        plain(number, 900 if number % 4 == 0 else 100, size=1020 if number % 4 == 0 else 1000)
        for number in range(2, 22)
    ]
    assert not [finding for finding in found_in(points).findings if "bytes" in finding.text]


def test_longer_checkpoints_that_read_more_meanwhile_wait_for_barriers():
    """Without statistics of subtasks this amount alone tells that of storage and barriers; Flink up to 1.10 names it otherwise."""
    points = [
        plain(number, 100 * number).model_copy(update={"tasks": {}, name: 10**8 * number})
        for number in range(2, 12)
        for name in [("processed_data", "alignment_buffered")[number % 2]]
    ]

    assert "so barriers wait, and not storage: 200 MB to 1.1 GB" in " ".join(
        finding.text for finding in found_in(points).findings
    )


def test_timers_that_fire_together_are_a_rhythm(recorded):
    """No plan names them: the state of the function falls every 7 s; where a checkpoint comes while they fire, durations must agree."""
    for name in ("R3-firing-aligned", "R3-firing-timeout500", "R3-firing-unaligned"):
        assert [event.text for event in periodic_events(recorded(f"users-jobs/{name}.zip"))] == [
            "begins at the same time within the 7 s in which the state of firing rises and falls"
        ]
    assert not list(periodic_events(recorded("users-jobs/J4-pressed-aligned-r1.zip")))
    assert not list(periodic_events(recorded("users-jobs/R6-grow-aligned.zip")))


def test_threads_that_sleep_leave_no_cores_scarce(recorded, monkeypatch):
    """The sampled processor time decides: seven busy threads that use half a core of two do not wait for one."""

    def contention(cores):
        used = property(lambda job: {manager.id: cores / 2 for manager in job.task_managers})
        monkeypatch.setattr(RestJob, "cores_used", used)
        return recorded("users-jobs/R7-cores-aligned.zip").contention

    working = contention(1.9)
    assert contention(0.5) == ""
    assert "Cores are scarce" in working
    assert "sleep" not in working


# ---- What had happened when a checkpoint was triggered.


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
