"""Whole runs in which something fails: what is stopped, restored and replayed, and when."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from sim.model.faults import (
    JobManagerDown,
    Kill,
    NetworkOutage,
    Rescale,
    Restart,
    TaskManagerLost,
)
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.state import State, StateOptions
from sim.plane.interface import ThreadState
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from sim.runtime.task.host import TaskHost
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    chain,
    fault_at,
    scenario,
    source,
    started,
    with_options,
)
from tests.scenarios import read_scenario

FIXED = Restart(
    "fixed-delay",
    delay_ns=300 * MS,
    connection_reset_ns=100 * MS,
    heartbeat_timeout_ns=500 * MS,
    heartbeat_interval_ns=100 * MS,
    slot_check_ns=0,
)
OVERHEADS = {"fail_ns": 50 * MS, "restart_ns": 20 * MS, "deploy_ns": 80 * MS}


def failing(*faults, job=None, kind=ALIGNED, restart=FIXED, seconds=4, **options):
    """A job at rest that takes a checkpoint every 400 ms, from 10 ms on, and what happens to it."""
    base = scenario(job or chain(2, rate=100), kind, seconds=seconds, interval_ms=400, **options)
    overheads = replace(base.overheads, **OVERHEADS)
    return replace(
        base,
        restart=restart,
        overheads=overheads,
        faults=tuple(fault_at(what, at_ms) for what, at_ms in faults),
    )


def run(*faults, **options):
    return simulate(failing(*faults, **options))


TWO_PIPELINES = """
version: 1
job:
  a: {source: {rate: 500/s, record: 500 B}, parallelism: 2}
  a-map: {input: {a: hash}, service: 200 us, parallelism: 2}
  b: {source: {rate: 500/s, record: 500 B}, parallelism: 2}
  b-map: {input: {b: hash}, service: 200 us, parallelism: 2}
checkpoint: {interval: 10 s}
restart: {strategy: fixed-delay, delay: 1 s}
faults: [{kill: "a-map[0]", every: 15 s}]
run: {duration: 90 s}
"""


def test_equal_failures_of_one_pipeline_take_equally_long():
    """Buffers that are flushed every 100 ms hold more or less: checks at one phase of that would wait for seconds."""
    scenario = read_scenario(TWO_PIPELINES)
    rows = simulate(scenario).tables["recoveries"]

    assert set(rows["vertices"]) == {"a and a-map"}
    assert len(rows) == 5
    assert (rows["caught_up"] - rows["running"]).max() < 1000, "also where a checkpoint begins meanwhile"


def test_channels_that_an_unlimited_source_fills_are_no_backlog():
    """The savepoint that fails drains them, so they hold more than their mean once the job runs again."""
    text = """
