"""Bytes of a setting: the mean of all its checkpoints, of long runs where there are some, without bursts of queued triggers."""

import math

import pytest

from sim.advice.answer import _cost_lines, _expired_texts, advised_scenario
from sim.advice.configuration import diff_flink_keys
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.texts import _with_keys, tables_of_settings
from sim.advice.trials import LONG, UNDISTURBED, Bench
from tests.advice.made_up import JOB, MadeUp, searched

S = 10**9


def rarely_large(own):
    """Two checkpoints of 1 MB in a short run; in a long one each twentieth has 161 MB, so that the mean is 9 MB, and p50 is longer."""
    long = {"checkpointed_mean_bytes": 9e6, "end_to_end_p50_ms": 300.0, "end_to_end_p90_ms": 310.0}
    return {"checkpointed_bytes": 1e6, "checkpointed_mean_bytes": 1e6} | (long if own["trial"] == LONG else {})


def test_rare_large_checkpoints_count(job):
    """120 checkpoints an hour."""
    found = searched(job, MadeUp({"aligned": 100.0}, but=rarely_large), checkpoint_ms=1000)
    long = [setting for setting in found.settings if setting.ran_long]
    short = [setting for setting in found.settings if not setting.ran_long and setting.name == ("10 s", "aligned")]

    assert [setting.written_per_hour * found.period_ns(setting) / 3600e9 for setting in long] == [9e6]
    assert [(setting.checkpoint_p50_ms, setting.checkpoint_p90_ms) for setting in long] == [(300.0, 310.0)]
    assert {setting.written_per_hour for setting in short} == {360e6}
    assert {setting.checkpoint_p50_ms for setting in short} == {100.0}


class Queued(MadeUp):
    """The first checkpoint takes 97 s, and triggers that came meanwhile run behind it, in a tenth of the time of the others."""

    def __init__(self, duration):
        super().__init__(duration)
        self.warmups = set()

    def run(self, scenarios):
        self.late = {scenario.axes: scenario.run.warmup_ns > 100 * S for scenario in scenarios}
        self.warmups |= {scenario.run.warmup_ns for scenario in scenarios if "aligned" in dict(scenario.axes).values()}
        return super().run(scenarios)

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        if self.late[tuple(axes.items())] or axes["trial"] != UNDISTURBED or axes["protocol"] != "aligned":
            return row
        burst = {name: row[name] / 10 for name in ("end_to_end_p50_ms", "end_to_end_p90_ms", "end_to_end_p99_ms")}
        return row | burst | {"completed": 20}


def test_a_burst_of_queued_triggers_is_not_observed(job):
    """Its trials are repeated with twice the time to settle, and no other ones."""
    runner = Queued({"aligned": 400.0, "unaligned": 390.0})
    found = searched(job, runner, checkpoint_ms=1000)
    aligned = [setting for setting in found.settings if setting.protocol == "aligned"]

    assert {setting.checkpoint_p50_ms for setting in aligned} == {400.0}
    assert set(found.bench.settled_ns.values()) == {120 * S}
    assert {protocol for _, protocol in found.bench.settled_ns} == {"aligned"}


def test_a_failure_comes_after_the_time_to_settle(job):
    bench = Bench(job, {})
    found = searched(bench, MadeUp({"aligned": 400.0}), checkpoint_ms=1000)
    own = found.candidate_of(("30 s", "aligned"))
    times = []
    for settled_s in (60, 120):
        bench.settled_ns = {own.name: settled_s * S}
        trials = [bench.scenario(trial) for trial in bench.trials(own)]
        times.append((trials[0].run.warmup_ns, trials[1].faults[0].when.at_ns[0]))

    assert times == [(60 * S, 87 * S), (120 * S, 147 * S)]


def expiring(own):
    """All checkpoints of aligned barriers expire."""
    if own["protocol"] != "aligned":
        return {}
    durations = {name: math.nan for name in own if name.startswith("end_to_end")}
    return durations | {"completed": 0, "failed": 3, "checkpointed_mean_bytes": math.nan}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("", ["each expires after 5 s", "each restarts the job, and after 3 restarts it fails"]),
        (
            ", tolerable-failed: 3",
            ["each expires after 5 s", "4 that expire in a row restart the job, and after 3 restarts it fails"],
        ),
    ],
)
def test_a_setting_of_today_that_completes_nothing_is_described(tmp_path, options, told):
    """Nothing is known about its bytes."""
    (tmp_path / "job.yaml").write_text(
        JOB.replace("{interval: 30 s}", f"{{interval: 30 s, timeout: 5 s{options}}}")
        + "restart: {strategy: fixed-delay, attempts: 3}\n"
    )
    bench = prepare_bench(tmp_path / "job.yaml", (), (), recovery_ms=None)
    run = MadeUp({"unaligned": 60.0}, but=expiring)
    found = report(bench, Limits(checkpoint_ms=1000.0), 8.64e7, run, tmp_path, max_replications=3)
    text = "\n".join(part for part in found.parts if isinstance(part, str))

    assert "today   no checkpoint completes" in text
    assert [sentence for sentence in told if sentence not in text] == []
    assert "(today 0 B)" not in text


