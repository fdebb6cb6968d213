"""Pictures of results: axes in words with units, the same colours everywhere, told apart with any colour vision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.analysis.strategies.picture import where_time_goes
from sim.report.charts.still import still
from sim.report.figures import lines, phases
from sim.report.one_checkpoint import one_checkpoint
from sim.report.through_time import QUANTITIES, PlottedQuantity, curves_of, failures_s, triggers_s
from sim.verbs.display import Picture

if TYPE_CHECKING:
    from sim.comparison.comparison import Comparison


class Plots:
    """The pictures of results (``results.plot``).  Each method draws the first run of every strategy.  ValueError: nothing to draw."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._runs = {name: found[0].tables for name, found in comparison.results.items()}

    def durations(self) -> Picture:
        """A bar per checkpoint, stacked by the phases of its critical path; a panel per strategy."""
        drawn = phases(self._runs)
        if drawn is None:
            raise ValueError("no checkpoint is over: there is nothing to draw")
        return Picture(still(drawn), "durations of checkpoints by phase")

    def timeline(self, checkpoint: int | None = None, *, strategy: str | None = None) -> Picture:
        """One checkpoint: what every subtask did between the trigger and its acknowledgement.

        By default the slowest of the first strategy.  KeyError: no such strategy or checkpoint.
        """
        name = self._strategy(strategy)
        rows, subtasks = self._runs[name]["checkpoints"], self._runs[name]["subtasks"]
        known = sorted(set(subtasks["id"][subtasks["status"] == "completed"]))
        if not known:
            raise ValueError(f"{name}: no checkpoint has an acknowledgement: there is nothing to draw")
        slowest = rows[rows["id"].isin(known)].sort_values("end_to_end_duration")["id"].iloc[-1]
        number = int(slowest if checkpoint is None else checkpoint)
        if number not in known:
            raise KeyError(f"{name}: no checkpoint {number}: there are {known[0]} to {known[-1]}")
        drawn = one_checkpoint(subtasks[subtasks["id"] == number], f"checkpoint {number} ({name})")
        return Picture(still(drawn), f"checkpoint {number}")

    def parts(self) -> Picture:
        """A bar per strategy: the parts of its median checkpoint."""
        return Picture(where_time_goes(self._comparison.strategies), "parts of the median checkpoint")

    def throughput(self) -> Picture:
        """Records per second at the sinks, through time."""
        return self._lines(QUANTITIES["throughput"])

    def lag(self) -> Picture:
        """How far the sources are behind [s], through time."""
        return self._lines(QUANTITIES["lag"])

    def in_flight(self) -> Picture:
        """Data in queues [MB], through time."""
        return self._lines(QUANTITIES["in_flight"])

    def back_pressure(self) -> Picture:
        """The share of its time that the most back-pressured vertex waits [%], through time."""
        return self._lines(QUANTITIES["back_pressure"])

    def __repr__(self) -> str:
        return f"Plots: {', '.join(self._names())}"

    def _names(self) -> Sequence[str]:
        return [name for name in dir(self) if not name.startswith("_")]

    def _strategy(self, strategy: str | None) -> str:
        if not self._runs:
            raise ValueError("no strategy has a result: there is nothing to draw")
        if strategy is not None and strategy not in self._runs:
            raise KeyError(f"{strategy!r}: there are {', '.join(self._runs)}")
        return next(iter(self._runs)) if strategy is None else strategy

    def _lines(self, quantity: PlottedQuantity) -> Picture:
        self._strategy(None)
        curves = curves_of(quantity, self._comparison)
        drawn = lines(
            curves, quantity.unit, triggers=triggers_s(self._runs), failures=failures_s(self._runs), warmup_s=self._comparison.warmup_s
        )
        return Picture(still(drawn), f"{quantity.title} through time")
