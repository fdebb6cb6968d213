"""The cores of a real job's hosts: how many there are, and what its records take on idle ones."""

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration
from tests.places import USERS


def with_processor_time(name, cores):
    """The scenario where each task manager uses so many cores; its metric is refreshed every 10 s."""
    snapshot = read_saved(USERS / f"{name}.zip")
    managers = [row["id"] for row in snapshot.answers["/taskmanagers"]["taskmanagers"]]
    begun = min(snapshot.samples)
    samples = {
        now: {
            **sample,
            **{
                f"/taskmanagers/{manager}/metrics": processor_time((now - begun) // 10_000, cores)
                for manager in managers
            },
        }
        for now, sample in snapshot.samples.items()
    }
    return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, snapshot.answers, samples))


def processor_time(changes, cores):
    return [{"id": "Status.JVM.CPU.Time", "value": str(7e9 + changes * 10e9 * cores)}]


def test_threads_that_are_busy_without_processor_time_block():
    """7.7 threads of two processes that use 0.6 cores: services are as measured, and no core is scarce."""
    blocked, working = with_processor_time("R7-cores-aligned", 0.3), with_processor_time("R7-cores-aligned", 0.95)
    laws = [found.document["job"]["stage1"]["service"] for found in (working, blocked)]
    service = [parse_duration(law["lognormal"]["mean"] if isinstance(law, dict) else law) for law in laws]

    assert blocked.document["cluster"]["services"] == "side-by-side"
    assert "use 0.6 cores (Status.JVM.CPU.Time): tasks block" in " ".join(blocked.comments["cluster.services"].split())
    assert blocked.warnings == ()
    assert 3.5 < service[1] / service[0] < 4.2


@pytest.mark.parametrize("value", ["-1", "NaN", "", None])
def test_processor_time_that_a_platform_does_not_tell_proves_nothing(value, monkeypatch):
    monkeypatch.setitem(globals(), "processor_time", lambda *_: [{"id": "Status.JVM.CPU.Time", "value": value}])

    assert (
        "UNKNOWN: Do tasks block or sleep?" in with_processor_time("R7-cores-aligned", 0.3).comments["cluster.services"]
    )
