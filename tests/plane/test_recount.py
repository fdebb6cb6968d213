"""What both planes share (layout, positions, draws, assembly of scenarios) held to a recount that shares no line with them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.job import Distribution
from sim.model.randomness import quantile_table
from sim.model.schema.text import write
from sim.runtime.job_instance import JobInstance
from tests.plane.recount import due_times, key_group_shares, quantiles, recount
from tests.scenarios import read_scenario

LAWS = [
    ("exponential", 1.0),
    ("uniform", 1.0),
    ("lognormal", 0.4),
    ("lognormal", 2.0),
    ("erlang", 0.5),
    ("shifted-exponential", 0.3),
]
SIZE_LAWS = [law for law in LAWS if law[0] in ("exponential", "uniform", "lognormal")]
sizes = st.one_of(
    st.sampled_from(["1 B", "300 B", "5000 B"]),
    st.sampled_from([{kind: {"mean": "700 B", "cv": cv}} if cv != 1.0 else {kind: "700 B"} for kind, cv in SIZE_LAWS]),
)
services = st.one_of(
    st.sampled_from(["100 us", "1 ms"]),
    st.sampled_from([{"exponential": "1 ms"}, {"erlang": {"mean": "500 us", "cv": 0.5}}]),
)


@st.composite
def inlets(draw, writers, readers):
    ships = ["hash", "rebalance", "rescale", "global", "broadcast", *(["forward"] if writers == readers else [])]
    inlet = {"ship": draw(st.sampled_from(ships)), "service": draw(services)}
    if draw(st.booleans()):
        inlet["record"] = draw(sizes)
    if inlet["ship"] == "hash" and draw(st.booleans()):
        inlet["weights"] = draw(st.lists(st.integers(0, 4), min_size=readers, max_size=readers).filter(any))
    return inlet


@st.composite
def documents(draw):
    """One or two sources, up to three vertices behind them, each reading one or two of those before it."""
    job = {}
    for name in ["a", "b"][: draw(st.integers(1, 2))]:
        source = {
            "record": draw(sizes),
            "rate-per-subtask": "unlimited",
            "records-per-subtask": draw(st.integers(1, 90)),
        }
        job[name] = {"source": source, "parallelism": draw(st.integers(1, 3)), "service": draw(services)}
        job[name]["fan-out"] = draw(st.sampled_from([1, 1, 0.4]))
    for name in ["c", "d", "e"][: draw(st.integers(1, 3))]:
        upstream = draw(st.lists(st.sampled_from(sorted(job)), min_size=1, max_size=2, unique=True))
        readers = draw(st.integers(1, 5))
        job[name] = {
            "input": {up: draw(inlets(job[up]["parallelism"], readers)) for up in upstream},
            "parallelism": readers,
            "record": draw(sizes),
            "fan-out": draw(st.sampled_from([1, 0.5, 1.5])),
            "combine": draw(st.sampled_from(["union", "join"])),
        }
    network = {
        "segment-size": "4 KiB",
        "buffers-per-channel": 1,
        "floating-buffers-per-gate": draw(st.integers(1, 4)),
        "overdraft": draw(st.sampled_from([0, 2])),
        "buffer-timeout": "5 ms",
    }
    cluster = {"placement": draw(st.sampled_from(["isolated", "single", "spread"])), "network": network}
    return {
        "version": 1,
        "job": job,
        "checkpoint": {"interval": "20 s"},
        "run": {"duration": "10 min", "seed": draw(st.integers(0, 99))},
        "cluster": cluster,
    }


def ended(document):
    """The instance of a bounded job when it has ended."""
    scenario = read_scenario(write(document, "Does the count add up?"))
    instance = JobInstance(scenario, "compiled")
    instance.start()
    instance.env.run(until=instance.outcome.finished | instance.env.timeout(scenario.run.duration_ns))
    assert instance.job_status == "FINISHED"
    return instance


def assert_counts(document, instance):
    """Every task and channel, one by one.  A slice's mean that lies at a half is rounded either way: one unit per record."""
    expected, channels, tasks = recount(document), instance.plane.channels(), instance.plane.tasks()
    names = instance.names

    places = [(*name, host) for name, host in zip(names, instance.context.hosts, strict=True)]

    assert places == [(task.vertex, task.subtask, task.host) for task in expected.tasks]
    assert [task.served for task in expected.tasks] == tasks["served"].tolist()
    ends = [
        (names[w], names[r], local)
        for w, r, local in zip(instance.layout.writer, instance.layout.reader, instance.layout.local, strict=True)
    ]
    assert sorted((c.writer, c.reader, c.local) for c in expected.channels) == sorted(ends)
    for channel, end, row in zip(expected.channels, ends, channels, strict=True):
        assert (channel.writer, channel.reader, channel.local) == end
        assert channel.records == row["records_in"] == row["records_out"], end
        assert channel.bytes == pytest.approx(int(row["written"]), abs=channel.records), end
        assert row["written"] == row["sent"] == row["arrived"] == row["taken"] == row["consumed"]


