"""Restarts: what counts as one, what is in force after it, how long tasks take to start, and how fast they serve then."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sim.model.faults import Fault, Kill, Rescale, Restart, SlowTask, StorageOutage, When
from sim.model.job import Distribution, Job, Rate, Source, Vertex
from sim.model.scenario import Instances
from sim.model.schema.study import loads
from sim.model.storage import Disk
from sim.plane.interface import Position, create_layout
from sim.results.journal import EventType
from sim.runtime.context import TaskSnapshot
from sim.runtime.jobmanager.restore import move_captured_output_downstream
from sim.runtime.plane_spec import plane_spec
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, fault_at, scenario
from tests.oracle import oracle
from tests.scenarios import run_scenario

# What counts as a restart, and from when a job is down.


JOB = """\
version: 1
job:
  source: {source: {rate: 400/s, record: 100 B}}
  sink: {input: {source: hash}, service: 1500 us, state: {size: 20 MB}}
checkpoint: {interval: 1 s, barriers: aligned}
storage: {bandwidth: 40 MB/s, read-bandwidth: 5 MB/s}
restart: {strategy: fixed-delay, delay: 3 s, heartbeat-interval: 2 s, heartbeat-timeout: HEARTBEAT}
faults: [FAULTS]
run: {duration: 30 s}
"""


def recoveries(*faults, heartbeat="50 s"):
    text = JOB.replace("FAULTS", ", ".join(faults)).replace("HEARTBEAT", heartbeat)
    return run_scenario(text, check=False).recoveries.to_dict("records")


def kill(at_s):
    return f"{{kill: sink, at: {at_s} s}}"


@pytest.mark.parametrize(("second_s", "count"), [(6.0, 1), (8.0, 1), (8.8, 2), (11.0, 2), (13.0, 2)])
def test_a_failure_of_a_task_that_is_down_is_none(second_s, count):
    """It fails at 5.3 s, is deployed at 8.5 s, and restores until 12.5 s: from then on it may fail again."""
    rows = recoveries(kill(5.3), kill(second_s))

    assert count == len(rows)
    assert 8_450 < rows[0]["deployed"] < 8_500


def test_tasks_work_on_without_a_job_manager():
    """They stop when the next one restarts them, or when they have missed its heartbeat; downtime counts from then."""
    lost = "{job-manager: down-for 6 s, at: 5 s}"
    (patient,), (short,) = recoveries(lost), recoveries(lost, heartbeat="2 s")

    assert (patient["failed"], patient["served_again"] >= 6 * 400) == (11_000, True)
    assert 5_000 < short["failed"] <= 7_000
    assert short["running"] == pytest.approx(patient["running"], abs=50)
    assert short["downtime"] >= patient["downtime"] + 3_900


# Faults from one job instance to the next: what is still in force goes on, chance goes on where it was.


RESCALED = {"rescale": (Rescale(3 * SECOND, (("sink", 3),)),)}
TWO_JOBS = {"instances": Instances(2)}


def run(chained, *faults, seconds=6):
    base = scenario(chain(2, rate=100), seconds=seconds)
    return simulate(replace(base, restart=Restart("fixed-delay", delay_ns=10 * MS), faults=faults, **chained))


@pytest.mark.parametrize("chained", [RESCALED, TWO_JOBS], ids=["rescaled", "two jobs"])
@pytest.mark.parametrize("lasts", [2 * SECOND, None])
def test_a_slow_task_stays_slow(chained, lasts):
    """Until its time is over; 40 times 2 ms for a record, in up to three subtasks."""
    result = run(chained, fault_at(SlowTask("sink", 40, lasts), 2000))
    sinks = result.series[result.series["vertex"] == "sink"].groupby("time")["numRecordsInPerSecond"].max()

    assert sinks[4.0] <= 3 * 1000 / 80 + 2
    assert (sinks[6.0] > 100) == (lasts is not None)


@pytest.mark.parametrize("chained", [RESCALED, TWO_JOBS], ids=["rescaled", "two jobs"])
def test_an_outage_of_storage_goes_on(chained):
    """The new job cannot read what it begins from before the outage ends."""
    result = run(chained, fault_at(StorageOutage(1500 * MS), 2000))
    completed = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]["latest_ack_timestamp"]

    assert not completed.between(2001, 3499).any()
    assert completed.gt(3500).any(), "then all is well again"
    assert result.violations == ()


def test_a_fault_that_fails_nothing_is_told_all_the_same():
    result = run(
        {},
        Fault(StorageOutage(500 * MS), When(every=Distribution(1100 * MS))),
        fault_at(SlowTask("sink", 40, SECOND), 2000),
        seconds=3,
    )

    assert [(entry.time_ns, entry.detail) for entry in result.journal if entry.event_type is EventType.FAULT] == [
        (1100 * MS, "no storage for 0.5 s"),
        (2 * SECOND, "sink slower by 40"),
        (2200 * MS, "no storage for 0.5 s"),
    ]


@pytest.mark.parametrize(
    ("provider", "back_s"),
    [
        ("kubernetes", 60 + 30),  # nobody requests a pod before another JobManager leads
        ("standalone", 60),  # the machine comes back by itself, at 50 s
    ],
)
def test_who_replaces_a_task_manager_that_is_lost_without_a_job_manager(provider, back_s):
    text = f"""version: 1