@pytest.mark.parametrize(
    ("state", "longest", "text"),
    [
        ("", ["aligned"], "120 B written per hour (today 120 B)"),
        ("state: {size: 1 MB, update: 1 %}, ", ["aligned"], "120 B written per hour (today 120 B)"),
        ("state: {size: 1 MB, update: 1 %, backend: rocksdb}, ", ["aligned"], "120 B written per hour"),
        (
            "state: {size: 1 MB, update: 1 %, backend: rocksdb}, ",
            ["aligned", "unaligned"],
            "bytes unknown, as its checkpoints differ and no run is long",
        ),
    ],
)
def test_bytes_of_changes_are_unknown_without_a_long_run(job, state, longest, text):
    """Full snapshots, and none at all, are as large in two checkpoints as in a hundred.  `longest`: what does not run for long."""
    own = JOB.replace("service: 1 ms,", f"service: 1 ms, {state}").replace("30 s}", "30 s, incremental: true}")
    job.write_text(own)
    run = MadeUp({"aligned": 9000.0, "unaligned": 60.0})
    run.affords = lambda scenarios, _: (
        not any({name, LONG} <= set(dict(scenario.axes).values()) for scenario in scenarios for name in longest)
    )
    found = searched(job, run, checkpoint_ms=1000)

    assert found.current.name != found.chosen.name
    assert [line.text for line in _cost_lines(found, found.chosen, is_most=False)] == [f"throughput ±0 %; {text}"]


class Merging(MadeUp):
    """One checkpoint in four writes 100 MB, the others 4 MB; short trials see the first two."""

    def row(self, axes, k, more_ms):
        bytes_ = 28e6 if axes["trial"] == LONG else 100e6
        ms = {"end_to_end_p50_ms": 40.0 if axes["trial"] == LONG else 100.0}
        return super().row(axes, k, more_ms) | {"checkpointed_mean_bytes": bytes_} | ms


@pytest.mark.parametrize("is_incremental", [True, False])
def test_bytes_of_changes_are_those_of_a_long_run(job, is_incremental):
    """Though no limit is about the tail of checkpoints."""
    own = JOB.replace("service: 1 ms,", "service: 1 ms, state: {size: 9 MB, update: 1 %, backend: rocksdb},")
    job.write_text(own.replace("30 s}", f"30 s, incremental: {str(is_incremental).lower()}}}"))
    found = searched(job, Merging({"aligned": 100.0}), recovery_ms=120_000)
    sizes = {(setting.written_per_hour / 120, setting.checkpoint_p50_ms) for setting in (found.current, found.chosen)}

    assert sizes == ({(28e6, 40.0)} if is_incremental else {(100e6, 100.0)})


class Sometimes(MadeUp):
    """A third of today's checkpoints expires."""

    def row(self, axes, k, more_ms):
        expires = axes["protocol"] == "aligned" and axes["trial"] == UNDISTURBED
        return super().row(axes, k, more_ms) | ({"completed": 2, "failed": 1} if expires else {})


def test_checkpoints_that_expire_today_are_what_is_told_of_it(job):
    """The parts of those that complete are not."""
    job.write_text(JOB.replace("{interval: 30 s}", "{interval: 30 s, timeout: 5 s, tolerable-failed: 0}"))
    found = searched(job, Sometimes({"aligned": 100.0, "unaligned": 60.0}), checkpoint_ms=1000)

    assert _expired_texts(found, found.current) == ["3 of 9 checkpoints expire after 5 s", "each restarts the job"]
    job.write_text(
        job.read_text().replace("service: 1 ms", "service: 1 ms, snapshot: {pre-barrier: 6 s, probability: 30 %}")
    )
    works = searched(job, Sometimes({"aligned": 100.0, "unaligned": 60.0}), checkpoint_ms=1000)
    assert (
        _expired_texts(works, works.current)[0]
        == "3 of 9 checkpoints expire after 5 s (work of 'sink' before barriers)"
    )


@pytest.mark.parametrize(("ms", "remark"), [(60.0, ""), (3000.0, ", with timeout 10 min")])
def test_a_timeout_that_only_trials_have_is_named(job, ms, remark):
    """Today's is kept where twice the longest checkpoint is within it."""
    job.write_text(JOB.replace("{interval: 30 s}", "{interval: 30 s, timeout: 5 s}"))
    found = searched(job, MadeUp({"aligned": 9000.0, "unaligned": ms}), checkpoint_ms=8000)
    scenario = advised_scenario(found, found.chosen)

    assert found.chosen.protocol == "unaligned"
    assert _with_keys(found, found.chosen) == remark
    assert scenario.checkpoint.timeout_ns == (600 if remark else 5) * S
    rows = {row[0]: row[-1] for table in tables_of_settings(found) for row in table.rows}
    assert ("with timeout 10 min" in rows["unaligned, every 30 s"]) == bool(remark)


def test_the_advice_leaves_a_time_to_live_alone(tmp_path):
    """Trials fix the size of state; the job does not."""
    job = tmp_path / "job.yaml"
    job.write_text(JOB.replace("service: 1 ms,", "service: 1 ms, state: {size: 1 kB, growth: 100 B, ttl: 30 min},"))
    bench = prepare_bench(job, (), (), recovery_ms=None)
    found = searched(bench, MadeUp({"aligned": 100.0}), checkpoint_ms=1000)

    assert found.chosen.name == ("30 s", "aligned")
    assert bench.horizon.states
    assert diff_flink_keys(found.scenario, advised_scenario(found, found.chosen)) == []
