"""Task threads on few cores: more of them do no more work, whichever plane runs them."""

import pytest

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from sim.studies.comparison import scarce_cores
from tests.oracle import oracle

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
    return simulate(loads(JOB, overrides=list(overrides)).scenarios[0], engine=engine, check=False)


def served(result):
    """Records per second behind the hash, after the first 5 s."""
    rows = result.series[(result.series["vertex"] == "profile") & (result.series["time"] > 5)]
    return rows["numRecordsInPerSecond"].mean()


def test_twice_the_subtasks_do_the_same_on_the_same_cores():
    """2 cores / 800 us per record; with cores enough twice the subtasks do twice the work."""
    two, four = served(ran()), served(ran(*(f"{key}=4" for key in PARALLELISM)))

    assert pytest.approx(two, rel=0.06) == 2500
    assert two == pytest.approx(four, rel=0.05)
    assert 2 * served(ran("cluster.cores=64")) == pytest.approx(
        served(ran("cluster.cores=64", *(f"{key}=4" for key in PARALLELISM))), rel=0.05
    )


def test_task_managers_that_bring_their_cores_do_more():
    """Without hosts each has two cores to itself, and three threads."""
    assert served(ran("cluster.hosts=2")) == pytest.approx(served(ran("cluster.hosts=64")), rel=0.001)
    assert served(ran("cluster.hosts=2")) > 1.3 * served(ran())


def test_tasks_measured_side_by_side_have_waited_already():
    assert served(ran("cluster.services=side-by-side")) / served(ran()) > 1.4


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


def test_both_planes_see_the_same_contention():
    tables = [ran("run.duration=4 s", "run.warmup=0 s", engine=engine).tasks for engine in ("compiled", oracle)]

    assert tables[0].equals(tables[1])


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
