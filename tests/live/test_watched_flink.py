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
    """Once it has doubled and not before; in the event of checkpoints that leave their forecast, or in one of its own."""
    metrics = {}
    found = watched(
        tmp_path / "watch", MINUTES, report=print, pace=QUICK, scrape=lambda url: metrics.update(scraped(url))
    )
    looks = found.looks
    doubled_ms = looks["time"].iloc[0].timestamp() * 1e3 + 30_000 * MINUTES
    named = [
        event.time_ms
        for event in found.events
        if "oad of 'source' doubled" in event.text or "oad of 'source' is 1." in event.text
    ]

    # on a machine that is busy, looks may be too far apart to see each checkpoint
    assert next(event.kind for event in found.events if event.kind != "missed") == "forecast"
    assert named
    assert doubled_ms - 5_000 < named[0] < doubled_ms + 120_000
    assert metrics["ckptsim_answers",] == 1
    assert metrics["ckptsim_looks_total", "answered"] >= 10
    # the mean of three of the latest looks: what the source really read on this machine, which may have had no processor for one of them
    rates = [dict(load)["source"] for load in looks["load"][looks["seconds"].notna()]][-6:]
    assert min(rates) <= (rate := metrics["ckptsim_source_records_per_second", "source"]) <= max(rates)
    assert rate > 0.5 * RATE
    assert 0 < metrics["ckptsim_forecast_seconds", "50"] <= metrics["ckptsim_forecast_seconds", "90"]
