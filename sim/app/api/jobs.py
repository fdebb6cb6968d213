"""`import_job`, `explain_job`, `advise`, `watch` and `validate` from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.app.api.results import Notebook
from sim.app.api.study import Changes, Study, lines_of, load, loads
from sim.app.verbs import advise as verbs_advise
from sim.app.verbs import explain as explain_verb
from sim.app.verbs import importing
from sim.app.verbs import validate as validating
from sim.app.verbs.advise import AdviceOptions, Advised, AdvisedJob
from sim.app.verbs.common import paragraph, preformatted
from sim.app.verbs.explain import Explanation
from sim.app.verbs.importing import JobPlace
from sim.app.verbs.validate import Validation
from sim.app.verbs.watch import Watched, WatchOptions
from sim.app.verbs.watch import watch as watch_verb

if TYPE_CHECKING:
    from sim.app.verbs.pictures import WrittenReport, WrittenTimeline
    from sim.plane import Engine


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

    def timeline(
        self, file: str | PathLike[str], checkpoint: int | None = None, *, begin: str = "0 s", end: str | None = None
    ) -> WrittenTimeline:
        """Write what each subtask did in its checkpoints as Trace Event JSON, for ui.perfetto.dev; None: all that are known.

        Times are since the first known trigger.  Raises OptionError (a window that shows nothing), and what `explain` raises.
        """
        from sim.app.verbs.pictures import draw_source

        return draw_source(self.source, Path(file), checkpoint, begin=begin, end=end, listener=Notebook())

    def __repr__(self) -> str:
        return "\n".join([f"ImportedJob({self.name}), {len(self.text.splitlines())} lines", *self._lines()])

    def _repr_html_(self) -> str:
        return paragraph(f"{self.name}, {len(self.text.splitlines())} lines") + preformatted("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        return [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]


def import_job(
    *sources: str | PathLike[str],
    job: str | None = None,
    out: str | PathLike[str] | None = None,
    sample: str = "60 s",
    deadline: str | None = None,
    save: str | PathLike[str] | None = None,
    keep_secrets: bool = False,
    headers: Mapping[str, str] | None = None,
    compare: bool = False,
    backtest: bool = True,
    flink: str | PathLike[str] | None = None,
    progress: bool = True,
) -> ImportedJob:
    """Turn a real Flink job into a scenario.

    `sources`: an address (``"http://jobmanager:8081"``), a folder or zip of saved answers, an archive of a history server, logs of a
    JobManager, or a recording.  `job`: its id, if there are several.  `out`: the file to write; its
    history (checkpoints, residuals, backtest) is kept beside it.  `compare`: under three kinds of barriers
    instead of its own.  `backtest`: simulate the job as it is, and hold that to its history.  `flink`: flink-conf.yaml, config.yaml or a
    FlinkDeployment, for keys that the job does not tell.
    Of a live job, metrics are watched for `sample`, and all questions end at the `deadline`.  `save` keeps the answers in a folder,
    without passwords unless `keep_secrets`.
    Raises RecordingError (not readable, or no scenario comes of it), OptionError (a ValueError: what does not go together).
    """
    found = importing.import_job(
        _place("import_job", sources, job, deadline, headers),
        out=_path(out),
        sample=sample,
        save=_path(save),
        keep_secrets=keep_secrets,
        compare=compare,
        backtest=backtest,
        flink=_path(flink),
        listener=Notebook(show=progress),
    )
    return ImportedJob(**{field.name: getattr(found, field.name) for field in fields(found)})


def explain_job(
    *sources: str | PathLike[str],
    checkpoint: int | None = None,
    job: str | None = None,
    deadline: str | None = None,
    headers: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Explanation:
    """Explain the checkpoints of a real job without an import: nothing is watched or simulated.

    The arguments are those of `import_job`.
    """
    place = _place("explain_job", sources, job, deadline, headers)
    return explain_verb.explain_job(place, checkpoint=checkpoint, listener=Notebook(show=progress))


def _place(
    caller: str,
    sources: Sequence[str | PathLike[str]],
    job: str | None,
    deadline: str | None,
    headers: Mapping[str, str] | None,
) -> JobPlace:
    if not sources:
        raise TypeError(f"{caller} needs an address, a folder, or files")
    return JobPlace(sources, job, deadline, headers or {})


def _path(given: str | PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given)


# ---- Predictions next to what real jobs did.


def validate(
    *recordings: str | PathLike[str],
    seeds: int = 3,
    jobs: int | None = None,
    environment: str | None = None,
    time_limit_s: float = 600.0,
    everything: bool = False,
    report: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Validation:
    """Simulate recorded jobs from their configuration alone and compare with what was observed.

    `recordings`: files, or folders of them.  `seeds`: simulations per recording.  `environment`: a file of constants.
    A recording that takes longer than `time_limit_s` is skipped.  `everything`: count recordings with features that are not modelled, too.
    `report`: write the table as one HTML file as well.  RecordingError (a ValueError): there are no recordings.
    """
    return validating.validate(
        [Path(place) for place in recordings],
        seeds=seeds,
        jobs=jobs,
        environment=environment,
        time_limit_s=time_limit_s,
        everything=everything,
        report=None if report is None else Path(report),
        listener=Notebook(show=progress),
    )


# ---- A watch from Python.


def watch(
    url: str,
    out: str | PathLike[str],
    *,
    every: str = "60 s",
    duration: str | None = None,
    limit: str | None = None,
    sample: str = "60 s",
    listen: str | None = None,
    metrics: str | PathLike[str] | None = None,
    renew: bool = False,
    job: str | None = None,
    headers: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Watched:
    """Watch a running job: look at it now and then, and hold its checkpoints to a forecast.

    `url`: its JobManager (``"http://jobmanager:8081"``).  `out`: the folder that is the memory of the watch; the same folder goes on.
    `every`: from one look to the next.  `duration`: then it ends (None: when it is interrupted).  `limit`: for p90 of checkpoints (None:
    their interval).  `sample`: how long metrics are watched for a forecast.  `listen`: a port, or host and port, that serves metrics for
    Prometheus and the page.  `metrics`: the file for the textfile collector.  `renew`: make a new forecast.
    Raises RestError (a new folder, and no answer), MemoryFileError (a damaged folder), OptionError (a ValueError: a bad value).
    """
    options = WatchOptions(
        url,
        Path(out),
        job,
        every,
        duration,
        sample,
        limit,
        listen,
        None if metrics is None else Path(metrics),
        renew,
        headers or {},
    )
    return watch_verb(options, listener=Notebook(show=progress))


# ---- A job and its limits in; protocol, interval and Flink configuration out.


@dataclass(frozen=True, repr=False, eq=False)
class Advice(Advised):
    """An advice: the setting, its reasons, and how sure it is.  It shows itself as text and tables."""

    @property
    def study(self) -> Study:
        """The job with the advised setting; without one, the job as it is."""
        advised = {} if self.report.advised is None else dict(self.report.advised.point)
        return load(self.file, self.changes).with_(advised)


def advise(
    source: Study | str | PathLike[str],
    *,
    p99: str | None = None,
    recovery: str | None = None,
    loss: str | None = None,
    visible: str | None = None,
    failure: str = "task-manager",
    mtbf: str | None = None,
    load: Sequence[str] = (),
    changes: Changes = (),
    replications: int = 12,
    budget: str = "90 s",
    within: str = "5 min",
    horizon: str = "2 h",
    unknowns: bool = True,
    prices: str | PathLike[str] | None = None,
    flink: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    jobs: int | None = None,
    engine: Engine = "compiled",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Advice:
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
        p99=p99,
        recovery=recovery,
        loss=loss,
        visible=visible,
        failure=failure,
        mtbf=mtbf,
        load=tuple(load),
        replications=replications,
        budget=budget,
        within=within,
        horizon=horizon,
        unknowns=unknowns,
        prices=None if prices is None else str(prices),
        flink=None if flink is None else str(flink),
    )
    listener = Notebook(show=progress)
    advised = verbs_advise.advise(
        _job(source, lines_of(changes), listener),
        options,
        None if folder is None else Path(folder),
        engine=engine,
        jobs=jobs,
        master=master,
        conf=conf,
        listener=listener,
    )
    return Advice(**{own.name: getattr(advised, own.name) for own in fields(advised)})


def _job(source: Study | str | PathLike[str], changes: Sequence[str], listener: Notebook) -> AdvisedJob:
    if not isinstance(source, Study):
        return verbs_advise.job_of(Path(source), changes, listener)
    source.single("advise")
    origin = source.origin
    return AdvisedJob(
        origin.name, origin.file, None if origin.file.is_file() else source.text, (*source.pinned, *changes)
    )
