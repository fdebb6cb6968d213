"""When a job has caught up does not depend on the moment in its rhythm at which it failed."""

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate

WINDOWS = """\
version: 1
job:
  source: {source: {rate: 500/s, record: 100 B}, parallelism: 2}
  count: {input: {source: hash}, service: 100 us, parallelism: 2, window: {tumbling: 4 s, time: event, fire: 1 ms}, state: {size: 1 MB}}
  sink: {input: {count: hash}, service: 2 ms, parallelism: 2}
checkpoint: {interval: 1 s, barriers: aligned}
faults: [FAULTS]
run: {duration: 50 s}
"""


SLOW_RESTART = """\
version: 1
job:
  source: {source: {rate: 400/s, record: 100 B}}
  sink: {input: {source: hash}, service: 1500 us}
checkpoint: {interval: 1 s, barriers: aligned}
restart: {strategy: fixed-delay, delay: 10 s}
faults: [FAULTS]
run: {duration: 80 s}
"""


def recoveries(*at_s, text=WINDOWS):
    faults = ", ".join(f"{{kill: sink, at: {at} s}}" for at in at_s)
    return simulate(loads(text.replace("FAULTS", faults)).scenarios[0], check=False).recoveries.to_dict("records")


def test_the_phase_of_a_failure_decides_nothing():
    """A window has just been fired, is half served, or is about to be: queues to the sinks are full, or empty."""
    rows = [recoveries(at)[0] for at in (32.1, 33.1, 35.1, 36.1)]
    took_ms = [row["caught_up"] - row["failed"] for row in rows]

    assert max(took_ms) < 1.2 * min(took_ms), "against the moment of the failure: 1.3 to 16 s"
    assert all(row["running"] < row["caught_up"] for row in rows)


def test_what_a_failure_left_behind_is_not_usual():
    """A second failure while the job still catches up: ten seconds of backlog count neither before nor after it."""
    (alone,) = recoveries(15.3, text=SLOW_RESTART)
    first, second = recoveries(15.3, alone["running"] / 1000 + 0.3, text=SLOW_RESTART)

    assert first["caught_up"] == -1
    assert alone["caught_up"] - alone["running"] > 10_000
    assert 1.9 * (alone["caught_up"] - alone["running"]) < second["caught_up"] - second["running"]


def test_before_anything_was_looked_at():
    """Then what waited at the failure is what was usual."""
    (row,) = recoveries(0.3)

    assert row["running"] <= row["caught_up"] < row["running"] + 3000


UNTIL = "run: {duration: 50 s, until: caught-up}"


def test_a_run_may_end_when_the_job_has_caught_up():
    """What the full run shows of the recovery, and not a second more of it."""
    text = WINDOWS.replace("FAULTS", "{kill: sink, at: 12.3 s}")
    full, short = (
        simulate(loads(run).scenarios[0], check=False) for run in (text, text.replace("run: {duration: 50 s}", UNTIL))
    )
    (row,) = short.recoveries.to_dict("records")

    assert full.recoveries.to_dict("records") == [row]
    assert full.ended_ns == 50_000_000_000
    assert row["running"] <= row["caught_up"] == short.ended_ns / 1e6


def test_without_a_failure_it_lasts_for_its_duration():
    """A job that was rescaled has caught up, too; but nothing failed."""
    text = WINDOWS.replace("run: {duration: 50 s}", UNTIL)
    calm = simulate(loads(text.replace("FAULTS", "")).scenarios[0], check=False)
    rescaled = simulate(
        loads(text.replace("FAULTS", "") + "rescale: {at: 10 s, parallelism: {sink: 3}}\n").scenarios[0], check=False
    )

    assert 50_000_000_000 == calm.ended_ns == rescaled.ended_ns
    assert (rescaled.recoveries["caught_up"] > 0).tolist() == [True]


def test_a_failure_that_is_not_recovered_from_lasts_for_the_duration():
    """The run is over before the job has caught up."""
    text = SLOW_RESTART.replace("FAULTS", "{kill: sink, at: 75 s}").replace(
        "duration: 80 s", "duration: 80 s, until: caught-up"
    )
    result = simulate(loads(text).scenarios[0], check=False)

    assert result.ended_ns == 80_000_000_000
    assert result.recoveries["caught_up"].tolist() == [-1]


SLOW_RESTORE = """\
version: 1
job:
  source: {source: {rate: 4/s, record: 100 B}, parallelism: 4}
  map: {input: {source: hash}, parallelism: 4}
  sink: {input: {map: hash}, state: {size: 24 MB}, parallelism: 4}
checkpoint: {interval: 1 s, restore-rate: 2 MB/s}
faults: [FAULTS]
run: {duration: 12 s}
"""


def test_a_job_that_still_restores_has_not_caught_up():
    """The sink reads its state for 3 s; meanwhile so few records come that each task has one to take."""
    (row,) = recoveries(5.3, text=SLOW_RESTORE.replace("kill: sink", "kill: map"))

    assert row["running"] - row["first_record"] > 2000
    assert row["running"] <= row["caught_up"] < row["running"] + 500
