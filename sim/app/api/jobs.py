"""Python functions for real jobs: `import_job`, `explain_job`, `advise`, `watch` and `validate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sim.app.api.study import Study, load, loads
from sim.app.verbs import advise as verbs_advise
from sim.app.verbs import explain as explain_verb
from sim.app.verbs import importing
from sim.app.verbs.advise import Advised, AdvisedJob
from sim.app.verbs.common import SILENT, Displayed, Listener, Notebook
from sim.app.verbs.explain import Explanation
from sim.app.verbs.options import (
    AdviseOptions,
    ImportOptions,
    JobOptions,
    WatchJobOptions,
    documented,
    with_all_options,
)
from sim.app.verbs.watch import WatchResult
from sim.app.verbs.watch import watch as watch_verb

if TYPE_CHECKING:
    from sim.app.verbs.pictures import WrittenReport


# ---- Import and explanation.


@dataclass(frozen=True, repr=False)
class ImportedJob(Displayed, importing.ImportedJob):
    """The result of `import_job`: the scenario of a real job, its UNKNOWN inputs, features not modelled, and its backtest."""

    @property
    def study(self) -> Study:
        """Return the scenario as a study."""
        return loads(self.text, self.name)

    def explain(self, checkpoint: int | None = None) -> Explanation:
        """Explain from Flink's statistics where a checkpoint of the real job spent its time.

        `checkpoint`: its id; None: the slow ones of the history.

        LookupError: no such checkpoint, or Flink no longer has its statistics.
        """
        return explain_verb.explain_source(self.source, checkpoint)

    def report(self, file: str | PathLike[str], checkpoint: int | None = None) -> WrittenReport:
        """Write the result of `explain` as a self-contained HTML file.  Raises the errors of `explain`."""
        from sim.app.verbs.pictures import report_source

        return report_source(self.source, Path(file), checkpoint, listener=Notebook())

    def _parts(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        lines = [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]
        return [f"{self.name}, {len(self.text.splitlines())} lines", "\n".join(lines)]


@documented(ImportOptions)
def import_job(*sources: str | PathLike[str], **options: Unpack[ImportOptions]) -> ImportedJob:
    """Turn a real Flink job into a scenario.

    `sources`: an address (``"http://jobmanager:8081"``), a folder or zip of saved REST responses, a history server
    archive, JobManager logs, or a recording.  `out`: scenario file to write; the job's history (checkpoints, residuals,
    backtest) is written next to it.

    RecordingError: not readable, or no scenario can be made of it.  OptionError (a ValueError): options that conflict.
    """
    _need_sources("import_job", sources)
    found = importing.import_job(sources, **options)
    return ImportedJob(**{field.name: getattr(found, field.name) for field in fields(found)})


@with_all_options(JobOptions)
def explain_job(
    *sources: str | PathLike[str],
    checkpoint: int | None = None,
    listener: Listener = SILENT,
    **options: Unpack[JobOptions],
) -> Explanation:
    """Explain the checkpoints of a real job without an import: no metrics are sampled, and nothing is simulated.

    `sources`: as for `import_job`.
    """
    _need_sources("explain_job", sources)
    place = importing.place_of(sources, options, options["deadline"])
    return explain_verb.explain_job(place, checkpoint=checkpoint, listener=listener)


def _need_sources(caller: str, sources: Sequence[object]) -> None:
    if not sources:
        raise TypeError(f"{caller} needs an address, a folder, or files")


# ---- Watch.


@documented(WatchJobOptions)
def watch(url: str, out: str | PathLike[str], **options: Unpack[WatchJobOptions]) -> WatchResult:
    """Poll a running job and compare its checkpoints with a forecast.

    `url`: the JobManager (``"http://jobmanager:8081"``).  `out`: folder for the state; a call with the same folder resumes.

    RestError: the first poll of a new folder fails.  MemoryFileError: the folder is damaged.  OptionError (a ValueError):
    an invalid value.
    """
    return watch_verb(url, folder=out, **options)


# ---- Advice.


@dataclass(frozen=True, repr=False, eq=False)
class Advice(Advised):
    """The result of `advise`: the recommended setting, its reasons and their confidence; displays as text and tables."""

    @property
    def study(self) -> Study:
        """Return the job with the recommended setting, or unchanged without a recommendation."""
        advised = {} if self.report.advised is None else dict(self.report.advised.point)
        return load(self.file, self.changes).with_(advised)


@documented(AdviseOptions)
def advise(source: Study | str | PathLike[str], **options: Unpack[AdviseOptions]) -> Advice:
    """Simulate barrier modes and intervals on a job, with and without a failure, and recommend a setting that meets the limits.

    `source`: a study of one combination, a scenario file, or a source that `import_job` reads.  Limits, all optional:
    `p99` of checkpoint durations ("2 s"), `recovery` time ("2 min"), `loss` of throughput ("3 %"), delay until output of
    transactional sinks is `visible` ("30 s").  When the CPU `budget` or the time limit `within` is reached, the
    recommendation is based on the finished runs, and skipped candidates are listed.

    ScenarioError, RecordingError: the source cannot be read.  OptionError (a UnitError): an invalid limit.
    """
    job = _job(source) if isinstance(source, Study) else Path(source)
    advised = verbs_advise.advise(job, **options)
    return Advice(**{own.name: getattr(advised, own.name) for own in fields(advised)})


def _job(source: Study) -> AdvisedJob:
    source.single("advise")
    origin = source.origin
    return AdvisedJob(origin.name, origin.file, None if origin.file.is_file() else source.text, source.pinned)
