"""Results from Python: tables, plots, runs again, progress."""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from sim.app.report.figures import (
    QUANTITIES,
    PlottedQuantity,
    curves_of,
    failures_s,
    lines,
    one_checkpoint,
    phases,
    triggers_s,
)
from sim.app.verbs.common import Listener, Picture, paragraph, table_html, table_text
from sim.app.verbs.options import WindowOptions, documented
from sim.results.charts import still
from sim.results.pictures import plot_phase_breakdown
from sim.results.side_by_side import texts
from sim.studies.comparison import DecidingAssumption
from sim.studies.progress import Watch, no_watch

if TYPE_CHECKING:
    import pandas as pd

    from sim.app.verbs.explain import Explanation
    from sim.app.verbs.pictures import WrittenTimeline
    from sim.app.verbs.run import RunOutcome
    from sim.model.backtest import Backtest
    from sim.runtime.result import Result
    from sim.studies.comparison import Comparison
    from sim.studies.run_folder import Runs


# ---- Names that people try on our objects, and what has it here: an unknown attribute says so.


class Guessed:
    """An object that knows what is looked for under other names."""

    INSTEAD: ClassVar[Mapping[str, str]] = {}
    """Name -> what to write."""

    if not TYPE_CHECKING:  # a type checker shall know that they are not there

        def __getattr__(self, name: str) -> object:
            kind = type(self).__name__
            instead = type(self).INSTEAD.get(name)
            remedy = f": write {instead}" if instead else ""
            raise AttributeError(f"'{kind}' object has no attribute '{name}'{remedy}", name=name, obj=self)


# ---- How far the runs are: a line below the cell of a notebook, if it takes longer than two seconds.  Elsewhere nothing is shown.

PATIENCE_S = 2.0
EVERY_S = 0.5
MARK = {"ckptsim": "progress"}
"""A mark in the metadata of the line: tools that keep notebooks leave it out."""


class Notebook(Listener):
    """The progress of a verb below a cell of a notebook.  Messages of the verb are in its result."""

    def __init__(self, *, show: bool = True) -> None:
        self._show = show

    def progress(
        self,
        what: str,
        total_ns: int,
        count: int | None,
        *,
        what_each: str = "cells",
        details: Callable[[], str] = str,
    ) -> AbstractContextManager[Watch]:
        del details  # the line of a notebook is short
        return watching(what, total_ns, count, show=self._show, what_each=what_each)


@contextmanager
def watching(
    what: str, total_ns: int, count: int | None, *, show: bool = True, what_each: str = "runs"
) -> Iterator[Watch]:
    """Yields a receiver of (finished items, simulated or spent time of all [ns]).  `count` None: the number is unknown."""
    if not show or not _in_notebook():
        yield no_watch
        return
    begun = drawn = time.monotonic()
    handle: Any = None

    def watch(finished: int, simulated_ns: int) -> None:
        nonlocal drawn, handle
        now = time.monotonic()
        if now - begun < PATIENCE_S or now - drawn < EVERY_S:
            return
        drawn = now
        done = f"{finished}{'' if count is None else f' of {count}'} {what_each}"
        line = {"text/plain": line_of(what, done, simulated_ns / max(1, total_ns), now - begun)}
        if handle is None:
            handle = _display(line)
        else:
            handle.update(line, raw=True, metadata=MARK)

    try:
        yield watch
    finally:
        if handle is not None:
            handle.update({"text/plain": f"{what}: {time.monotonic() - begun:.0f} s"}, raw=True, metadata=MARK)


def line_of(what: str, done: str, share: float, passed_s: float) -> str:
    """``p4: 3 of 12 runs, 25 %, 9 s left``; what is left is known once a little is done."""
    left = f", {passed_s * (1 - share) / share:.0f} s left" if share > 0.01 else ""
    return f"{what}: {done}, {100 * min(share, 1.0):.0f} %{left}"


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this; a terminal with IPython is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _display(line: dict[str, str]) -> Any:
    from IPython.display import display

    return display(line, raw=True, metadata=MARK, display_id=True)


# ---- Pictures of results: axes in words with units, the same colours everywhere, told apart with any colour vision.


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
        return Picture(plot_phase_breakdown(self._comparison.strategies), "parts of the median checkpoint")

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
            curves,
            quantity.unit,
            triggers=triggers_s(self._runs),
            failures=failures_s(self._runs),
            warmup_s=self._comparison.warmup_s,
        )
        return Picture(still(drawn), f"{quantity.title} through time")


# ---- What can be asked of runs that take place again, to be watched closely: of a study before they are kept, and of its results.


