"""Configurations of recorded runs, made by hand: what becomes of each key in a scenario, and what is named as missing."""

import pytest

from benchmarks.lab import Recording
from benchmarks.lab.config import Configuration
from benchmarks.lab.lost_task_managers import kills, replacement
from benchmarks.lab.not_modelled import is_known_action, not_modelled
from benchmarks.lab.passed_on import mean_bytes
from benchmarks.lab.startup import startup_ms
from sim.jobs.reading import to_document
from sim.model.scenario import Overheads
from tests.benchmarks.lab.test_passed_on import op, source
from tests.benchmarks.lab.test_startup import recording


def config(*nodes, **fields):
    return Configuration.model_validate({"name": "job", "duration_s": 60, "nodes": nodes} | fields)


def imported(*nodes, compare=False, version="2.3.0", **fields):
    bare = {
        "format": "flink-lab/1",
        "name": "job",
        "flink_version": version,
        "started_ms": 0,
        "ended_ms": 1,
        "events": {},
    }
    given = {"name": "job", "duration_s": 60, "nodes": nodes} | fields
    found = Recording.model_validate(bare | {"checkpoints": {"counts": {}, "list": []}, "config": given})
    return to_document(found, compare=compare)


def section(name, *nodes, **fields):
    return imported(*nodes, **fields).document["job"][name]


SOURCE = source("a", 100)


def test_a_source_has_a_rate_and_an_end_if_it_was_given_one():
    """Its records carry a timestamp of 8 bytes, and its split is 266 bytes of state."""
    assert section("a", SOURCE)["source"] == {"rate-per-subtask": "unlimited", "record": "108 B"}
    assert section("a", source("a", 100, 2.5) | {"total": 7})["source"] == {
        "rate-per-subtask": "2.5/s",
        "record": "108 B",
        "records-per-subtask": 7,
    }
    assert section("a", SOURCE)["snapshot"] == {"operator-state": "266 B"}


@pytest.mark.parametrize(
    ("fields", "service"),
    [
        ({}, "1 ms"),
        ({"serviceUs": 1500.5}, "1500.5 us"),
        ({"serviceJitter": 1}, {"exponential": "1 ms"}),
        ({"serviceJitter": 0.25}, {"shifted-exponential": {"mean": "1 ms", "cv": "0.25"}}),
        ({"serviceJitter": 0}, "1 ms"),
    ],
)
def test_a_service_is_what_was_configured(fields, service):
    assert (
        service
        == section(
            "b", SOURCE, op("b", "a", **fields) if "serviceUs" not in fields else op("b", "a", us=fields["serviceUs"])
        )["service"]
    )


def test_a_join_of_different_services_has_one_per_input():
    """Equal ones are one."""
    nodes = SOURCE, source("c", 100)
    apart = section("j", *nodes, op("j", "a", "c", kind="join", us=1000, serviceUs2=2000))
    alike = section("j", *nodes, op("j", "a", "c", kind="join", us=1000, serviceUs2=1000))

    assert apart["input"] == {"a": {"ship": "hash", "service": "1 ms"}, "c": {"ship": "hash", "service": "2 ms"}}
    assert (apart["combine"], apart.get("service")) == ("join", None)
    assert (alike["input"], alike["service"]) == ({"a": "hash", "c": "hash"}, "1 ms")


def test_weights_are_those_of_keyed_edges():
    nodes = SOURCE | {"outWeights": [3, 1.5]}, op("b", "a"), op("c", {"from": "a", "exchange": "rebalance"})

    assert section("b", *nodes)["input"] == {"a": {"ship": "hash", "weights": [3, 1.5]}}
    assert section("c", *nodes)["input"] == {"a": "rebalance"}


@pytest.mark.parametrize(("parallelism", "groups"), [(85, None), (86, 128)])
def test_key_groups_are_written_where_flink_would_choose_more(parallelism, groups):
    """More than two thirds of 128 subtasks."""
    assert groups == section("b", SOURCE, op("b", "a", parallelism=parallelism)).get("max-parallelism")


def test_asynchronous_io_passes_on_what_it_reads():
    ask = section("b", SOURCE, op("b", "a", kind="asyncwait", latencyMs=12.5, capacity=7), op("c", "b"))

    assert ask["async-io"] == {"latency": "12.5 ms", "capacity": 7}
    assert (ask["snapshot"], ask.get("record")) == ({"operator-state": "678 B"}, None)


