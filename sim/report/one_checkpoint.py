"""One checkpoint as a figure: what every subtask did between the trigger and its acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.report.figures import PHASES, SMALL
from sim.report.svg import COLOURS, INK, figure, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PHASES_OF = {
    "start_delay": ("behind data", "until its first barrier"),
    "aligning": ("alignment", "alignment"),
    "x_pre_barrier": ("before the barrier", "before the barrier"),
    "sync_duration": ("synchronous", "synchronous"),
    "async_duration": ("asynchronous", "asynchronous"),
}
"""Column of subtasks -> (phase whose colour it has, its name)."""
MOST_ROWS = 40


def one_checkpoint(subtasks: pd.DataFrame, title: str) -> Figure:
    """`subtasks`: the rows of one checkpoint.  Of many subtasks the slowest are drawn."""
    done = subtasks[subtasks["status"] == "completed"].copy()
    spent = done["start_delay"] + done["x_pre_barrier"] + done["sync_duration"] + done["async_duration"]
    # An unaligned alignment goes on beside the later phases: only what lies before them is drawn.
    done["aligning"] = (done["end_to_end_duration"] - spent).clip(lower=0).clip(upper=done["alignment_duration"])
    rows = done.nlargest(MOST_ROWS, "end_to_end_duration").sort_index()
    names = [f"{vertex}[{index}]" for vertex, index in zip(rows["vertex"], rows["index"], strict=True)][::-1]
    drawn = figure(1.2 + 0.2 * max(3, len(rows)))
    axes = drawn.subplots()
    ends = rows["start_delay"].to_numpy() * 0.0
    for column, (phase, name) in _PHASES_OF.items():
        widths = rows[column].to_numpy()[::-1] / 1e3
        if widths.sum() > 0:
            axes.barh([label(name, 24) for name in names], widths, left=ends, color=COLOURS[list(PHASES).index(phase)], label=name)
        ends = ends + widths
    axes.set_xlabel("seconds since the trigger", fontsize=SMALL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    left_out = f", the slowest {MOST_ROWS} of {len(done)} subtasks" if len(done) > MOST_ROWS else ""
    axes.set_title(label(f"{title}{left_out}", 90), loc="left", fontsize=SMALL, color=INK)
    drawn.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=SMALL, labelcolor=INK)
    return drawn