version: 1
job: {a: {source: {rate: unlimited, record: 1 kB}}, b: {input: {a: hash}, service: 70 ms}}
checkpoint: {interval: 10 s, timeout: 10 s, barriers: {aligned-timeout: 1 s}}
actions: [{stop: no-drain, at: 25 s}]
run: {duration: 60 s}
"""
    (row,) = simulate(read_scenario(text)).tables["recoveries"].to_dict("records")

    assert 0 <= row["caught_up"] - row["running"] < 1000


def times(result, event_type):
    return [row.time_ns / MS for row in result.journal if row.event_type is event_type]


def only(result):
    """Its one recovery."""
    (row,) = result.recoveries.to_dict("records")
    return row


# ---------------------------------------------------------------------------------------------- the timeline


def test_the_timeline_of_a_restart():
    """Failure, report, delay, deployment; 2.x triggers one interval after the first task runs; ids go on."""
    result = run((Kill("stage0", 1), 1500))
    row = only(result)

    assert tuple(row[name] for name in ("failed", "detected", "cancelled", "deployed")) == (1500, 1550, 1550, 1950)
    assert [1950 + 400 * i for i in range(1, 6)] == times(result, EventType.TRIGGERED)[4:]
    assert ["COMPLETED"] * len(result.checkpoints) == result.checkpoints["status"].tolist()
    assert list(range(1, 1 + len(result.checkpoints))) == result.checkpoints["id"].tolist()
    assert result.job_status == "RUNNING"


def ends(job):
    """Its sources emit 100 records/s for 3 s."""
    log = Source((Rate(0, Fraction(100)), Rate(3 * SECOND, Fraction(0))))
    return Job(tuple(vertex if vertex.source is None else replace(vertex, source=log) for vertex in job.vertices))


DOWNSTREAM = {"recover_output_on_downstream": True}
BOTH = {"recover_output_on_downstream": True, "during_recovery": True}


@pytest.mark.parametrize(
    ("kind", "sink_ns", "options", "placement"),
    [
        *((kind, sink_ns, {}, "isolated") for kind in (ALIGNED, UNALIGNED) for sink_ns in (2 * MS, 8 * MS)),
        (ALIGNED, 20 * MS, BOTH, "single"),
        (UNALIGNED, 20 * MS, BOTH, "isolated"),
        (UNALIGNED, 20 * MS, DOWNSTREAM, "single"),
    ],
)
def test_a_run_with_failures_ends_where_one_without_does(kind, sink_ns, options, placement):
    """The index of every draw is part of a snapshot: whatever was lost is read again, to the byte, and nothing twice.

    Also with checkpoints during recovery (FLIP-547), and where readers recover captured output and capture it again.
    """
    instances = []
    kills = ((Kill("stage0", 0), 1500), (Kill("source", 1), 2600), (Kill("stage0", 0), 3300), (Kill("stage0", 0), 4400))
    for faults in ((), kills):
        base = failing(*faults, job=ends(chain(2, sink_ns=sink_ns)), kind=kind, **options)
        instance = started(replace(base, cluster=replace(base.cluster, placement=placement)))
        instance.env.run(until=instance.env.timeout(20 * SECOND))
        instance.plane.check()
        instances.append(instance)
    calm, hit = instances
    ever = [[instance.plane.counted(task).served for task in instance.context.tasks] for instance in instances]

    assert len(hit.job.recovery.stats) == 4
    assert hit.violations() == ()
    for column in ("written", "consumed", "records_in", "records_out"):
        assert calm.plane.channels()[column].tolist() == hit.plane.channels()[column].tolist()
    assert calm.plane.served().tolist() == hit.plane.served().tolist()
    assert all(again >= once for once, again in zip(*ever, strict=True))
    assert sum(ever[1]) > sum(ever[0]), "what was read again is counted again"


@pytest.mark.parametrize("change", ["fails", "is rescaled"])
def test_in_flight_data_in_acknowledgements_is_read_in_no_time(change):
    """The same bytes come back; from a file they take theirs, at 10 kB/s."""
    rows = []
    for threshold in (10**6, 0):
        job = chain(2, rate=100, sink_ns=20 * MS)
        job = replace(job, vertices=tuple(replace(vertex, state=None) for vertex in job.vertices))
        base = failing(*([(Kill("stage0", 1), 1700)] if change == "fails" else []), kind=UNALIGNED, job=job)
        base = replace(base, rescale=(Rescale(1700 * MS, (("stage0", 3),)),) if change == "is rescaled" else ())
        slow = replace(base.storage, read_bytes_per_second=10_000, inline_threshold_bytes=threshold)
        rows.append(only(simulate(replace(base, storage=slow))))
    inlined, filed = rows

    assert 0 < inlined["recovered_bytes"] == filed["recovered_bytes"]
    assert inlined["first_record"] - inlined["deployed"] <= 20
    assert filed["first_record"] - filed["deployed"] >= 200


# ---------------------------------------------------------------------------------------------- what dies with it


def test_a_failure_aborts_what_is_pending():
    """The sink needs 100 ms for its state; the failure comes in between: the checkpoint is lost, and the one before it is restored."""
    slow = chain(1, rate=50)
    slow = Job((*slow.vertices[:-1], replace(slow.vertices[-1], snapshot=Snapshot(async_ns=100 * MS))))
    result = run((Kill("source", 0), 830), job=slow)

    assert result.recoveries["restored_checkpoint"].tolist() == [2]
    assert result.checkpoints.set_index("id").loc[3, "failure_message"] == "CHECKPOINT_COORDINATOR_SUSPEND"


def test_the_lag_of_a_restored_source_is_that_of_its_next_record():
    """Samples once a second would miss it: a source emits half of its backlog into empty buffers at once."""
    result = run((Kill("stage0", 1), 1500), job=chain(2, rate=100))
    row = only(result)
    restored = result.checkpoints.set_index("id").loc[row["restored_checkpoint"], "trigger_timestamp"]

    assert row["lag_at_start"] == pytest.approx(row["deployed"] - restored, abs=100)


@pytest.mark.parametrize(("profile", "kept"), [("2.x", True), ("1.20", False)])
def test_from_the_second_failure_on_the_schedule_goes_on(profile, kept):
    """2.x: the first restart begins a schedule that later ones keep; what is pending ends when tasks are restored.

    A run of Flink 2.3.0 with a failure every 13 s and an interval of 20 s: after the first restart triggers at 48.85, 68.85
    and 88.85 s, across five others.
    """
    failures = [(Kill("source", 0), at_ms) for at_ms in (1500, 2900, 4300)]
    scenario = failing(*failures, seconds=8)
    result = simulate(replace(scenario, cluster=replace(scenario.cluster, profile=profile)))
    restored = times(result, EventType.JOB_RESTORED)
    triggers = [at for at in times(result, EventType.TRIGGERED) if at > restored[0]]
    gaps = {round(after - before) % 400 for before, after in pairwise(triggers)}

    assert len(restored) == 3
    assert (gaps == {0}) is kept


def test_no_checkpoint_begins_before_every_task_runs():
    """A sink that takes seconds over its recovered input: triggers are refused meanwhile."""
    result = run((Kill("source", 0), 1500), kind=UNALIGNED, job=chain(1, sink_ns=60 * MS), seconds=6)
    refused = [row for row in result.journal if row.event_type is EventType.REFUSED]

    assert only(result)["running"] > only(result)["deployed"] + 400
    assert refused[0].detail == "NOT_ALL_REQUIRED_TASKS_RUNNING"
    assert all(row.time_ns < only(result)["running"] * MS for row in refused)


def test_a_thread_at_work_delays_its_cancellation():
    """The stage is in a second of work before its barrier when the source fails: the restart waits for it, not for its delay alone."""
    job = chain(1, rate=50)
    stage = replace(job.vertices[1], snapshot=Snapshot(pre_barrier_ns=1000 * MS))
    result = run((Kill("source", 0), 500), job=Job((job.vertices[0], stage, job.vertices[2])), seconds=3)
    row = only(result)

    assert row["detected"] == 550
    assert row["cancelled"] == pytest.approx(10 + 1000, abs=20)
    assert row["deployed"] == pytest.approx(row["cancelled"] + 80, abs=1), "the delay was over before"


def test_a_thread_that_does_not_stop_takes_its_task_manager_down():
    """After task.cancellation.timeout.  Its tasks are cancelled with that, and the restart goes on when there are slots."""
    job = chain(1, rate=50)
    stage = replace(job.vertices[1], snapshot=Snapshot(pre_barrier_ns=5 * SECOND))
    restart = replace(FIXED, provider="yarn", cancellation_timeout_ns=200 * MS, replacement=Distribution(700 * MS))
    result = run(
        (Kill("source", 0), 500), job=Job((job.vertices[0], stage, job.vertices[2])), seconds=3, restart=restart
    )

    assert times(result, EventType.TASK_MANAGER_LOST) == [750]
    assert tuple(only(result)[name] for name in ("kind", "cancelled", "deployed")) == ("task", 750, 750 + 700 + 80)


# ---------------------------------------------------------------------------------------------- regions


def pipelines():
    """Two slices that exchange nothing."""
    return Job(
        (
            source("source", 2, rate=100),
            Vertex("sink", parallelism=2, inputs=(Input("source", "forward", service=Distribution(2 * MS)),)),
        )
    )


# ---------------------------------------------------------------------------------------------- other faults


def test_a_silent_one_only_by_its_heartbeat():
    """The last one that it answered was up to an interval before."""
    assert 1950 < only(run((TaskManagerLost(2, silent=True), 1500)))["detected"] <= 2050


def test_a_replacement_is_waited_for():
    waiting = replace(FIXED, provider="yarn", replacement=Distribution(SECOND))
    row = only(run((TaskManagerLost(2), 1500), restart=waiting))

    assert row["deployed"] == 2500 + 80


def test_a_replacement_is_a_machine_like_any_other():
    """The next restart does not wait for slots again."""
    rows = run((TaskManagerLost(2), 1500), (Kill("source", 0), 3000), restart=replace(FIXED, slot_check_ns=200 * MS))

    assert (rows.recoveries["deployed"] - rows.recoveries["failed"]).tolist() == [650 + 100, 450]


def test_state_on_the_local_disk_is_not_downloaded_again_unless_its_task_manager_is_lost():
    """E.6: a task that comes back where it was reads its copy; the disk of a lost task manager is gone with it."""
    rows = []
    for what in (Kill("source", 0), TaskManagerLost(2)):
        base = failing((what, 1500))
        kept = with_options(base, state=StateOptions(local_recovery=True))
        rows.append(only(simulate(replace(kept, storage=replace(base.storage, read_bytes_per_second=20_000)))))

    assert [row["restored_bytes"] for row in rows] == [2 * 50, 1000 + 2 * 50], (
        "one of two stages, and the operators' own files"
    )
    assert rows[0]["running"] < rows[0]["deployed"] + 50 <= rows[1]["running"]


def test_a_failure_noticed_while_deploying_restarts_again():
    """The first restart has left its delay behind and is about to deploy: nothing of it may come through."""
    result = run((Kill("source", 0), 1500), (TaskManagerLost(0), 1900))
    first, second = result.recoveries.to_dict("records")

    assert second["detected"] == 2050
    assert (first["deployed"], second["deployed"]) == (-1, 2450)
    assert result.violations == ()


@pytest.mark.parametrize("job", [None, pipelines()], ids=["one region", "two"])
def test_a_task_manager_lost_while_deploying_is_waited_for_by_its_region(job):
    """Lost at 1900, noticed at 2050; the deployment due at 1950 goes without the region it belongs to."""
    result = run((JobManagerDown(350 * MS), 1500), (TaskManagerLost(0), 1900), job=job, seconds=5)
    deployed = result.recoveries["deployed"].tolist()

    assert result.recoveries["detected"].tolist()[1:] == [2050]
    assert [-1 if job is None else 1950, 2450] == deployed
    assert result.job_status == "RUNNING"
    assert result.violations == ()


def test_a_failure_while_initializing_restarts_again():
    result = run(
        (Kill("source", 0), 1500), (Kill("sink", 0), 1990), kind=UNALIGNED, job=chain(1, sink_ns=60 * MS), seconds=6
    )
    first, second = result.recoveries.to_dict("records")

    assert (-1, first["restored_checkpoint"]) == (first["running"], second["restored_checkpoint"])
    assert second["running"] > 0
    assert result.violations == ()


def test_what_was_on_its_way_to_a_lost_job_manager_is_lost():
    """Acknowledgements of 200 ms that set out before it was lost arrive at none, not even at its successor."""
    base = failing((JobManagerDown(50 * MS), 1800))
    result = simulate(replace(base, overheads=replace(base.overheads, acknowledge_ns=200 * MS)))
    sent = [
        row
        for row in result.journal
        if row.event_type is EventType.ASYNC_FINISHED and 1600 * MS < row.time_ns < 1800 * MS
    ]

    assert sent
    assert not [at for at in times(result, EventType.ACKNOWLEDGED) if 1800 < at <= 2000]


def test_the_last_of_several_job_managers_takes_over():
    """The second one is lost before it leads."""
    result = run((JobManagerDown(400 * MS), 1500), (JobManagerDown(600 * MS), 1700))

    assert times(result, EventType.JOB_MANAGER_LOST) == [1500]
    assert times(result, EventType.JOB_MANAGER_ELECTED) == [2300]


def test_a_deployment_ends_with_its_job_manager():
    """It is due at 1950; the next one deploys the tasks."""
    deployed = run((Kill("source", 0), 1500), (JobManagerDown(200 * MS), 1900)).recoveries["deployed"].tolist()

    assert deployed[0] == -1 < 2100 < deployed[1]


def test_a_failure_suspends_checkpoints_that_another_restart_would_resume():
    """The first pipeline runs from 2450 ms on; the second one, which fails at 2300 ms, until 3250 ms: nothing is triggered before."""
    stateful = Job(tuple(replace(vertex, state=State(1000)) for vertex in pipelines().vertices))
    restart = replace(FIXED, state_start_ns=500 * MS)
    result = run((Kill("source", 0), 1500), (Kill("source", 1), 2300), job=stateful, restart=restart)

    assert len(result.recoveries) == 2
    assert times(result, EventType.REFUSED) == []


def test_a_job_without_another_attempt_is_given_up():
    result = run((Kill("source", 0), 1500), restart=Restart("none"))

    assert result.job_status == "FAILED: killed"
    assert [row.detail for row in result.journal if row.event_type is EventType.GIVEN_UP] == ["killed"]


@pytest.mark.parametrize(("at_ms", "stopped"), [(2090, False), (2210, True)])
def test_tasks_stop_when_their_job_manager_is_silent_for_a_heartbeat(at_ms, stopped):
    """Lost at 1700 ms, last heard of up to 100 ms before."""
    instance = started(failing((JobManagerDown(1500 * MS), 1700)))
    instance.env.run(until=instance.env.timeout(at_ms * MS))

    assert {stopped} == {state == ThreadState.HALTED for state in instance.plane.tasks()["state"]}


def test_a_task_that_fails_without_a_job_manager_is_down_until_there_is_one():
    row = only(run((JobManagerDown(350 * MS), 1500), (Kill("source", 0), 1600)))

    assert (row["kind"], row["failed"], row["detected"]) == ("job-manager", 1600, 1850)


def test_a_host_that_is_cut_off_for_long_is_lost_and_for_short_only_late():
    """Shorter than the heartbeat's timeout: its acknowledgements arrive when the network is back."""
    long = run((NetworkOutage(800 * MS, 2), 1500))
    short = run((NetworkOutage(300 * MS, 2), 1500))

    assert 1500 + 400 + 50 < only(long)["detected"] <= 1500 + 500 + 50
    assert len(short.recoveries) == 0
    assert short.checkpoints.set_index("id").loc[5, "latest_ack_timestamp"] >= 1800


