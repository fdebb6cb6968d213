"""What of a scenario matters for validity: its features, how much it is asked to do, and what nobody recorded."""

from fractions import Fraction
from functools import cache

import pytest

from sim.jobs.evidence import envelope
from sim.jobs.evidence.envelope import features, firings_ns, unvalidated, utilisation, values_text, warning
from sim.model.schema.study import load, loads
from tests.places import ROOT
from tests.scenarios import read_scenario

# ---- Each feature is seen when its key is set, and not before.

PLAIN = """\
# What is there?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}, parallelism: 2}
  sink: {input: {src: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 4 s}
run: {duration: 30 s}
"""


def seen(*changes):
    return features(read_scenario(PLAIN, overrides=list(changes)))


@pytest.mark.parametrize(
    ("change", "name", "values"),
    [
        ("job.sink.parallelism=4", "parallelism", (2, 4)),
        ("job.sink.parallelism=4", "subtasks", (6,)),
        ("job.sink.service={exponential: 1 ms}", "service law", ("exponential",)),
        ("job.src.source.records=100", "end of the job", ("all sources",)),
        (
            "job.src.source.rate=[{at: 0 s, rate: 100/s}, {at: 5 s, rate: 200/s}]",
            "load",
            ("below 80 %", "changing rates"),
        ),
        ("job.sink.state={size: 8 MB, backend: rocksdb}", "state", ("rocksdb",)),
        ("job.sink.state={size: 8 MB, backend: rocksdb}", "state per subtask", (4_000_000,)),
        ("job.sink.flush={bytes: 1 MB}", "work per checkpoint", ("files flushed",)),
        ("job.sink.commit=two-phase", "commit", ("two-phase",)),
        ("cluster.network.debloat={}", "network", ("debloating",)),
        ("cluster.network.buffer-timeout=0 ms", "network", ("a flush after each record",)),
        ("storage={dfs: {nodes: 4}}", "storage", ("dfs",)),
        ("storage={slow: {share: 8 %, factor: 10}}", "storage", ("flat", "slow files")),
        ("storage={file-merging: {}}", "storage", ("flat", "merged files")),
        ("job.sink.state={size: 8 MB, changelog: {}}", "state", ("changelog", "hashmap")),
        ("job.sink.async-io={latency: 100 ms}", "async I/O latency", (100 * 10**6,)),
        ("job.sink.window={tumbling: 7 s, time: processing}", "windows", (7 * 10**9,)),
        ("job.sink.input={src: {ship: hash, weights: {hot: 70 %}}}", "skewed keys", ("yes",)),
        ("rescale=[{at: 10 s, parallelism: {sink: 4}}]", "restarts", ("rescaling",)),
        ("cluster.latency=1 ms", "network", ("latency",)),
        ("checkpoint.max-concurrent=3", "concurrent checkpoints", (3,)),
        ("checkpoint.min-pause=3 s", "pause between checkpoints", (3 * 10**9,)),
        ("faults=[{kill: sink, at: 5 s}]", "faults", ("a task fails",)),
        ("faults=[{task-manager: 0, at: 5 s, silent: true}]", "faults", ("a silent task manager",)),
        ("actions=[{savepoint: native, at: 5 s}]", "snapshots asked for", ("native",)),
    ],
)
def test_what_is_there_is_seen(change, name, values):
    assert values == seen(change)[name]
    assert values != seen().get(name)


# ---- Hand-computed utilisations of the busiest subtask.

JOB = """\
# Is it much?
version: 1
job:
  src: {source: {rate-per-subtask: RATE, record: 1 kB}, parallelism: 2}
  map: {input: {src: EXCHANGE}, service: 100 us, fan-out: 2, parallelism: 2}
  sink: {input: {map: hash}, service: 1 ms, parallelism: 4}
checkpoint: {interval: 4 s}
run: {duration: 10 s}
"""


def scenario(rate="100/s", exchange="hash", options=()):
    return read_scenario(JOB.replace("RATE", rate).replace("EXCHANGE", exchange), overrides=options)


@pytest.mark.parametrize(
    ("rate", "exchange", "options", "busiest"),
    [
        ("500/s", "hash", (), Fraction(1, 2)),  # 1000/s, doubled, to four subtasks: 500/s of 1 ms
        # 2 of 4 key groups to one
        ("500/s", "hash", ("job.sink.parallelism=3", "job.sink.max-parallelism=4"), Fraction(1)),
        (
            "500/s",
            "hash",
            ("job.sink.parallelism=3", "job.sink.max-parallelism=4", "job.sink.input={map: rebalance}"),
            Fraction(2, 3),
        ),
        ("500/s", "broadcast", (), Fraction(1)),  # everything to both
        ("500/s", "hash", ("job.sink.parallelism=8", "job.map.service=1 ms"), Fraction(1, 2)),  # the map is busier now
        # 2000/s, 800 of them to one
        ("500/s", "hash", ("job.sink.input={map: {ship: hash, weights: {hot: 40 %}}}",), Fraction(4, 5)),
        ("500/s", "hash", ("job.sink.service-factor={1: 3/2}",), Fraction(3, 4)),  # 500/s of 1.5 ms
        (
            "500/s",
            "hash",
            ("job.sink.input={map: {ship: hash, weights: [5, 2, 2, 1]}}", "job.sink.service-factor={2: 3}"),
            Fraction(6, 5),
        ),
        ("500/s", "global", ("job.map.service=600 us",), Fraction(3, 5)),
        ("[{at: 0 s, rate: 100/s}, {at: 5 s, rate: 700/s}]", "hash", (), Fraction(7, 10)),
    ],
)
def test_the_busiest_subtask(rate, exchange, options, busiest):
    assert busiest == utilisation(scenario(rate, exchange, options).job)


