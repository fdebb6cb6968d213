"""A watch as OpenMetrics text 1.0 (github.com/prometheus/OpenMetrics, specification/OpenMetrics.md).

The textfile collector of Prometheus' node exporter reads the same text: it has no timestamps and no exemplars, and the last line is a
comment there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sim.watching.circumstances import over
from sim.watching.watcher import LASTING, LATEST, Watcher, percentiles

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A family of samples."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    samples: tuple[tuple[Labels, float], ...]
    unit: str = ""


def text_of(watcher: Watcher, requests: int) -> str:
    """The text, with its end mark.  Values that are not known have no sample."""
    look = watcher.course.look
    job: Labels = () if look is None else (("flink_job", look.name),)
    return "".join(line for metric in _metrics(watcher, requests) for line in _lines(metric, job)) + "# EOF\n"


def _metrics(watcher: Watcher, requests: int) -> Iterator[Metric]:
    course, forecast = watcher.course, watcher.course.forecast
    counts = course.counts
    p50, p90 = percentiles(watcher.recent[-LATEST:])
    last = next((point for point in reversed(watcher.recent) if point.status == "COMPLETED"), None)
    yield Metric("ckptsim_answers", "gauge", "1: the JobManager answers.", (((), float(course.away_ms is None and not course.strange)),))
    yield Metric("ckptsim_looks", "counter", "Looks at the job, by how they ended.", _by(counts, "looks", "outcome"))
    yield Metric("ckptsim_requests", "counter", "Requests since this process began.", (((), float(requests)),))
    yield Metric("ckptsim_restarts", "counter", "How often the job was seen to begin again.", (((), float(counts.get("restarts", 0))),))
    yield Metric("ckptsim_missed_checkpoints", "counter", "Checkpoints that ended unseen.", (((), float(counts.get("missed", 0))),))
    yield Metric("ckptsim_checkpoints", "counter", "Checkpoints that ended, by verdict.", _by(counts, "checkpoints", "verdict"))
    if last is not None:
        yield _seconds("ckptsim_checkpoint_seconds", "The last completed checkpoint.", (((), last.duration_ms),))
        state = tuple((((("vertex", vertex),)), float(size)) for vertex, size in last.state.items())
        yield Metric("ckptsim_state_bytes", "gauge", "Full state of each vertex in it.", state, "bytes")
    yield _seconds("ckptsim_observed_seconds", f"Percentiles of the last {LATEST} checkpoints.", _both(p50, p90))
    if forecast is not None:
        yield _seconds("ckptsim_forecast_seconds", "The same, as forecast.", _both(forecast.p50_ms, forecast.p90_ms))
        yield Metric("ckptsim_forecast_factor", "gauge", "Within which factor the forecast holds.", _both(*forecast.factors))
        yield Metric("ckptsim_forecast_holds", "gauge", "0: checkpoints have left the forecast.", (((), float(course.left_ms is None)),))
    if watcher.limit is not None:
        yield _seconds("ckptsim_limit_seconds", "The limit of p90.", (((), watcher.limit),))
    if course.passes_ms is not None:
        when = (((), course.passes_ms / 1e3),)
        yield Metric("ckptsim_limit_passes_timestamp_seconds", "gauge", "When p90 passes it if state grows on.", when, "seconds")
    if watcher.rows:
        load = tuple((((("vertex", vertex),)), rate) for vertex, rate in over(watcher.rows[-LASTING:], []).load.items())
        yield Metric("ckptsim_source_records_per_second", "gauge", f"Load of each source, over the last {LASTING} looks.", load)


def _seconds(name: str, meaning: str, samples_ms: tuple[tuple[Labels, float], ...]) -> Metric:
    return Metric(name, "gauge", meaning, tuple((labels, ms / 1e3) for labels, ms in samples_ms), "seconds")


def _both(p50: float, p90: float) -> tuple[tuple[Labels, float], ...]:
    return tuple(((("percentile", name),), value) for name, value in (("50", p50), ("90", p90)))


def _by(counts: Mapping[str, int], prefix: str, label: str) -> tuple[tuple[Labels, float], ...]:
    return tuple((((label, key.partition(" ")[2]),), float(count)) for key, count in sorted(counts.items()) if key.startswith(f"{prefix} "))


def _lines(metric: Metric, job: Labels) -> Iterator[str]:
    samples = [(labels, value) for labels, value in metric.samples if math.isfinite(value)]
    if not samples:
        return
    yield f"# TYPE {metric.name} {metric.kind}\n"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}\n"
    yield f"# HELP {metric.name} {_escaped(metric.meaning)}\n"
    name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
    for labels, value in samples:
        given = ",".join(f'{key}="{_escaped(text)}"' for key, text in (*job, *labels))
        yield f"{name}{{{given}}} {value:.12g}\n" if given else f"{name} {value:.12g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