job:
  src: {{source: {{rate: 100/s, record: 500 B}}, parallelism: 2}}
  sink: {{input: {{src: hash}}, parallelism: 2}}
checkpoint: {{interval: 5 s}}
cluster: {{slots: 1}}
restart: {{replacement: 30 s, provider: {provider}}}
faults: [{{job-manager: down-for 40 s, at: 20 s}}, {{task-manager: 1, at: 20 s}}]
run: {{duration: 110 s}}
"""
    (row,) = simulate(loads(text).scenarios[0]).recoveries.to_dict("records")

    assert row["failed"] == pytest.approx(20_000, abs=1)  # from then on nothing is processed
    assert row["running"] / 1000 == pytest.approx(back_s, abs=2)


# What a task takes from its deployment until it reads its state, after a failure and where a larger parallelism brings in processes.


DEPLOYED_JOB = """\
job:
  a: {source: {rate: 400/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2, service: 1 ms, state: {size: 1 MB}}
checkpoint: {interval: 1 s, barriers: unaligned}
cluster: {placement: spread}
restart: {strategy: fixed-delay, delay: 100 ms, fresh-start: 3 s, state-start: 700 ms}
run: {duration: 20 s}
"""


def running_ms(*changes, engine="compiled"):
    """From the deployment until all tasks run."""
    result = run_scenario(DEPLOYED_JOB, overrides=changes, engine=engine)
    row = result.recoveries.iloc[-1]
    return row["running"] - row["deployed"]


@pytest.mark.parametrize("engine", ["compiled", oracle])
def test_a_restarted_task_with_state_begins_to_read_it_later(engine):
    killed = "faults=[{kill: b, at: 8200 ms}]"
    later = running_ms(killed, engine=engine) - running_ms(killed, "restart.state-start=0 s", engine=engine)

    assert pytest.approx(later, abs=15) == 700


@pytest.mark.parametrize(("subtasks", "expected"), [(3, 3700), (1, 700)])
def test_a_larger_parallelism_brings_in_a_process_that_ran_nothing_of_the_job(subtasks, expected):
    """3 s before its tasks initialize; a smaller parallelism brings in none."""
    assert expected == pytest.approx(running_ms(f"rescale=[{{at: 8200 ms, parallelism: {{b: {subtasks}}}}}]"), abs=60)


# Restarted tasks serve slowly for a while, and then as fast as before.


COLD = Restart("fixed-delay", delay_ns=100 * MS, warm_up_ns=800 * MS, warm_up_factor=Fraction(4))


def job():
    """A log of 100 records/s, read at 1000 records/s at most."""
    return Job((Vertex("log", parallelism=1, source=Source((Rate(0, Fraction(100)),)), service=Distribution(MS)),))


def run_with_cold_start(*kills_ms, restart=COLD, seconds=6):
    base = scenario(job(), ALIGNED, seconds=seconds, interval_ms=1000)
    overheads = replace(base.overheads, fail_ns=0, restart_ns=0, deploy_ns=0)
    faults = (fault_at(Kill("log"), *kills_ms),)
    return simulate(replace(base, restart=restart, overheads=overheads, faults=faults))


def caught_up_after(result):
    """ms from the first thread's begin to the end of its backlog, of the last restart."""
    row = result.recoveries.iloc[-1]
    return row["caught_up"] - row["running"]


def test_a_restarted_task_is_slow_until_it_is_warm():
    """95 + 10 records wait at 1950 + 100 ms: they take 105 ms and a tenth more, and four times that while 250 records/s are served."""
    cold, warm = run_with_cold_start(1950), run_with_cold_start(1950, restart=replace(COLD, warm_up_ns=0))

    assert 110 <= caught_up_after(warm) <= 150
    assert 600 <= caught_up_after(cold) <= 800, "105 / (250 - 100) s"


def test_who_restarts_while_cold_begins_anew():
    """The end of the first warm-up does not end the second."""
    result = run_with_cold_start(1950, 2600)

    assert 800 <= caught_up_after(result) <= 950, (
        "until 3500 ms it is cold: had it ended at 2850, the rest of 169 would take 160 ms"
    )
    assert len(result.recoveries) == 2


def test_a_failure_during_a_cold_start_restarts_tasks_once():
    """The restart begins them; the end of the start begins nothing a second time."""
    base = scenario(job(), ALIGNED, seconds=6, interval_ms=1000)
    submitted = replace(base, restart=COLD, run=replace(base.run, cold_start_ns=1500 * MS))
    result = simulate(replace(submitted, faults=(fault_at(Kill("log"), 700),)))

    assert result.violations == ()
    assert result.recoveries["running"].tolist() == [965]
    assert result.series["lag"].iloc[-1] < 0.03


# Checkpoints during recovery (FLIP-547) and captured output that its readers recover: what a failure costs with and without.


FIXED = Restart("fixed-delay", delay_ns=100 * MS)
BOTH = {"recover_output_on_downstream": True, "during_recovery": True}


def test_tasks_run_as_soon_as_their_in_flight_data_is_read():
    """Not when it is processed: there are some 20 records of 20 ms in front of each sink."""

    def restored_ms(**options):
        base = scenario(chain(2, sink_ns=20 * MS), UNALIGNED, interval_ms=400, **options)
        faults = (fault_at(Kill("stage0", 0), 2000),)
        row = simulate(replace(base, restart=FIXED, faults=faults)).recoveries.iloc[0]
        return row["running"] - row["deployed"]

    assert restored_ms() > 150
    assert 0 <= restored_ms(**BOTH) < 20


def test_recovered_data_goes_to_local_disks_since_flink_2_4():
    """FLINK-40081: tasks run when it is written, to a disk of 100 kB/s; in 2.3 it stays in memory."""

    def restored_ms(version, bytes_per_second):
        base = scenario(chain(2, sink_ns=20 * MS), UNALIGNED, interval_ms=400, **BOTH)
        cluster, storage = replace(base.cluster, version=version), replace(base.storage, disk=Disk(bytes_per_second))
        faults = (fault_at(Kill("stage0", 0), 2000),)
        result = simulate(replace(base, cluster=cluster, storage=storage, restart=FIXED, faults=faults))
        row = result.recoveries.iloc[0]
        return row["running"] - row["deployed"], row["recovered_bytes"] / 100

    in_memory, recovered = restored_ms("2.3", 100_000)
    on_disk = restored_ms("2.4", 100_000)[0] - in_memory

    assert restored_ms("2.4", None)[0] == restored_ms("", 100_000)[0] == in_memory < 20
    assert recovered / 6 < on_disk < recovered, "each of six tasks has its disk"


# ---------------------------------------------------------------------------------------------- captured output


def part(served=0, *, captured=(), written=(), overtaken=(), **fields):
    none, out = np.zeros(len(captured), np.int64), np.array(written, np.int64)
    position = Position(
        served,
        none,
        none,
        np.array(captured, np.int64),
        out,
        none if not written else out,
        np.array(overtaken, np.int64),
    )
    return TaskSnapshot(1, position, **fields)


PLAN = create_layout(plane_spec(scenario(chain(1, stages=0))))
"""One source, one sink, one channel."""


def test_captured_output_becomes_input_of_its_reader():
    moved = move_captured_output_downstream({0: part(7, written=[700], overtaken=[300]), 1: part(captured=[250])}, PLAN)

    assert (moved[0].position.overtaken.tolist(), moved[1].position.captured.tolist()) == ([0], [550])
    assert (moved[0].in_flight_bytes, moved[1].in_flight_bytes) == (0, 550)


def test_what_came_with_an_acknowledgement_is_still_not_in_a_file():
    """The writer's bytes lie in its acknowledgement, the reader's own in a file."""
    moved = move_captured_output_downstream(
        {0: part(7, written=[700], overtaken=[300], inlined_bytes=300), 1: part(captured=[250])}, PLAN
    )

    assert (moved[0].inlined_bytes, moved[1].inlined_bytes) == (0, 300)
    assert moved[1].in_flight_bytes - moved[1].inlined_bytes == 250
