"""How much a job is asked to do: hand-computed utilisations."""

from fractions import Fraction

import pytest

from sim.jobs.evidence.envelope import utilisation
from sim.model.schema.study import loads

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
    return loads(JOB.replace("RATE", rate).replace("EXCHANGE", exchange), overrides=options).scenarios[0]


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