@pytest.mark.parametrize(("ask_timeout_ms", "status"), [(200, "FAILED"), (400, "COMPLETED")])
def test_a_trigger_to_a_host_that_is_cut_off_times_out(ask_timeout_ms, status):
    """After pekko.ask.timeout the checkpoint has failed, which counts for nothing: the job goes on (CheckpointFailureManager)."""
    cut = run((NetworkOutage(390 * MS, 0), 1450), restart=Restart(ask_timeout_ns=ask_timeout_ms * MS))
    row = cut.checkpoints.set_index("id").loc[5]

    assert row["status"] == status
    assert (row["failure_message"] == "TRIGGER_CHECKPOINT_FAILURE") == (status == "FAILED")
    assert len(cut.recoveries) == 0


def test_all_tasks_hear_of_an_aborted_checkpoint(monkeypatch):
    """... and of the one before, whose notification may be lost."""
    heard = []
    monkeypatch.setattr(TaskHost, "notify_aborted", lambda self, *checkpoints: heard.append((self.task, *checkpoints)))
    run((NetworkOutage(390 * MS, 0), 1450), restart=Restart(ask_timeout_ns=200 * MS))

    assert [(task, 5, 4) for task in range(6)] == heard


@pytest.mark.parametrize(("host", "reason"), [(0, "TRIGGER_CHECKPOINT_FAILURE"), (2, "CHECKPOINT_COORDINATOR_SUSPEND")])
def test_checkpoints_are_triggered_until_the_loss_is_known(host, reason):
    """The JobManager takes the tasks of a silent machine for running: its sources do not answer, its other tasks never acknowledge."""
    result = run((TaskManagerLost(host, silent=True), 1500), restart=replace(FIXED, ask_timeout_ns=150 * MS))
    row = result.checkpoints.set_index("id").loc[5]

    assert 1500 < row["trigger_timestamp"] < only(result)["detected"]
    assert (row["status"], row["failure_message"]) == ("FAILED", reason)


