"""Exact oracles of failures: the waste of checkpoints and failures against Young and Daly, and where the time of a run goes.

One source that never waits.  A checkpoint costs it C on its thread.  A failure costs what it did since the barrier of
the latest completed checkpoint, and R until it runs again.  Failures are a Poisson process of mean M between them, the
same one for every interval.

After each restart the first trigger comes one interval I later, the k-th at k I.  It waits w for the record being
served and is complete at
k I + w + C + d.  A failure X after the restart therefore keeps I + w of work if one completed, and I - C more for each further one.  With
q = exp(-I / M) and a cycle of M + R:

    kept = exp(-(w + C + d) / M) ((I + w) q + (I - C) q^2 / (1 - q)),    waste = 1 - kept / (M + R).

Young (CACM 17, 1974): I* = sqrt(2 C M).  Daly (FGCS 22, 2006): higher order in C / M, of the time between checkpoints.
"""

from dataclasses import replace
from functools import cache
from itertools import count
from math import exp, sqrt
from statistics import mean, stdev

import pytest

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster
from sim.model.faults import Fault, Kill, Restart, When, gap_ns
from sim.model.job import Distribution, Job, Snapshot, Source, Vertex
from sim.model.randomness import stream
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.storage import Storage
from sim.runtime.job_instance import JobInstance

MS = 1_000_000
SECOND = 1_000 * MS
COST, MTBF, DOWN = 10, 1000, 20  # s: C, M = 100 C, R
SERVICE = 1  # s per record
DELAY = 0.003  # s: acknowledgement, completion
WAIT = SERVICE  # s: a trigger arrives 1 ms after a record has begun, for all times are whole seconds since the restart
T_99 = {4: 5.841, 8: 3.499}  # Student's t, two sides, of so many runs: five bands hold together with 95 %


def young(cost=COST, mtbf=MTBF):
    """Interval [s]."""
    return sqrt(2 * cost * mtbf)


def daly(cost=COST, mtbf=MTBF):
    """Time between checkpoints [s]; the interval is that and the checkpoint."""
    x = cost / (2 * mtbf)
    return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost


def expected_waste(interval):
    q = exp(-interval / MTBF)
    kept = exp(-(WAIT + COST + DELAY) / MTBF) * ((interval + WAIT) * q + (interval - COST) * q * q / (1 - q))
    return 1 - kept / (MTBF + DOWN)


def job(interval, hours, seed, when):
    work = Vertex(
        "work",
        source=Source(),
        service=Distribution(round(SERVICE * SECOND)),
        snapshot=Snapshot(pre_barrier_ns=COST * SECOND),
    )
    return Scenario(
        question="What do checkpoints and failures cost?",
        name="oracle",
        job=Job((work,)),
        checkpoint=CheckpointOptions(round(interval * SECOND)),
        run=Run(hours * 3600 * SECOND, seed=seed),
        cluster=Cluster(placement="single"),
        storage=Storage(),
        overheads=Overheads(
            trigger_ns=MS,
            acknowledge_ns=MS,
            complete_ns=2 * MS,
            notify_ns=0,
            first_trigger_ns=round(interval * SECOND),
            fail_ns=0,
            restart_ns=0,
            deploy_ns=0,
        ),
        faults=(Fault(Kill("work", 0), when),),
        # with this scheduler each restart begins a schedule of its own
        restart=Restart("fixed-delay", delay_ns=DOWN * SECOND, scheduler="adaptive"),
    )


def ran(scenario, engine="compiled"):
    instance = JobInstance(scenario, engine, check=False)
    instance.start()
    instance.env.run(until=instance.env.timeout(scenario.run.duration_ns))
    return instance


@cache
def waste(interval, hours, seed):
    """Share of a run that did not advance the source for good."""
    instance = ran(job(interval, hours, seed, When(every=Distribution(MTBF * SECOND, "exponential"))))
    reached = int(instance.plane.tasks()["served"][0])
    return 1 - reached * SERVICE / (hours * 3600)


def confidence(values):
    """Mean and half the width of its 99 % interval."""
    return mean(values), T_99[len(values)] * stdev(values) / sqrt(len(values))