class RunAgain:
    """Combinations of a scenario; the first replication of each is run again."""

    def explain(
        self, checkpoint: int | None = None, *, strategy: str | None = None, verify: bool = False
    ) -> Explanation:
        """Where the time of one checkpoint went, and why; by default of the median and the slowest, of every strategy.

        `verify` simulates what each part would save.  The first replication is run again, watched closely, and not kept.
        OptionError (a ValueError): no such strategy.  LookupError: no such checkpoint.
        """
        from sim.app.verbs.explain import explain_runs

        return explain_runs(self._again, checkpoint, strategy=strategy, verify=verify, listener=Notebook())

    @documented(WindowOptions)
    def timeline(self, file: str | PathLike[str], **options: Unpack[WindowOptions]) -> WrittenTimeline:
        """Write what every subtask, file and barrier did as Trace Event JSON, for ui.perfetto.dev.

        `strategy`: the first by default.  OptionError (a ValueError): no such strategy, or a window that shows nothing.
        """
        from sim.app.verbs.pictures import write_timeline

        return write_timeline(self._again, Path(file), listener=Notebook(), **options)

    @property
    @abstractmethod
    def _again(self) -> Runs:
        """The combinations, to be run and watched."""


# ---- What a study gives: a table, a sentence, pictures, and the tables of all runs.