@pytest.mark.parametrize(
    ("flink", "state"),
    [
        ({}, {"size": "2 kB", "update": "25 %", "value": "20 B"}),
        (
            {"state.backend.type": "rocksdb"},
            {
                "size": "2 kB",
                "backend": "rocksdb",
                "lsm": {"managed-memory": "64 MiB"},
                "update": "25 %",
                "value": "20 B",
            },
        ),
    ],
)
def test_state_has_its_keys_and_their_size(flink, state):
    found = section("b", SOURCE, op("b", "a", stateKeys=100, stateValueBytes=20, stateUpdateProb=0.25), flink=flink)[
        "state"
    ]

    assert state == found


@pytest.mark.parametrize(
    ("fields", "snapshot"),
    [
        ({}, {"operator-state": "199 B"}),
        ({"prepareMs": 5}, {"pre-barrier": "5 ms", "operator-state": "199 B"}),
        ({"snapshotMs": 5, "snapProb": 0.25}, {"sync": "5 ms", "probability": "25 %", "operator-state": "199 B"}),
        ({"asyncMs": 5}, {"async": "5 ms", "operator-state": "329 B"}),
        ({"snapProb": 0.25}, {"operator-state": "199 B"}),
    ],
)
def test_delays_of_snapshots_are_those_of_the_operator(fields, snapshot):
    assert snapshot == section("b", SOURCE, op("b", "a", **fields))["snapshot"]


@pytest.mark.parametrize(
    ("fields", "commit"),
    [
        ({"commit": "none"}, None),
        ({"commit": "cascade"}, {"emits": "on-commit"}),
        ({"commit": "cascade", "commitMs": 5}, {"emits": "on-commit", "time": "5 ms"}),
    ],
)
def test_commits_are_in_two_phases_with_their_time(fields, commit):
    assert commit == section("b", SOURCE, op("b", "a", **fields)).get("commit")


def test_records_that_change_their_size_or_number_say_so():
    """Two sizes are passed on as their mean; the timestamp of a source is dropped."""
    nodes = SOURCE, source("c", 300), op("u", "a", "c", selectivity=0.5), op("end", "u")
    found = imported(*nodes)

    assert (found.document["job"]["u"]["record"], found.document["job"]["u"]["fan-out"]) == ("150 B", "0.5")
    assert found.not_modelled == ["'u': records of several sizes passed on: each is given the mean size"]
    assert "record" not in found.document["job"]["end"]


@pytest.mark.parametrize(
    ("fs", "storage"),
    [
        ({"create_ms": 3, "close_ms": 4, "metadata_close_ms": 5}, {"file-latency": "7 ms", "metadata-latency": "8 ms"}),
        (
            {"bytes_per_sec": 1e6, "read_bytes_per_sec": 2e6},
            {"bandwidth": "1 MB/s", "read-bandwidth": "2 MB/s", "file-latency": "0 s", "metadata-latency": "0 s"},
        ),
        (
            {"slow_prob": 0.05, "slow_factor": 4},
            {"file-latency": "0 s", "metadata-latency": "0 s", "slow": {"share": "5 %", "factor": 4}},
        ),
    ],
)
def test_storage_has_the_delays_that_were_put_in(fs, storage):
    nothing = {"create_ms": 0, "close_ms": 0, "metadata_close_ms": 0, "bytes_per_sec": 0, "slow_prob": 0}

    assert storage == imported(SOURCE, fs=nothing | fs).document["storage"]


def test_a_comparison_has_three_kinds_of_barriers():
    """With the recorded timeout or a second; several checkpoints at once are left out, and that is told."""
    timeout = {
        "execution.checkpointing.aligned-checkpoint-timeout": "250 ms",
        "execution.checkpointing.unaligned.enabled": "true",
    }
    concurrent = {"execution.checkpointing.max-concurrent-checkpoints": "2"}
    found, plain, several = (imported(SOURCE, compare=True, flink=flink) for flink in (timeout, {}, concurrent))

    assert found.document["checkpoint"] == {"barriers": ["aligned", "unaligned", {"aligned-timeout": "250 ms"}]}
    assert plain.document["checkpoint"]["barriers"][2] == {"aligned-timeout": "1 s"}
    assert not any("align" in key for key in found.document["flink"])
    assert several.not_modelled == [
        "several checkpoints at once: Flink runs unaligned ones one by one, so all are compared that way"
    ]
    assert not any("concurrent" in key for key in several.document["flink"])
    assert (
        imported(SOURCE, flink=concurrent).document["flink"]["execution.checkpointing.max-concurrent-checkpoints"]
        == "2"
    )


@pytest.mark.parametrize(("version", "profile"), [("1.20.0", "1.20"), ("2.3.0", "2.x")])
def test_the_profile_of_a_recording_is_that_of_its_version(version, profile):
    assert profile == imported(SOURCE, version=version).document["cluster"]["profile"]


