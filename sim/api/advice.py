"""A job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.changes import Changes, lines_of
from sim.api.progress import Notebook
from sim.api.study import Study, load
from sim.verbs import advise as verb
from sim.verbs.advise import AdviceOptions, Advised, AdvisedJob

if TYPE_CHECKING:
    from sim.plane import Engine


@dataclass(frozen=True, repr=False, eq=False)
class Advice(Advised):
    """An advice: the setting, its reasons, and how sure it is.  It shows itself as text and tables."""

    @property
    def study(self) -> Study:
        """The job with the advised setting; without one, the job as it is."""
        advised = {} if self.report.advised is None else dict(self.report.advised.point)
        return load(self.file, self.changes).with_(advised)


def advise(
    source: Study | str | PathLike[str], *, p99: str | None = None, recovery: str | None = None, loss: str | None = None,
    visible: str | None = None, failure: str = "task-manager", mtbf: str | None = None, load: Sequence[str] = (), changes: Changes = (),
    replications: int = 12, budget: str = "90 s", within: str = "5 min", horizon: str = "2 h", unknowns: bool = True,
    prices: str | PathLike[str] | None = None, flink: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None, jobs: int | None = None, engine: Engine = "compiled", master: str | None = None,
    conf: Mapping[str, str] | None = None, progress: bool = True,
) -> Advice:  # fmt: skip
    """Try protocols and intervals on a job, undisturbed and with a failure, and choose a setting that keeps the limits.

    `source`: a study of one combination, a scenario file, or what `import_job` reads.  Limits, each may be left out: `p99` of checkpoints
    ("2 s"), `recovery` ("2 min"), `loss` of throughput ("3 %"), `visible` output of transactional sinks ("30 s").  `failure`: what
    recovery is judged by, a lost "task-manager" or a failing "task".  `mtbf`: mean time between failures ("12 h").
    `load`: ``"[source=]file.csv[:column]"``, what arrives.  `budget`: work of all runs, in seconds; `within`: time until the answer.
    At either bound it is given from what has run, and what is left out is listed.  `horizon`: for how long limits have to be kept where
    state grows.  `unknowns`: try other values of what is marked UNKNOWN.  `prices`: a price list of an object
    store (YAML).  `flink`: a file of Flink's configuration, as for `load`; a patch of it is
    kept.  Runs are kept in `folder` (``runs/advise-<name>``).
    Raises ScenarioError, OptionError (a UnitError: a limit that is none), RecordingError.
    """
    options = AdviceOptions(
        p99=p99, recovery=recovery, loss=loss, visible=visible, failure=failure, mtbf=mtbf, load=tuple(load), replications=replications,
        budget=budget, within=within, horizon=horizon, unknowns=unknowns,
        prices=None if prices is None else str(prices), flink=None if flink is None else str(flink),
    )  # fmt: skip
    listener = Notebook(show=progress)
    advised = verb.advise(
        _job(source, lines_of(changes), listener), options, None if folder is None else Path(folder), engine=engine, jobs=jobs,
        master=master, conf=conf, listener=listener,
    )  # fmt: skip
    return Advice(**{own.name: getattr(advised, own.name) for own in fields(advised)})


def _job(source: Study | str | PathLike[str], changes: Sequence[str], listener: Notebook) -> AdvisedJob:
    if not isinstance(source, Study):
        return verb.job_of(Path(source), changes, listener)
    source.single("advise")
    origin = source.origin
    return AdvisedJob(origin.name, origin.file, None if origin.file.is_file() else source.text, (*source.pinned, *changes))
