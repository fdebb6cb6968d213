"""Readers of the outside world: recordings of real Flink jobs, and what their own REST API tells.  What was predicted for them is
calibration's business.
"""

from sim.recordings.configured.scenario import Import
from sim.recordings.inferred.draft import Inference
from sim.recordings.inferred.measured import Measured, compared
from sim.recordings.inferred.scenario import infer_scenario
from sim.recordings.logs.reading import JobLog
from sim.recordings.observed.table import observed
from sim.recordings.reader import RecordingError, read
from sim.recordings.recording import Recording
from sim.recordings.rest.fetching import fetch
from sim.recordings.rest.recording import to_recording
from sim.recordings.rest.saved import read_saved, save
from sim.recordings.rest.snapshot import Snapshot
from sim.recordings.sources import infer, read_any, read_source, to_document

__all__ = [
    "Import", "Inference", "JobLog", "Measured", "Recording", "RecordingError", "Snapshot", "compared", "fetch", "infer", "infer_scenario",
    "observed", "read", "read_any", "read_saved", "read_source", "save", "to_document", "to_recording",
]  # fmt: skip
