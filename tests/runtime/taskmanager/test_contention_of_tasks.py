"""Task threads on few cores: more of them do no more work, whichever plane runs them."""

import pytest

from sim.studies.comparison import scarce_cores
from tests.scenarios import run_scenario

JOB = """
version: 1
job:
  src: {source: {rate: unlimited, record: 900 B}, parallelism: 2, service: 20 us}
  parse: {input: {src: rebalance}, parallelism: 2, service: 240 us}
  profile: {input: {parse: hash}, parallelism: 2, service: 540 us}
cluster: {placement: spread, cores: 2, hosts: 1, services: idle-core}
checkpoint: {interval: 5 s, barriers: aligned}
run: {duration: 20 s, warmup: 5 s}
"""
PARALLELISM = ("job.src.parallelism", "job.parse.parallelism", "job.profile.parallelism")


def ran(*overrides, engine="compiled"):
    return run_scenario(JOB, overrides=list(overrides), engine=engine, check=False)


def served(result):
    """Records per second behind the hash, after the first 5 s."""
    rows = result.series[(result.series["vertex"] == "profile") & (result.series["time"] > 5)]
    return rows["numRecordsInPerSecond"].mean()


def test_a_thread_that_waits_for_answers_takes_no_core():
    """Three threads with requests of 10 ms, four at a time: 1,200/s.  They leave both cores to profiles of 1.4 ms."""
    overrides = [
        "job.parse.async-io={latency: 10 ms, capacity: 4}",
        "job.parse.service=1 us",
        "job.profile.service=1.4 ms",
    ]
    waiting = ran(*overrides, *(f"{key}=3" for key in PARALLELISM))

    assert served(waiting) == pytest.approx(3 * 4 / 0.01, rel=0.05)
    assert "busy at once on 2 cores" not in scarce_cores(
        ran(*overrides, "job.profile.service=1 us", *(f"{key}=3" for key in PARALLELISM))
    )


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ((), "3.0 threads of tasks are busy at once on 2 cores, so records take 1.5 times as long"),
        (("cluster={placement: spread, cores: 2, hosts: 1}",), "services does not say how services were measured"),
        (("cluster.services=side-by-side",), ""),
        (("cluster.cores=64",), ""),
    ],
)
def test_a_run_says_that_cores_are_scarce(overrides, sentence):
    text = scarce_cores(ran(*overrides))

    assert sentence in text
    assert bool(sentence) == bool(text)
