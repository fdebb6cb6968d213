"""What a study gives: a table, a sentence, pictures, and the tables of all runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sim.analysis.strategies.side_by_side import texts
from sim.api.guesses import Guessed
from sim.api.plots import Plots
from sim.api.run_again import RunAgain
from sim.comparison.assumption import DecidingAssumption
from sim.verbs.display import paragraph, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.comparison.comparison import Comparison
    from sim.explain.runs import Runs
    from sim.model.backtest import Backtest
    from sim.runtime.run.result import Result
    from sim.verbs.run import RunOutcome


@dataclass(frozen=True, repr=False, eq=False)
class Results(Guessed, RunAgain):
    """The results of a study: a strategy is a combination, and has a run per replication.

    Tables have the columns `strategy` and `replication`, then those of `ckptsim schema --results`; times are ms, sizes bytes.
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
        from sim.report.results import assumptions

        request = compared.request
        return Results(compared.comparison, assumptions(request.study, request.origin.text), compared, request.study.backtest)

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
        from sim.report.comparison_page import comparison_page
        from sim.report.results import ReportedResults as Reported
        from sim.verbs.kept import write_page

        command = "" if self.compared is None else self.compared.request.command(self.compared.folder)
        first = {name: stories[0] for name, stories in self.violations.items()}
        findings, notes, outcomes = ((), [], []) if (found := self.compared) is None else (found.findings, found.notes, found.outcomes)
        reported = Reported(
            self.comparison, self.assumptions, command, first, self.backtest, findings, tuple(notes), tuple(outcomes), self.errors
        )
        write_page(comparison_page(reported), Path(file))
        return Path(file)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Keep tables, journals, summary and picture in a folder, as `ckptsim run --out` does; returns it.

        ValueError: the results are of several studies.
        """
        if self.compared is None:
            raise ValueError("results of several studies are kept one by one: save each before they are compared")
        from sim.verbs.run import keep_comparison

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
                [rows, self.verdict, *map(str, self.comparison.deciding), "" if found is None else table_text(*found), *self._stories()],
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
        from sim.explain.runs import Runs

        return Runs(self.comparison.name, self.question, {name: runs[0].scenario for name, runs in self.runs.items()})

    def _stories(self) -> Iterator[str]:
        """Violations and errors, first lines only."""
        broke = "a run broke what checkpoints promise"
        yield from (f"{name}: no result: {error.splitlines()[0]}" for name, error in self.errors.items())
        yield from (f"{name}: {broke}: {stories[0].splitlines()[0]}" for name, stories in self.violations.items())
