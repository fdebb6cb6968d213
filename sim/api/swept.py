"""Many runs and the answer to a question about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.changes import Changes, lines_of, lists_of
from sim.api.progress import Notebook
from sim.api.study import Study
from sim.cells.seeded import SeededScenarios
from sim.scenario.flink.file import flink_change
from sim.sweeps.file.definition import Definition
from sim.verbs.sweep import Sweep, SweepRequest, read_request
from sim.verbs.sweep import sweep as run_sweep

if TYPE_CHECKING:
    from sim.plane import Engine


def sweep(
    what: Study | str | PathLike[str], axes: Mapping[str, Sequence[Any]] | None = None, *, changes: Changes = (),
    folder: str | PathLike[str] | None = None, replications: int | None = None, jobs: int | None = None, engine: Engine = "compiled",
    master: str | None = None, conf: Mapping[str, str] | None = None, checks: bool = True, max_failures: int | None = None,
    racing: int | None = None, progress: bool = True, flink: str | PathLike[str] | None = None,
) -> Sweep:  # fmt: skip
    """Run a sweep file, or every combination of a study and of `axes` (``{"checkpoint.interval": ["10 s", "30 s"]}``); a row each.

    Rows are kept in `folder` (``runs/<name>-<id>`` by default); a repeated call goes on there.  `jobs`: processes here;
    `master`: a Spark cluster instead, with its settings in `conf`.  `racing`: try all settings of a sweep file in so many worlds, then go
    on with possible winners.  `flink`: a file of Flink's configuration, as for `load`.

    Raises ScenarioError, OptionError, TooManyFailuresError (more than `max_failures`).
    """
    extra = [*lines_of(changes), *lists_of(axes or {}), *([] if replications is None else [f"run.replications={replications}"])]
    deployed = None if flink is None else Path(flink)
    if isinstance(what, Study) and deployed is not None:
        extra = [flink_change(deployed, what.origin.file), *extra]
    return run_sweep(
        _of_study(what.with_(extra), racing) if isinstance(what, Study) else read_request(Path(what), extra, racing, flink=deployed),
        None if folder is None else Path(folder), engine=engine, jobs=jobs, master=master, conf=conf, checks=checks,
        max_failures=max_failures, listener=Notebook(show=progress),
    )  # fmt: skip


def _of_study(study: Study, racing: int | None) -> SweepRequest:
    definition = Definition(
        study.name, study.question, SeededScenarios.as_given(study.models), warnings=study.read.warnings, backtest=study.read.backtest
    )
    return read_request(study.origin.file, study.pinned, racing, definition)
