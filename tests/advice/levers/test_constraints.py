"""Each option of Flink that can keep a setting from its limits is changed, or named, and no machine is asked for."""

import math

import pytest

from sim.advice import settings
from sim.advice.cautions import cautions, windows_longer_than_trials
from sim.advice.levers import CONSTRAINTS, DEFAULT
from sim.advice.settings import BINDING
from sim.advice.trials import LONG, TASK, UNDISTURBED, Bench
from sim.model.schema.flink_keys import modelled_keys
from sim.model.schema.option_values import option_values
from sim.model.units import parse_duration
from sim.studies.cells import outcome
from sim.studies.plan import Cell
from sim.studies.sweeps.design import override
from tests.advice.made_up import MadeUp, row, searched
from tests.scenarios import read_scenario

JOB = """\
# A job of which one option binds.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB, update: 1 %}, connector: at-least-once}
checkpoint: {interval: 30 s}
run: {duration: 3 s}
"""
LSM, CHANGELOG = {"job.sink.state.backend": "rocksdb"}, {"job.sink.state.changelog": {"threshold": "1 MB"}}
ADAPTIVE, EXPONENTIAL = {"restart.scheduler": "adaptive"}, {"restart.strategy": "exponential-delay"}
CONTEXT = {
    "checkpoint.incremental": LSM,
    "checkpoint.transfer-threads": LSM,
    "job.VERTEX.state.lsm": LSM,
    "job.VERTEX.state.changelog": CHANGELOG,
    "checkpoint.subtasks-per-channel-state-file": {"checkpoint.barriers": "unaligned"},
    "checkpoint.interruptible-timers": {
        "checkpoint.barriers": "unaligned",
        "job.source.source.watermark": {"interval": "200 ms"},
        "job.sink.window": {"time": "event", "tumbling": "10 s"},
    },
    "cluster.network.buffers-per-channel": {"cluster.profile": "1.20"},
    "cluster.network.floating": {"cluster.profile": "1.20"},
    "cluster.network.max-buffers": {"cluster.profile": "1.20"},
    "storage.object-store": {"storage.object-store": {"bandwidth": "50 MB/s"}},
    "restart.delay": {"restart.strategy": "fixed-delay"},
    "restart.rate": {"restart.strategy": "failure-rate"},
    "restart.attempts": {"restart.strategy": "fixed-delay", "restart.delay": "1 s"},
    "restart.within": {"restart.strategy": "failure-rate", "restart.rate": 1000},
    "restart.initial": EXPONENTIAL | {"restart.max": "1 d"},
    "restart.multiplier": EXPONENTIAL,
    "restart.max": EXPONENTIAL,
    "restart.stabilization": ADAPTIVE,
    "restart.cooldown": ADAPTIVE,
    "restart.rescale": ADAPTIVE,
    "restart.resource-wait": ADAPTIVE,
    "restart.heartbeat-interval": {"restart.heartbeat-timeout": "40 s"},
}
"""Option, or the beginning of several -> what has to be written beside it so that it counts."""
BINDS = {
    "checkpoint.interruptible-timers": False,
    "checkpoint.local-recovery": False,
    "checkpoint.incremental": False,
    "job.VERTEX.state.changelog.storage": "memory",
    "restart.strategy": "none",
    "restart.failover": "full",
    "restart.scheduler": "adaptive",
    "restart.heartbeat-failures": 0,
    "restart.heartbeat-interval": "30 s",
    "restart.heartbeat-timeout": "2 min",
    "restart.multiplier": 20,
    "restart.attempts": 0,
    "checkpoint.tolerable-failed": 0,
    "cluster.network.segment-size": "1 MiB",
    "restart.delay": "5 min",
    "checkpoint.subtasks-per-channel-state-file": 9,
    "cluster.network.debloat.threshold": "90 %",
    "job.VERTEX.state.lsm.table": "1 MiB",
    "job.VERTEX.state.lsm.base": "1 MiB",
    "storage.object-store.part": "100 MiB",
    "storage.inline-threshold": "1 kB",
    "checkpoint.min-pause": "20 s",
    "checkpoint.timeout": "5 s",
    "restart.slot-check": "40 s",
    "cluster.network.debloat.min": "16 KiB",
    "cluster.network.debloat.period": "30 s",
    "restart.within": "1 d",
}
"""Values that bind; the others are a hundred times as large as one that does not, or as small as can be."""
BY_CANDIDATES = {
    "checkpoint.interval": "each candidate has one",
    "checkpoint.barriers": "each candidate has some",
    "checkpoint.interval-during-backlog": "raised with the interval, which Flink wants to be shorter",
    "job.VERTEX.state.backend": "the lever 'RocksDB incremental'",
    "job.VERTEX.state.changelog": "the lever 'changelog'",
    "cluster.network.debloat": "barriers are tried with and without",
    "storage.file-merging": "the lever 'file merging'",
    "job.VERTEX.parallelism": "the lever 'parallelism': it takes slots",
}
CANNOT_BIND = {
    "checkpoint.num-retained": "how many completed checkpoints are kept: the next one does not wait for that",
    "checkpoint.finish": "how a bounded job ends: sources of trials do not end",
    "checkpoint.recover-output-on-downstream": "who recovers output: the first of two switches of Flink 2.3 that are about the time after",
    "checkpoint.during-recovery": "checkpoints before recovered data are processed: a recovery lasts until they are",
    "checkpoint.region.enabled": "a proposal (FLIP-600) that is in no release: nobody can switch it on",
    "checkpoint.region.max-failure-ratio": "as well",
    "checkpoint.region.max-consecutive-failures": "as well",
    "checkpoint.ingest-db": "a restore after a rescale: trials are not rescaled",
    "checkpoint.compact-after-rescale": "as well",
    "checkpoint.delete-files-in-range": "as well",
    "directories.create-subdir": "a path",
    "cluster.slots": "slots of a TaskManager: fewer of them take more TaskManagers, which are machines",
    "job.VERTEX.max-parallelism": "key groups: state cannot be moved to another number of them",
    "job.VERTEX.source.watermark.interval": "event time: results change with it, no checkpoint does",
    "job.VERTEX.source.watermark.idle-timeout": "event time, as well",
    "job.VERTEX.state.ttl": "which keys there are: results change with it",
    "job.VERTEX.state.lsm.managed-memory": "memory of the slot: a machine",
    "cluster.network.starting-segment-size": "the first seconds of a run with debloating, which trials leave out",
    "cluster.network.overdraft": "buffers that finish a record: there are never more in flight than a record",
    "cluster.network.adaptive-partitioner": "where records of a rebalance go: trials keep what is configured",
    "cluster.network.adaptive-partitioner.max-traverse-size": "as well",
    "storage.file-merging.max-file-size": "details of merged files, which advice can switch on with Flink's defaults",
    "storage.file-merging.across-checkpoints": "as well",
    "storage.file-merging.max-space-amplification": "as well",
    "restart.jitter": "a share of a delay, which binds itself",
    "restart.reset": "a job that has not failed before has nothing to forget",
    "restart.ask-timeout": "a machine that falls silent: processes of trials are killed, and their connections are reset",
    "restart.cancellation-timeout": "a task that does not stop: none of a trial does",
    "restart.reactive": "the first start of a job",
    "restart.rescale-failures": "failed checkpoints after which a rescale no longer waits: trials are not rescaled",
    "restart.rescale-checkpoint": "a checkpoint for a rescale: the same",
    "restart.slot-timeout": "how often a deployment without slots fails: it comes when the lost TaskManager is replaced, whatever this is",
}
OPTIONS = {".".join(key.path): key for key in modelled_keys().values()}