@pytest.mark.parametrize(("ask_timeout_ms", "cancelled"), [(50, 1650 + 4 * 50), (200, 1902)])
def test_a_silent_task_counts_as_cancelled_after_four_calls_or_when_the_loss_is_known(ask_timeout_ms, cancelled):
    restart = replace(FIXED, ask_timeout_ns=ask_timeout_ms * MS)
    result = run((TaskManagerLost(2, silent=True), 1500), (Kill("source", 0), 1600), restart=restart)

    assert result.recoveries["cancelled"][0] == pytest.approx(cancelled, abs=1)


def test_an_acknowledgement_waits_for_the_network():
    """The sink's asynchronous phase ends while its host is cut off: the coordinator hears of it when the network is back."""
    job = chain(1, rate=50)
    job = Job((*job.vertices[:-1], replace(job.vertices[-1], snapshot=Snapshot(async_ns=100 * MS))))
    calm, cut = run(job=job), run((NetworkOutage(300 * MS, 2), 1680), job=job)
    heard = [result.checkpoints.set_index("id").loc[5, "latest_ack_timestamp"] for result in (calm, cut)]

    assert heard[0] < 1740
    assert 1980 <= heard[1] <= 1985
    assert len(cut.recoveries) == 0


# ---------------------------------------------------------------------------------------------- deployments that fail


