"""What has no effect is said, and defaults that decide are named where a file has them."""

import csv

import pytest

from benchmarks.defaults import Measured, changes, left_out, other_value
from sim.model.schema.flink_keys import document_options
from sim.model.schema.option_values import influential_defaults
from sim.model.schema.study import INFLUENTIAL_OPTIONS_FILE, OFTEN_DECIDING_SHARE, loads
from sim.model.schema.text import Mapping

# What has no effect in this scenario is said, whichever keys it takes to see it (mistakes: see broken.py).


BASE = """\
# What then?
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""


def warnings(text):
    return [str(warning) for warning in loads(BASE + text, "s").warnings]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("faults: [{kill: b, at: 60 s}]\n", "s:7:20: faults[0].at: has no effect: the run ends at 1 min"),
        ("actions: [{savepoint: native, at: 61 s}]\n", "s:7:31: actions[0].at: has no effect: the run ends at 1 min"),
        ("rescale: {at: 2 min, parallelism: {b: 3}}\n", "s:7:11: rescale.at: has no effect: the run ends at 1 min"),
        (
            "restart: {strategy: fixed-delay, initial: 5 s}\n",
            "s:7:34: restart.initial: has no effect: exponential-delay reads it, not fixed-delay",
        ),
        (
            "restart: {delay: 5 s}\n",
            "s:7:11: restart.delay: has no effect: fixed-delay and failure-rate read it, not exponential-delay",
        ),
        (
            "restart: {strategy: none, attempts: 3}\n",
            "s:7:27: restart.attempts: has no effect: fixed-delay and exponential-delay read it, not none",
        ),
    ],
)
def test_what_has_no_effect_is_said(text, message):
    assert [message] == warnings(text)


@pytest.mark.parametrize(
    ("state", "incremental", "is_said"),
    [("", "true", True), (", update: 0 %", "true", False), (", growth: 10 B", "true", False), ("", "false", False)],
)
def test_state_that_never_changes_is_said_where_that_decides(state, incremental, is_said):
    """Incremental checkpoints of RocksDB without `update:` wrote nothing, without a word."""
    text = BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB, backend: rocksdb{state}}}")
    found = loads(text.replace("interval: 5 s", f"interval: 5 s, incremental: {incremental}"), "s").warnings

    assert is_said == any(
        "never changes, so incremental checkpoints write nothing" in str(warning) for warning in found
    )


@pytest.mark.parametrize(
    ("state", "is_said"), [("", True), (", ttl: 0 s", False), (", growth: 1 B", False), (", update: 5 %", False)]
)
def test_state_that_only_expires_is_said(state, is_said):
    """Nothing keeps its keys coming, so snapshots would be empty after one time to live."""
    ttl = "" if "ttl" in state else ", ttl: 1 min"
    found = loads(BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB{ttl}{state}}}"), "s").warnings

    assert is_said == any("no record writes to this state, so all of it expires" in str(warning) for warning in found)


@pytest.mark.parametrize(
    ("state", "rest", "words", "is_said"),
    [
        ("", "cluster: {cores: 2}\n", "no snapshot takes processor time", True),
        # an import writes this where tasks sleep
        ("", "cluster: {cores: 2, services: side-by-side}\n", "no snapshot takes processor time", False),
        (", serialize: 100 MB/s", "cluster: {cores: 2}\n", "no snapshot takes processor time", False),
        (
            "",
            "cluster: {cores: 2}\nactions: [{savepoint: canonical, at: 20 s}]\n",
            "no snapshot takes processor time",
            False,
        ),
        ("", "storage: {disk: {bandwidth: 1 MB/s}}\n", "the disk of RocksDB has lsm", True),
    ],
)
def test_keys_that_nothing_waits_for_are_said(state, rest, words, is_said):
    text = BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB{state}}}") + rest
    copies = text.replace("interval: 5 s", "interval: 5 s, local-recovery: [false, true]")

    assert is_said == any(words in str(warning) for warning in loads(text, "s").warnings)
    assert "storage.disk" not in str(loads(copies, "s").warnings)


# Defaults that decide in many jobs: named where a file has them, and no others.


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


def test_spare_task_managers_are_named_where_one_is_lost():
    """In native mode Flink asks for a pod then; by default the simulation has one ready."""
    lost = "faults=[{task-manager: 0, at: 30 s}]"

    assert "restart.replacement" in named(lost)
    assert "restart.replacement" not in named(lost, "restart.replacement=40 s")
    assert "restart.replacement" not in named("faults=[{kill: b, at: 30 s}]")


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
    assert is_named == ("restart.attempts (unlimited; Flink: 1)" in named(f"restart={restart}"))


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
