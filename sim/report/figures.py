"""The figures of a comparison: a panel per strategy on common axes, or a line per strategy; axes in words with units."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sim.analysis.number_texts import ms_text
from sim.analysis.strategies.first_upload import first_uploads
from sim.analysis.strategies.path import PARTS
from sim.analysis.strategies.picture import alike
from sim.analysis.strategies.summary import Tables
from sim.report.svg import COLOURS, GRID, INK, figure, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
SMALL = 9
"""Points: the size of text in figures."""
_LONG_LABEL = 28
"""Characters: two columns of longer labels are wider than the figure."""
_LOW = 1 / 20
"""Bars below this share of the highest one look like the axis: their panel has a scale of its own, in milliseconds."""
_MOST_BARS = 150
"""More checkpoints than that are drawn as their means over stretches of time."""


def phase_of(part: str) -> str:
    """The phase of a part of a critical path; writing _metadata is one of messages."""
    kind = PARTS.get(part, "messages")
    return next(phase for phase, kinds in PHASES.items() if kind in kinds)


def phases(runs: Mapping[str, Tables]) -> Figure | None:
    """Durations of checkpoints, stacked by phase of their critical path: a panel per strategy.  None: no checkpoint is over.

    Panels share one scale.  One whose bars would not be seen on it has its own, in milliseconds, and says so.
    A first upload would hide all others: the title of its panel says how long it took.
    """
    stacks = {name: stack for name, tables in runs.items() if not (stack := _stack(tables)).empty}
    if not stacks:
        return None
    drawn = figure(0.9 + 1.35 * len(stacks))
    panels = drawn.subplots(len(stacks), sharex=True, squeeze=False)[:, 0]
    highest = max(float(stack.sum(axis="columns").max()) for stack in stacks.values())
    present = [phase for phase in PHASES if any(stack[phase].sum() > 0 for stack in stacks.values())]
    for axes, (name, stack) in zip(panels, stacks.items(), strict=True):
        places = stack.index.to_numpy(dtype=float)
        width = 0.8 * float(np.diff(places).min()) if len(places) > 1 else 1.0
        longest = float(stack.sum(axis="columns").max())
        low = longest < _LOW * highest
        ends = np.zeros(len(stack))
        for phase in present:
            heights = stack[phase] * (1e3 if low else 1.0)
            axes.bar(places, heights, width, bottom=ends, color=COLOURS[list(PHASES).index(phase)], label=phase, lw=0)
            ends += heights.to_numpy()
        title = label(name, 50) + (f": at most {ms_text(1e3 * longest)}, on a scale of its own" if low else "") + _first_upload(runs[name])
        axes.set_title(title, loc="left", fontsize=SMALL, color=INK)
        style(axes, "milliseconds" if low else "seconds")
        axes.set_ylim(0, 1.05 * (1e3 * longest if low else highest) or 1.0)
    panels[-1].set_xlabel("trigger [s since the start]", fontsize=SMALL, color=INK)
    _legend(drawn, panels[0])
    return drawn


def lines(
    curves: Mapping[str, pd.Series[float]],
    quantity: str,
    *,
    triggers: Collection[float] = (),
    failures: Collection[float] = (),
    warmup_s: float = 0.0,
) -> Figure:
    """A line per strategy through time; those that are identical are one line.  Failures are vertical lines, triggers ticks below."""
    distinct = alike(curves)
    drawn = figure(2.4 + 0.18 * (len(distinct) + 3))  # a legend in one column has room
    axes = drawn.subplots()
    for i, (name, names) in enumerate(distinct.items()):
        title = " = ".join(label(same) for same in names) + (" (identical)" if len(names) > 1 else "")
        dash = ("-", "--", "-.", ":")[(i + i // len(COLOURS)) % 4]  # no pair of colour and dash comes twice among 32
        axes.plot(curves[name].index, curves[name], dash, color=COLOURS[i % len(COLOURS)], lw=1.4, label=title)
    for k, at_s in enumerate(sorted(failures)):
        axes.axvline(at_s, color=INK, lw=1, ls=(0, (2, 2)), label="failure" if k == 0 else None)
    style(axes, quantity)
    axes.set_ylim(0, 1.08 * max((float(curve.max()) for curve in curves.values()), default=0.0) or 1.0)
    if triggers:
        axes.plot(list(triggers), [0.0] * len(triggers), "|", color=INK, ms=6, clip_on=False, label="checkpoint triggered")
    if warmup_s:
        axes.axvspan(0, warmup_s, color=GRID, alpha=0.35, lw=0, label="warm-up")
    axes.set_xlabel("simulated time [s]", fontsize=SMALL, color=INK)
    _legend(drawn, axes)
    return drawn


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


def style(axes: Axes, title: str) -> None:
    """The style of reports; `title` is the vertical axis in words."""
    axes.set_ylabel(title, fontsize=SMALL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK)
    axes.grid(visible=True, axis="y", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.yaxis.set_major_formatter("{x:g}")


def _legend(drawn: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 1 if max(map(len, labels), default=0) > _LONG_LABEL else 2
    drawn.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=SMALL, labelcolor=INK)
