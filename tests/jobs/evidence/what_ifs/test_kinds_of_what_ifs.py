"""What a scenario changes of the job that was imported."""

from dataclasses import fields

import pytest

from sim.jobs.evidence.what_ifs import KIND_OF_FIELD, kinds_of
from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster
from sim.model.job import Vertex
from sim.model.schema.study import loads
from tests.places import DATA

JOB = (
    (DATA / "tiny.yaml").read_text().replace("[aligned, unaligned]", "aligned")
    + """
backtest:
  runs: 3
  simulated: 90 s
  end-to-end: {observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}, predicted: {p50: 390 ms, p90: 1 s, max: 2 s, count: 60}}
"""
)


def kinds(*overrides):
    study = loads(JOB, overrides=overrides)
    return kinds_of(study.backtest.imported, study.scenarios[-1])


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((), ()),
        (("checkpoint.barriers=unaligned",), ("barriers",)),
        (("checkpoint.interval=7 s",), ("interval",)),
        (("checkpoint.min-pause=3 s", "checkpoint.timeout=1 min"), ("interval",)),
        (("cluster.network.debloat=on",), ("network",)),
        (("cluster.slots=2", "cluster.placement=spread"), ("parallelism",)),
        (("job.source.source.rate=40/s",), ("load",)),
        (("job.sink.service=2 ms",), ("load",)),
        (("job.sink.state.size=9 MB",), ("storage",)),
        (("storage.bandwidth=3 MB/s",), ("storage",)),
        (("overheads.file=0 s",), ("storage",)),
        (("overheads.notify=7 ms",), ("other",)),
        (("faults=[{kill: random-task, at: 3 s}]",), ("failure",)),
        (("actions=[{savepoint: canonical, at: 3 s}]",), ("other",)),
        (("checkpoint.barriers=unaligned", "checkpoint.interval=7 s"), ("barriers", "interval")),
        (("run.duration=30 s", "run.seed=9", "run.replications=2"), ()),
    ],
)
def test_each_option_has_its_kind(overrides, expected):
    assert expected == kinds(*overrides)


def test_a_new_option_says_which_kind_it_is():
    """What no table names counts as another job: so does nothing but these."""
    models = {"checkpoint": CheckpointOptions, "cluster": Cluster, "vertex": Vertex}
    others = {
        "finish",
        "region",
        "profile",
        "version",
        "name",
        "joined",
        "union_state",
        "commit",
        "connector",
        "connector_version",
        "committer_of",
    }

    assert others == {
        field.name
        for section, model in models.items()
        for field in fields(model)
        if f"{section}.{field.name}" not in KIND_OF_FIELD
    }


def test_another_parallelism_changes_no_load():
    """The rate of a source is divided among its subtasks, and its weights are those of single ones."""
    study = loads(JOB)
    names = [vertex.name for vertex in study.scenarios[0].job.vertices]

    assert kinds(*(f"job.{name}.parallelism=4" for name in names)) == ("parallelism",)
    assert kinds(*(f"job.{name}.parallelism=4" for name in names), "job.source.source.rate=40/s") == (
        "parallelism",
        "load",
    )
