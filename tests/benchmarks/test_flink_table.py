"""What the comparison with a real Flink counts, prints, and says where there is none."""

import importlib.metadata

import pytest

from benchmarks.flink import classes
from benchmarks.flink.measured import PER_MINUTE, measured
from benchmarks.flink.protocols import INTERRUPTIBLE, PROTOCOLS, UNALIGNED
from benchmarks.flink.switch import imported, predict
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from tests.places import REST


@pytest.fixture(scope="module")
def pressed():
    return read_saved(REST / "pressed.zip")


def value(rows, quantity, vertex=""):
    return rows[(rows["quantity"] == quantity) & (rows["vertex"] == vertex)]["value"].median()


def test_a_saved_job_is_measured_from_a_moment_on(pressed):
    """Checkpoints triggered before are left out: nothing had settled."""
    job = RestJob(pressed)
    triggers = sorted(point.trigger_timestamp for point in job.checkpoints if not point.is_savepoint)
    rows, later = measured(job), measured(job, since_ms=triggers[1])

    assert value(rows, "completed") == value(later, "completed") + 1
    assert 60_000 * (len(triggers) - 1) / (triggers[-1] - triggers[0]) == pytest.approx(value(rows, PER_MINUTE))
    assert pytest.approx(value(rows, "numRecordsInPerSecond", "sink"), rel=0.05) == 2 / 3e-3  # two subtasks, 3 ms each


def test_protocols_are_predicted_from_one_import(pressed):
    """Each its own: in-flight data only where barriers overtake, and those who wait take longest."""
    text, scenario = imported(pressed)
    aligned, unaligned, timeout = (predict(scenario, protocol, watch_s=20, seeds=(1,)) for protocol in PROTOCOLS)
    took = [value(rows, "end_to_end_duration") for rows in (aligned, timeout, unaligned)]

    assert "UNKNOWN" in text
    assert sorted(took, reverse=True) == took
    assert value(aligned, "persisted_data") == 0 < value(timeout, "persisted_data") < value(unaligned, "persisted_data")


def test_what_an_author_knows_of_windows_is_predicted_with_and_without_interruptible_timers():
    """An import cannot tell what a timer does: the experiment says so, as a user would."""
    window = {"service": "1 us", "fan-out": 0.1, "window": {"tumbling": "4 s", "time": "event", "fire": "10 ms"}}
    text, scenario = imported(read_saved(REST / "keeping-up.zip"), {"join-customer": window})
    waits, passes = (predict(scenario, protocol, watch_s=60, seeds=(1,)) for protocol in (UNALIGNED, INTERRUPTIBLE))
    longest = [rows[rows["quantity"] == "end_to_end_duration"]["value"].max() for rows in (waits, passes)]

    assert "fire: 10 ms" in text
    assert longest[0] > 2 * longest[1]


def test_without_flink_one_line_says_what_to_install(monkeypatch):
    """Also without Java."""

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(classes.importlib.metadata, "distribution", missing)
    with pytest.raises(
        classes.MissingDependencyError, match=r"^a real Flink needs its libraries: pip install .*\[flink\]'$"
    ):
        classes.classpath()
    monkeypatch.setattr(classes, "find_java", lambda: None)
    with pytest.raises(classes.MissingDependencyError, match="Java 17"):
        classes.java()
