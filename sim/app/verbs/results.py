"""Results as Python objects: tables, plots, explanations, and progress in notebooks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.app.report.figures import (
    QUANTITIES,
    PlottedQuantity,
    curves_of,
    failures_s,
    lines,
    one_checkpoint,
    phases,
    triggers_s,
    with_moments,
)
from sim.app.verbs.common import Displayed, Embedded, Notebook, Picture
from sim.model.scenario import Backtest
from sim.results.charts import Chart, to_figure
from sim.results.columns import TABLES
from sim.results.formats import TextTable
from sim.results.page import Page, html
from sim.results.side_by_side import texts
from sim.runtime.result import Result
from sim.studies.comparison import Comparison, DecidingAssumption

if TYPE_CHECKING:
    from sim.app.verbs.explain import Explanation
    from sim.app.verbs.run import RunOutcome
    from sim.studies.run_folder import Runs


# ---- Plots.


class Plots:
    """Plots of results (``results.plot``).  Each method draws the first run of every strategy.  ValueError: nothing to draw."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._runs = {name: found[0].tables for name, found in comparison.results.items()}

    def durations(self) -> Picture:
        """Plot a bar per checkpoint, stacked by the phases of its critical path, with a panel per strategy."""
        return _drawn(phases(self._runs), "durations of checkpoints by phase")

    def timeline(self, checkpoint: int | None = None, *, strategy: str | None = None) -> Picture:
        """Plot the phases of every subtask in one checkpoint, from the trigger to its acknowledgement.

        The default is the slowest checkpoint of the first strategy.  KeyError: no such strategy or checkpoint.
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
        drawn = one_checkpoint(with_moments(subtasks[subtasks["id"] == number]), f"checkpoint {number} ({name})")
        return Picture(to_figure(drawn), f"checkpoint {number}")

    def throughput(self) -> Picture:
        """Plot records per second at the sinks over time."""
        return self._lines(QUANTITIES["throughput"])

    def lag(self) -> Picture:
        """Plot the lag of the sources [s] over time."""
        return self._lines(QUANTITIES["lag"])

    def in_flight(self) -> Picture:
        """Plot the data in queues [MB] over time."""
        return self._lines(QUANTITIES["in_flight"])

    def back_pressure(self) -> Picture:
        """Plot the back-pressure of the most back-pressured vertex [% of time] over time."""
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
            curves,
            quantity.unit,
            triggers=triggers_s(self._runs),
            failures=failures_s(self._runs),
            warmup_s=self._comparison.warmup_s,
        )
        return Picture(to_figure(drawn), f"{quantity.title} through time")


def _drawn(chart: Chart | None, caption: str) -> Picture:
    """ValueError: there is no chart."""
    if chart is None:
        raise ValueError("no checkpoint has finished: there is nothing to draw")
    return Picture(to_figure(chart), caption)


# ---- Explanations and animations of studies and results.


class RunAgain:
    """Base class for `explain` and `player`, which run the first replication of each combination again with observers."""

    def explain(self, checkpoint: int | None = None, *, strategy: str | None = None) -> Explanation:
        """Explain where a checkpoint spent its time, and why.

        `checkpoint`: its id; None: the median and the slowest.  `strategy`: by default, all.  The runs made for this are not
        stored.

        OptionError (a ValueError): no such strategy.  LookupError: no such checkpoint.
        """
        from sim.app.verbs.explain import explain_runs

        return explain_runs(self._again, checkpoint, strategy=strategy, listener=Notebook())

    def player(self, checkpoint: int | None = None, *, strategy: str | None = None, height: int = 720) -> Embedded:
        """Return one checkpoint as an animation for display below a notebook's cell: bytes, barriers and phases of tasks.

        `checkpoint`: of the first strategy (default: its slowest).  The others show the one that is triggered closest in
        time.  `strategy`: only this one.  `height`: in pixels.

        OptionError (a ValueError): no such strategy.  LookupError: no such checkpoint.
        """
        from sim.app.verbs.pictures import player_page

        page = player_page(self._again, checkpoint, strategy, listener=Notebook())
        return Embedded(html(page), height)

    @property
    @abstractmethod
    def _again(self) -> Runs:
        """Return the combinations, to be run with observers."""


# ---- Results of a study.


@dataclass(frozen=True, repr=False, eq=False)
class Results(Displayed, RunAgain):
    """The results of a study.  A strategy is a combination; it has a run per replication.

    Tables have the columns `strategy` and `replication`, then those that `ckptsim schema --results` lists.  Their
    ``attrs["units"]`` has the unit of each column: ms and bytes in most tables, s in `series`, ns in `path`.
    """

    comparison: Comparison
    assumptions: tuple[str, ...] = ()
    compared: RunOutcome | None = None  # result of the verb `run`; None: several studies were compared
    backtest: Backtest | None = None  # of an imported job

    @staticmethod
    def of(compared: RunOutcome) -> Results:
        """Return the results of one study."""
        from sim.app.report.results_page import assumptions

        request = compared.request
        return Results(
            compared.comparison, assumptions(request.study, request.origin.text), compared, request.study.backtest
        )

    @property
    def strategies(self) -> list[str]:
        return list(self.comparison.results)

    @property
    def question(self) -> str:
        return self.comparison.question

    @property
    def table(self) -> pd.DataFrame:
        """Return a row per strategy, after the warm-up; column names and ``attrs["units"]`` have units (`end_to_end_p50_ms`)."""
        return self.comparison.table

    @property
    def verdict(self) -> str:
        """Return a sentence on the main difference between strategies, and its cause."""
        return self.comparison.verdict

    @property
    def errors(self) -> dict[str, str]:
        """Return {strategy: reason} for strategies without a result."""
        return self.comparison.errors

    @property
    def violations(self) -> dict[str, tuple[str, ...]]:
        """Return {strategy: descriptions of the invariants that its runs violated}."""
        return self.comparison.violations

    @property
    def runs(self) -> dict[str, tuple[Result, ...]]:
        """Return {strategy: runs}, a run per replication, with journal and manifest."""
        return self.comparison.results

    @property
    def deciding(self) -> pd.DataFrame:
        """Return a row per unspecified value that would change the results.

        Columns: `key`, the `assumed` and the `tried` value, the quantity that it `moves`, `before_ms` and `after_ms`.
        """
        names = [field.name for field in fields(DecidingAssumption)]
        return pd.DataFrame([asdict(assumption) for assumption in self.comparison.deciding], columns=names)

    @property
    def checkpoints(self) -> pd.DataFrame:
        """Return a row per checkpoint: `id`, `status`, `end_to_end_duration` [ms], `persisted_data` [bytes], ..."""
        return self.frame("checkpoints")

    @property
    def subtasks(self) -> pd.DataFrame:
        """Return a row per checkpoint and subtask: `start_delay`, `alignment_duration`, `async_duration` [ms], ..."""
        return self.frame("subtasks")

    @property
    def series(self) -> pd.DataFrame:
        """Return a row per second and vertex: rates, queues, back-pressure, lag."""
        return self.frame("series")

    @property
    def commits(self) -> pd.DataFrame:
        """Return a row per commit of a transactional sink."""
        return self.frame("commits")

    @property
    def recoveries(self) -> pd.DataFrame:
        """Return a row per restart: lost work, when the job ran again, when it had caught up."""
        return self.frame("recoveries")

    @property
    def consequences(self) -> pd.DataFrame:
        """Return a row per strategy, as texts: when output became visible, the cost of failures, how the job ended.

        Empty if there were no commits, failures or job end.
        """
        found = self.comparison.consequences_texts()
        return pd.DataFrame() if found is None else pd.DataFrame(found[1], columns=found[0])

    @property
    def stored(self) -> dict[str, pd.DataFrame]:
        """Return {title: table of texts}: planned restarts, content of checkpoint storage, dependencies of snapshots."""
        return {part.title: pd.DataFrame(part.rows, columns=part.header) for part in self.comparison.stored}

    @property
    def plot(self) -> Plots:
        """Return the plots, e.g. ``results.plot.durations()``, ``results.plot.timeline(7)``."""
        return Plots(self.comparison)

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table of all runs, by its name in `ckptsim schema --results`.

        ``attrs["units"]`` has the units of its columns.  A checkpoint that is still in progress has no duration (NaN).
        """
        parts = []
        for strategy, runs in self.runs.items():
            for number, run in enumerate(runs):
                part = run.tables[name].copy()
                part.insert(0, "strategy", strategy)
                part.insert(1, "replication", number)
                parts.append(part)
        full = [part for part in parts if len(part)] or parts[:1]
        rows = pd.concat(full, ignore_index=True) if full else pd.DataFrame()
        if name == "checkpoints" and full:
            rows["end_to_end_duration"] = rows["end_to_end_duration"].where(rows["status"] != "IN_PROGRESS")
        rows.attrs["units"] = {column.name: column.unit for column in TABLES[name] if column.unit}
        return rows

    def report(self, file: str | PathLike[str]) -> Path:
        """Write the results as a self-contained HTML file, and return its path."""
        from sim.app.verbs.findings import write_page

        write_page(self._page(), Path(file))
        return Path(file)

    def show(self, height: int = 800) -> Embedded:
        """Return the report for display below a notebook's cell, with its interactive charts.  `height`: in pixels."""
        return Embedded(html(self._page()), height)

    def _page(self) -> Page:
        from sim.app.report.results_page import comparison_page

        summary: dict[str, Any] = {"violations": self.violations}
        if (outcome := self.compared) is not None:
            summary |= {
                "command": outcome.request.command(outcome.folder),
                "findings": outcome.findings,
                "notes": self.comparison.notes,
                "outcomes": outcome.outcomes,
            }
        return comparison_page(self.comparison, self.assumptions, self.backtest, summary)

    def __getitem__(self, strategy: str) -> Results:
        """Return the results of one strategy."""
        if strategy not in self.runs:
            raise KeyError(f"{strategy!r}: there are {', '.join(self.strategies)}")
        return replace(self, comparison=replace(self.comparison, results={strategy: self.runs[strategy]}, errors={}))

    def _ipython_key_completions_(self) -> list[str]:
        """Return what completes ``results["``."""
        return self.strategies

    def __iter__(self) -> Iterator[str]:
        return iter(self.strategies)

    def __len__(self) -> int:
        """Return the number of strategies."""
        return len(self.runs)

    def _parts(self) -> Iterator[str | TextTable]:
        yield self.question
        if self.runs:
            yield TextTable("", *texts(self.comparison.strategies))
        yield from (self.verdict, *map(str, self.comparison.deciding))
        if self.runs and (found := self.comparison.consequences_texts()) is not None:
            yield from (TextTable("", *found), self.comparison.consequences_sentence)
        broke = "a run broke what checkpoints promise"
        yield from (f"{name}: no result: {error.splitlines()[0]}" for name, error in self.errors.items())
        yield from (f"{name}: {broke}: {stories[0].splitlines()[0]}" for name, stories in self.violations.items())

    @property
    def _again(self) -> Runs:
        """Return the first replications, to be run again with observers."""
        from sim.studies.run_folder import Runs

        return Runs(self.comparison.name, self.question, {name: runs[0].scenario for name, runs in self.runs.items()})
