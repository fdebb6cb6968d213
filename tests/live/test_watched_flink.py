"""A real job whose load doubles, watched for a minute: the load is named, and Prometheus' own reader reads the metrics."""

import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from benchmarks.flink.watched import QUICK, RATE, watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

MINUTES = 1.1


def scraped(url):
    """Values by name and labels, without that of the job: ``{("ckptsim_forecast_seconds", "50"): 0.2}``"""
    with urllib.request.urlopen(url, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name != "flink_job")): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_doubled_load_is_named(tmp_path):
    """Once it has doubled and not before."""
    metrics = {}
    found = watched(
        tmp_path / "watch", MINUTES, report=print, pace=QUICK, scrape=lambda url: metrics.update(scraped(url))
    )
    made_ms = next(event.time_ms for event in found.events if event.kind == "forecast")
    named = [
        event.time_ms
        for event in found.events
        if "Load of 'source' doubled" in event.text or "Load of 'source' is 1." in event.text
    ]

    # on a machine that is busy, polls may be too far apart to see each checkpoint
    assert next(event.kind for event in found.events if event.kind != "missed") == "forecast"
    assert named
    assert made_ms < named[0]
    assert metrics["ckptsim_answers",] == 1
    assert metrics["ckptsim_polls_total", "answered"] >= 10
    rate = metrics["ckptsim_source_records_per_second", "source"]
    assert 0.5 * RATE < rate < 3 * RATE
    assert 0 < metrics["ckptsim_forecast_seconds", "50"] <= metrics["ckptsim_forecast_seconds", "90"]
