"""What flowed in a window is the difference of counters, through caches, restarts and gaps."""

import copy
import math
from pathlib import Path

import pytest

from sim.jobs.infer.flows import flows, series
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved

REST = Path(__file__).parents[2] / "data" / "rest"


@pytest.fixture
def sampled():
    """``sampled([(time_ms, {"0.numRecordsIn": 5, ...}), ...])`` -> the flows of `sink` (two subtasks)."""
    snapshot = read_saved(REST / "pressed.zip")
    path = f"/jobs/{snapshot.job}/vertices/{RestJob(snapshot).vertex('sink').id}/metrics"

    def job(samples, answers=snapshot.answers):
        metrics = {
            time_ms: {path: [{"id": name, "value": str(value)} for name, value in values.items()]}
            for time_ms, values in samples
        }
        return RestJob(RestSnapshot("test", snapshot.job, answers, metrics))

    return job


def counters(records, busy=None, *, idle=0, pressed=0):
    """Both subtasks alike."""
    metrics = {}
    for i in (0, 1):
        metrics |= {f"{i}.numRecordsIn": records, f"{i}.numRecordsOut": 0, f"{i}.numBytesIn": records * 100}
        if busy is not None:
            metrics |= {
                f"{i}.accumulateBusyTimeMs": busy,
                f"{i}.accumulateIdleTimeMs": idle,
                f"{i}.accumulateBackPressuredTimeMs": pressed,
            }
    return metrics


def test_differences_between_the_first_and_the_last(sampled):
    """Rates by the subtasks' own clocks, whenever the samples were read."""
    middle = (9_000, counters(700, 4_500, idle=6_500))
    job = sampled([(1_000, counters(100, 500, idle=500)), middle, (17_300, counters(1100, 8_500, idle=12_500))])
    flow = flows(job)["sink"]

    assert (flow.total("records_in"), flow.total("busy_ms")) == (2000, 16_000)
    assert flow.subtasks[0].elapsed_ms == 20_000
    assert pytest.approx(100) == flow.per_second("records_in")
    assert pytest.approx(0.4) == flow.share("busy_ms")


def test_a_cache_repeats_itself(sampled):
    """The same numbers again are no new sample."""
    first, last = counters(100, 1000), counters(600, 11_000)
    job = sampled([(1_000, first), (3_000, first), (5_000, first), (11_500, last), (13_000, last)])

    assert len(series(job, job.vertex("sink"))["numRecordsIn"]) == 2
    assert pytest.approx(100) == flows(job)["sink"].per_second("records_in")


def test_samples_are_dated_by_the_clock_of_the_tasks(sampled):
    """How late they are read differs; the least late one sets the date."""
    job = sampled([(100_000, counters(1, 1000)), (109_500, counters(2, 8_000)), (113_500, counters(3, 14_000))])

    assert [time_ms for time_ms, _ in series(job, job.vertex("sink"))["numRecordsIn"]] == [
        99_000 + 1000,
        99_000 + 8000,
        99_000 + 14_000,
    ]


def test_a_sample_without_a_clock_leaves_all_to_the_time_of_reading(sampled):
    """The first one may have been old when it was read."""
    job = sampled([(100_000, counters(1, 1000)), (109_500, counters(2)), (113_500, counters(3, 14_000))])

    assert [time_ms for time_ms, _ in series(job, job.vertex("sink"))["numRecordsIn"]] == [109_500, 113_500]


def test_a_sample_that_falls_into_a_fetch_is_left_out(sampled):
    """Task managers are asked one by one: the second subtask still says what it said before."""
    old, new = counters(100, 1000), counters(600, 6_000)
    between = {name: (new if name.startswith("0.") else old)[name] for name in old}
    job = sampled([(1_000, old), (6_000, between), (6_100, new), (11_000, counters(1100, 11_000))])

    assert [values for _, values in series(job, job.vertex("sink"))["numRecordsIn"]] == [
        [100, 100],
        [600, 600],
        [1100, 1100],
    ]


def test_each_subtask_has_a_clock_of_its_own(sampled):
    """They were not asked at the same moment."""
    first, last = counters(0, 0), counters(1000, 10_000)
    last |= {"1.numRecordsIn": 1600, "1.accumulateBusyTimeMs": 8_000}
    flow = flows(sampled([(0, first), (9_000, last)]))["sink"]

    assert pytest.approx(100 + 200) == flow.per_second("records_in")


def test_a_restart_begins_anew(sampled):
    """Counters that fall belong to new tasks: what was before is another story."""
    job = sampled(
        [
            (0, counters(5000, 50_000)),
            (9_000, counters(6000, 59_000)),
            (20_000, counters(10, 100)),
            (30_000, counters(1010, 10_100)),
        ]
    )
    flow = flows(job)["sink"]

    assert flow.total("records_in") == 2000
    assert pytest.approx(200) == flow.per_second("records_in")


def test_an_older_flink_accumulates_nothing(sampled):
    """The mean of its averages must do; the first sample may be old when it is read."""
    shares = {
        f"{i}.{name}TimeMsPerSecond": value
        for i in (0, 1)
        for name, value in (("busy", 400), ("idle", 600), ("backPressured", 0))
    }
    job = sampled([(t, counters(t // 10) | shares) for t in (0, 10_000, 20_000, 30_000)])
    flow = flows(job)["sink"]

    assert pytest.approx(0.4) == flow.share("busy_ms")
    assert pytest.approx(200) == flow.per_second("records_in")
    assert flow.total("records_in") == 4000


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [(0, counters(1, 1))],
        [(0, counters(1, 1)), (900, counters(2, 900))],
        [(0, {"0.numRecordsIn": 1}), (9_000, {"0.numRecordsIn": 100})],
        [(0, {"x": 1, "7.numRecordsIn": 3}), (9_000, {"x": 2})],
    ],
    ids=["none", "one", "short", "one of two subtasks", "foreign"],
)
def test_too_little_falls_back_to_totals(sampled, samples):
    flow = flows(sampled(samples))["sink"]

    assert "totals since its start" in flow.source
    assert flow.total("records_in") > 100_000


def test_nothing_is_known(sampled):
    """Neither samples nor totals: not a number, not an error."""
    answers = {
        path: answer for path, answer in read_saved(REST / "pressed.zip").answers.items() if "/vertices/" not in path
    }
    flow = flows(sampled([], answers))["sink"]

    assert math.isnan(flow.total("records_in"))
    assert math.isnan(flow.per_second("records_in"))
    assert math.isnan(flow.share("busy_ms"))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1e400", "", "many", None, "1_0"], ids=str)
def test_values_that_are_no_numbers(sampled, value):
    """Are not known, whatever they are."""
    snapshot = read_saved(REST / "pressed.zip")
    samples = copy.deepcopy(dict(snapshot.samples))
    for sample in samples.values():
        for metrics in sample.values():
            for metric in metrics:
                metric["value"] = value
    job = RestJob(RestSnapshot("test", snapshot.job, snapshot.answers, samples))

    assert "totals since its start" in flows(job)["sink"].source
