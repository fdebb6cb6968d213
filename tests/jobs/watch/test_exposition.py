"""The metrics of a watch are OpenMetrics text: read by a strict reader here, and by Prometheus' own."""

import math
import re
from collections import Counter

import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as openmetrics

from sim.jobs.watch.forecast import Circumstances, Forecast
from sim.jobs.watch.observation import JobObservation, SeenCheckpoint
from sim.jobs.watch.serving import open_metrics_text
from sim.jobs.watch.watcher import Watcher, WatchState

NAME = 'a "job"\\ of\nmine'
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


@pytest.fixture
def text():
    observation = JobObservation(
        10**12, "a" * 32, NAME, "RUNNING", 0, "2.3.0", {"src": 2}, ("src",), {}, 1, 0, (), {}, ()
    )
    forecast = Forecast(10**12, observation.job, 100.0, 200.0, (1.5, 2.0), 20, Circumstances())
    state = WatchState(
        observation=observation,
        forecast=forecast,
        counts=Counter({"polls answered": 3, "checkpoints within": 7, "missed": 2}),
    )
    state.recent = [
        SeenCheckpoint(observation.job, n, "COMPLETED", 10**12 + n, 100.0 + n, state_bytes={"count": 5 * n})
        for n in range(2, 9)
    ]
    return open_metrics_text(Watcher(state, 2000.0), 42)


def families(text):
    """Family -> (type, {labels: value}) by the grammar of OpenMetrics 1.0: metadata first and once, families whole, an end mark."""
    *lines, end = text.split("\n")[:-1]
    found = {}
    family = None
    for line in lines:
        if match := re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-z_]+) (.+)", line):
            what, name, rest = match.groups()
            if what == "TYPE":
                assert name not in found, name
                family = found[name] = (rest, {})
            assert family is found[name]
            assert not family[1], line  # metadata stand before the samples
            assert what != "UNIT" or name.endswith(f"_{rest}"), line
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        kind = family[0]
        assert name == next(reversed(found)) + ("_total" if kind == "counter" else ""), line
        assert labels not in family[1], line
        assert math.isfinite(float(value))
        assert kind != "counter" or float(value) >= 0
        family[1][labels or ""] = float(value)

    assert end == "# EOF"
    assert all(samples for _, samples in found.values())
    return found


def test_a_strict_reader_reads_it(text):
    """Each family with its samples; the name of the job is escaped."""
    found = families(text)
    job = 'flink_job="a \\"job\\"\\\\ of\\nmine"'

    assert {f'{job},verdict="within"': 7.0} == found["ckptsim_checkpoints"][1]
    assert {f'{job},percentile="50"': 0.1, f'{job},percentile="90"': 0.2} == found["ckptsim_forecast_seconds"][1]
    assert {job: 1.0} == found["ckptsim_forecast_holds"][1]
    assert {job: 42.0} == found["ckptsim_requests"][1]
    assert {f'{job},vertex="count"': 40.0} == found["ckptsim_state_bytes"][1]
    assert ("gauge", {job: 2.0}) == found["ckptsim_limit_seconds"]


def test_prometheus_own_reader_reads_it(text):
    """That of OpenMetrics, and that of the older text, which the textfile collector's is."""
    families = list(openmetrics.text_string_to_metric_families(text))
    samples = {(sample.name, sample.value) for family in families for sample in family.samples}

    assert ("ckptsim_forecast_factor", 1.5) in samples
    assert samples == {
        (sample.name, sample.value)
        for family in older.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert NAME in {sample.labels["flink_job"] for family in families for sample in family.samples}
