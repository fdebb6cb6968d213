"""Restarted tasks serve slowly for a while, and then as fast as before."""

from dataclasses import replace
from fractions import Fraction

from sim.model.faults import Kill, Restart
from sim.model.job import Distribution, Job, Rate, Source, Vertex
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import ALIGNED, MS, fault_at, scenario

COLD = Restart("fixed-delay", delay_ns=100 * MS, warm_up_ns=800 * MS, warm_up_factor=Fraction(4))


def job():
    """A log of 100 records/s, read at 1000 records/s at most."""
    return Job((Vertex("log", 1, source=Source((Rate(0, Fraction(100)),)), service=Distribution(MS)),))


def run(*kills_ms, restart=COLD, seconds=6):
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
    cold, warm = run(1950), run(1950, restart=replace(COLD, warm_up_ns=0))

    assert 110 <= caught_up_after(warm) <= 150
    assert 600 <= caught_up_after(cold) <= 800, "105 / (250 - 100) s"


def test_who_restarts_while_cold_begins_anew():
    """The end of the first warm-up does not end the second."""
    result = run(1950, 2600)

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
