"""What slow checkpoints share: what was planted is found, chance is not, and three are too few to be sure."""

import numpy as np
import pytest

from sim.jobs.history.causes import PeriodicEvent, p_value_of, periodic_events
from sim.jobs.history.history import split
from sim.jobs.history.in_common import in_common
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


def test_a_slow_task_manager_is_named():
    points = [
        plain(number, 900 if number % 4 == 0 else 100 + number % 3, slow_sink=int(number % 4 == 0))
        for number in range(2, 22)
    ]
    found = found_in(points)
    texts = {finding.text: finding.how_sure for finding in found.findings}

    assert (found.slow, found.others) == (5, 15)
    assert texts["most of the path is in task manager tm-2: 5 of 5 slow ones, 0 of 15 others"] == "clear"
    assert texts["sink[1] acknowledges last: 5 of 5 slow ones, 0 of 15 others"] == "clear"


def test_bytes_are_named():
    points = [
        plain(number, 900 if number % 4 == 0 else 100 + number % 3, size=50_000 if number % 4 == 0 else 1000)
        for number in range(2, 22)
    ]
    assert any(
        finding.text.startswith("more bytes written: 100 kB in 5 slow ones, 2 kB in 15 others")
        for finding in found_in(points).findings
    )


def test_what_follows_a_failure_is_named():
    failed = {number: point(number, 60, [], [], "FAILED") for number in range(4, 30, 5)}
    points = [failed.get(number) or plain(number, 900 if number % 5 == 0 else 100) for number in range(2, 30)]
    (first, *_) = found_in(points).findings

    assert first.text == "it is the first after one that did not complete: 5 of 5 slow ones, 0 of 17 others"
    assert first.p <= first.corrected


def test_three_are_too_few():
    """Whatever they share: no feature is sure."""
    found = found_in([plain(2, 100), plain(3, 100), plain(4, 900, slow_sink=1)])

    assert pytest.approx(found.least_p) == 1 / 3
    assert not found.findings


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

    assert p_value_of(PeriodicEvent("", "", lambda point: point.id % 5 / 5), points) < 0.001
    assert p_value_of(PeriodicEvent("", "", lambda point: point.id % 7 / 7), points) > 0.1
    assert p_value_of(PeriodicEvent("", "", lambda point: 0.5), points) == 1.0


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


def test_timers_that_fire_together_are_a_rhythm(recorded):
    """No plan names them: the state of the function falls every 7 s; where a checkpoint comes while they fire, durations must agree."""
    for name in ("R3-firing-aligned", "R3-firing-timeout500", "R3-firing-unaligned"):
        assert [rhythm.of for rhythm in periodic_events(recorded(f"users-jobs/{name}.zip"))] == [
            "timers of firing that fire together (its state falls every 7 s)"
        ]
    assert not list(periodic_events(recorded("users-jobs/J4-pressed-aligned-r1.zip")))
    assert not list(periodic_events(recorded("users-jobs/R6-grow-aligned.zip")))


def test_durations_that_grow_with_the_state(recorded):
    """Four slow ones do not tell it; all 18 do."""
    found = recorded("users-jobs/R6-grow-aligned.zip")
    known = split(found)
    texts = [finding.text for finding in in_common(found, known.slow, known.others).findings]

    assert any(text.startswith("the longer a checkpoint, the more it writes: 11 MB to 154 MB") for text in texts)


def test_threads_that_wait_for_cores(recorded):
    scarce, idle = (recorded(f"users-jobs/{name}.zip").contention for name in ("R7-cores-aligned", "R3-firing-aligned"))

    assert "7.6 threads of tasks are busy at once on the 2 cores" in scarce
    assert idle == ""


def test_threads_that_sleep_leave_no_cores_scarce(recorded, monkeypatch):
    """The sampled processor time decides: seven busy threads that use half a core of two do not wait for one."""
    monkeypatch.setattr("sim.jobs.history.reading.cores_used_by", lambda *_: 0.5)
    assert recorded("users-jobs/R7-cores-aligned.zip").contention == ""
    monkeypatch.setattr("sim.jobs.history.reading.cores_used_by", lambda *_: 1.9)
    working = recorded("users-jobs/R7-cores-aligned.zip").contention
    assert "Cores are scarce" in working
    assert "sleep" not in working