def test_requests_under_way_are_a_limit_too():
    """200/s per subtask, 100 at a time, 400 ms each: 80 %."""
    asynchronous = scenario("200/s", options=("job.map.async-io={latency: 400 ms}",))

    assert Fraction(4, 5) == utilisation(asynchronous.job)


def test_firing_is_work_too():
    """200/s per subtask of 100 us each, and 400/s that leave for 2 ms each: 82 %."""
    windows = scenario("200/s", options=("job.map.window={tumbling: 5 s, time: processing, fire: 2 ms}",))

    assert Fraction(82, 100) == utilisation(windows.job)


@pytest.mark.parametrize(
    ("options", "fires_s"),
    [
        ((), 4.0),  # 400/s of each subtask leave after 5 s, for 2 ms each
        (("job.map.parallelism=4",), 2.0),
        (("job.map.window={sliding: 10 s, every: 5 s, time: event, fire: 2 ms}",), 4.0),
        (("checkpoint.barriers=unaligned", "checkpoint.interruptible-timers=true"), None),
        (
            ("job.map.window.time=processing", "checkpoint.barriers=unaligned", "checkpoint.interruptible-timers=true"),
            4.0,
        ),
        (("job.map.window={session: 5 s, time: event, fire: 2 ms}",), None),
        (("job.src.source.rate-per-subtask=unlimited",), None),
        (("job.src.source.rate-per-subtask=[{at: 0 s, rate: 100/s}, {at: 5 s, rate: 700/s}]",), None),
    ],
)
def test_how_long_a_window_fires(options, fires_s):
    """None: not at all, or not known, or barriers pass."""
    window = "job.map.window={tumbling: 5 s, time: event, fire: 2 ms}"
    found = firings_ns(scenario("200/s", options=(window, *options)))

    assert found == ({} if fires_s is None else {"map": round(fires_s * 1e9)})


# ---- A scenario unlike all recordings says so, in one line; one like them says nothing.

SEVERE = ROOT / "scenarios" / "p4-severe.yaml"


@cache
def phrases(*changes):
    return unvalidated(load(SEVERE, list(changes)).scenarios)


def test_what_was_recorded_is_inside():
    assert phrases() == []
    assert warning(load(SEVERE).scenarios) == ""


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ("job.sink.parallelism=50", "parallelism 50 (recordings: 1 to 4)"),
        ("job.sink.service=40 ms", "time per record 40 ms (recordings: 100 us to 6 ms)"),
        ("job.sink.service=10 us", "time per record 10 us (recordings: 100 us to 6 ms)"),
        ("checkpoint.interval=1 min", "checkpoint interval 1 min (recordings: 1.5 s to 8 s)"),
        (
            "checkpoint.barriers=at-least-once",
            "barriers at-least-once (recordings: aligned, aligned-timeout, unaligned)",
        ),
        ("cluster.profile='1.15'", "Flink profile 1.15 (recordings: 1.20, 2.x)"),
        ("storage={object-store: {}}", "storage object store (recordings: flat)"),
        ("job.map.state={size: 400 MB}", "state per subtask 100 MB (recordings: 1 MB to 40 MB)"),
        ("cluster.latency=1 ms", "network latency (recordings: debloating)"),
        ("rescale=[{at: 10 s, parallelism: {sink: 2}}]", "restarts rescaling (no recording)"),
    ],
)
def test_what_was_not_is_named_with_what_was(change, phrase):
    assert [phrase] == [other for other in phrases(change) if other.split(" ")[0] == phrase.split(" ")[0]]


def test_it_is_one_line_however_much_there_is():
    study = load(ROOT / "scenarios" / "flink-37375-slow-dfs-nodes.yaml")
    line = warning(study.scenarios)

    assert len(line.splitlines()) == 1
    assert line.count("(") == 5  # features named
    assert f"{len(unvalidated(study.scenarios)) - 5} more; see docs/truth.md" in line


def test_the_first_scenario_of_the_readme_is_inside():
    block = (ROOT / "README.md").read_text().split("```yaml\n")[1].split("```")[0]

    assert warning(loads(block).scenarios) == ""


def test_shares_of_state_have_a_short_text():
    """20 GB of six subtasks are 3333333333 B each."""
    assert values_text("state per subtask", [3_333_333_333]) == "3.3 GB"


def test_an_installed_package_names_the_command_that_prints_the_page(monkeypatch, tmp_path):
    scenarios = load(ROOT / "scenarios" / "flink-37375-slow-dfs-nodes.yaml").scenarios
    before = warning(scenarios)
    monkeypatch.setattr(envelope, "_CHECKOUT", tmp_path)

    assert warning(scenarios) == before.replace("docs/truth.md", "'ckptsim docs truth'")
