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


def recoveries(*at_s, text=WINDOWS):
    faults = ", ".join(f"{{kill: sink, at: {at} s}}" for at in at_s)
    return simulate(loads(text.replace("FAULTS", faults)).scenarios[0], check=False).recoveries.to_dict("records")


def test_before_anything_was_looked_at():
    """Then what waited at the failure is what was usual."""
    (row,) = recoveries(0.3)

    assert row["running"] <= row["caught_up"] < row["running"] + 3000
