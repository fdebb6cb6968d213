"""``ckptsim import`` against a real Flink: a running job, a copy of its answers, an endpoint that dies meanwhile."""

import subprocess
import sys
import time

import pytest

from benchmarks.flink.cluster import Cluster
from benchmarks.flink.job import PacedJob
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

JOB = PacedJob(parallelism=2, record=1000, map=200, sink=2000, state=2_000_000)
RECORD = 1037  # 1000 of payload; the rest is Flink's
OPTIONS = {"execution.checkpointing.interval": "2 s", "execution.checkpointing.timeout": "3 min"}


def ckptsim(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "sim", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """(the scenario file, the folder with the answers it was made of)."""
    folder = tmp_path_factory.mktemp("live")
    scenario, answers = folder / "job.yaml", folder / "answers"
    with Cluster(task_managers=2) as flink:
        job = flink.submit(JOB, OPTIONS)
        flink.await_checkpoints(job, 2, within_s=90)
        arguments = [
            "import",
            flink.url,
            "--job",
            job,
            "--sample",
            "25 s",
            "--save",
            str(answers),
            "--out",
            str(scenario),
        ]
        with ckptsim(*arguments) as command:
            messages = command.communicate(timeout=120)[1]

        assert command.returncode == 0, messages
    return scenario, answers


def test_a_running_job_is_imported_as_it_was_stated(imported):
    """Plan and configuration exactly; what had to be measured within what a busy machine does to it."""
    scenario = load(imported[0]).scenarios[0]
    source, stage, sink = scenario.job.vertices

    assert [source.name, stage.name, sink.name] == ["source", "map", "sink-writer"]
    assert {2} == {vertex.parallelism for vertex in scenario.job.vertices}
    assert [inlet.ship for vertex in (stage, sink) for inlet in vertex.inputs] == ["hash", "hash"]
    assert (
        scenario.checkpoint.interval_ns,
        scenario.checkpoint.timeout_ns,
        scenario.checkpoint.barriers.kind,
    ) == (2 * 10**9, 180 * 10**9, "aligned")
    assert scenario.cluster.placement == "spread"
    text = imported[0].read_text()

    assert "rate: unlimited" in text
    assert pytest.approx(int(text.split("record: ")[1].split(" B")[0]), rel=0.01) == RECORD
    assert JOB.sink / 1e3 == pytest.approx(milliseconds(text, "sink-writer"), rel=0.15)


def milliseconds(text, vertex):
    number, unit = text.split(f"\n  {vertex}:")[1].split("service: ")[1].split()[:2]
    return float(number) * {"us": 1e-3, "ms": 1}[unit]


def test_the_imported_job_runs_as_fast_as_the_real_one(imported):
    """Back-pressured by its sink, in the simulator as well."""
    result = simulate(load(imported[0]).scenarios[0])
    settled = result.series[result.series["time"] > 15]
    per_second = settled[settled["vertex"] == "sink-writer"]["numRecordsInPerSecond"].mean()

    assert 2 / (JOB.sink / 1e6) == pytest.approx(per_second, rel=0.15)
    assert set(result.checkpoints["status"]) <= {"COMPLETED", "IN_PROGRESS"}


def test_a_saved_copy_imports_to_the_same_scenario(imported, tmp_path):
    """To be done later, without the cluster; the backtest is a simulation with a budget of time, and may be shorter."""
    copy = tmp_path / "job.yaml"
    with ckptsim("import", str(imported[1]), "--out", str(copy)) as command:
        messages = command.communicate(timeout=60)[1]

    assert command.returncode == 0, messages
    assert imported[0].read_text() == copy.read_text()


def test_an_endpoint_that_dies_leaves_what_it_answered():
    """While its metrics are sampled: what was answered becomes a scenario, what was not is UNKNOWN, and one line says so."""
    with Cluster() as flink:
        job = flink.submit(PacedJob(parallelism=1, sink=1000), OPTIONS)
        flink.await_running(job)
        with ckptsim("import", flink.url, "--sample", "5 min") as command:
            time.sleep(6)
            flink._end()
            scenario, messages = command.communicate(timeout=120)

    assert "UNKNOWN" in scenario
    assert messages.strip()
    assert "Traceback" not in messages
    assert command.returncode == 0, messages