def slow_to_miss(**options):
    """Two heartbeats, 600 ms apart, have to be refused; which moment they fall on is chance, and the same in each run."""
    return replace(FIXED, heartbeat_interval_ns=600 * MS, heartbeat_timeout_ns=5 * SECOND, **options)


def gone(result):
    return times(result, EventType.DEPLOYMENT_FAILED)


def test_deployments_fail_until_the_jobmaster_misses_the_task_manager():
    """Each is a failure of its own for the restart strategy; together they are one outage."""
    result = run((TaskManagerLost(2), 1500), restart=slow_to_miss(), seconds=6)
    row = only(result)
    failed = gone(result)

    assert failed[0] == 1970, "noticed, the delay, the begin of the deployment"
    assert [370.0] * (len(failed) - 1) == [late - early for early, late in pairwise(failed)], "50 + 300 + 20"
    assert 1 + len(failed) == row["deployments"] > 1
    assert (row["kind"], row["failed"]) == ("task-manager", 1500)
    assert 600 <= row["deployed"] - row["failed"] - 80 <= 1200 + 600 + 370
    assert result.violations == ()


def test_one_that_is_read_by_none_is_missed_by_its_heartbeats_only():
    """A sink: those who write to it see a connection that is closed, and go on."""
    result = run((TaskManagerLost(4), 1500), restart=slow_to_miss(), seconds=6)

    assert 600 <= only(result)["detected"] - 1500 - 50 <= 1200
    assert only(result)["deployments"] == 1


@pytest.mark.parametrize("provider", ["kubernetes", "yarn"])
def test_a_provider_tells_the_resource_manager(provider):
    """A standalone cluster gives the spare slot only when its ResourceManager misses the machine too."""
    ready = {}
    for name in ("standalone", provider):
        restart = slow_to_miss(provider=name, delay_ns=10 * MS)
        rows = [
            only(simulate(replace(job, run=replace(job.run, seed=seed))))
            for seed in range(6)
            for job in [failing((TaskManagerLost(2), 1500), restart=restart, seconds=6)]
        ]
        ready[name] = [row["deployed"] for row in rows]

    assert all(early <= late for early, late in zip(ready[provider], ready["standalone"], strict=True))
    assert sum(ready[provider]) < sum(ready["standalone"])
