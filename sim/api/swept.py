"""Many runs and the answer to a question about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.changes import Changes, lines_of, lists_of
from sim.api.progress import Notebook
from sim.api.study import Study
from sim.sweeps.file.definition import Definition
from sim.verbs.display import MOST_ROWS, Picture, paragraph, section_html, section_text
from sim.verbs.sweep import SweepRequest, read_request
from sim.verbs.sweep import sweep as run_sweep

if TYPE_CHECKING:
    import pandas as pd

    from sim.analysis.section import TextTable
    from sim.plane import Engine
    from sim.sweeps.run import SweepResult


class Sweep:
    """The results of a sweep; it shows its answer, or its rows if nobody asked a question."""

    def __init__(self, swept: SweepResult) -> None:
        self._swept = swept

    @property
    def results(self) -> pd.DataFrame:
        """A row per run, failed ones too; columns: `ckptsim schema --results`, times in ms."""
        return self._swept.results

    @property
    def folder(self) -> Path:
        """Where the rows are kept: the same sweep goes on there."""
        return self._swept.folder

    @property
    def sections(self) -> list[TextTable]:
        """Tables of the answer (title, header, rows of text); empty without a question."""
        return self._swept.sections

    @property
    def sentence(self) -> str:
        """The setting that is best, and how sure that is; empty if the file wants none."""
        return self._swept.sentence

    def picture(self) -> Picture:
        """What the question shows, over its settings, with confidence and limits.  ValueError: no question, or no values."""
        drawn = self._swept.picture()
        if drawn is None:
            raise ValueError("the sweep has no question (answer:), or no values: there is nothing to draw")
        return Picture(drawn, "the answer of the sweep")

    def __repr__(self) -> str:
        if not self.sections:
            return str(self.results.head(MOST_ROWS))
        return "\n\n".join(["\n".join(self._before), *map(section_text, self.sections), *self._after])

    def _repr_html_(self) -> str:
        if not self.sections:
            return str(self.results.to_html(index=False, max_rows=MOST_ROWS))
        return "".join([*map(paragraph, self._before), *map(section_html, self.sections), *map(paragraph, self._after)])

    @property
    def _before(self) -> list[str]:
        """The question, and what is known of the job and the load: what was not validated, a backtest, the span of a trace."""
        return [text for text in (self._swept.definition.text, *self._swept.findings) if text]

    @property
    def _after(self) -> list[str]:
        counted = "" if self._swept.failed.empty else self._swept.counted
        return [text for text in (self.sentence, self._swept.left_out, counted) if text]


def sweep(
    what: Study | str | PathLike[str], axes: Mapping[str, Sequence[Any]] | None = None, *, changes: Changes = (),
    folder: str | PathLike[str] | None = None, replications: int | None = None, jobs: int | None = None, engine: Engine = "compiled",
    master: str | None = None, conf: Mapping[str, str] | None = None, checks: bool = True, max_failures: int | None = None,
    racing: int | None = None, progress: bool = True,
) -> Sweep:  # fmt: skip
    """Run a sweep file, or every combination of a study and of `axes` (``{"checkpoint.interval": ["10 s", "30 s"]}``); a row each.

    Rows are kept in `folder` (``runs/<name>-<id>`` by default); a repeated call goes on there.  `jobs`: processes here;
    `master`: a Spark cluster instead, with its settings in `conf`.  `racing`: try all settings of a sweep file in so many worlds, then go
    on with possible winners.  Raises ScenarioError, OptionError, TooManyFailuresError (more than `max_failures`).
    """
    extra = [*lines_of(changes), *lists_of(axes or {}), *([] if replications is None else [f"run.replications={replications}"])]
    swept = run_sweep(
        _of_study(what.with_(extra), racing) if isinstance(what, Study) else read_request(Path(what), extra, racing),
        None if folder is None else Path(folder), engine=engine, jobs=jobs, master=master, conf=conf, checks=checks,
        max_failures=max_failures, listener=Notebook(show=progress),
    )  # fmt: skip
    return Sweep(swept)


def _of_study(study: Study, racing: int | None) -> SweepRequest:
    definition = Definition(study.name, study.question, study.models, warnings=study.read.warnings, backtest=study.read.backtest)
    return read_request(study.origin.file, study.pinned, racing, definition)
