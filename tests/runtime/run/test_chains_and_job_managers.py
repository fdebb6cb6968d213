"""Where one job instance ends and the next begins: without a JobManager, with captured output, and what the tables say of it."""

from dataclasses import replace

import pytest

from sim.model.faults import JobManagerDown, Rescale, Restart
from sim.results.journal import Happening
from sim.runtime.simulate import Chain, simulate
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, fault_at, scenario
from tests.runtime.job_chains import jobs

RESCALED_NS = 3 * SECOND


def rescaled(kind=ALIGNED, *, seconds=6, down_ms=None, sink_ns=2 * MS, **options):
    """The sink gets a third subtask at 3 s; `down_ms`: from 2.9 s on there is no JobManager for so long."""
    base = scenario(chain(2, rate=100, sink_ns=sink_ns), kind, seconds=seconds, interval_ms=400, **options)
    faults = () if down_ms is None else (fault_at(JobManagerDown(down_ms * MS), 2900),)
    return replace(
        base,
        restart=Restart("fixed-delay", delay_ns=10 * MS),
        faults=faults,
        rescale=(Rescale(RESCALED_NS, (("sink", 3),)),),
    )


def rescaled_ns(result):
    return [row.time_ns for row in result.journal if row.happening is Happening.RESCALED]


@pytest.mark.parametrize(("down_ms", "at_ns"), [(None, RESCALED_NS), (50, RESCALED_NS), (1500, 4400 * MS)])
def test_a_rescale_waits_for_a_job_manager(down_ms, at_ns):
    result = simulate(rescaled(down_ms=down_ms))

    assert [at_ns] == rescaled_ns(result)
    assert [len(rows) for _, rows in result.tasks[result.tasks["vertex"] == "sink"].groupby("x_job")] == [2, 3]
    assert (result.job_status, result.violations) == ("RUNNING", ())


def test_without_a_job_manager_to_the_end_nothing_is_rescaled():
    result = simulate(rescaled(seconds=4, down_ms=1500))

    assert rescaled_ns(result) == []
    assert result.job_status == "FAILED: job 1 cannot begin: since 3 s there has been no JobManager to rescale it"
    assert result.ended_ns == 4 * SECOND


@pytest.mark.parametrize("on_downstream", [False, True])
def test_captured_output_is_read_by_its_writers_or_by_its_readers(on_downstream):
    """A slow sink: there is captured output of the stage, which is rescaled with its readers."""
    ran = Chain(
        rescaled(UNALIGNED, sink_ns=12 * MS, recover_output_on_downstream=on_downstream), "compiled", check=True
    )
    ran.run()
    job = ran.instances[1]
    overtaken = {job.names[task][0]: int(part.position.overtaken.sum()) for task, part in job.beginning.parts.items()}

    assert job.violations() == ()
    assert (overtaken["source"] + overtaken["stage0"] == 0) == on_downstream


@pytest.fixture(scope="module")
def chained():
    """Three jobs that claim."""
    chained = Chain(jobs("claim"), "compiled", check=False)
    chained.run()
    return chained
