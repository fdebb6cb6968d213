"""Defaults that decide in many jobs: named where a file has them, and no others."""

import csv

import pytest

from benchmarks.defaults import Measured, changes, left_out, other_value
from sim.model.schema.flink_keys import document_options
from sim.model.schema.option_values import influential_defaults
from sim.model.schema.study import INFLUENTIAL_OPTIONS_FILE, OFTEN_DECIDING_SHARE, loads
from sim.model.schema.text import Mapping

JOB = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, state: {size: 1 MB}, parallelism: 2}
checkpoint: {interval: 10 s}
run: {duration: 60 s}
"""
NAMED = {
    "job.state.changelog",
    "job.state.backend",
    "checkpoint.barriers",
    "checkpoint.min-pause",
    "cluster.profile",
    "cluster.slots",
}


def named(*overrides):
    return set(influential_defaults(loads(JOB, overrides=overrides).scenarios))


@pytest.mark.parametrize(
    ("overrides", "without"),
    [
        ([], set()),
        (["cluster.slots=4"], {"cluster.slots"}),
        (["cluster.placement=isolated"], {"cluster.slots"}),
        (["job.a.parallelism=1", "job.b.parallelism=1"], {"cluster.slots"}),
        (
            ["checkpoint.barriers=unaligned", "checkpoint.min-pause=1 s"],
            {"checkpoint.barriers", "checkpoint.min-pause"},
        ),
        (["job.b.state.backend=rocksdb"], {"job.state.backend"}),
        (["cluster.profile=[1.20, 2.x]"], {"cluster.profile"}),
        (["cluster.version=2.2.0"], {"cluster.profile"}),
        (["job.b.state.backend=hashmap"], {"job.state.backend"}),  # written, although it is the default
        (["flink={state.backend: filesystem}"], {"job.state.backend"}),
    ],
)
def test_options_at_their_defaults_are_named(overrides, without):
    assert NAMED - without == named(*overrides)


@pytest.mark.parametrize(
    ("changelogs", "is_named"),
    [
        (["on"], True),
        (["[off, on]"], True),
        (["{materialize: 1 min}"], True),
        (["off"], False),
        (["{storage: filesystem}"], False),
        (["[off, {storage: memory}]"], False),
        (["{storage: memory}", "on"], True),
    ],
)
def test_the_storage_of_a_changelog_is_named_unless_every_vertex_says_it(changelogs, is_named):
    """It is not that of Flink."""
    text = JOB.replace(
        "state: {size: 1 MB}, parallelism: 2}", "state: {size: 1 MB}}\n  c: {input: {a: hash}, state: {size: 1 MB}}"
    )
    overrides = [f"job.{name}.state.changelog={log}" for name, log in zip("bc", changelogs, strict=False)]
    found = influential_defaults(loads(text, overrides=overrides).scenarios)

    assert is_named == ("job.state.changelog.storage (filesystem; Flink: memory)" in found)


@pytest.mark.parametrize(
    ("restart", "is_named"),
    [("{strategy: fixed-delay}", True), ("{strategy: fixed-delay, attempts: 3}", False), ("{}", False)],
)
def test_attempts_without_end_are_named_where_flink_makes_one(restart, is_named):
    assert is_named == ("restart.attempts (without end; Flink: 1)" in named(f"restart={restart}"))


def test_a_job_without_state_has_no_backend():
    stateless = JOB.replace("state: {size: 1 MB}, ", "")

    assert not {"job.state.backend", "job.state.changelog"} & set(influential_defaults(loads(stateless).scenarios))


def test_the_list_is_of_options_that_there_are_and_that_decided():
    paths = {key.dotted for key in document_options()}
    with INFLUENTIAL_OPTIONS_FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["option"] for row in rows if row["option"] not in paths] == []
    assert all(0 < int(row["decides"]) <= int(row["files"]) and abs(float(row["factor"]) - 1) > 0.25 for row in rows)
    assert NAMED | {"storage.dfs.local-first"} == {
        row["option"].replace("VERTEX.", "")
        for row in rows
        if int(row["files"]) >= 5 and int(row["decides"]) > OFTEN_DECIDING_SHARE * int(row["files"])
    }


def test_what_a_file_leaves_out_and_what_is_tried_instead():
    plain = Mapping({"job": Mapping({"a": Mapping({"service": "1 ms"}), "b": Mapping({"state": Mapping({})})})})
    records = {key.dotted: key.record for key in document_options()}

    assert (left_out(plain, ["job.VERTEX.service", "job.VERTEX.state.size", "cluster.slots"])) == {
        "job.VERTEX.service": ["job.b.service"],
        "job.VERTEX.state.size": ["job.b.state.size"],
        "cluster.slots": ["cluster.slots"],
    }
    assert tuple(
        other_value(path, records[path]) for path in ("cluster.slots", "job.VERTEX.state.backend", "cluster.version")
    ) == ("4", "rocksdb", None)
    assert list(changes(Measured(100.0, 0.0), Measured(200.0, 0.0))) == [("p50", 2.0)]
    assert list(changes(Measured(100.0, 2e6), Measured(124.0, 2.4e6))) == []
