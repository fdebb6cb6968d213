"""The Python function `advise`, for studies and sources of real jobs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Unpack

from sim.app.api.study import Study, load
from sim.app.verbs import advise as verbs_advise
from sim.app.verbs.advise import Advised, AdvisedJob
from sim.app.verbs.options import AdviseOptions, documented


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