@settings(max_examples=40)
@given(documents())
def test_every_record_travels_where_the_recount_says(document):
    """Tasks, hosts, channels, who is local, records and bytes of each channel, time of service of each task."""
    instance = ended(document)

    assert_counts(document, instance)
    for task, busy in zip(recount(document).tasks, instance.plane.tasks()["busy_ns"].tolist(), strict=True):
        if task.service_ns is not None:
            assert task.service_ns == pytest.approx(busy, abs=task.served)


@settings(max_examples=15)
@given(documents(), st.lists(st.integers(20, 200), min_size=1, max_size=3), st.sampled_from(["aligned", "unaligned"]))
def test_restarts_change_no_total(document, times, barriers):
    """Positions: whatever is restored from, in the end each channel has carried the same records."""
    document["checkpoint"] = {"interval": "25 ms", "barriers": barriers, "tolerable-failed": 1000}
    document["faults"] = [{"kill": "random-task", "at": f"{time} ms"} for time in times]
    document["restart"] = {"strategy": "fixed-delay", "delay": "5 ms"}
    document["overheads"] = {"first-trigger": "10 ms", "fail": "1 ms", "restart": "1 ms", "deploy": "2 ms"}

    assert_counts(document, ended(document))


@pytest.mark.parametrize(("kind", "cv"), LAWS)
def test_quantile_tables_are_those_of_the_law(kind, cv):
    """Each entry is the mean of its slice, by numerical integration of scipy's quantile function."""
    table = np.array(quantile_table(Distribution(1_000_000, kind, cv)))
    expected = quantiles(kind, 1_000_000, cv)

    assert abs(table[1:-1] - expected[1:-1]).max() <= 1
    assert table[[0, -1]] == pytest.approx(expected[[0, -1]], rel=1e-3), "the quantile function is steep at both ends"


STEPS = [(0, 40), (0.3, 0), (0.71, 130), (1.3, 7), (2.5, 90)]


def test_sources_emit_what_is_due():
    """Steps of rates, also of 0: at any time a source that is never held up has emitted the records due by then."""
    source = {
        "record": "10 B",
        "rate-per-subtask": [{"at": f"{at * 1000:.0f} ms", "rate": f"{rate}/s"} for at, rate in STEPS],
    }
    job = {"a": {"source": source, "service": "1 ns"}, "b": {"input": {"a": "forward"}, "service": "1 ns"}}
    document = {"version": 1, "job": job, "checkpoint": {"interval": "20 s"}, "run": {"duration": "4 s", "seed": 3}}
    scenario = read_scenario(write(document, "What is due?"))
    instance = JobInstance(scenario, "compiled")
    instance.start()
    due = due_times(STEPS, 4)

    for tenth in range(1, 40):
        until = Fraction(tenth, 10) + Fraction(1, 997)
        instance.env.run(until=int(until * 1_000_000_000))
        assert sum(time < until for time in due) == instance.plane.tasks()["served"][0]


def test_key_groups_are_dealt_as_flink_deals_them():
    assert key_group_shares(3, 4) == [2, 1, 1]
    assert key_group_shares(3, 128) == [43, 43, 42]