@dataclass(frozen=True, repr=False, eq=False)
class Results(Guessed, RunAgain):
    """The results of a study: a strategy is a combination, and has a run per replication.

    Tables have the columns `strategy` and `replication`, then those of `ckptsim schema --results`; times are ms, sizes
    bytes.
    """

    INSTEAD: ClassVar[Mapping[str, str]] = {
        "summary": "results.verdict (a sentence) or results.table (a row per strategy)",
        "to_pandas": "results.table, results.checkpoints and so on: they are DataFrames",
        "to_df": "results.table, results.checkpoints and so on: they are DataFrames",
        "df": "results.table, results.checkpoints and so on: they are DataFrames",
        "to_csv": "results.save(folder), or results.table.to_csv(file)",
        "show": "results.plot.durations(), or the results themselves as the last line of a cell",
    }

    comparison: Comparison
    assumptions: tuple[str, ...] = ()
    compared: RunOutcome | None = None  # what `run` gave; None: of several studies
    backtest: Backtest | None = None  # of one imported job: its history beside its simulation

    @staticmethod
    def of(compared: RunOutcome) -> Results:
        """The results of one study."""
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
        """A row per strategy, after the warm-up; units are in the names of columns (`end_to_end_p50_ms`, `throughput_per_second`)."""
        return self.comparison.table

    @property
    def verdict(self) -> str:
        """The difference that decides, and its cause."""
        return self.comparison.verdict

    @property
    def errors(self) -> dict[str, str]:
        """Strategy -> why it has no result."""
        return self.comparison.errors

    @property
    def violations(self) -> dict[str, tuple[str, ...]]:
        """Strategy -> stories of what its runs broke of what checkpoints promise."""
        return self.comparison.violations

    @property
    def runs(self) -> dict[str, tuple[Result, ...]]:
        """Strategy -> its runs, a replication each, with journal and manifest."""
        return self.comparison.results

    @property
    def deciding(self) -> pd.DataFrame:
        """A row per assumption that decides: `key`, what is `assumed` and `tried`, what it `moves`, `before_ms` and `after_ms`."""
        import pandas as pd

        names = [field.name for field in fields(DecidingAssumption)]
        return pd.DataFrame([asdict(own) for own in self.comparison.deciding], columns=names)

    @property
    def checkpoints(self) -> pd.DataFrame:
        """A row per checkpoint: `id`, `status`, `end_to_end_duration` [ms], `persisted_data` [bytes], ..."""
        return self.frame("checkpoints")

    @property
    def subtasks(self) -> pd.DataFrame:
        """A row per checkpoint and subtask: `start_delay`, `alignment_duration`, `sync_duration`, `async_duration` [ms], ..."""
        return self.frame("subtasks")

    @property
    def tasks(self) -> pd.DataFrame:
        """A row per subtask: totals of the run."""
        return self.frame("tasks")

    @property
    def series(self) -> pd.DataFrame:
        """A row per second and vertex: rates, queues, back-pressure, lag."""
        return self.frame("series")

    @property
    def commits(self) -> pd.DataFrame:
        """A row per commit of a transactional sink."""
        return self.frame("commits")

    @property
    def recoveries(self) -> pd.DataFrame:
        """A row per restart: what was lost, when the job ran again, when it had caught up."""
        return self.frame("recoveries")

    @property
    def files(self) -> pd.DataFrame:
        """A row per file of a snapshot."""
        return self.frame("files")

    @property
    def snapshots(self) -> pd.DataFrame:
        """A row per snapshot that is kept at the end: what it depends on, what breaks with it."""
        return self.frame("snapshots")

    @property
    def restores(self) -> pd.DataFrame:
        """A row per job instance that began from a snapshot."""
        return self.frame("restores")

    @property
    def path(self) -> pd.DataFrame:
        """A row per part of the critical path of each checkpoint, times in ns."""
        return self.frame("path")

    @property
    def requests(self) -> pd.DataFrame:
        """A row per second in which an object store was asked for something, bytes among the counts."""
        return self.frame("requests")

    @property
    def consequences(self) -> pd.DataFrame:
        """A row per strategy: when output became visible, what failures cost, how the job ended; as texts.  Empty: nothing happened."""
        import pandas as pd

        found = self.comparison.consequences_texts()
        return pd.DataFrame() if found is None else pd.DataFrame(found[1], columns=found[0])

    @property
    def stored(self) -> dict[str, pd.DataFrame]:
        """Planned restarts, what is in checkpoint storage at the end, which snapshot depends on which: title -> table of texts."""
        import pandas as pd

        return {part.title: pd.DataFrame(part.rows, columns=part.header) for part in self.comparison.stored}

    @property
    def plot(self) -> Plots:
        """Pictures: ``results.plot.durations()``, ``results.plot.timeline(7)``."""
        return Plots(self.comparison)

    def frame(self, name: str) -> pd.DataFrame:
        """A table of all runs, by its name in `ckptsim schema --results`."""
        import pandas as pd

        parts = []
        for strategy, runs in self.runs.items():
            for number, run in enumerate(runs):
                part = run.tables[name].copy()
                part.insert(0, "strategy", strategy)
                part.insert(1, "replication", number)
                parts.append(part)
        full = [part for part in parts if len(part)] or parts[:1]
        return pd.concat(full, ignore_index=True) if full else pd.DataFrame()

    def report(self, file: str | PathLike[str]) -> Path:
        """Write everything as one HTML file that needs no network; returns the path."""
        from sim.app.report.results_page import ReportedResults as Reported
        from sim.app.report.results_page import comparison_page
        from sim.app.verbs.findings import write_page

        command = "" if self.compared is None else self.compared.request.command(self.compared.folder)
        first = {name: stories[0] for name, stories in self.violations.items()}
        findings, notes, outcomes = (
            ((), [], []) if (found := self.compared) is None else (found.findings, found.notes, found.outcomes)
        )
        reported = Reported(
            self.comparison,
            self.assumptions,
            command,
            first,
            self.backtest,
            findings,
            tuple(notes),
            tuple(outcomes),
            self.errors,
        )
        write_page(comparison_page(reported), Path(file))
        return Path(file)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Keep tables, journals, summary and picture in a folder, as `ckptsim run --out` does; returns it.

        ValueError: the results are of several studies.
        """
        if self.compared is None:
            raise ValueError("results of several studies are kept one by one: save each before they are compared")
        from sim.app.verbs.run import keep_comparison

        keep_comparison(replace(self.compared, comparison=self.comparison), Path(folder))
        return Path(folder)

    def __getitem__(self, strategy: str) -> Results:
        """The results of one strategy."""
        if strategy not in self.runs:
            raise KeyError(f"{strategy!r}: there are {', '.join(self.strategies)}")
        return replace(self, comparison=replace(self.comparison, results={strategy: self.runs[strategy]}, errors={}))

    def __iter__(self) -> Iterator[str]:
        return iter(self.strategies)

    def __len__(self) -> int:
        """The number of strategies."""
        return len(self.runs)

    def __repr__(self) -> str:
        rows = table_text(*texts(self.comparison.strategies)) if self.runs else ""
        found = self.comparison.consequences_texts() if self.runs else None
        return "\n\n".join(
            filter(
                None,
                [
                    rows,
                    self.verdict,
                    *map(str, self.comparison.deciding),
                    "" if found is None else table_text(*found),
                    *self._stories(),
                ],
            )
        )

    def _repr_html_(self) -> str:
        rows = table_html(*texts(self.comparison.strategies)) if self.runs else ""
        found = self.comparison.consequences_texts() if self.runs else None
        extra = "" if found is None else table_html(*found) + paragraph(self.comparison.consequences_sentence)
        return (
            paragraph(self.question)
            + rows
            + paragraph(self.verdict)
            + "".join(paragraph(str(own)) for own in self.comparison.deciding)
            + extra
            + "".join(map(paragraph, self._stories()))
        )

    @property
    def _again(self) -> Runs:
        """The first replications, to be run again."""
        from sim.studies.run_folder import Runs

        return Runs(self.comparison.name, self.question, {name: runs[0].scenario for name, runs in self.runs.items()})

    def _stories(self) -> Iterator[str]:
        """Violations and errors, first lines only."""
        broke = "a run broke what checkpoints promise"
        yield from (f"{name}: no result: {error.splitlines()[0]}" for name, error in self.errors.items())
        yield from (f"{name}: {broke}: {stories[0].splitlines()[0]}" for name, stories in self.violations.items())
