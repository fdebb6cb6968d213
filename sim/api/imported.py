"""A real job as a study: read off Flink's REST API, what was saved of it, logs, or a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.progress import Notebook
from sim.api.study import Study, loads
from sim.verbs import explain as explain_verb
from sim.verbs import importing as verb
from sim.verbs.display import paragraph, preformatted
from sim.verbs.explanation import Explanation
from sim.verbs.job_place import JobPlace

if TYPE_CHECKING:
    from sim.verbs.report import WrittenReport
    from sim.verbs.timeline import WrittenTimeline


@dataclass(frozen=True, repr=False)
class ImportedJob(verb.ImportedJob):
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

    def report(self, file: str | PathLike[str], checkpoint: int | None = None, *, verify: bool = False) -> WrittenReport:
        """Write what `explain` says as one HTML file that needs no network.  Raises what `explain` raises."""
        from sim.verbs.job_pictures import report_source

        return report_source(self.source, Path(file), checkpoint, verify=verify, listener=Notebook())

    def timeline(
        self, file: str | PathLike[str], checkpoint: int | None = None, *, begin: str = "0 s", end: str | None = None
    ) -> WrittenTimeline:
        """Write what each subtask did in its checkpoints as Trace Event JSON, for ui.perfetto.dev; None: all that are known.

        Times are since the first known trigger.  Raises OptionError (a window that shows nothing), and what `explain` raises.
        """
        from sim.verbs.job_pictures import draw_source

        return draw_source(self.source, Path(file), checkpoint, begin=begin, end=end, listener=Notebook())

    def __repr__(self) -> str:
        return "\n".join([f"ImportedJob({self.name}), {len(self.text.splitlines())} lines", *self._lines()])

    def _repr_html_(self) -> str:
        return paragraph(f"{self.name}, {len(self.text.splitlines())} lines") + preformatted("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lost = [f"not modelled: {line}" for line in self.not_modelled]
        return [*lost, *(f"UNKNOWN: {question}" for question in self.unknown), *self.backtest]


def import_job(
    *sources: str | PathLike[str], job: str | None = None, out: str | PathLike[str] | None = None, sample: str = "60 s",
    deadline: str | None = None, save: str | PathLike[str] | None = None, keep_secrets: bool = False,
    headers: Mapping[str, str] | None = None, compare: bool = False, backtest: bool = True,
    flink: str | PathLike[str] | None = None, progress: bool = True,
) -> ImportedJob:  # fmt: skip
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
    found = verb.import_job(
        _place("import_job", sources, job, deadline, headers), out=_path(out), sample=sample, save=_path(save), keep_secrets=keep_secrets,
        compare=compare, backtest=backtest, flink=_path(flink), listener=Notebook(show=progress),
    )  # fmt: skip
    return ImportedJob(**{field.name: getattr(found, field.name) for field in fields(found)})


def explain_job(
    *sources: str | PathLike[str], checkpoint: int | None = None, job: str | None = None, deadline: str | None = None,
    headers: Mapping[str, str] | None = None, progress: bool = True,
) -> Explanation:  # fmt: skip
    """Explain the checkpoints of a real job without an import: nothing is watched or simulated.

    The arguments are those of `import_job`.
    """
    place = _place("explain_job", sources, job, deadline, headers)
    return explain_verb.explain_job(place, checkpoint=checkpoint, listener=Notebook(show=progress))


def _place(
    caller: str, sources: Sequence[str | PathLike[str]], job: str | None, deadline: str | None, headers: Mapping[str, str] | None
) -> JobPlace:
    if not sources:
        raise TypeError(f"{caller} needs an address, a folder, or files")
    return JobPlace(sources, job, deadline, headers or {})


def _path(given: str | PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given)