def waste_by_hand(interval, hours, seed):
    """The same run, failure by failure, without a simulator."""
    end, law, key = hours * 3600, Distribution(MTBF * SECOND, "exponential"), stream(seed, "faults", 0)
    begun = failed = kept = 0.0
    for k in count():
        failed += gap_ns(law, key, k) / SECOND
        runs = min(failed, end) - begun
        if runs > 0 and failed < end:
            complete = max(0, int((runs - WAIT - COST - DELAY) // interval))
            kept += interval + WAIT + (complete - 1) * (interval - COST) if complete else 0
            begun = failed + DOWN  # a failure before that strikes nobody
        elif failed >= end:
            begins = int((runs - WAIT) // interval) if runs > interval + WAIT else 0
            paused = max(0, begins - 1) * COST + (min(COST, runs - WAIT - begins * interval) if begins else 0)
            return 1 - (kept + max(0, runs - paused)) / end
    raise AssertionError


INTERVALS = [round(young() * share) for share in (1 / 4, 1 / 2, 1, 2, 4)]


def judge(hours, seeds, others=()):
    """The five intervals inside their bands, and Young's and Daly's within 1 % of the simulated minimum."""
    assert MTBF >= 50 * COST
    wastes = {}
    for interval in {*INTERVALS, *others, round(daly() + COST)}:
        wastes[interval], half = confidence([waste(interval, hours, seed) for seed in seeds])
        if interval in INTERVALS:
            assert expected_waste(interval) == pytest.approx(wastes[interval], abs=half), interval
    least = min(wastes.values())

    assert wastes[round(young())] <= least + 0.01
    assert wastes[round(daly() + COST)] <= least + 0.01
    assert 1.2 * least < wastes[INTERVALS[0]]
    assert 1.2 * least < wastes[INTERVALS[-1]]


@pytest.mark.parametrize("interval", INTERVALS)
def test_waste_is_what_is_counted_by_hand(interval):
    """To a record or so in 43,200."""
    assert waste_by_hand(interval, 12, 1) == pytest.approx(waste(interval, 12, 1), abs=1e-4)


@pytest.mark.slow
def test_waste_is_least_at_young_and_dalys_interval():
    """Four runs of 12 hours each: about 170 failures."""
    judge(12, range(1, 5))


@pytest.mark.slow
@pytest.mark.nightly
def test_waste_is_least_at_young_and_dalys_interval_over_long_runs():
    """Eight runs of 80 hours: 2,300 failures; other intervals nearby are no better."""
    judge(80, range(1, 9), [round(young() * share) for share in (0.7, 0.85, 1.2, 1.4)])


# ---------------------------------------------------------------------------------------------- where the time goes

GOLDEN = (sqrt(5) - 1) / 2
FAILURES = 300


def spread_evenly(interval):
    """Failures 3 to 4 intervals after each restart: the fractional parts of multiples of the golden ratio fill the interval evenly."""
    times, at = [], 0.0
    for k in range(FAILURES):
        at += DOWN * (k > 0) + interval * (3 + (k * GOLDEN) % 1)
        times.append(round(at * SECOND))
    return times


@cache
def budget(interval=100):
    times = spread_evenly(interval)
    scenario = job(interval, 1, 1, When(tuple(times)))
    scenario = replace(scenario, run=Run(times[-1] + DOWN * SECOND + SECOND))
    return times, ran(scenario)


def test_a_failure_loses_half_an_interval_and_the_checkpoint():
    """Renewal: E[lost] = I / 2 + D, from the trigger of the latest completed checkpoint to the failure, within 1 %."""
    times, instance = budget()
    lost = [row.failed_ns - instance.stats[row.checkpoint].trigger_ns for row in instance.job.recovery.stats.values()]

    took = [row.completed_ns - row.trigger_ns for row in instance.stats.values() if row.status == "COMPLETED"]

    assert len(times) == len(lost) == FAILURES
    assert COST < mean(took) / SECOND < COST + 2 * SERVICE
    assert 100 / 2 + mean(took) / SECOND == pytest.approx(mean(lost) / SECOND, rel=0.01)


def test_the_time_of_a_run_is_accounted_for():
    """Work that lasts, work lost, checkpoints and downtime: together the run, within 1 %; work lost as the renewal argument has it."""
    _, instance = budget()
    lasts = int(instance.plane.tasks()["served"][0]) * SERVICE
    lost = sum(row.replayed_records for row in instance.job.recovery.stats.values()) * SERVICE
    checkpoints = sum(1 for row in instance.stats.values() if row.status == "COMPLETED") * COST
    cut_short = sum(
        (row.failed_ns - row.trigger_ns) / SECOND for row in instance.stats.values() if row.status == "FAILED"
    )
    down = FAILURES * DOWN

    assert instance.env.now / SECOND == pytest.approx(lasts + lost + checkpoints + cut_short + down, rel=0.01)
    assert pytest.approx(lost, rel=0.01) == FAILURES * (100 / 2 - PAUSED)


PAUSED = COST / 100 * COST / 2
"""So long has the thread been in a checkpoint in the interval of a failure [s]: half of C, in the share C / I of them.
For all others the C of E[lost] was the pause of the checkpoint they go back to, and no work."""
