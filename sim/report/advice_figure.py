"""The figure of an advice: what every setting that was tried gives for checkpoints and for recovery, against the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sim.analysis.number_texts import ms_text
from sim.analysis.sweeps.measure import unit_of_ticks
from sim.report.charts.chart import INK, Chart, ChartAxis, Panel, chart
from sim.report.figures import APART
from sim.report.page import Block
from sim.units import parse_duration

X, Y = "recovery_ms", "checkpoint_ms"


def advice_block(data: Mapping[str, Any]) -> Block | None:
    """`data`: what `ckptsim advise --json` gives.  None: fewer than two settings have a completed checkpoint.

    Where fewer than two have a recovery that ends, checkpoints are drawn over the interval.
    """
    drawn = trade_off_chart(data)
    if drawn is None:
        return _by_interval(data)
    settings = list(data["settings"])
    left_out = len(settings) - len(_drawn(settings))
    not_drawn = f" Not drawn: {left_out} without a completed checkpoint or a recovery that ends within its run." if left_out else ""
    limits = [f"{name} at most {ms_text(bound)}" for name, key in (("recovery", X), ("checkpoints", Y)) if (bound := _limit(data, key))]
    shaded = f" Shaded: beyond the limits ({', '.join(limits)})." if limits else ""
    return Block(
        "Checkpoints against recovery", chart=drawn,
        caption=f"A point per setting that was tried: 99th percentile of checkpoints over the time of a recovery.{shaded}{not_drawn}",
    )  # fmt: skip


def _by_interval(data: Mapping[str, Any]) -> Block | None:
    rows = [row for row in data.get("settings", ()) if row.get(Y) is not None]
    bound = _limit(data, Y)
    shaded = f" Shaded: beyond the limit (checkpoints at most {ms_text(bound)})." if bound else ""
    limits = {**data.get("limits", {}), X: None}
    known = {key: _with_interval(data[key]) for key in ("today", "advised") if data.get(key)}
    drawn = trade_off_chart({"settings": list(map(_with_interval, rows)), "limits": limits, **known}, "interval")
    caption = f"A point per setting that was tried: 99th percentile of checkpoints over their interval. No recovery ended.{shaded}"
    return None if drawn is None else Block("Checkpoints against their interval", chart=drawn, caption=caption)


def _with_interval(row: Mapping[str, Any]) -> dict[str, Any]:
    """A setting with its interval [ms] in the place of its recovery."""
    return {**row, X: parse_duration(row["interval"]) / 1e6}


def trade_off_chart(data: Mapping[str, Any], across: str = "recovery") -> Chart | None:
    """A point per setting, by what it sets beside the interval; limits are shaded, today and the advised one have a ring."""
    points = _drawn(list(data.get("settings", ())))
    if len(points) < 2:
        return None
    x, y = (_axis(title, [row[key] for row in points], _limit(data, key)) for title, key in ((across, X), ("checkpoints, p99", Y)))
    marks: list[dict[str, Any]] = []
    for (_, size, near), side in ((x, "x"), (y, "y")):
        if near is not None:
            marks.append({"series": "beyond a limit", "shape": "band", side: near / size})
    marks += [{"series": row["protocol"], "x": row[X] / x[1], "y": row[Y] / y[1], "text": _text(row, across)} for row in points]
    for key in ("today", "advised"):
        row = data.get(key)
        if row and _has_durations(row):
            name = f"{key}: {row['protocol']}, every {row['interval']}"
            marks.append({"series": name, "shape": "ring", "x": row[X] / x[1], "y": row[Y] / y[1], "text": _text(row, across)})
    protocols = {name: number for number, name in enumerate(dict.fromkeys(row["protocol"] for row in points))}
    inks = {str(mark["series"]): INK for mark in marks if mark.get("shape") in {"ring", "band"}}
    return chart(marks, [Panel("", x[0], y[0], height=260.0)], colours=protocols | inks)


def _text(row: Mapping[str, Any], across: str) -> str:
    return f"{row['protocol']}, every {row['interval']}: checkpoints {ms_text(row[Y])}, {across} {ms_text(row[X])}"


def _drawn(settings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in settings if _has_durations(row)]


def _has_durations(row: Mapping[str, Any]) -> bool:
    """Whether it has both durations; 0 ms is one."""
    return row.get(X) is not None and row.get(Y) is not None


def _limit(data: Mapping[str, Any], key: str) -> float | None:
    bound = data.get("limits", {}).get(key)
    return None if bound is None else float(bound)


def _axis(title: str, values: Sequence[float], limit: float | None) -> tuple[ChartAxis, float, float | None]:
    """The axis, the size of its unit, and the limit if it is near: a far one would push all points together, and breaks nothing."""
    low, high = min(values), max(values)
    near = limit if limit is not None and limit < 3 * high else None
    low, high = min(low, near or low), max(high, near or high)
    ending, size = unit_of_ticks("_ms", high)
    is_log = high > APART * low > 0  # a logarithm has no place for 0 ms
    ends = (low / 1.5, high * 1.5) if is_log else (0.0, high * 1.1 or 1.0)
    return ChartAxis(title, ending, ends[0] / size, ends[1] / size, is_log=is_log), size, near
