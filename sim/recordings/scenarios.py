"""The scenario of any source: as a recording was configured, or as it was inferred from measurements."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from sim.recordings.infer.draft import Inference
from sim.recordings.infer.log import infer_log
from sim.recordings.infer.scenario import infer_scenario
from sim.recordings.observe.measured import Measured, compared
from sim.recordings.source.job_log import JobLog
from sim.recordings.source.recorded_job import ConfiguredJob, Import, RecordedJob
from sim.recordings.source.rest.snapshot import RestSnapshot
from sim.units import format_duration


def infer(source: RestSnapshot | JobLog) -> Inference:
    """The scenario inferred from measurements."""
    return infer_scenario(source) if isinstance(source, RestSnapshot) else infer_log(source)


def to_document(recording: RecordedJob, *, compare: bool = False) -> Import:
    """The scenario of a recorded job: its configuration or, if that is unknown, the inferred one."""
    match recording:
        case ConfiguredJob():
            return recording.to_document(compare=compare)
        case Measured():
            return _as_inferred(recording, compare=compare)
        case _:
            raise TypeError(f"no scenario is made of a {type(recording).__name__}")


def _as_inferred(job: Measured, *, compare: bool) -> Import:
    inference = compared(job.inference) if compare else job.inference
    run = {"duration": format_duration(round(_known_s(job)) * 10**9)}
    return Import(inference.document | {"run": run}, inference.question, inference.comments[""].splitlines(), list(inference.not_modelled))


def _known_s(job: Measured) -> float:
    """Seconds of the job that its history covers: at most until the checkpoint after the listed ones would have begun."""
    triggers = sorted(point.trigger_timestamp for point in job.checkpoints.list if not point.is_savepoint)
    gaps = [after - before for before, after in pairwise(triggers)]
    return min(job.duration_s, (triggers[-1] - triggers[0] + median(gaps)) / 1000) if gaps else job.duration_s