def test_each_option_with_a_key_of_flink_may_bind_or_has_a_reason():
    """A new one is in one of these lists, or this fails."""
    lists = [set(CONSTRAINTS), set(BY_CANDIDATES), set(CANNOT_BIND)]

    assert set(OPTIONS) == set.union(*lists)
    assert len(OPTIONS) == sum(map(len, lists))
    assert set(BINDING) <= lists[0] | lists[1]


def binding_value(path):
    """A value that binds, as a scenario writes it."""
    own, option = CONSTRAINTS[path], OPTIONS[path].record
    if path in BINDS:
        return BINDS[path]
    bound = option.default if own.value == DEFAULT else own.value
    value = bound * 100 if own.bound == "at most" else 1
    return option.leaf.write(value)


class Bound(MadeUp):
    """A recovery takes a tenth of the interval, and does not end while the option binds."""

    def __init__(self, path):
        super().__init__({})
        self.path, self.bound = path, {}

    def run(self, scenarios):
        for scenario in scenarios:
            axes = dict(scenario.axes)
            if (name := (axes["interval"], axes["protocol"])) not in self.bound:
                self.bound[name] = self.binds(scenario)
        return super().run(scenarios)

    def row(self, axes, k, more_ms):
        bound = self.bound[axes["interval"], axes["protocol"]]
        ms = math.nan if bound else 100 * parse_duration(axes["interval"]) / 1e9
        own = {"caught_up_ms": ms, "downtime_ms": ms, "replayed_records": 0.0, "ended_s": 1e9}
        # no more of them than are due: trials would be repeated, as behind a long first upload
        return row(axes, k, 20.0, failed=int(bound), completed=100 if axes["trial"] == "long" else 2, **own)

    def binds(self, scenario):
        own = [option for option in option_values(scenario) if ".".join(option.key.path) == self.path]
        return any(CONSTRAINTS[self.path].relaxed(option) is not None for option in own)


