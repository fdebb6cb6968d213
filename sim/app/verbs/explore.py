"""Settings on sliders, for notebooks: a combination of a study is simulated when it is chosen for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import anywidget
import traitlets

if TYPE_CHECKING:
    import pandas as pd

    from sim.app.verbs.results import Results

COLUMNS = ("end_to_end_p50_ms", "end_to_end_max_ms", "persisted_bytes", "throughput_per_second", "throughput_change")
"""Columns of the answer, as in the table of results."""


class Explorer(anywidget.AnyWidget):  # type: ignore[misc]  # it has no types
    """A slider for each axis of a study.  The browser draws it with `sim/results/explore.js`.

    The browser sets `chosen`, which has the value of each axis, joined by line breaks.  The answer is then in `points`.
    """

    _esm = (files("sim.results") / "explore.js").read_text(encoding="utf-8")
    axes = traitlets.Dict().tag(sync=True)
    points = traitlets.Dict().tag(sync=True)  # values, as in `chosen` -> {column: number}, or {"error": text}
    chosen = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        axes: Mapping[str, Sequence[str]],
        run: Callable[[str], Results],
        rows: pd.DataFrame | None = None,
    ) -> None:
        super().__init__(axes=axes)
        self.run = run
        if rows is not None:
            self._add(rows)

    @traitlets.observe("chosen")  # type: ignore[untyped-decorator]
    def _simulate(self, _: object) -> None:
        if self.chosen not in self.points:
            results = self.run(self.chosen)
            self.points |= {self.chosen: {"error": text} for text in results.errors.values()}  # noqa: B035 - at most one
            self._add(results.table.assign(**dict(zip(self.axes, self.chosen.split("\n"), strict=True))))

    def _add(self, rows: pd.DataFrame) -> None:
        """Add rows of a table of results, which has a column per axis."""
        self.points |= {
            "\n".join(str(row[axis]) for axis in self.axes): {
                name: row[name] for name in COLUMNS if row[name] == row[name]
            }  # not NaN
            for row in rows.to_dict("records")
        }
