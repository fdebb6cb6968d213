"""What flowed in a window is the difference of counters, through caches, restarts and gaps."""

import copy
import math

import pytest

from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from tests.places import REST


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


def test_an_older_flink_accumulates_nothing(sampled):
    """Records are counted; how busy threads are is not known."""
    flow = sampled([(t, counters(t // 10)) for t in (0, 10_000, 20_000, 30_000)]).flows["sink"]

    assert pytest.approx(200) == flow.per_second("records_in")
    assert math.isnan(flow.share("busy_ms"))


def test_nothing_is_known(sampled):
    """Neither samples nor totals: not a number, not an error."""
    answers = {
        path: answer for path, answer in read_saved(REST / "pressed.zip").answers.items() if "/vertices/" not in path
    }
    flow = sampled([], answers).flows["sink"]

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

    assert "totals since its start" in job.flows["sink"].source


def test_a_metric_of_an_operator_has_the_last_part_of_its_name(sampled):
    job = sampled([(t, counters(t // 10) | {"0.Source__src.pendingRecords": 5}) for t in (0, 10_000, 20_000)])

    assert ".pendingRecords" in job.series["sink"].values