def context_of(path):
    found = {}
    for beginning, changes in CONTEXT.items():
        found |= changes if path.startswith(beginning) else {}
    return found


@pytest.fixture
def small_grid(monkeypatch):
    """Two intervals beside the one of the job, and two kinds of barriers: what binds, binds at each of them."""
    first, *_, last = settings.protocols()
    monkeypatch.setattr(settings, "INTERVALS_NS", (10 * 10**9, 60 * 10**9))
    monkeypatch.setattr(settings, "protocols", lambda: (first, last))


@pytest.mark.once
@pytest.mark.usefixtures("small_grid")
@pytest.mark.parametrize("path", CONSTRAINTS)
def test_an_option_that_binds_is_changed_and_no_machine_is_asked_for(path, tmp_path):
    """It alone keeps all settings from their limit; what does not bind stays as it is."""
    file, key = tmp_path / "job.yaml", path.replace("VERTEX", "sink")
    file.write_text(JOB)
    section, _, name = key.rpartition(".")
    binding = {section: {name: binding_value(path)}} if "debloat." in key else {key: binding_value(path)}
    bench, run = Bench(file, {**context_of(path), **binding}, failure=TASK), Bound(path)
    assert run.binds(bench.load(bench.common)), "the value does not bind"
    search = searched(bench, run, most=1, recovery_ms=10_000)

    assert search.chosen is not None
    point = search.candidate_of(search.chosen.name).point
    assert {key, section, "restart.scheduler"} & set(point)  # options of the adaptive scheduler bind under no other
    assert not run.binds(bench.load({**bench.common, **point}))
    others = {"checkpoint.interval", "checkpoint.barriers", "cluster.network.debloat", "checkpoint.timeout", *BINDING}
    assert len(set(point) - others - {key}) <= 1, "keys that do not bind change, too"


def test_one_checkpoint_at_a_time_recovers_sooner_than_several():
    """Snapshots wait for the uploads of older checkpoints, so several at a time are each older: why none is ever proposed."""
    slow = JOB.replace("state: {size: 1 MB, update: 1 %}", "state: {size: 8 MB}").replace(
        "interval: 30 s", "interval: 2 s"
    )
    text = (
        slow.replace("duration: 3 s", "duration: 90 s, until: caught-up")
        + "storage: {bandwidth: 500 kB/s}\nfaults: [{kill: sink, at: 55 s}]\n"
    )
    one, five = (read_scenario(text, overrides=[f"checkpoint.max-concurrent={number}"]) for number in (1, 5))
    alone, together = (outcome(Cell(scenario, str(i)), check=False) for i, scenario in enumerate((one, five)))

    assert alone["replayed_records"] < together["replayed_records"] / 2
    assert alone["caught_up_ms"] < together["caught_up_ms"]