@pytest.mark.parametrize(
    ("action", "known"),
    [
        ({"do": "savepoint", "at_s": 1}, True),
        ({"do": "stop", "at_s": 1.5}, True),
        ({"do": "starttm", "at_s": 1}, True),
        ({"do": "killtm", "at_s": 1, "index": 0}, True),
        ({"do": "killtm", "at_s": 1}, False),
        ({"do": "savepoint", "at_s": "soon"}, False),
        ({"do": "savepoint"}, False),
        ({"do": "rescale", "at_s": 1}, False),
        ({"at_s": 1}, False),
    ],
)
def test_actions_that_a_scenario_has(action, known):
    assert known == is_known_action(action)


def test_what_a_scenario_lacks_is_named_in_order():
    """Keys of the recorder are no features of the job."""
    nodes = (
        SOURCE | {"outWeights": [1, 2], "colour": "red"},
        op("b", "a", parallelism=2, commitMs=5),
        op("c", "a", parallelism=3),
    )
    named = not_modelled(
        config(
            *nodes,
            poll_s=1,
            moon="full",
            actions=[{"do": "rescale", "at_s": 3}, {"do": "dance"}, {"do": "killtm", "at_s": 5, "index": 0}],
        )
    )

    assert named == [
        "configuration key 'moon'",
        "request during the run: rescale at 3 s",
        "request during the run: dance at ? s",
        "'a': key 'colour'",
        "'a': one skew for consumers of different parallelism",
        "'b': 5 ms of work per commit",
    ]


def lossy(*actions, placement="isolated"):
    nodes = source("a", 100, parallelism=2), op("b", "a", parallelism=3)
    return config(*nodes, actions=actions, placement=placement)


def loss(at_s, index=4):
    return {"do": "killtm", "at_s": at_s, "index": index}


@pytest.mark.parametrize(("placement", "manager"), [("isolated", 4), ("spread", 1), ("single", 0)])
def test_a_lost_task_manager_is_one_of_those_of_the_placement(placement, manager):
    """Five subtasks, three at most of a vertex, or one for all."""
    assert [(manager, 20.0)] == kills(lossy(loss(20), placement=placement))


@pytest.mark.parametrize(
    ("actions", "waits"),
    [
        ([loss(20), {"do": "starttm", "at_s": 23.5}], "3.5 s"),
        ([loss(20), {"do": "starttm", "at_s": 20}], None),
        ([loss(20), {"do": "starttm", "at_s": 19}], None),
        ([loss(20)], "1 min"),
        ([loss(20), {"do": "starttm", "at_s": 30}, {"do": "starttm", "at_s": 25}], "5 s"),
    ],
)
def test_a_replacement_comes_when_one_was_started(actions, waits):
    """At once if there was a spare one, never in this run if none was."""
    found = replacement(lossy(*actions))

    assert {key: value for key, value in found.items() if key != "replacement"} == {
        "connection-reset": "0 s",
        "fresh-start": "0 s",
    }
    assert waits == found.get("replacement")
    assert replacement(lossy()) == {}


def test_a_run_begins_with_the_last_task_of_the_first_attempt():
    """What starts at the failure or later is of another attempt; the first of several submissions and failures counts."""
    failed = [[5000, "a", 0], [7000, "a", 0]]
    events = {"submit": [[1000, "a", 0], [1500, "a", 0]], "open": [[1600, "a", 0], [4999, "a", 0], [5000, "a", 0]]}

    assert startup_ms(recording(**events, fail_injected=failed)) == 3999
    assert startup_ms(recording(**events, kill_tm=failed)) == 3999
    assert startup_ms(recording(**events)) == 4000
    assert Overheads().start_ns / 10**6 == startup_ms(recording(open=[[1600, "a", 0]]))


def test_means_of_records_follow_what_is_served():
    """A union reads buffer by buffer, a join record by record; a filter halves what goes on; nothing is shared out where nothing flows."""
    nodes = source("a", 100, 100), source("b", 300, 100)

    assert mean_bytes(config(*nodes, op("u", "a", "b")))["u"] == 200
    halved = config(*nodes, op("f", "a", selectivity=0.5), op("u", "f", "b"))
    assert pytest.approx(mean_bytes(halved)["u"]) == (50 * 100 + 100 * 300) / 150
    wide = config(source("a", 100, 50, parallelism=2), source("b", 300, 100), op("u", "a", "b"))
    assert mean_bytes(wide)["u"] == 200
    none = config(*nodes, op("f", "a", selectivity=0), op("g", "b", selectivity=0), op("u", "f", "g"))
    assert mean_bytes(none)["u"] == 200
