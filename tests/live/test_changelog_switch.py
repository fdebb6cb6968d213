"""What `advise` prints for the changelog can be carried out: the job restarts from a savepoint and takes checkpoints."""

import pytest

from benchmarks.flink.advised import patched
from benchmarks.flink.cluster import Cluster, FlinkError
from benchmarks.flink.job import PacedJob
from sim.advice.configuration import diff_flink_keys
from sim.advice.levers import CHANGELOG, CLAIM
from sim.advice.settings import Change
from sim.advice.situation import FOLDER
from sim.studies.sweeps.design import override
from tests.advice.levers.test_levers import JOB
from tests.scenarios import read_scenario

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

INTERVAL = {"execution.checkpointing.interval": "1 s", "restart-strategy.type": "none"}


def printed():
    advised = read_scenario(JOB, overrides=[override("job.count.state.changelog", "on")])
    found = diff_flink_keys(read_scenario(JOB), advised, [Change(CHANGELOG, "changelog")])
    return {item.key: item.advised for item in found}


def test_the_printed_keys_switch_the_changelog_on():
    """Without the claim mode among them the first checkpoint fails the job, again and again."""
    with Cluster(task_managers=2) as flink:
        job = flink.submit(PacedJob(rate=500, state=1_000_000), INTERVAL)
        flink.await_checkpoints(job, 2, within_s=60)
        savepoint = flink.stop(job)
        keys = {key: flink.storage("log") if value == FOLDER else value for key, value in printed().items()}

        job = flink.submit(
            PacedJob(rate=500, state=1_000_000), patched(INTERVAL, keys | {CLAIM: "NO_CLAIM"}), restore=savepoint
        )
        with pytest.raises(FlinkError, match="does not support enforcing a full snapshot"):
            flink.await_checkpoints(job, 1, within_s=60)

        # and takes the savepoint over
        job = flink.submit(PacedJob(rate=500, state=1_000_000), patched(INTERVAL, keys), restore=savepoint)
        flink.await_checkpoints(job, 3, within_s=60)
