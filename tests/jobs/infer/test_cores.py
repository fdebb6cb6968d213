"""The cores of a real job's hosts: how many there are, and what its records take on idle ones."""

import copy
from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration

USERS = Path(__file__).parents[2] / "data" / "users-jobs"


def inferred(name, edit=lambda _: None):
    """The scenario after `edit` of each task manager."""
    snapshot = read_saved(USERS / f"{name}.zip")
    answers = copy.deepcopy(dict(snapshot.answers))
    for manager in answers["/taskmanagers"]["taskmanagers"]:
        edit(manager)
    return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples))


def test_two_task_managers_on_one_address_share_its_cores():
    """Ten burning tasks, two cores: 7.7 threads are busy at once."""
    found = inferred("R7-cores-aligned")
    cluster = found.document["cluster"]

    assert tuple(cluster[key] for key in ("cores", "hosts", "services")) == (2, 1, "idle-core")
    (scarce,) = found.scarce
    assert scarce.startswith(
        "7.7 threads of tasks are busy at once on 2 cores, so records take 3.8 times as long as on idle ones (unless"
    )
    assert "Cores are scarce: 7.7 threads" in found.comments[""]
    assert "do tasks block or sleep?" in found.comments["cluster.services"]
    assert "divided by 3.8" in " ".join(found.comments["job.stage1.service"].split())


def test_the_work_of_a_record_is_that_of_an_idle_core():
    """Stages burn 150 us and profiles 300 us of processor time, and what serialisation takes: not four times that."""
    job = inferred("R7-cores-aligned").document["job"]

    assert 150_000 < parse_duration(job["stage2"]["service"]) < 300_000
    assert 250_000 < parse_duration(job["profile+out-writer"]["service"]) < 500_000


def test_task_managers_of_two_addresses_have_two_hosts_of_cores():
    """More of them bring more cores, so nothing is said of hosts."""

    def move(manager):
        manager["path"] = manager["path"].replace("127.0.0.1", f"10.0.0.{manager['dataPort'] % 200}")

    cluster = inferred("R7-cores-aligned", move).document["cluster"]

    assert (cluster["cores"], cluster.get("hosts")) == (2, None)


@pytest.mark.parametrize(
    "edit", [lambda manager: manager.pop("hardware"), lambda manager: manager.update(id="another")]
)
def test_cores_that_no_answer_tells_are_not_made_up(edit):
    """Services stay as they were measured, side by side."""
    with_cores, without = inferred("R7-cores-aligned"), inferred("R7-cores-aligned", edit)
    service = [parse_duration(found.document["job"]["stage1"]["service"]) for found in (with_cores, without)]

    assert not {"cores", "hosts", "services"} & without.document["cluster"].keys()
    assert 3.5 < service[1] / service[0] < 4.2


def test_cores_that_are_free_leave_services_as_they_are():
    found = inferred("R1-burst7-aligned")

    assert (found.document["cluster"]["cores"], found.scarce) == (2, ())
    assert not any("threads of tasks" in comment and "divided" in comment for comment in found.comments.values())


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
    service = [parse_duration(found.document["job"]["stage1"]["service"]) for found in (working, blocked)]

    assert blocked.document["cluster"]["services"] == "side-by-side"
    assert "use 0.6 cores (Status.JVM.CPU.Time): tasks block" in " ".join(blocked.comments["cluster.services"].split())
    assert tuple(blocked.scarce) == ()
    assert 3.5 < service[1] / service[0] < 4.2


def test_threads_that_use_all_cores_work():
    """The question is answered."""
    found = with_processor_time("R7-cores-aligned", 0.95)

    assert found.document["cluster"]["services"] == "idle-core"
    assert "use 1.9 cores" in found.comments["cluster.services"]
    assert "block" not in found.comments["cluster.services"]
    assert inferred("R7-cores-aligned").document == found.document


@pytest.mark.parametrize("value", ["-1", "NaN", "", None])
def test_processor_time_that_a_platform_does_not_tell_proves_nothing(value, monkeypatch):
    monkeypatch.setitem(globals(), "processor_time", lambda *_: [{"id": "Status.JVM.CPU.Time", "value": value}])

    assert "do tasks block or sleep?" in with_processor_time("R7-cores-aligned", 0.3).comments["cluster.services"]