WINDOWED = """\
# Each 10 s a window fires for a second.
version: 1
job:
  source: {source: {rate: 100/s, record: 100 B}}
  count: {input: {source: hash}, service: 100 us, fan-out: 1/10, window: {tumbling: 10 s, time: event, fire: 10 ms}}
checkpoint: {interval: 5 s}
run: {duration: 3 s}
"""


def windowed(folder, text=WINDOWED):
    """The bench of the job, and today's setting."""
    (folder / "job.yaml").write_text(text)
    bench = Bench(folder / "job.yaml", {})
    scenario = bench.load({})
    return bench, settings.make_candidate(scenario, scenario.checkpoint.interval_ns, settings.protocols()[0])


@pytest.mark.parametrize("interval", ["700 ms", "5 s", "10 s", "25 s"])
def test_a_checkpoint_of_each_trial_waits_for_windows_that_fire(tmp_path, interval):
    """Windows and triggers may miss each other for a whole trial, and a restart shifts them: trials have the longest wait."""
    bench, today = windowed(tmp_path, WINDOWED.replace("interval: 5 s", f"interval: {interval}"))
    (trial,) = bench.trials(today, (UNDISTURBED,))
    found = outcome(Cell(bench.scenario(trial), "window"), check=False)

    assert 700 < found["end_to_end_max_ms"] < 1300


def test_ends_of_windows_move_through_all_phases_of_flink_1(tmp_path):
    """Its first checkpoint comes at a random time: in a long run each hundredth checkpoint or more meets a firing, whatever the seed."""
    text = WINDOWED.replace("interval: 5 s}", "interval: 10 s}").replace(
        "run: {", "cluster: {version: 1.19.1}\nrun: {seed: 5, "
    )
    bench, today = windowed(tmp_path, text)
    (trial,) = bench.trials(today, (LONG,))
    found = outcome(Cell(bench.scenario(trial), "window"), check=False)

    assert 500 < found["end_to_end_max_ms"] < 1300
    assert found["end_to_end_p50_ms"] < 100


@pytest.mark.parametrize(
    ("changes", "seen_s", "text"),
    [
        ({}, 10, ""),
        ({}, 9, ""),  # 10 records a second for 10 ms each: known
        ({"job.source.source.rate": "unlimited"}, 10, ""),
        (
            {"job.source.source.rate": "unlimited"},
            9,
            "windows of 'count' (10 s) are longer than trials, which show no firing",
        ),
        ({"job.count.window": {"session": "10 s", "time": "event"}}, 1, ""),
    ],
)
def test_firings_that_trials_do_not_show(changes, seen_s, text):
    scenario = read_scenario(WINDOWED, overrides=[override(key, value) for key, value in changes.items()])

    assert [caution.short for caution in windows_longer_than_trials(scenario, seen_s * 10**9)] == [text] * bool(text)


SAFE_SINK = WINDOWED.replace("fire: 10 ms}}", "fire: 10 ms}, connector: at-least-once}")


def test_windows_of_sql_let_barriers_pass(tmp_path):
    """No barriers and no interval help a checkpoint that meets a firing; interruptible timers do, where Flink has them."""
    job = tmp_path / "job.yaml"
    job.write_text(SAFE_SINK)
    run = MadeUp({"aligned": 1000.0, "unaligned": 1000.0, "unaligned, interruptible timers": 50.0})
    found = searched(job, run, checkpoint_ms=500)
    barriers = found.candidate_of(found.chosen.name).barriers

    assert found.chosen.protocol == "unaligned, interruptible timers"
    assert barriers.point["checkpoint.interruptible-timers"] is True
    (caution,) = (own for own in cautions(found.scenario, barriers, ()) if own.source == "FLIP-443")
    assert "not the WindowOperator" in caution.short


@pytest.mark.parametrize(
    "change", ["job.count.window.api=datastream", "job.count.window.time=processing", "cluster.version=1.19.1"]
)
def test_other_windows_let_nothing_pass(change):
    scenario = read_scenario(SAFE_SINK, overrides=[change])

    assert not [own for own in settings.allowed_protocols(scenario) if settings.TIMERS in own.point]
