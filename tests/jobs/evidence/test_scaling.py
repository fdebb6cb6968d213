"""What a job does at another parallelism on the same cores, predicted from a recording of the one and held to that of the other."""

from functools import cache

import pytest

from sim.jobs.infer.cores import typical_checkpoints
from sim.jobs.reading import infer, read_any
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.results.summary import cold_start, summarize
from sim.runtime.simulate import simulate
from tests.places import DATA

SCALING = DATA / "scaling"
TWO, FOUR = "K3-scale-p2-aligned", "K1-contended-aligned"
VERTICES = ("events", "parse", "profile+out-writer")


@cache
def predicted(name, parallelism, slots, *overrides):
    """One run of 40 s at this parallelism; `overrides`: what else is changed."""
    inference = infer(read_any(SCALING / f"{name}.zip").source)
    subtasks = [f'job."{vertex}".parallelism={parallelism}' for vertex in VERTICES]
    text = inference.text
    study = loads(text, overrides=[*subtasks, f"cluster.slots={slots}", "run.duration=40 s", *overrides])
    return simulate(study.scenarios[0], check=False)


def observed_ms(name):
    """The median duration of its checkpoints."""
    took = sorted(
        point.end_to_end_duration for point in typical_checkpoints(RestJob(read_saved(SCALING / f"{name}.zip")))
    )
    return took[len(took) // 2]


@pytest.mark.parametrize(
    ("name", "other", "parallelism", "slots", "overrides", "per_second"),
    [
        # services of busy cores, taken for those of idle ones, made it twice the throughput and two thirds of the duration
        (TWO, FOUR, 4, 2, (), 2534),
        (FOUR, TWO, 2, 1, (), 2373),
        # task managers of one core, predicted before these ran: twice the subtasks on that core, and as many on two
        ("S1-one-core-p2-aligned", "S2-one-core-p4-aligned", 4, 2, (), 3124),
        ("S1-one-core-p2-aligned", "S3-two-cores-p2-aligned", 2, 1, ("cluster.cores=2",), 6668),
    ],
)
def test_twice_or_half_the_subtasks_on_the_same_cores(name, other, parallelism, slots, overrides, per_second):
    run = predicted(name, parallelism, slots, *overrides)
    summary = summarize([run.tables], run.scenario.job.edges, rates_from_s=cold_start([run]).ns / 1e9)

    assert summary.throughput_per_second == pytest.approx(per_second, rel=0.1)
    assert summary.end_to_end_p50_ms == pytest.approx(observed_ms(other), rel=0.15)


def test_state_of_bounded_keys_is_as_large_at_any_parallelism():
    """40,000 keys of 1 kB."""
    sizes = {
        name: predicted(name, *how).checkpoints["state_size"].max() for name, how in ((TWO, (4, 2)), (FOUR, (2, 1)))
    }

    assert 40.5e6 == pytest.approx(sizes[TWO], rel=0.01) == pytest.approx(sizes[FOUR], rel=0.01)


@pytest.mark.parametrize(
    ("parallelism", "slots", "per_second", "busy_threads"),
    [(2, 1, 1500, 1.43), (4, 2, 1500, 2.45), (2, 1, 2400, 2.54)],
)
def test_threads_wait_for_cores_that_are_not_full(parallelism, slots, per_second, busy_threads):
    """Three recordings, all predicted from the first.  Threads that are busy at independent times would be 1.4, 1.5 and 2.4."""
    overrides = [f"job.events.source.rate={per_second}/s", "run.duration=60 s"]
    run = predicted("C1-flushed-p2-aligned", parallelism, slots, *overrides)

    last_s = run.series["time"] > 40
    busy = run.series[last_s].groupby("vertex")["busy"].mean() * parallelism
    assert busy.sum() == pytest.approx(busy_threads, rel=0.17)
