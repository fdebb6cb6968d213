"""The charts of a comparison: a panel per strategy on common axes, or a line per strategy; axes in words with units."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.analysis.number_texts import ms_text
from sim.analysis.strategies.kinds_of_checkpoints import first_uploads
from sim.analysis.strategies.path import PARTS
from sim.analysis.strategies.picture import alike
from sim.analysis.strategies.summary import Tables
from sim.report.charts.chart import INK, Chart, ChartAxis, Panel, chart

if TYPE_CHECKING:
    import pandas as pd

PHASES: dict[str, tuple[str, ...]] = {
    "behind data": ("queue",),
    "until the alignment timeout": ("timeout",),
    "alignment": ("alignment",),
    "before the barrier": ("pre_barrier",),
    "synchronous": ("sync",),
    "asynchronous": ("async_queue", "async_work", "upload", "channel_state"),
    "messages": ("messages",),
}
"""Title of a phase -> kinds of wait in it."""
PHASE_COLOURS = {phase: number for number, phase in enumerate(PHASES)}
TIME = "time"
"""Charts through the time of a run are zoomed and read together."""
APART = 20.0
"""What is larger by more than this factor hides the others: they have a scale of their own."""
_MOST_BARS = 150
"""More checkpoints than that are drawn as their means over stretches of time."""


def phase_of(part: str) -> str:
    """The phase of a part of a critical path; writing _metadata is one of messages."""
    kind = PARTS.get(part, "messages")
    return next(phase for phase, kinds in PHASES.items() if kind in kinds)


def phases(runs: Mapping[str, Tables], end_s: float | None = None) -> Chart | None:
    """Durations of checkpoints, stacked by phase of their critical path: a panel per strategy.  None: no checkpoint is over.

    Panels share one scale.  One whose bars would not be seen on it has its own, in milliseconds, and says so.
    A first upload would hide all others: the title of its panel says how long it took.  `end_s`: where the axis of time ends.
    """
    stacks = {name: stack for name, tables in runs.items() if not (stack := _stack(tables)).empty}
    if not stacks:
        return None
    highest = max(float(stack.sum(axis="columns").max()) for stack in stacks.values())
    marks: list[dict[str, Any]] = []
    panels = []
    for number, (name, stack) in enumerate(stacks.items()):
        longest = float(stack.sum(axis="columns").max())
        is_low = longest < highest / APART
        marks += _bars(number, stack, 1e3 if is_low else 1.0)
        scale = f": at most {ms_text(1e3 * longest)}, on a scale of its own" if is_low else ""
        top = 1.05 * (1e3 * longest if is_low else highest) or 1.0
        x = ChartAxis("trigger [s since the start]" if number == len(stacks) - 1 else "", low=0.0 if end_s else None, high=end_s)
        panels.append(
            Panel(f"{name}{scale}{_first_upload(runs[name])}", x, ChartAxis("milliseconds" if is_low else "seconds", low=0.0, high=top))
        )
    return chart(marks, panels, colours=PHASE_COLOURS, linked=TIME if end_s else "")


def _bars(panel: int, stack: pd.DataFrame, scale: float) -> Iterator[dict[str, Any]]:
    """A bar per checkpoint, each phase upon the one before."""
    places = stack.index.to_numpy(dtype=float)
    half = 0.4 * float(np.diff(places).min()) if len(places) > 1 else 0.5
    for place, (_, row) in zip(places, stack.iterrows(), strict=True):
        end, total_s = 0.0, float(row.sum())
        for phase in PHASES:
            if row[phase] <= 0:
                continue
            text = f"{phase}: {ms_text(1e3 * row[phase])} of {ms_text(1e3 * total_s)}, triggered at {place:.6g} s"
            yield {
                "panel": panel, "series": phase, "shape": "box", "x": place - half, "x2": place + half, "y": end * scale,
                "y2": (end + row[phase]) * scale, "text": text,
            }  # fmt: skip
            end += row[phase]


def lines(
    curves: Mapping[str, pd.Series[float]], quantity: str, *, triggers: Collection[float] = (), failures: Collection[float] = (),
    warmup_s: float = 0.0, end_s: float | None = None,
) -> Chart:  # fmt: skip
    """A line per strategy through time; those that are identical are one line.  Failures are vertical lines, triggers ticks below.

    Curves that are far lower than others have a panel, and a scale, of their own.
    """
    distinct = alike(curves)
    titles = {name: " = ".join(names) + (" (identical)" if len(names) > 1 else "") for name, names in distinct.items()}
    scales = list(_of_one_scale({name: float(curves[name].max()) for name in distinct}))
    marks: list[dict[str, Any]] = []
    panels = []
    for number, (names, most) in enumerate(scales):
        if warmup_s:
            marks.append({"panel": number, "series": "warm-up", "shape": "band", "x": 0.0, "x2": warmup_s})
        for name in names:
            points = zip(curves[name].index, curves[name], strict=True)
            marks += [{"panel": number, "series": titles[name], "shape": "line", "x": at_s, "y": value} for at_s, value in points]
        marks += [{"panel": number, "series": "failure", "shape": "rule", "x": at_s} for at_s in sorted(failures)]
        if number == len(scales) - 1:
            marks += [{"panel": number, "series": "checkpoint triggered", "shape": "tick", "x": at_s} for at_s in triggers]
        title = (
            ""
            if len(scales) == 1
            else f"{', '.join(titles[name] for name in names)}: on a scale of {'its' if len(names) == 1 else 'their'} own"
        )
        x = ChartAxis("simulated time [s]" if number == len(scales) - 1 else "", low=0.0 if end_s else None, high=end_s)
        panels.append(Panel(title, x, ChartAxis(quantity, low=0.0, high=1.08 * most or 1.0)))
    colours = dict.fromkeys(("failure", "checkpoint triggered", "warm-up"), INK)
    return chart(
        marks, panels, colours={title: number for number, title in enumerate(titles.values())} | colours, linked=TIME if end_s else ""
    )


def _of_one_scale(most: Mapping[str, float]) -> Iterator[tuple[list[str], float]]:
    """Names whose largest values can be seen on one scale, and the largest of them; those that are always zero are with the lowest."""
    left = dict(most)
    while left:
        highest = max(left.values())
        names = [name for name, value in left.items() if value * APART >= highest or value <= 0]
        if any(0 < value * APART < highest for value in left.values()):
            names = [name for name in names if left[name] > 0]
        yield names, highest
        left = {name: value for name, value in left.items() if name not in names}


def _stack(tables: Tables) -> pd.DataFrame:
    """By time of the trigger [s]: seconds per phase, of checkpoints that are over, without first uploads."""
    import pandas as pd

    kinds = {kind: phase for phase, kinds in PHASES.items() for kind in kinds}
    rows = tables["path"][~tables["path"]["acknowledged"].astype(bool)]
    keys = [name for name in ("x_job", "id") if name in rows]
    uploads = tables["checkpoints"].loc[first_uploads(tables["checkpoints"]), keys]
    rows = rows[~pd.MultiIndex.from_frame(rows[keys]).isin(pd.MultiIndex.from_frame(uploads))]
    spent = rows.assign(phase=rows["part"].map(PARTS).map(kinds), seconds=rows["duration"] / 1e9)
    stack = spent.pivot_table(index=keys, columns="phase", values="seconds", aggfunc="sum", fill_value=0.0)
    stack = stack.reindex(columns=list(PHASES), fill_value=0.0)
    triggers = tables["checkpoints"].set_index(keys)["trigger_timestamp"] / 1e3
    stack.index = triggers.loc[stack.index].to_numpy() if len(stack) else stack.index
    if len(stack) <= _MOST_BARS:
        return stack
    span = (stack.index.max() - stack.index.min()) / _MOST_BARS
    return stack.groupby((stack.index // span) * span).mean()


def _first_upload(tables: Tables) -> str:
    rows = tables["checkpoints"]
    durations = rows.loc[first_uploads(rows), "end_to_end_duration"]
    return "" if durations.empty else f" (not drawn: first upload, {ms_text(float(durations.iloc[0]))})"
