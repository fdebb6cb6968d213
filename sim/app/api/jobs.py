"""`import_job`, `explain_job`, `advise`, `watch` and `validate` from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sim.app.api.results import Notebook
from sim.app.api.study import Study, load, loads
from sim.app.verbs import advise as verbs_advise
from sim.app.verbs import explain as explain_verb
from sim.app.verbs import importing
from sim.app.verbs import validate as validating
from sim.app.verbs.advise import Advised, AdvisedJob
from sim.app.verbs.common import paragraph, preformatted
from sim.app.verbs.explain import Explanation
from sim.app.verbs.options import (
    AdviseOptions,
    ImportOptions,
    JobOptions,
    ValidateOptions,
    WatchJobOptions,
    documented,
    with_defaults,
)
from sim.app.verbs.validate import Validation
from sim.app.verbs.watch import Watched
from sim.app.verbs.watch import watch as watch_verb

if TYPE_CHECKING:
    from sim.app.verbs.pictures import WrittenReport


# ---- A real job as a study: read off Flink's REST API, what was saved of it, logs, or a recording.


@dataclass(frozen=True, repr=False)
class ImportedJob(importing.ImportedJob):
    """An import for notebooks: the scenario of a real job, its UNKNOWN inputs, what is not modelled, and its backtest."""

    @property
    def study(self) -> Study:
        """The job as a study."""
        return loads(self.text, self.name)

    def explain(self, checkpoint: int | None = None, *, verify: bool = False) -> Explanation:
        """Why a checkpoint of the real job took as long as it did, from Flink's statistics; None: the slow ones of its history.

        `verify`: simulate the job as it is, and with what would help.
        LookupError: there is no such checkpoint, or its statistics are not kept any more.
        """
        return explain_verb.explain_source(self.source, checkpoint, verify=verify)

    def report(
        self, file: str | PathLike[str], checkpoint: int | None = None, *, verify: bool = False
    ) -> WrittenReport:
        """Write what `explain` says as one HTML file that needs no network.  Raises what `explain` raises."""
        from sim.app.verbs.pictures import report_source

        return report_source(self.source, Path(file), checkpoint, verify=verify, listener=Notebook())

    def __repr__(self) -> str:
        return "\n".join([f"ImportedJob({self.name}), {len(self.text.splitlines())} lines", *self._lines()])

    def _repr_html_(self) -> str:
        return paragraph(f"{self.name}, {len(self.text.splitlines())} lines") + preformatted("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        return [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]


@documented(ImportOptions)
def import_job(*sources: str | PathLike[str], progress: bool = True, **options: Unpack[ImportOptions]) -> ImportedJob:
    """Turn a real Flink job into a scenario.

    `sources`: an address (``"http://jobmanager:8081"``), a folder or zip of saved answers, an archive of a history server, logs of a
    JobManager, or a recording.  `out`: the file to write; its history (checkpoints, residuals, backtest) is kept beside
    it.  Raises RecordingError (not readable, or no scenario comes of it), OptionError (a ValueError: what does not go
    together).
    """
    _need_sources("import_job", sources)
    found = importing.import_job(sources, listener=Notebook(show=progress), **options)
    return ImportedJob(**{field.name: getattr(found, field.name) for field in fields(found)})


@documented(JobOptions)
def explain_job(
    *sources: str | PathLike[str],
    checkpoint: int | None = None,
    progress: bool = True,
    **options: Unpack[JobOptions],
) -> Explanation:
    """Explain the checkpoints of a real job without an import: nothing is watched or simulated.

    The arguments are those of `import_job`.
    """
    _need_sources("explain_job", sources)
    given = with_defaults(JobOptions, options)
    place = importing.place_of(sources, given, given["deadline"])
    return explain_verb.explain_job(place, checkpoint=checkpoint, listener=Notebook(show=progress))


def _need_sources(caller: str, sources: Sequence[object]) -> None:
    if not sources:
        raise TypeError(f"{caller} needs an address, a folder, or files")


# ---- Predictions next to what real jobs did.


@documented(ValidateOptions)
def validate(*recordings: str | PathLike[str], progress: bool = True, **options: Unpack[ValidateOptions]) -> Validation:
    """Simulate recorded jobs from their configuration alone and compare with what was observed.

    `recordings`: files, or folders of them.  RecordingError (a ValueError): there are no recordings.
    """
    return validating.validate([Path(place) for place in recordings], listener=Notebook(show=progress), **options)


# ---- A watch from Python.


@documented(WatchJobOptions)
def watch(url: str, out: str | PathLike[str], *, progress: bool = True, **options: Unpack[WatchJobOptions]) -> Watched:
    """Watch a running job: look at it now and then, and hold its checkpoints to a forecast.

    `url`: its JobManager (``"http://jobmanager:8081"``).  `out`: the folder that is the memory of the watch; the same folder goes on.
    Raises RestError (a new folder, and no answer), MemoryFileError (a damaged folder), OptionError (a ValueError: a bad
    value).
    """
    return watch_verb(url, listener=Notebook(show=progress), folder=out, **options)


# ---- A job and its limits in; protocol, interval and Flink configuration out.


@dataclass(frozen=True, repr=False, eq=False)
class Advice(Advised):
    """An advice: the setting, its reasons, and how sure it is.  It shows itself as text and tables."""

    @property
    def study(self) -> Study:
        """The job with the advised setting; without one, the job as it is."""
        advised = {} if self.report.advised is None else dict(self.report.advised.point)
        return load(self.file, self.changes).with_(advised)


@documented(AdviseOptions)
def advise(source: Study | str | PathLike[str], *, progress: bool = True, **options: Unpack[AdviseOptions]) -> Advice:
    """Try protocols and intervals on a job, undisturbed and with a failure, and choose a setting that keeps the limits.

    `source`: a study of one combination, a scenario file, or what `import_job` reads.  Limits, each may be left out: `p99` of checkpoints
    ("2 s"), `recovery` ("2 min"), `loss` of throughput ("3 %"), `visible` output of transactional sinks ("30 s").
    At the `budget` or the time `within` the answer is given from what has run, and what is left out is listed.
    Raises ScenarioError, OptionError (a UnitError: a limit that is none), RecordingError.
    """
    job = _job(source) if isinstance(source, Study) else Path(source)
    advised = verbs_advise.advise(job, listener=Notebook(show=progress), **options)
    return Advice(**{own.name: getattr(advised, own.name) for own in fields(advised)})


def _job(source: Study) -> AdvisedJob:
    source.single("advise")
    origin = source.origin
    return AdvisedJob(origin.name, origin.file, None if origin.file.is_file() else source.text, source.pinned)
